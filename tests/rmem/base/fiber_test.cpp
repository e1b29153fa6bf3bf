// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
#include "rmem/base/fiber.hpp"
#include "tests/support/sanitizers.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rmem::sim {
namespace {

/// Counts its destructions.
struct Leaving {
    explicit Leaving(int& count) : count_(count) {}
    ~Leaving() { ++count_; }
    Leaving(const Leaving&) = delete;
    Leaving& operator=(const Leaving&) = delete;
    int& count_;
};

/// A fiber whose body is given the fiber.
class SelfFiber : public Fiber {
public:
    explicit SelfFiber(std::function<void(Fiber& self)> body)
        : Fiber([this, body = std::move(body)] { body(*this); }) {}
};

// ---- Switching

TEST(Fiber, runs_from_one_suspension_to_the_next) {
    std::string story;
    SelfFiber fiber([&](Fiber& self) {
        for (const char c : {'a', 'b', 'c'}) {
            story += c;
            self.suspend();
        }
    });
    for (int n = 0; n < 3; ++n) {
        fiber.resume();
        story += '.';
        EXPECT_FALSE(fiber.ended());
    }
    fiber.resume();
    EXPECT_TRUE(fiber.ended());
    EXPECT_EQ(story, "a.b.c.");
}

/// More values, live over each switch, than there are registers.
std::uint64_t count_with_many_registers(Fiber& self, std::uint64_t seed) {
    std::uint64_t a = seed, b = seed + 1, c = seed + 2, d = seed + 3, e = seed + 4, f = seed + 5;
    double x = 0.5, y = 0.25, z = static_cast<double>(seed);
    for (int n = 0; n < 100; ++n) {
        self.suspend();
        a += b, b += c, c += d, d += e, e += f, f += a;
        x += y, y += 0.125, z += 1;
    }
    return a ^ b ^ c ^ d ^ e ^ f ^ static_cast<std::uint64_t>(8 * (x + y + z));
}

TEST(Fiber, registers_survive_a_switch_inside_and_outside) {
    std::uint64_t found[2] = {};
    SelfFiber one([&](Fiber& self) { found[0] = count_with_many_registers(self, 3); });
    SelfFiber two([&](Fiber& self) { found[1] = count_with_many_registers(self, 1003); });
    double outside = 0.5;
    std::uint64_t rounds = 0;
    while (!two.ended()) {
        one.resume();
        two.resume();
        outside += 0.5;
        ++rounds;
    }
    EXPECT_EQ(rounds, 101u);
    EXPECT_EQ(outside, 51.0);
    // The same without a switch: a fiber of its own that is resumed at once.
    for (int n = 0; n < 2; ++n) {
        std::uint64_t alone = 0;
        SelfFiber fiber(
            [&](Fiber& self) { alone = count_with_many_registers(self, n == 0 ? 3 : 1003); });
        while (!fiber.ended()) fiber.resume();
        EXPECT_EQ(found[n], alone);
    }
}

TEST(Fiber, one_may_run_another) {
    std::string story;
    SelfFiber inner([&](Fiber& self) {
        story += "in ";
        self.suspend();
        story += "again ";
    });
    SelfFiber outer([&](Fiber& self) {
        inner.resume();
        story += "out ";
        self.suspend();
        inner.resume();
    });
    outer.resume();
    story += "outside ";
    outer.resume();
    EXPECT_EQ(story, "in out outside again ");
    EXPECT_TRUE(inner.ended());
    EXPECT_TRUE(outer.ended());
}

// ---- Exceptions

TEST(Fiber, what_leaves_the_body_leaves_resume) {
    int left = 0;
    Fiber fiber([&] {
        const Leaving leaving(left);
        throw std::runtime_error("from inside");
    });
    try {
        fiber.resume();
        ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "from inside");
    }
    EXPECT_TRUE(fiber.ended());
    EXPECT_EQ(left, 1);
}

TEST(Fiber, each_handles_its_own_exceptions_across_switches) {
    std::vector<std::unique_ptr<SelfFiber>> fibers;
    std::vector<std::string> rethrown(3);
    for (std::size_t f = 0; f < rethrown.size(); ++f) {
        fibers.push_back(std::make_unique<SelfFiber>([&rethrown, f](Fiber& self) {
            EXPECT_EQ(std::current_exception(), nullptr) << "of who resumed it";
            try {
                try {
                    throw std::runtime_error(std::to_string(f));
                } catch (...) {
                    self.suspend();
                    throw;
                }
            } catch (const std::runtime_error& e) {
                self.suspend();
                rethrown[f] = e.what();
            }
        }));
    }
    try {
        throw std::logic_error("outside");
    } catch (...) {
        for (int n = 0; n < 3; ++n) {
            for (const auto& fiber : fibers) fiber->resume();
        }
        EXPECT_THROW(throw, std::logic_error);
    }
    EXPECT_EQ(rethrown, (std::vector<std::string>{"0", "1", "2"}));
    EXPECT_EQ(std::current_exception(), nullptr);
}

