// SPDX-License-Identifier: Apache-2.0
// ctest: check tsan

/// Values that are published are read whole, on every link: by snapshots and by plain loads, while
/// others come one after the other, by those that come late, and after a writer that has died.

#include "rmem/node_impl.hpp"
#include "tests/support/checks.hpp"
#include "tests/support/link_nodes.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace rmem::test {
namespace {

/// A value of which each word says which one it is.
class Value {
public:
    Value(std::size_t bytes, std::uint32_t number) : words_(bytes / kWordBytes) {
        for (std::size_t i = 0; i < words_.size(); ++i) words_[i] = content(number, i);
    }
    explicit Value(std::size_t bytes) : words_(bytes / kWordBytes) {}
    void* data() { return words_.data(); }
    std::uint32_t& operator[](std::size_t i) { return words_[i]; }
    std::size_t bytes() const { return words_.size() * kWordBytes; }
    /// Which it is; fails if it is of several.
    std::uint32_t number() const {
        const std::uint32_t number = words_[0] ^ kMix;
        for (std::size_t i = 0; i < words_.size(); ++i) {
            check(words_[i] == content(number, i),
                  fmt::format("word {} of {} is not of value {}", i, words_.size(), number));
        }
        return number;
    }

private:
    static constexpr std::uint32_t kMix = 0x9e37'79b1;
    static std::uint32_t content(std::uint32_t number, std::size_t i) {
        return (number + static_cast<std::uint32_t>(i) * 0x0101'0101) ^ kMix;
    }
    std::vector<std::uint32_t> words_;
};

class Publishing : public LinkConformance {
protected:
    static constexpr std::size_t kSizes[] = {4, 100, 3000};
    static std::size_t place_of(std::size_t index) { return 0x40 + 0x400 * index; }

