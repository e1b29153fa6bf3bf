// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
// The lock of the process endpoint: one thread at a time is in, no matter which.
#include "rmem/base/biased_lock.hpp"

#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace rmem {
namespace {

constexpr int kTimes = 3000;

/// Counts what would be lost if two were in at once.
struct Guarded {
    BiasedLock lock;
    int plain = 0;
    void enter_and_count() {
        const auto grip = lock.enter();
        ++plain;
        lock.leave(grip);
    }
    void visit_and_count() {
        const auto grip = lock.enter_as_guest();
        ++plain;
        lock.leave(grip);
    }
};

TEST(BiasedLock, keeps_a_guest_out_while_the_owner_is_in) {
    Guarded guarded;
    guarded.lock.adopt();
    std::thread guest([&] {
        for (int i = 0; i < kTimes; ++i) guarded.visit_and_count();
    });
    for (int i = 0; i < 20 * kTimes; ++i) guarded.enter_and_count();
    guest.join();
    EXPECT_EQ(guarded.plain, 21 * kTimes);
}

TEST(BiasedLock, keeps_other_threads_of_the_program_out_too) {
    Guarded guarded;
    guarded.lock.adopt();
    std::vector<std::thread> others;
    for (int t = 0; t < 3; ++t) {
        others.emplace_back([&] {
            for (int i = 0; i < kTimes; ++i) guarded.enter_and_count();
        });
    }
    std::thread guest([&] {
        for (int i = 0; i < kTimes / 10; ++i) guarded.visit_and_count();
    });
    for (int i = 0; i < kTimes; ++i) guarded.enter_and_count();
    for (std::thread& other : others) other.join();
    guest.join();
    EXPECT_EQ(guarded.plain, 4 * kTimes + kTimes / 10);
}

TEST(BiasedLock, is_recursive_for_owner_and_guest) {
    Guarded guarded;
    guarded.lock.adopt();
    const auto outer = guarded.lock.enter();
    guarded.enter_and_count();
    std::thread guest([&] {
        const auto grip = guarded.lock.enter_as_guest();
        guarded.enter_and_count();
        guarded.visit_and_count();
        guarded.lock.leave(grip);
    });
    guarded.enter_and_count();  // also while somebody asks
    guarded.lock.leave(outer);
    guest.join();
    EXPECT_EQ(guarded.plain, 4);
}

TEST(BiasedLock, lets_a_waiting_thread_in_when_the_holder_gives_way) {
    Guarded guarded;
    guarded.lock.adopt();
    std::atomic<bool> was_in{false};
    auto grip = guarded.lock.enter();
    std::thread guest([&] {
        guarded.visit_and_count();
        was_in = true;
    });
    while (!was_in) guarded.lock.give_way(grip);
    EXPECT_EQ(guarded.plain, 1);
    EXPECT_FALSE(guarded.lock.give_way(grip));
    guarded.lock.leave(grip);
    guest.join();
}

TEST(BiasedLockDeathTest, checks_that_a_leaving_thread_was_inside) {
    BiasedLock lock;
    lock.adopt();
    lock.leave(lock.enter());
    EXPECT_BROKEN_WHERE_CHECKED(lock.leave(BiasedLock::Grip::inside));
}

}  // namespace
}  // namespace rmem