TEST(Fiber, a_destructor_that_runs_for_an_exception_may_switch) {
    struct Switching {
        explicit Switching(Fiber& f) : self(f) {}
        ~Switching() { self.suspend(); }
        Switching(const Switching&) = delete;
        Switching& operator=(const Switching&) = delete;
        Fiber& self;
    };
    SelfFiber fiber([](Fiber& self) {
        const Switching switching(self);
        throw std::runtime_error("on its way");
    });
    fiber.resume();
    EXPECT_EQ(std::uncaught_exceptions(), 0) << "that of the fiber is the fiber's";
    EXPECT_THROW(throw std::logic_error("outside"), std::logic_error);
    EXPECT_THROW(fiber.resume(), std::runtime_error);
}

// ---- Abandoning

TEST(Fiber, an_abandoned_one_runs_no_destructor) {
    int left = 0;
    {
        SelfFiber fiber([&](Fiber& self) {
            const Leaving leaving(left);
            const std::vector<std::string> lost(10, std::string(100, 'x'));
            self.suspend();
            left += 1000;
        });
        fiber.resume();
    }
    EXPECT_EQ(left, 0);
}

TEST(Fiber, an_abandoned_one_lets_go_of_what_its_function_owns) {
    const auto owned = std::make_shared<int>(1);
    {
        SelfFiber fiber([owned](Fiber& self) { self.suspend(); });
        const Fiber never_started([owned] {});
        EXPECT_EQ(owned.use_count(), 3);
        fiber.resume();
    }
    EXPECT_EQ(owned.use_count(), 1);
}

TEST(Fiber, one_abandoned_in_a_handler_leaves_the_others_exceptions_alone) {
    try {
        throw std::logic_error("outside");
    } catch (...) {
        SelfFiber fiber([&](Fiber& self) {
            try {
                throw std::runtime_error("never handled to the end");
            } catch (...) {
                self.suspend();
            }
        });
        fiber.resume();
        EXPECT_THROW(throw, std::logic_error);
    }
    EXPECT_EQ(std::current_exception(), nullptr);
}

// ---- Stacks

TEST(Fiber, those_made_in_turn_use_one_stack_abandoned_or_ended) {
    std::set<std::uintptr_t> places;
    for (int n = 0; n < 10'000; ++n) {
        SelfFiber fiber([&places, n](Fiber& self) {
            std::array<char, 100> local{};  // its neighbourhood is poisoned by sanitizers
            places.insert(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
            local[static_cast<std::size_t>(n % 100)] = 1;
            if (n % 2 == 0) self.suspend();
        });
        fiber.resume();
    }
    EXPECT_EQ(places.size(), 1u);
}

/// Goes down until this much of the stack is used; returns how many calls that took: not too many
/// for the thread sanitizer, which has room for 65 536 on a stack.
[[gnu::noinline]] int descend(const char* top, std::ptrdiff_t bytes) {
    char frame[256];
    frame[0] = 1;
    asm volatile("" : : "r"(frame) : "memory");  // so that all of it is on the stack
    if (top - static_cast<const char*>(__builtin_frame_address(0)) >= bytes) return frame[0];
    return descend(top, bytes) + frame[0];
}

TEST(Fiber, nearly_all_of_the_stack_can_be_used) {
    for (const std::ptrdiff_t size : {65'536, 262'144, 4'194'304}) {
        int calls = 0;
        Fiber fiber(
            [&] { calls = descend(static_cast<char*>(__builtin_frame_address(0)), size - 8192); },
            static_cast<std::size_t>(size));
        fiber.resume();
        EXPECT_GT(calls, size / 4096);
        EXPECT_LT(calls, size / 256);
    }
}

TEST(FiberDeathTest, a_stack_that_overflows_is_a_fault) {
    if (test::kThreadSanitizer) GTEST_SKIP() << "its runtime does not survive the fault";
    EXPECT_DEATH(
        {
            Fiber fiber([] {
                descend(static_cast<char*>(__builtin_frame_address(0)), std::ptrdiff_t{1} << 40);
            });
            fiber.resume();
        },
        "");
}

TEST(Fiber, thousands_are_alive_at_once) {
    const std::size_t many = test::kThreadSanitizer ? 256 : 4096;
    std::vector<std::unique_ptr<Fiber>> fibers;
    std::vector<std::size_t> found(many);
    for (std::size_t f = 0; f < many; ++f) {
        fibers.push_back(std::make_unique<Fiber>(
            [&fibers, &found, f] {
                const std::size_t mine = f;
                fibers[f]->suspend();
                found[f] = mine;
            },
            std::size_t{64} * 1024));
    }
    for (int n = 0; n < 2; ++n) {
        for (const auto& fiber : fibers) fiber->resume();
    }
    for (std::size_t f = 0; f < many; ++f) EXPECT_EQ(found[f], f);
}

TEST(Fiber, each_thread_has_its_own) {
    const auto work = [](std::uint64_t& sum) {
        for (std::uint64_t n = 0; n < 500; ++n) {
            SelfFiber fiber([&](Fiber& self) {
                sum += n;
                self.suspend();
                sum += n;
            });
            fiber.resume();
            fiber.resume();
        }
    };
    std::uint64_t sums[2] = {};
    std::thread other([&] { work(sums[0]); });
    work(sums[1]);
    other.join();
    EXPECT_EQ(sums[0], 500u * 499u);
    EXPECT_EQ(sums[1], 500u * 499u);
}

}  // namespace
}  // namespace rmem::sim