    /// Of values that follow one another.
    std::uint32_t many() const {
        const bool is_slow = simulated() || GetParam().timing != "none";
        return is_slow ? 60 : is_remote(GetParam().link) ? 300 : 3000;
    }
    static void publish(Self& self, std::size_t offset, Value value) {
        self.await([&] {
            return self.node.publish(offset, value.data(), value.bytes()) == WriteResult::ok;
        });
    }
    static std::optional<std::uint32_t> taken(Self& self, std::size_t offset, std::size_t bytes) {
        Value value(bytes);
        if (!self.node.snapshot(offset, value.data(), bytes)) return std::nullopt;
        return value.number();
    }
    /// The same as a program does it that has only the memory.
    static std::optional<std::uint32_t> loaded(Self& self, std::size_t offset, std::size_t bytes) {
        self.node.poll();
        Value value(bytes);
        const std::uint32_t tail = self.raw(offset + bytes + 4);
        for (std::size_t i = 0; i < bytes; i += 4) value[i / 4] = self.raw(offset + 4 + i);
        if (tail == 0 || tail != self.raw(offset)) return std::nullopt;
        return value.number();
    }
};

TEST_P(Publishing, values_are_never_seen_in_part) {
    const std::uint32_t values = many();
    run(3, [&](Self& self) {
        if (self.id == 0) {
            for (std::uint32_t number = 1; number <= values; ++number) {
                for (std::size_t i = 0; i < std::size(kSizes); ++i)
                    publish(self, place_of(i), Value(kSizes[i], number));
                if (number % 8 == 0) Self::rest();
            }
            check(self.node.flush(Deadline::in(kPatienceNs)), "all have the last one");
        }
        for (std::size_t i = 0; i < std::size(kSizes); ++i) {
            std::uint32_t last = 0;
            self.await([&] {
                const auto found = self.id == 1 ? loaded(self, place_of(i), kSizes[i])
                                                : taken(self, place_of(i), kSizes[i]);
                if (!found) return false;
                check(*found >= last, fmt::format("{} comes after {}", *found, last));
                last = *found;
                return last == values;
            });
        }
    });
}

TEST_P(Publishing, the_last_value_is_there_for_one_who_comes_late) {
    run(3,
        [&](Self& self) {
            if (self.id == 0) {
                for (std::uint32_t number = 1; number <= 3; ++number)
                    publish(self, 0x100, Value(100, number));
                self.let_late_come();
                for (std::uint32_t number = 4; number <= 20; ++number)
                    publish(self, 0x100, Value(100, number));
            }
            self.await([&] { return taken(self, 0x100, 100) == 20U; });
        },
        {.late = 2});
}

TEST_P(Publishing, what_a_writer_left_in_the_middle_is_no_value_and_the_next_writer_goes_on) {
    run(2, [&](Self& self) {
        if (self.id == 0) {
            check(!taken(self, 0x100, 100), "before the first");
            publish(self, 0x100, Value(100, 1));
            Value half(48, 2);
            const std::uint32_t head = self.node.load(0x100) + 1;
            self.write(0x100, &head, sizeof head);
            self.write(0x104, half.data(), half.bytes());
            check(!taken(self, 0x100, 100), "in the middle");
            self.meet(0);
        } else {
            self.meet(0);
            self.await([&] { return self.node.load(0x104 + 44) == Value(48, 2)[11]; });
            check(!taken(self, 0x100, 100), "in the middle, elsewhere");
            publish(self, 0x100, Value(100, 3));
        }
        self.await([&] { return taken(self, 0x100, 100) == 3U; });
    });
}

TEST_P(Publishing, a_writer_that_dies_leaves_whole_values_or_none) {
    if (!processes()) GTEST_SKIP() << "a thread cannot be killed alone";
    run(2,
        [&](Self& self) {
            if (self.id == 0) {
                for (std::uint32_t number = 1;; ++number) {
                    publish(self, 0x100, Value(3000, number));
                    if (number == 40) self.die_here();
                }
            }
            self.await([&] {
                static_cast<void>(taken(self, 0x100, 3000));  // whole, or it fails
                return !self.node.is_alive(0);                // nothing of it is under way then
            });
            static_cast<void>(taken(self, 0x100, 3000));
            publish(self, 0x100, Value(3000, 77));
            check(taken(self, 0x100, 3000) == 77U, "the next writer's");
        },
        {.dies = 0});
}

TEST_P(Publishing, the_number_comes_round_past_0) {
    run(1, [&](Self& self) {
        Node::Impl::of(self.node).publications() = 0xffff'fffe;
        for (const std::uint32_t number : {0xffff'ffffU, 1U, 2U}) {
            publish(self, 0x100, Value(8, number));
            check(self.node.load(0x100) == number, fmt::format("the head is not {}", number));
            check(self.node.load(0x10c) == number, fmt::format("the tail is not {}", number));
            check(taken(self, 0x100, 8) == number, "the value");
        }
    });
}

TEST_P(Publishing, structs_of_any_size_are_values) {
    struct Odd {
        std::array<char, 5> text;
    };
    run(1, [&](Self& self) {
        static_assert(published_bytes(5) == 16);
        check(self.node.publish(0x100, Odd{{"four"}}) == WriteResult::ok, "room");
        const auto odd = self.node.snapshot<Odd>(0x100);
        check(odd && odd->text[3] == 'r', "what was published");
        check(!self.node.snapshot<double>(0x200), "nothing was published there");
    });
}

TEST_P(Publishing, places_that_cannot_be_are_refused) {
    run(1, [&](Self& self) {
        const auto refused = [&](std::size_t offset, std::size_t bytes) {
            std::array<char, 64> place{};
            for (const bool writes : {true, false}) {
                try {
                    if (writes) static_cast<void>(self.node.publish(offset, &place, bytes));
                    if (!writes) static_cast<void>(self.node.snapshot(offset, &place, bytes));
                    check(false, fmt::format("{} bytes at {:#x} are not refused", bytes, offset));
                } catch (const Error& error) {
                    check(error.code() == Errc::invalid_argument, error.what());
                }
            }
        };
        refused(0x102, 8);
        refused(kBytes - 12, 8);
        refused(kBytes, 0);
        refused(0, SIZE_MAX);
        refused(0, SIZE_MAX - 8);
        check(self.node.publish(kBytes - 16, std::uint64_t{5}) == WriteResult::ok,
              "the last place");
    });
}

INSTANTIATE_TEST_SUITE_P(EachLink, Publishing,
                         conformance_on({{LinkKind::direct, {"none"}},
                                         {LinkKind::ring, {"none", "gt200"}},
                                         {LinkKind::udp, {"none"}},
                                         {LinkKind::fabric, {"none"}},
                                         {LinkKind::sim, {"gt200"}}}),
                         conformance_case_name);

}  // namespace
}  // namespace rmem::test
