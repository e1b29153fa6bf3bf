// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Counts the system calls of a thread: a seccomp filter stops each, and a signal handler notes its
/// number and makes it in the thread's stead.
///
///     CallWatch::install();       // for good: a filter cannot be taken back
///     CallWatch::start();
///     ...
///     const CallsSeen seen = CallWatch::stop();
///
/// Calls are made, counted or not, so that a watched program goes on and ends as any other. A call
/// without the kernel (the clock, where it is in the vDSO) is no system call; where it is not,
/// reading the clock is not counted, since that is the machine's doing. Looks at a lock of a file
/// (F_OFD_GETLK: whether a rank is alive) are counted apart.
/// Thread safety: one thread per process, and threads started after `install` must not exist.
/// x86-64 Linux only: `supported` says whether this is one that allows filters.

#include "tests/support/child.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>

#include <fcntl.h>

#if defined(__x86_64__)
// The one place whose calls the filter lets through.
asm(R"(
    .pushsection .text
    .weak rmem_test_call
    .hidden rmem_test_call
    .weak rmem_test_call_end
    .hidden rmem_test_call_end
rmem_test_call:
    movq %rdi, %rax
    movq %rsi, %r11
    movq 0(%r11), %rdi
    movq 8(%r11), %rsi
    movq 16(%r11), %rdx
    movq 24(%r11), %r10
    movq 32(%r11), %r8
    movq 40(%r11), %r9
    syscall
rmem_test_call_end:
    ret
    .popsection
)");
extern "C" {
[[gnu::visibility("hidden")]] long rmem_test_call(long number, const long* arguments);
[[gnu::visibility("hidden")]] extern const char rmem_test_call_end[];
}
#endif

namespace rmem::test {

struct CallsSeen {
    unsigned calls = 0;
    int first = -1;      ///< the number of the first of them
    unsigned looks = 0;  ///< whether a rank is alive
};

class CallWatch {
public:
    /// Whether a process may be watched here; asked in a process of its own.
    static bool supported() {
        return Child([] { ::_exit(install() ? 0 : 1); }).wait() == 0;
    }

#if defined(__x86_64__)
    static bool install() {
        struct sigaction action {};
        action.sa_sigaction = &on_call;
        action.sa_flags = SA_SIGINFO | SA_NODEFER;
        if (::sigaction(SIGSYS, &action, nullptr) != 0) return false;
        const auto place = reinterpret_cast<std::uint64_t>(rmem_test_call_end);
        const auto low = static_cast<std::uint32_t>(place);
        const auto high = static_cast<std::uint32_t>(place >> 32U);
        constexpr std::uint32_t kPlace = offsetof(seccomp_data, instruction_pointer);
        sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_rt_sigreturn, 4, 0),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kPlace),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, low, 0, 3),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kPlace + 4),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, high, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        };
        const sock_fprog program{sizeof filter / sizeof filter[0], filter};
        return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
               ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
    }
#else
    static bool install() {
        return false;
    }
#endif

    static void start() {
        seen_ = CallsSeen{};
        watching_ = true;
    }
    static CallsSeen stop() {
        watching_ = false;
        return seen_;
    }

private:
#if defined(__x86_64__)
    static void on_call(int, siginfo_t*, void* context) {
        greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
        const long number = registers[REG_RAX];
        const long arguments[] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                                  registers[REG_R10], registers[REG_R8],  registers[REG_R9]};
        if (watching_) note(number, arguments[1]);
        registers[REG_RAX] = rmem_test_call(number, arguments);
    }
#endif
    static void note(long number, long second) {
        if (number == SYS_clock_gettime) return;
        if (number == SYS_kill && second == 0) return;  // of a look
        if (number == SYS_fcntl && second == F_OFD_GETLK) {
            ++seen_.looks;
            return;
        }
        if (seen_.calls++ == 0) seen_.first = static_cast<int>(number);
    }

    inline static CallsSeen seen_;
    inline static volatile bool watching_ = false;
};

}  // namespace rmem::test
