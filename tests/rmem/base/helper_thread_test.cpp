// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/helper_thread.hpp"

#include "rmem/base/clock.hpp"
#include "tests/support/child.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>

namespace rmem::test {
namespace {

constexpr std::int64_t kForeverNs = 3'600'000'000'000;

TEST(HelperThread, has_its_name_and_takes_none_of_the_programs_signals) {
    std::string name;
    sigset_t blocked;
    sigemptyset(&blocked);
    {
        const HelperThread thread("rmem-name", [&] {
            std::array<char, 16> text{};
            ::pthread_getname_np(::pthread_self(), text.data(), text.size());
            name = text.data();
            ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        });
    }
    EXPECT_EQ(name, "rmem-name");
    EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
    EXPECT_EQ(sigismember(&blocked, SIGSEGV), 0) << "its own faults";
}

TEST(HelperThread, leaves_the_signals_of_the_thread_that_starts_it_as_they_are) {
    sigset_t before, after;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
    const HelperThread thread("rmem-mask", [] {});
    ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1})
        EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal));
}

TEST(HelperThread, has_real_time_priority_if_it_asks_for_it_and_may_have_it) {
    bool has_it = false, is_first_in_first_out = false;
    {
        const HelperThread thread("rmem-fifo", [&] {
            has_it = HelperThread::ask_for_real_time();
            is_first_in_first_out = ::sched_getscheduler(0) == SCHED_FIFO;
        });
    }
    EXPECT_EQ(is_first_in_first_out, has_it);
    EXPECT_NE(::sched_getscheduler(0), SCHED_FIFO) << "the thread alone has it";
}

struct Pausing {
    std::atomic<unsigned> pauses{0};
    std::atomic<bool> may_go_on{false};
    HelperThread thread{"rmem-pauses", [this] {
                            const auto until = [this] { return may_go_on.exchange(false); };
                            while (thread.pause(kForeverNs, until)) ++pauses;
                        }};

    /// Ends a pause, the n-th.
    void end_pause(unsigned n) {
        may_go_on = true;
        thread.wake();
        while (pauses != n) ::sched_yield();
    }
};

TEST(HelperThread, ends_a_pause_at_a_change_that_it_was_woken_for) {
    Pausing pausing;
    for (unsigned i = 1; i <= 1'000; ++i) pausing.end_pause(i);
}

TEST(HelperThread, goes_on_pausing_when_it_is_woken_for_nothing) {
    Pausing pausing;
    for (int i = 0; i < 100; ++i) pausing.thread.wake();
    EXPECT_EQ(pausing.pauses, 0U);
}

TEST(HelperThread, goes_on_when_the_time_of_a_pause_is_over) {
    std::atomic<bool> went_on = false;
    HelperThread thread("rmem-time", [&] { went_on = thread.pause(1); });
    while (!went_on) ::sched_yield();
}

TEST(HelperThread, ends_its_pause_and_its_other_sleeps_when_its_owner_goes) {
    { const Pausing pausing; }
    const int fd = ::eventfd(0, EFD_CLOEXEC);
    int sleeps_ended = 0;
    {
        const HelperThread thread(
            "rmem-sleeps",
            [fd] {
                pollfd wait{fd, POLLIN, 0};
                ::poll(&wait, 1, -1);
            },
            [&] {
                ++sleeps_ended;
                ::eventfd_write(fd, 1);
            });
    }
    ::close(fd);
    EXPECT_EQ(sleeps_ended, 1);
}

TEST(HelperThread, is_left_alone_by_a_forked_child_that_destroys_the_object) {
    auto pausing = std::make_unique<Pausing>();
    pausing->end_pause(1);
    run_in_child([&] { pausing.reset(); });
    pausing->end_pause(2);
}

}  // namespace
}  // namespace rmem::test
