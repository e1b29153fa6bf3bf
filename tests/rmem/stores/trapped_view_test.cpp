// SPDX-License-Identifier: Apache-2.0
// ctest: plain

/// What surrounds a captured store: the program's own signals, its threads, its children, and the
/// system's own accesses. (What instructions store: instruction_test.cpp.)

#include "rmem/stores/trapped_view.hpp"

#include "tests/rmem/stores/two_mappings.hpp"
#include "tests/rmem/threads.hpp"
#include "tests/support/broken.hpp"
#include "tests/support/child.hpp"

#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstddef>
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
    stores::TrappedView capture() { return {memory.view(), memory.bank(), taker}; }
};

/// Of which the stores are captured from the beginning on.
struct TrappedView : TrappedViews {
    const stores::TrappedView view = capture();
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

void set_handler(void (*handler)(int, siginfo_t*, void*), int flags,
                 struct sigaction* before = nullptr) {
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    ::sigaction(SIGSEGV, &action, before);
}

/// Reads from where nothing is; volatile, so that it is done.
void fault() {
    static volatile int* nowhere = nullptr;
    static_cast<void>(*nowhere);
}

TEST_F(TrappedViews, hand_on_nothing_that_lies_outside) {
    auto view = capture();
    const auto end = reinterpret_cast<std::uint64_t>(memory.view().data()) + TwoMappings::kBytes;
    EXPECT_BROKEN(view.store(end - 2, "word", 4));
}

TEST_F(TrappedViews, a_handler_that_the_program_had_before_gets_its_own_faults) {
    const auto ended = run_apart([&] {
        set_handler(count_and_return, SA_SIGINFO);
        const auto view = capture();
        for (std::uint32_t i = 1; i <= 3; ++i) {
            *word(16) = i;
            if (::sigsetjmp(back, 1) == 0) fault();
        }
        if (handled != 3 || in_bank(16) != 3) ::_exit(1);
    });
    EXPECT_EQ(ended.status, 0) << ended.said;
}

struct sigaction found_in_place {};
void count_and_ask_the_former(int signal, siginfo_t* info, void* context) {
    if (handled.fetch_add(1, std::memory_order_relaxed) == 1) ::siglongjmp(back, 1);
    found_in_place.sa_sigaction(signal, info, context);
}

TEST_F(TrappedViews, a_handler_that_asks_the_one_it_found_is_asked_once_a_signal) {
    const auto ended = run_apart([&] {
        const auto view = capture();
        set_handler(count_and_ask_the_former, SA_SIGINFO, &found_in_place);
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
        const auto view = capture();
        *word(0) = 1;
        fault();
    });
    EXPECT_EQ(ended.status, -SIGSEGV);
}

TEST_F(TrappedViews, a_handler_of_one_time_is_asked_once) {
    const auto ended = run_apart([&] {
        set_handler(count_and_return, static_cast<int>(SA_SIGINFO | SA_RESETHAND));
        const auto view = capture();
        if (::sigsetjmp(back, 1) == 0) fault();
        *word(16) = 1;
        if (handled != 1 || in_bank(16) != 1) ::_exit(1);
        fault();
    });
    EXPECT_EQ(ended.status, -SIGSEGV);
}

TEST_F(TrappedViews, a_signal_that_was_sent_is_the_programs) {
    const auto ended = run_apart([&] {
        set_handler(count_and_return, SA_SIGINFO);
        const auto view = capture();
        if (::sigsetjmp(back, 1) == 0) ::raise(SIGSEGV);
        if (handled != 1) ::_exit(1);
    });
    EXPECT_EQ(ended.status, 0) << ended.said;
}

TEST_F(TrappedViews, a_signal_that_was_sent_ends_the_program_unless_that_ignores_it) {
    for (const bool ignores : {false, true}) {
        const auto ended = run_apart([&] {
            if (ignores) ::signal(SIGSEGV, SIG_IGN);
            const auto view = capture();
            ::raise(SIGSEGV);
            if (!ignores) return;
            *word(16) = 7;
            if (in_bank(16) != 7) ::_exit(1);
        });
        EXPECT_EQ(ended.status, ignores ? 0 : -SIGSEGV);
    }
}

TEST_F(TrappedViews, a_handler_of_the_programs_has_its_own_mask) {
    const auto ended = run_apart([&] {
        struct sigaction action {};
        action.sa_handler = [](int) {
            sigset_t now;
            ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
            ::_exit(sigismember(&now, SIGUSR1) == 1 && sigismember(&now, SIGUSR2) == 0 ? 0 : 1);
        };
        sigaddset(&action.sa_mask, SIGUSR1);
        ::sigaction(SIGSEGV, &action, nullptr);
        const auto view = capture();
        fault();
    });
    EXPECT_EQ(ended.status, 0);
}

TEST_F(TrappedView, an_instruction_may_end_with_its_page_or_cross_it) {
    constexpr std::size_t kPage = 4096;
    // movl $5, 16(%rdi); ret
    constexpr std::array<unsigned char, 8> kCode = {0xC7, 0x47, 0x10, 5, 0, 0, 0, 0xC3};
    void* const pages = ::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    auto* const code = static_cast<std::byte*>(pages);
    ASSERT_EQ(::mprotect(code + 2 * kPage, kPage, PROT_NONE), 0);
    for (const std::size_t at : {kPage - 3, 2 * kPage - kCode.size()}) {
        std::memcpy(code + at, kCode.data(), kCode.size());
        reinterpret_cast<void (*)(std::byte*)>(code + at)(memory.view().data());
        EXPECT_EQ(taker.taken(), (std::vector<Taken>{{16, 4}}));
    }
    ::munmap(pages, 3 * kPage);
}

/// What the kernel puts on a stack for a signal, and a little for the handler.
std::size_t room_for_a_signal() {
    const std::size_t frame = ::getauxval(AT_MINSIGSTKSZ);
    return std::max<std::size_t>(frame, 2048) + 1500;
}

TEST_F(TrappedView, a_thread_with_the_smallest_stack_for_signals_stores) {
    std::thread([&] {
        std::vector<std::byte> small(room_for_a_signal());
        const SignalStack stack(small);
        for (std::uint32_t i = 1; i <= 100; ++i) {
            *word(32) = i;
            asm volatile("shll $1, %0" : "+m"(*const_cast<std::uint32_t*>(word(36))));
        }
    }).join();
    EXPECT_EQ(in_bank(32), 100U);
}

volatile std::uint32_t* stored_by_handler = nullptr;

/// 8192 is the SIGSTKSZ that programs were compiled with for decades.
TEST_F(TrappedView, a_handler_on_a_stack_of_8192_bytes_stores) {
    stored_by_handler = word(160);
    std::thread([&] {
        // What is below it is looked at: nothing may reach there.
        constexpr std::size_t kGuard = 8192, kStack = 8192;
        std::vector<std::byte> both(kGuard + kStack, std::byte{0x5A});
        const SignalStack stack{std::span(both).subspan(kGuard)};
        const SignalHandler handler(
            SIGUSR1, [](int) { *stored_by_handler = *stored_by_handler + 1; }, SA_ONSTACK);
        for (int i = 0; i < 50; ++i) ::raise(SIGUSR1);
        EXPECT_EQ(std::count(both.begin(), both.begin() + kGuard, std::byte{0x5A}),
                  std::ptrdiff_t{kGuard});
    }).join();
    EXPECT_EQ(in_bank(160), 50U);
}

TEST_F(TrappedView, threads_store_at_once_and_lose_nothing) {
    constexpr std::uint32_t kStores = 300;
    Threads(4, [&](unsigned t) {
        for (std::uint32_t i = 1; i <= kStores; ++i) {
            *word(64 * t) = i;
            asm volatile("roll $1, %0" : "+m"(*const_cast<std::uint32_t*>(word(64 * t + 4))));
        }
    }).join();
    for (unsigned t = 0; t < 4; ++t) EXPECT_EQ(in_bank(64 * t), kStores);
    EXPECT_EQ(taker.taken().size(), 4 * 2 * kStores);
}

/// Two long words that are exchanged as one.
bool exchange_both(std::uint64_t* both, std::uint64_t (&expected)[2], std::uint64_t to) {
    bool is_done = false;
    asm volatile("lock cmpxchg16b (%[both])"
                 : "+a"(expected[0]), "+d"(expected[1]), "=@ccz"(is_done)
                 : [both] "r"(both), "b"(to), "c"(~to)
                 : "memory");
    return is_done;
}

TEST_F(TrappedView, atomic_operations_of_threads_are_atomic) {
    constexpr std::uint32_t kTimes = 1000, kThreads = 4;
    const auto plain = [&](std::size_t at) { return const_cast<std::uint32_t*>(word(at)); };
    auto* const both = reinterpret_cast<std::uint64_t*>(memory.view().data() + 256);
    Threads(kThreads, [&](unsigned t) {
        for (std::uint32_t i = 1; i <= kTimes; ++i) {
            __atomic_fetch_add(plain(0), 1, __ATOMIC_SEQ_CST);  // xadd
            asm volatile("lock incl %0\n\tlock subl $2, %1" : "+m"(*plain(4)), "+m"(*plain(8)));
            std::uint32_t seen = *word(12);
            while (!__atomic_compare_exchange_n(plain(12), &seen, seen + 1, false, __ATOMIC_SEQ_CST,
                                                __ATOMIC_SEQ_CST)) {
            }
            while (__atomic_exchange_n(plain(16), 1, __ATOMIC_ACQUIRE) != 0) sched_yield();
            *word(20) = *word(20) + 1;
            __atomic_store_n(plain(16), 0, __ATOMIC_RELEASE);
            bool was_set = true;
            while (was_set) asm volatile("lock btsl $7, %1" : "=@ccc"(was_set), "+m"(*plain(24)));
            *word(28) = *word(28) + 1;
            asm volatile("lock btrl $7, %0" : "+m"(*plain(24)));
            asm volatile("lock xorl %1, %0" : "+m"(*plain(32)) : "r"(1U << t));
            if (i % 8 != 0) continue;
            std::uint64_t expected[2] = {0, 0};
            while (!exchange_both(both, expected, expected[0] + 1)) {
            }
        }
    }).join();
    constexpr std::uint32_t kAll = kTimes * kThreads;
    EXPECT_EQ(in_bank(0), kAll) << "xadd";
    EXPECT_EQ(in_bank(4), kAll) << "inc";
    EXPECT_EQ(in_bank(8), 0U - 2 * kAll) << "sub";
    EXPECT_EQ(in_bank(12), kAll) << "cmpxchg";
    EXPECT_EQ(in_bank(20), kAll) << "xchg as a lock";
    EXPECT_EQ(in_bank(28), kAll) << "bts and btr as a lock";
    EXPECT_EQ(in_bank(32), 0U) << "xor";
    EXPECT_EQ(in_bank(256), kTimes / 8 * kThreads) << "cmpxchg16b";
    EXPECT_EQ(in_bank(264), ~(kTimes / 8 * kThreads)) << "cmpxchg16b";
}

// ---- Sandboxes

using Filter = std::vector<sock_filter>;

sock_filter load(std::size_t offset) {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset));
}
sock_filter answer(unsigned with) {
    return BPF_STMT(BPF_RET | BPF_K, with);
}
/// Goes on `behind` instructions later where it is another call.
sock_filter unless_call(long number, unsigned char behind) {
    return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, behind);
}

