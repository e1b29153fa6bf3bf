// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
// The lock of the process endpoint: one thread at a time is in, no matter which.
#include "rmem/base/biased_lock.hpp"

#include "tests/rmem/threads.hpp"
#include "tests/support/broken.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

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
    test::Threads others(3, [&](unsigned) {
        for (int i = 0; i < kTimes; ++i) guarded.enter_and_count();
    });
    std::thread guest([&] {
        for (int i = 0; i < kTimes / 10; ++i) guarded.visit_and_count();
    });
    for (int i = 0; i < kTimes; ++i) guarded.enter_and_count();
    others.join();
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
    const std::jthread guest([&] {
        guarded.visit_and_count();
        was_in = true;
    });
    while (!was_in) guarded.lock.give_way(grip);
    EXPECT_EQ(guarded.plain, 1);
    EXPECT_FALSE(guarded.lock.give_way(grip));
    guarded.lock.leave(grip);
}

TEST(BiasedLock, is_recursive_for_an_owner_that_another_thread_waits_for) {
    Guarded guarded;
    guarded.lock.adopt();
    const auto outer = guarded.lock.enter();
    std::thread other([&] { guarded.enter_and_count(); });
    while (!guarded.lock.is_awaited()) std::this_thread::yield();
    EXPECT_TRUE(guarded.lock.is_mine());
    guarded.enter_and_count();
    EXPECT_EQ(guarded.plain, 1) << "the other is out until this one is";
    guarded.lock.leave(outer);
    other.join();
    EXPECT_EQ(guarded.plain, 2);
}

Guarded* handled = nullptr;
std::atomic<int> handled_times{0};

TEST(BiasedLock, lets_a_signal_handler_enter_wherever_its_thread_is) {
    Guarded guarded;
    handled = &guarded;
    struct sigaction action {};
    action.sa_handler = [](int) {
        if (handled->lock.is_mine()) return;
        const int kept = errno;
        handled->enter_and_count();
        errno = kept;
        ++handled_times;
    };
    ::sigaction(SIGUSR2, &action, nullptr);
    guarded.lock.adopt();
    std::atomic<bool> ends{false};
    const pthread_t entering = ::pthread_self();
    int entered = 0;
    std::thread other([&] {
        for (; !ends; ++entered) {
            guarded.enter_and_count();
            ::pthread_kill(entering, SIGUSR2);
        }
    });
    int own = 0;
    for (; handled_times < kTimes / 4; ++own) guarded.enter_and_count();
    ends = true;
    other.join();
    ::signal(SIGUSR2, SIG_DFL);
    EXPECT_EQ(guarded.plain, own + entered + handled_times);
    EXPECT_FALSE(guarded.lock.is_mine());
}

TEST(BiasedLockDeathTest, checks_that_a_leaving_thread_was_inside) {
    BiasedLock lock;
    lock.adopt();
    lock.leave(lock.enter());
    EXPECT_BROKEN_WHERE_CHECKED(lock.leave(BiasedLock::Grip::inside));
    EXPECT_BROKEN_WHERE_CHECKED(lock.leave(BiasedLock::Grip::locked));
}

}  // namespace
}  // namespace rmem
