// SPDX-License-Identifier: Apache-2.0
// ctest: check tsan

/// A rank that waits for a word is woken by each write that changes it, in each stage of its
/// waiting and whatever else is written; and by nothing else.
///
/// A wake-up counts as lost when the waiter has not told of the value for kUntoldNs: the writer
/// waits for that without a call of the library, which could bring the write to the waiter late.

#include "tests/rmem/node_pauses.hpp"
#include "tests/support/link_nodes.hpp"

#include <sys/resource.h>

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace rmem::test {
namespace {

constexpr std::int64_t kSliceNs = 30'000'000'000;  ///< of a wait: longer than kUntoldNs

class NodeWaiting : public LinkConformance {
protected:
    /// The next value of the word.
    static std::uint32_t next_value(Self& self, std::size_t offset, std::uint32_t old) {
        return self.node.wait_change(offset, old, Deadline::in(kSliceNs));
    }
};

// ---- A word for each

/// Where the words of those who wait lie.
struct Spread {
    const char* name;
    std::array<std::size_t, 4> places;
};
constexpr std::array<Spread, 3> kSpreads = {{
    {"one line", {0x100, 0x104, 0x108, 0x13c}},
    {"neighbouring lines", {0x200, 0x240, 0x280, 0x2c0}},
    {"far from each other", {0x40, 0x7fc, 0x1000, 0x1ffc}},
}};
constexpr std::size_t kNobodysWords = 0x110;  ///< in that one line
constexpr unsigned kWaiters = 4;

TEST_P(NodeWaiting, each_of_several_is_woken_by_the_writes_to_its_own_word) {
    constexpr std::uint32_t kWrites = 30;
    run(1 + kWaiters, [](Self& self) {
        std::uint64_t state = 18;
        for (std::size_t s = 0; s < kSpreads.size(); ++s) {
            const Spread& spread = kSpreads[s];
            const auto told = [&](unsigned waiter) -> auto& {
                return self.shared.words[8 * s + waiter];
            };
            if (self.id != 0) {
                const std::size_t place = spread.places[self.id - 1];
                for (std::uint32_t value = 1; value <= kWrites; ++value) {
                    ASSERT_EQ(next_value(self, place, value - 1), value)
                        << spread.name << ", at node " << self.id;
                    told(self.id) = value;
                }
                continue;
            }
            std::array<std::uint32_t, 1 + kWaiters> written{};
            for (std::uint32_t i = 0; i < kWaiters * kWrites; ++i) {
                unsigned to = 1 + static_cast<unsigned>(next_random(state) % kWaiters);
                while (written[to] == kWrites) to = 1 + to % kWaiters;
                ASSERT_TRUE(is_told([&] { return told(to) == written[to]; }))
                    << spread.name << ": node " << to << " missed " << written[to];
                pause(any_pause(state));
                for (std::uint64_t others = next_random(state) % 4; others > 0; --others) {
                    self.write_word(kNobodysWords + 4 * (next_random(state) % 8), i);
                }
                self.write_word(spread.places[to - 1], ++written[to]);
            }
            for (unsigned to = 1; to <= kWaiters; ++to) {
                ASSERT_TRUE(is_told([&] { return told(to) == kWrites; }))
                    << spread.name << ": node " << to << " missed the last";
            }
        }
    });
}

TEST_P(NodeWaiting, each_sees_the_last_value_of_its_word_of_many_written_at_once) {
    constexpr std::uint32_t kWrites = 200;
    run(1 + kWaiters, [](Self& self) {
        std::uint64_t state = 19;
        const auto& places = kSpreads[0].places;
        if (self.id != 0) {
            std::uint32_t seen = 0;
            while (seen != kWrites) {
                const std::uint32_t value = next_value(self, places[self.id - 1], seen);
                ASSERT_GT(value, seen) << "at node " << self.id;
                seen = value;
            }
            self.shared.words[self.id] = seen;
            return;
        }
        for (std::uint32_t value = 1; value <= kWrites; ++value) {
            for (const std::size_t place : places) self.write_word(place, value);
            if (value % 8 == 0) pause(any_pause(state));
        }
        for (unsigned to = 1; to <= kWaiters; ++to) {
            ASSERT_TRUE(is_told([&] { return self.shared.words[to] == kWrites; }))
                << "node " << to << " missed the last";
        }
    });
}

TEST_P(NodeWaiting, all_that_wait_for_one_word_are_woken_by_any_of_them) {
    constexpr std::uint32_t kWrites = 40;
    run(4, [](Self& self) {
        std::uint64_t state = 20;
        for (std::uint32_t value = 1; value <= kWrites; ++value) {
            const std::int64_t before = any_pause(state);  // the same at each node
            if (value % self.nodes == self.id) {
                ASSERT_TRUE(is_told([&] { return self.shared.words[0] == 3 * (value - 1); }))
                    << "somebody missed " << value - 1;
                pause(before);
                self.write_word(0x300, value);
            } else {
                ASSERT_EQ(next_value(self, 0x300, value - 1), value) << "at node " << self.id;
                ++self.shared.words[0];
            }
        }
    });
}

// ---- Each kind of write

/// Node 0 changes the word in each way, after each pause, and node 1 waits for that.
TEST_P(NodeWaiting, each_kind_of_write_ends_a_wait) {
    static constexpr std::size_t kWord = 0x204;
    static constexpr unsigned kTimes = 2;
    struct Way {
        const char* name;
        std::uint32_t change;  ///< to the word's value
        std::function<void(Self&, std::uint32_t)> write;
    };
    const auto block = [](Self& self, std::uint32_t value, std::size_t begin, std::size_t words) {
        const std::vector<std::uint32_t> all(words, value);
        self.write(begin, all.data(), 4 * words);
    };
    const std::vector<Way> ways = {
        {"one word", 1, [](Self& self, std::uint32_t value) { self.write_word(kWord, value); }},
        {"a block that begins there", 1,
         [&](Self& self, std::uint32_t value) { block(self, value, kWord, 20); }},
        {"a block that ends there", 1,
         [&](Self& self, std::uint32_t value) { block(self, value, kWord - 76, 20); }},
        {"a large block that covers it", 1,
         [&](Self& self, std::uint32_t value) { block(self, value, 0, 1024); }},
        {"the third byte", 0x10000,
         [](Self& self, std::uint32_t value) {
             const auto byte = static_cast<std::uint8_t>(value >> 16);
             self.write(kWord + 2, &byte, 1);
         }},
        {"a word that the data filter lets through", 1,
         [](Self& self, std::uint32_t value) {
             self.node.set_data_filter(true);
             for (int i = 0; i < 3; ++i) self.write_word(kWord, self.node.load(kWord));
             self.write_word(kWord, value);
             self.node.set_data_filter(false);
         }},
        {"the one word of a block that the data filter lets through", 1,
         [](Self& self, std::uint32_t value) {
             std::array<std::uint32_t, 8> words{};
             self.node.read(kWord - 16, words.data(), sizeof words);
             words[4] = value;
             self.node.set_data_filter(true);
             self.write(kWord - 16, words.data(), sizeof words);
             self.node.set_data_filter(false);
         }},
        {"a word that its writer sees last", 1,
         [](Self& self, std::uint32_t value) {
             self.node.set_write_me_last(true);
             self.write_word(kWord, value);
             EXPECT_TRUE(self.node.flush(Deadline::in(kSliceNs)));
             EXPECT_EQ(self.node.load(kWord), value);
             self.node.set_write_me_last(false);
         }},
        {"a marked word", 1,
         [](Self& self, std::uint32_t value) {
             self.node.mark(kWord, 4);
             self.write_word(kWord, value);
             self.node.unmark(kWord, 4);
         }},
    };
    run(2, [&](Self& self) {
        constexpr std::array<std::int64_t, 4> kPauses = {0, 100'000, 1'000'000, 5'000'000};
        if (self.id == 1) self.node.watch(kWord, 4, Trigger::marked);
        self.meet(0);
        std::uint32_t old = 0;
        std::uint32_t rounds = 0;
        for (const Way& way : ways) {
            for (unsigned i = 0; i < kTimes * kPauses.size(); ++i) {
                const std::uint32_t value = old + way.change;
                if (self.id == 0) {
                    pause(kPauses.at(i % kPauses.size()));
                    way.write(self, value);
                    ASSERT_TRUE(is_told([&] { return self.shared.words[0] == rounds + 1; }))
                        << way.name << " was missed";
                } else {
                    ASSERT_EQ(next_value(self, kWord, old), value) << way.name;
                    self.shared.words[0] = rounds + 1;
                }
                old = value;
                ++rounds;
            }
        }
        if (self.id == 0) return;
        for (unsigned i = 0; i < kTimes * kPauses.size(); ++i) {
            const auto interrupt = self.node.next_interrupt(Deadline::in(kSliceNs));
            ASSERT_TRUE(interrupt) << "a marked write raised nothing";
            EXPECT_EQ(interrupt->offset, kWord);
            EXPECT_EQ(interrupt->origin, 0U);
        }
        EXPECT_FALSE(self.node.next_interrupt(Deadline::now())) << "an unmarked write raised one";
    });
}

TEST_P(NodeWaiting, a_write_that_changes_nothing_ends_no_wait) {
    run(2, [](Self& self) {
        std::uint64_t state = 22;
        for (std::uint32_t value = 0; value < 8; ++value) {
            if (self.id == 1) {
                ASSERT_EQ(next_value(self, 0x400, value), value + 1);
                self.shared.words[0] = value + 1;
                continue;
            }
            self.node.set_data_filter(value % 2 == 1);
            for (unsigned i = 0; i < 10; ++i) {
                pause(any_pause(state));
                self.write_word(0x400, value);
            }
            self.write_word(0x400, value + 1);
            ASSERT_TRUE(is_told([&] { return self.shared.words[0] == value + 1; }))
                << "missed " << value + 1;
        }
    });
}

TEST_P(NodeWaiting, a_deadline_that_has_passed_looks_once_and_loses_nothing) {
    constexpr std::uint32_t kWrites = 100;
    run(2, [](Self& self) {
        for (std::uint32_t value = 1; value <= kWrites; ++value) {
            if (self.id == 0) {
                self.write_word(0x500, value);
                ASSERT_TRUE(self.node.flush(Deadline::in(kSliceNs)));
                self.shared.words[0] = value;
                ASSERT_TRUE(is_told([&] { return self.shared.words[1] == value; }));
                continue;
            }
            // Those before the flush has ended may see it or not; the one after it must.
            while (self.shared.words[0] != value) {
                const auto seen = self.node.wait_change(0x500, value - 1, Deadline::now());
                ASSERT_TRUE(seen == value - 1 || seen == value) << seen;
                Self::rest();
            }
            ASSERT_EQ(self.node.wait_change(0x500, value - 1, Deadline::now()), value);
            self.shared.words[1] = value;
        }
    });
}

TEST_P(NodeWaiting, short_deadlines_that_pass_while_a_write_comes_lose_nothing) {
    constexpr std::uint32_t kWrites = 40;
    run(2, [](Self& self) {
        std::uint64_t state = 23 + self.id;
        for (std::uint32_t value = 1; value <= kWrites; ++value) {
            if (self.id == 0) {
                pause(any_pause(state));
                self.write_word(0x600, value);
                ASSERT_TRUE(is_told([&] { return self.shared.words[0] == value; }))
                    << "missed " << value;
                continue;
            }
            std::uint32_t seen = value - 1;
            const Deadline deadline = Deadline::in(kSliceNs);
            while (seen == value - 1 && !deadline.passed(program_now_ns())) {
                seen = self.node.wait_change(0x600, value - 1, Deadline::in(any_pause(state)));
            }
            ASSERT_EQ(seen, value);
            self.shared.words[0] = value;
        }
    });
}

// ---- Others' writes

/// On udp a waiting rank takes what comes from the socket, whatever it is.
class NodeSleeping : public NodeWaiting {};

TEST_P(NodeSleeping, a_sleeper_is_not_woken_for_words_that_it_does_not_wait_for) {
    constexpr std::uint32_t kOthers = 300;
    run(2, [](Self& self) {
        constexpr std::int64_t kPauseNs = 100'000;
        const auto sleeps = [] {
            rusage usage{};
            ::getrusage(RUSAGE_THREAD, &usage);
            return usage.ru_nvcsw;
        };
        if (self.id == 1) {
            self.meet(0);
            const long before = sleeps();
            EXPECT_EQ(next_value(self, 0x200, 0), 1U);
            EXPECT_LT(sleeps() - before, kOthers / 3);
            return;
        }
        self.meet(0);
        for (std::uint32_t i = 1; i <= kOthers; ++i) {
            self.write_word(0x300 + 4 * (i % 64), i);
            pause(kPauseNs);
        }
        self.write_word(0x200, 1);
    });
}

// ---- Where

INSTANTIATE_TEST_SUITE_P(EachLink, NodeWaiting,
                         conformance_on({{LinkKind::direct, {"none"}},
                                         {LinkKind::ring, {"none", "scramnet-burst"}},
                                         {LinkKind::fabric, {"none"}},
                                         {LinkKind::udp, {"none", "scramnet-burst"}},
                                         {LinkKind::sim, {"none", "scramnet-burst"}}}),
                         conformance_case_name);
INSTANTIATE_TEST_SUITE_P(EachLink, NodeSleeping,
                         conformance_on({{LinkKind::direct, {"none"}}, {LinkKind::ring, {"none"}}}),
                         conformance_case_name);

}  // namespace
}  // namespace rmem::test