/// From now on, for this process; one that cannot have it ends as a test that is skipped.
void confine(Filter filter) {
    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        ::_exit(77);
}

void expect_well(const Ended& ended) {
    if (ended.status == 77) GTEST_SKIP() << "no filter can be set here";
    EXPECT_EQ(ended.status, 0) << ended.said;
}

/// Whatever a sandbox forbids: it leaves a program the calls by which handlers return.
TEST_F(TrappedViews, a_program_that_may_make_no_other_call_stores_copies_and_fills) {
    const auto ended = run_apart([&] {
        const auto view = capture();
        std::vector<std::byte> from(3 * 4096, std::byte{3});
        Filter filter = {load(offsetof(seccomp_data, nr))};
        for (const long call : {SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_exit_group}) {
            filter.push_back(unless_call(call, 1));
            filter.push_back(answer(SECCOMP_RET_ALLOW));
        }
        filter.push_back(answer(SECCOMP_RET_KILL_PROCESS));
        confine(filter);
        *word(16) = 5;
        const std::byte* source = from.data() + 4000;
        std::byte* to = memory.view().data() + 100;
        std::size_t count = 5000;
        asm volatile("rep movsb" : "+S"(source), "+D"(to), "+c"(count)::"memory");
        if (in_bank(16) != 5 || memory.bank()[5099] != std::byte{3}) ::_exit(1);
        ::_exit(0);
    });
    expect_well(ended);
}

