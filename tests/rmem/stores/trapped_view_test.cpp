// SPDX-License-Identifier: Apache-2.0
// ctest: plain

/// What surrounds a captured store: the program's own signals, its threads, its children, and the
/// system's own accesses. (What instructions store: instruction_test.cpp.)

#include "rmem/stores/trapped_view.hpp"

#include "rmem/stores/signal_chain.hpp"
#include "tests/rmem/stores/two_mappings.hpp"
#include "tests/support/child.hpp"

#include <gmock/gmock.h>
#include <sys/time.h>

#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <thread>

#if defined(__x86_64__)

namespace rmem::test {
namespace {

using ::testing::HasSubstr;

struct TrappedViews : ::testing::Test {
    TwoMappings memory;
    StoringTaker taker{memory.bank()};

    volatile std::uint32_t* word(std::size_t offset) const {
        return reinterpret_cast<volatile std::uint32_t*>(memory.view().data() + offset);
    }
    std::uint32_t in_bank(std::size_t offset) const {
        std::uint32_t value = 0;
        std::memcpy(&value, memory.bank() + offset, sizeof value);
        return value;
    }
};

/// What a child that runs `body` with stderr in a pipe writes there, and how it ends.
struct Ended {
    std::string said;
    int status = 0;  ///< below 0: the signal
};
template <class Body>
Ended run_apart(Body body) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    Child child([&] {
        ::dup2(ends[1], STDERR_FILENO);
        body();
    });
    ::close(ends[1]);
    Ended ended;
    char text[512];
    for (ssize_t got = 0; (got = ::read(ends[0], text, sizeof text)) > 0;)
        ended.said.append(text, static_cast<std::size_t>(got));
    ::close(ends[0]);
    ended.status = child.wait();
    return ended;
}

std::atomic<int> handled{0};
sigjmp_buf back;
void count_and_return(int, siginfo_t*, void*) {
    handled.fetch_add(1, std::memory_order_relaxed);
    ::siglongjmp(back, 1);
}

/// Reads from where nothing is; volatile, so that it is done.
void fault() {
    static volatile int* nowhere = nullptr;
    static_cast<void>(*nowhere);
}

TEST_F(TrappedViews, a_handler_that_the_program_had_before_gets_its_own_faults) {
    const auto ended = run_apart([&] {
        struct sigaction action {};
        action.sa_sigaction = count_and_return;
        action.sa_flags = SA_SIGINFO;
        ::sigaction(SIGSEGV, &action, nullptr);
        const stores::TrappedView view(memory.view(), memory.bank(), taker);
        for (std::uint32_t i = 1; i <= 3; ++i) {
            *word(16) = i;
            if (::sigsetjmp(back, 1) == 0) fault();
        }
        if (handled != 3 || in_bank(16) != 3) ::_exit(1);
    });
    EXPECT_EQ(ended.status, 0) << ended.said;
}

TEST_F(TrappedViews, a_handler_that_the_program_sets_later_through_the_library_gets_them_too) {
    const auto ended = run_apart([&] {
        const stores::TrappedView view(memory.view(), memory.bank(), taker);
        struct sigaction action {
        }, before{};
        action.sa_sigaction = count_and_return;
        action.sa_flags = SA_SIGINFO;
        if (!stores::set_program_action(SIGSEGV, &action, &before)) ::_exit(2);
        if (before.sa_handler != SIG_DFL) ::_exit(3);
        *word(16) = 7;
        if (::sigsetjmp(back, 1) == 0) fault();
        if (handled != 1 || in_bank(16) != 7) ::_exit(1);
    });
    EXPECT_EQ(ended.status, 0) << ended.said;
    EXPECT_FALSE(stores::set_program_action(SIGUSR1, nullptr, nullptr));
}

struct sigaction found_in_place {};
void count_and_ask_the_former(int signal, siginfo_t* info, void* context) {
    if (handled.fetch_add(1, std::memory_order_relaxed) == 1) ::siglongjmp(back, 1);
    found_in_place.sa_sigaction(signal, info, context);
}

TEST_F(TrappedViews, a_handler_that_asks_the_one_it_found_is_asked_once_a_signal) {
    const auto ended = run_apart([&] {
        struct sigaction action {};
        action.sa_sigaction = count_and_ask_the_former;
        action.sa_flags = SA_SIGINFO;
        const stores::TrappedView view(memory.view(), memory.bank(), taker);
        ::sigaction(SIGSEGV, &action, &found_in_place);
        // From here on it is in its turn behind the library.
        const stores::TrappedView another(memory.view(), memory.bank(), taker);
        handled = 1;
        if (::sigsetjmp(back, 1) == 0) fault();
        if (handled != 2) ::_exit(1);
        *word(16) = 7;
        if (in_bank(16) != 7 || handled != 2) ::_exit(2);
        fault();
    });
    EXPECT_EQ(ended.status, -SIGSEGV) << "nobody follows";
}

TEST_F(TrappedViews, a_fault_that_is_nobodys_ends_the_program_as_ever) {
    const auto ended = run_apart([&] {
        const stores::TrappedView view(memory.view(), memory.bank(), taker);
        *word(0) = 1;
        fault();
    });
    EXPECT_EQ(ended.status, -SIGSEGV);
}

TEST_F(TrappedViews, a_handler_of_one_time_is_asked_once) {
    const auto ended = run_apart([&] {
        struct sigaction action {};
        action.sa_sigaction = count_and_return;
        action.sa_flags = static_cast<int>(SA_SIGINFO | SA_RESETHAND);
        ::sigaction(SIGSEGV, &action, nullptr);
        const stores::TrappedView view(memory.view(), memory.bank(), taker);
        if (::sigsetjmp(back, 1) == 0) fault();
        *word(16) = 1;
        if (handled != 1 || in_bank(16) != 1) ::_exit(1);
        fault();
    });
    EXPECT_EQ(ended.status, -SIGSEGV);
}

TEST_F(TrappedViews, a_signal_that_was_sent_is_the_programs) {
    const auto ended = run_apart([&] {
        struct sigaction action {};
        action.sa_sigaction = count_and_return;
        action.sa_flags = SA_SIGINFO;
        ::sigaction(SIGSEGV, &action, nullptr);
        ::sigaction(SIGTRAP, &action, nullptr);
        const stores::TrappedView view(memory.view(), memory.bank(), taker);
        if (::sigsetjmp(back, 1) == 0) ::raise(SIGSEGV);
        if (::sigsetjmp(back, 1) == 0) ::raise(SIGTRAP);
        if (::sigsetjmp(back, 1) == 0) asm volatile("int3");
        if (handled != 3) ::_exit(1);
    });
    EXPECT_EQ(ended.status, 0) << ended.said;
}

TEST_F(TrappedViews, a_thread_with_a_small_stack_for_signals_stores) {
    const stores::TrappedView view(memory.view(), memory.bank(), taker);
    std::thread([&] {
        std::vector<std::byte> small(static_cast<std::size_t>(MINSIGSTKSZ) + 12'000);
        stack_t mine{};
        mine.ss_sp = small.data();
        mine.ss_size = small.size();
        ASSERT_EQ(::sigaltstack(&mine, nullptr), 0);
        for (std::uint32_t i = 1; i <= 100; ++i) {
            *word(32) = i;
            asm volatile("shll $1, %0" : "+m"(*const_cast<std::uint32_t*>(word(36))));
        }
        mine.ss_flags = SS_DISABLE;
        ::sigaltstack(&mine, nullptr);
    }).join();
    EXPECT_EQ(in_bank(32), 100U);
}

TEST_F(TrappedViews, threads_store_at_once_and_lose_nothing) {
    const stores::TrappedView view(memory.view(), memory.bank(), taker);
    constexpr std::uint32_t kStores = 300;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (std::uint32_t i = 1; i <= kStores; ++i) {
                *word(64 * t) = i;
                asm volatile("roll $1, %0" : "+m"(*const_cast<std::uint32_t*>(word(64 * t + 4))));
            }
        });
    }
    for (auto& thread : threads) thread.join();
    for (unsigned t = 0; t < 4; ++t) EXPECT_EQ(in_bank(64 * t), kStores);
    EXPECT_EQ(taker.taken().size(), 4 * 2 * kStores);
}