/// Refuses mappings with all of these rights, as a service is refused that may not make code.
Filter without_rights(unsigned rights) {
    return {load(offsetof(seccomp_data, nr)),
            unless_call(SYS_mmap, 4),
            load(offsetof(seccomp_data, args[2])),
            BPF_STMT(BPF_ALU | BPF_AND | BPF_K, rights),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rights, 0, 1),
            answer(SECCOMP_RET_ERRNO | EPERM),
            answer(SECCOMP_RET_ALLOW)};
}

TEST_F(TrappedViews, a_program_that_may_not_make_code_that_it_writes_stores_all_the_same) {
    const auto ended = run_apart([&] {
        confine(without_rights(PROT_WRITE | PROT_EXEC));
        const auto view = capture();
        *word(16) = 5;
        asm volatile("shll $1, %0" : "+m"(*const_cast<std::uint32_t*>(word(16))));
        ::_exit(in_bank(16) == 10 ? 0 : 1);
    });
    expect_well(ended);
}

TEST_F(TrappedViews, a_program_that_may_make_no_code_at_all_is_told_what_to_do) {
    const auto ended = run_apart([&] {
        confine(without_rights(PROT_EXEC));
        try {
            const auto view = capture();
        } catch (const Error& e) {
            static_cast<void>(!::write(STDERR_FILENO, e.what(), std::strlen(e.what())));
            ::_exit(0);
        }
        ::_exit(1);
    });
    expect_well(ended);
    if (IsSkipped()) return;
    EXPECT_THAT(ended.said, HasSubstr("set RMEM_STORES=scan"));
}

volatile std::uint32_t* ticked = nullptr;

TEST_F(TrappedView, a_signal_handler_stores_between_the_programs_stores) {
    ticked = word(128);
    const SignalHandler handler(SIGALRM, [](int) { *ticked = *ticked + 1; });
    const itimerval often{{0, 200}, {0, 200}}, never{};
    ASSERT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
    std::uint32_t stored = 0;
    while (*ticked < 50) {
        *word(132) = ++stored;
        asm volatile("shll $1, %0" : "+m"(*const_cast<std::uint32_t*>(word(136))));
    }
    ::setitimer(ITIMER_REAL, &never, nullptr);
    EXPECT_EQ(in_bank(132), stored);
    EXPECT_GE(in_bank(128), 50U);
}

TEST_F(TrappedView, the_system_reads_from_a_view_and_does_not_write_into_it) {
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

TEST_F(TrappedView, a_childs_store_ends_the_child_with_a_sentence) {
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
        const auto view = capture();
        // The base of a segment is not among the registers that a handler is given.
        std::uint64_t segment = 0;
        asm volatile("mov %%fs:0, %0" : "=r"(segment));
        const auto from_there = reinterpret_cast<std::uint64_t>(memory.view().data()) - segment;
        asm volatile("shll $1, %%fs:(%0)" ::"r"(from_there) : "memory", "cc");
    });
    EXPECT_EQ(ended.status, -SIGSEGV);
    EXPECT_THAT(ended.said, HasSubstr("cannot be captured"));
}

TEST_F(TrappedViews, a_store_that_ends_behind_the_memory_is_called_that) {
    const auto ended = run_apart([&] {
        const auto view = capture();
        *reinterpret_cast<volatile std::uint64_t*>(&memory.view()[TwoMappings::kBytes - 4]) = 1;
    });
    EXPECT_EQ(ended.status, -SIGSEGV);
    EXPECT_THAT(ended.said, HasSubstr("ends outside"));
    EXPECT_EQ(in_bank(TwoMappings::kBytes - 4), 0U);
}

TEST_F(TrappedViews, views_are_told_apart_and_their_number_is_bounded) {
    TwoMappings other;
    StoringTaker others(other.bank());
    const auto first = capture();
    {
        const stores::TrappedView second(other.view(), other.bank(), others);
        *word(0) = 1;
        *reinterpret_cast<volatile std::uint32_t*>(other.view().data()) = 2;
        EXPECT_EQ(taker.taken().size(), 1U);
        EXPECT_EQ(others.taken().size(), 1U);
    }
    std::vector<std::unique_ptr<stores::TrappedView>> views;
    for (std::size_t i = 1; i < stores::TrappedView::kMax; ++i)
        views.push_back(std::make_unique<stores::TrappedView>(other.view(), other.bank(), others));
    EXPECT_THROW(stores::TrappedView(other.view(), other.bank(), others), Error);
}

}  // namespace
}  // namespace rmem::test

#endif