volatile std::uint32_t* ticked = nullptr;

TEST_F(TrappedViews, a_signal_handler_stores_between_the_programs_stores) {
    const stores::TrappedView view(memory.view(), memory.bank(), taker);
    ticked = word(128);
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int) { *ticked = *ticked + 1; };
    ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
    const itimerval often{{0, 200}, {0, 200}}, never{};
    ASSERT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
    std::uint32_t stored = 0;
    while (*ticked < 50) {
        *word(132) = ++stored;
        asm volatile("shll $1, %0" : "+m"(*const_cast<std::uint32_t*>(word(136))));
    }
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before, nullptr);
    EXPECT_EQ(in_bank(132), stored);
    EXPECT_GE(in_bank(128), 50U);
}

TEST_F(TrappedViews, the_system_reads_from_a_view_and_does_not_write_into_it) {
    const stores::TrappedView view(memory.view(), memory.bank(), taker);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    *word(8) = 0x64636261;
    EXPECT_EQ(::write(ends[1], memory.view().data() + 8, 4), 4);
    EXPECT_EQ(::read(ends[0], memory.view().data(), 4), -1);
    EXPECT_EQ(errno, EFAULT);
    char text[4];
    EXPECT_EQ(::read(ends[0], text, 4), 4) << "what was not taken is still there";
    EXPECT_EQ(std::string(text, 4), "abcd");
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_F(TrappedViews, a_childs_store_ends_the_child_with_a_sentence) {
    const stores::TrappedView view(memory.view(), memory.bank(), taker);
    *word(0) = 5;
    const auto ended = run_apart([&] { *word(0) = 6; });
    EXPECT_EQ(ended.status, -SIGSEGV);
    EXPECT_THAT(ended.said, HasSubstr("parent's node"));
    EXPECT_EQ(in_bank(0), 5U);
    *word(0) = 7;
    EXPECT_EQ(in_bank(0), 7U);
}

TEST_F(TrappedViews, an_instruction_that_cannot_be_told_ends_the_program_with_a_sentence) {
    const auto ended = run_apart([&] {
        const stores::TrappedView view(memory.view(), memory.bank(), taker);
        // Both address registers are one, so none can be moved to where the memory is written.
        const auto half = reinterpret_cast<std::uint64_t>(memory.view().data()) / 2;
        asm volatile("shll $1, (%0,%0)" ::"r"(half) : "memory", "cc");
    });
    EXPECT_EQ(ended.status, -SIGSEGV);
    EXPECT_THAT(ended.said, HasSubstr("cannot be captured"));
}

TEST_F(TrappedViews, views_are_told_apart_and_their_number_is_bounded) {
    TwoMappings other;
    StoringTaker others(other.bank());
    const stores::TrappedView first(memory.view(), memory.bank(), taker);
    {
        const stores::TrappedView second(other.view(), other.bank(), others);
        *word(0) = 1;
        *reinterpret_cast<volatile std::uint32_t*>(other.view().data()) = 2;
        EXPECT_EQ(taker.taken().size(), 1U);
        EXPECT_EQ(others.taken().size(), 1U);
    }
    std::vector<std::unique_ptr<stores::TrappedView>> views;
    for (std::size_t i = 1; i < stores::TrappedView::kMost; ++i)
        views.push_back(std::make_unique<stores::TrappedView>(other.view(), other.bank(), others));
    EXPECT_THROW(stores::TrappedView(other.view(), other.bank(), others), Error);
}

}  // namespace
}  // namespace rmem::test

#endif
