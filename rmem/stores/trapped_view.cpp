// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/trapped_view.hpp"

#include "rmem/base/check.hpp"
#include "rmem/stores/debugger.hpp"
#include "rmem/stores/signal_chain.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace rmem::stores {

namespace {

std::array<std::atomic<TrappedView*>, TrappedView::kMax> views{};

#if defined(__x86_64__)

TrappedView* view_at(std::uint64_t address) noexcept {
    for (const auto& one : views) {
        // (1) - this acquire-load synchronizes-with the release-store (2)
        TrappedView* const view = one.load(std::memory_order_acquire);
        if (view != nullptr && view->covers(address, 1)) return view;
    }
    return nullptr;
}

// ---- The program's registers, as the kernel gives them

constexpr std::array<int, 16> kGeneral = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                          REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                          REG_R12, REG_R13, REG_R14, REG_R15};
constexpr std::uint64_t kWriteFault = 1U << 1;
constexpr std::size_t kPage = 4096;
constexpr unsigned kMaxAtOnce = 512;  ///< stores, for one fault
constexpr unsigned kMaxBetween = 16;  ///< other instructions, before it is left to the processor
constexpr std::byte kBreakpoint{0xCC};

std::uint64_t reg(const ucontext_t& context, int which) noexcept {
    return static_cast<std::uint64_t>(context.uc_mcontext.gregs[which]);
}
void set_reg(ucontext_t& context, int which, std::uint64_t value) noexcept {
    context.uc_mcontext.gregs[which] = static_cast<greg_t>(value);
}

Registers registers_of(const ucontext_t& context) noexcept {
    // What is in the image stands in bytes that the processor leaves to the kernel (struct
    // _fpx_sw_bytes of Linux's asm/sigcontext.h).
    constexpr std::size_t kSoftwareAt = 464;
    constexpr std::uint32_t kHasMore = 0x46505853;
    struct Software {
        std::uint32_t magic, extended_size;
        std::uint64_t parts;
    } software;
    Registers registers;
    for (std::size_t i = 0; i < kGeneral.size(); ++i)
        registers.general[i] = reg(context, kGeneral[i]);
    registers.next = reg(context, REG_RIP);
    registers.flags = reg(context, REG_EFL);
    registers.image = reinterpret_cast<std::byte*>(context.uc_mcontext.fpregs);
    std::memcpy(&software, registers.image + kSoftwareAt, sizeof software);
    if (software.magic == kHasMore) registers.parts = software.parts;
    return registers;
}

void put_back(const Registers& registers, ucontext_t& context) noexcept {
    for (std::size_t i = 0; i < kGeneral.size(); ++i)
        set_reg(context, kGeneral[i], registers.general[i]);
    set_reg(context, REG_RIP, registers.next);
    set_reg(context, REG_EFL, registers.flags);
}

// ---- Handlers

[[gnu::cold]] void complain(const char* sentence) noexcept {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, sentence, std::strlen(sentence));
}

/// Whether the byte can be read: asked of a call that every program is allowed, and that fails in
/// any case.
bool is_readable(std::uint64_t address) noexcept {
    const std::uint64_t place = address & ~std::uint64_t{7};
    return ::syscall(SYS_rt_sigprocmask, ~0, place, nullptr, sizeof(std::uint64_t)) != 0 &&
           errno != EFAULT;
}

struct Fault {
    TrappedView& view;
    ucontext_t& context;
    Outcome outcome = Outcome::unknown;
};

/// The instruction that the program stands before; null: it is none that can be read.
const Decoded* next_of(TrappedView& view, const Registers& registers, bool is_next) noexcept {
    std::array<std::byte, Slot::kLongestInstruction> code;
    const auto* const here = reinterpret_cast<const std::byte*>(registers.next);
    // It may end before the next page, which may not be there.
    std::size_t bytes = std::min(kPage - registers.next % kPage, code.size());
    if (bytes < code.size() && is_readable(registers.next + bytes)) bytes = code.size();
    std::copy_n(here, bytes, code.begin());
    if (code[0] == kBreakpoint) {
        // A debugger has put that there since the processor has read what it began.
        if (is_next || !read_original_code(registers.next, code)) return nullptr;
        static std::atomic<bool> has_complained{false};
        // relaxed is enough: it is about itself alone
        if (!has_complained.exchange(true, std::memory_order_relaxed)) {
            complain(
                "rmem: a debugger has a breakpoint at a store that is captured exactly; a step "
                "over it goes on to the next breakpoint (set RMEM_STORES=scan to step)\n");
        }
        bytes = code.size();
    }
    return view.decodings().at(registers.next, std::span(code).first(bytes));
}

Outcome perform_next(TrappedView& view, Registers& registers) noexcept {
    const auto* const next = next_of(view, registers, false);
    if (next == nullptr) return Outcome::unknown;
    return perform(*next, false, registers, view, view.slot(), view.distance());
}

/// Stores come in groups, and each is cheaper here than by a fault of its own.
void run_along(TrappedView& view, Registers& registers) noexcept {
    unsigned between = 0;
    for (unsigned stores = 1; stores < kMaxAtOnce && between < kMaxBetween;) {
        const auto* const next = next_of(view, registers, true);
        if (next == nullptr) return;
        if (perform(*next, true, registers, view, view.slot(), view.distance()) ==
            Outcome::performed) {
            ++stores;
            between = 0;
        } else if (step(*next, registers, view, view.slot())) {
            ++between;
        } else {
            return;
        }
    }
}

void perform_fault(void* with) noexcept {
    auto& fault = *static_cast<Fault*>(with);
    Registers registers = registers_of(fault.context);
    fault.outcome = perform_next(fault.view, registers);
    if (fault.outcome != Outcome::performed) return;
    run_along(fault.view, registers);
    put_back(registers, fault.context);
}

void run_on(std::byte* top, void (*body)(void*) noexcept, void* with) noexcept {
    asm volatile(
        "mov %%rsp, %%rbx\n\t"
        "mov %[top], %%rsp\n\t"
        "call *%[body]\n\t"
        "mov %%rbx, %%rsp"
        : "+D"(with)
        : [top] "r"(top), [body] "r"(body)
        : "rbx", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "cc", "memory", "st", "xmm0",
          "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
          "xmm12", "xmm13", "xmm14", "xmm15");
}

bool on_fault(const siginfo_t& info, ucontext_t& context) noexcept {
    if (info.si_code <= 0 || (reg(context, REG_ERR) & kWriteFault) == 0) return false;
    TrappedView* const view = view_at(reinterpret_cast<std::uint64_t>(info.si_addr));
    if (view == nullptr) return false;
    if (view->is_parents()) {
        complain(
            "rmem: a fork()ed child stores into the memory of its parent's node; the child "
            "opens a node of its own, and stores there\n");
        return false;
    }
    Fault fault{*view, context};
    view->run_alone(perform_fault, &fault);
    if (fault.outcome == Outcome::overruns) {
        complain(
            "rmem: a store begins inside the memory of a ring, and ends outside; it is not "
            "made\n");
    } else if (fault.outcome == Outcome::unknown) {
        complain(
            "rmem: an instruction stores into the memory of a ring in a way that cannot be "
            "captured; compile the program with rmem-cc, or set RMEM_STORES=scan\n");
    }
    return fault.outcome == Outcome::performed;
}

#endif

}  // namespace

TrappedView::TrappedView(std::span<const std::byte> view, std::byte* bank, StoreTaker& taker)
    : begin_(reinterpret_cast<std::uint64_t>(view.data())),
      bytes_(view.size()),
      bank_(bank),
      taker_(taker) {
#if defined(__x86_64__)
    look_first(SIGSEGV, on_fault);
    for (auto& one : views) {
        TrappedView* none = nullptr;
        // (2) - this release-store synchronizes-with the acquire-load (1)
        if (one.compare_exchange_strong(none, this, std::memory_order_release,
                                        std::memory_order_relaxed))
            return;
    }
    throw Error(
        Errc::invalid_argument,
        fmt::format("this process captures the stores of {} nodes already, and of no more", kMax));
#endif
}

TrappedView::~TrappedView() {
    for (auto& one : views) {
        TrappedView* mine = this;
        // relaxed is enough: the program stores no more
        if (one.compare_exchange_strong(mine, nullptr, std::memory_order_relaxed)) return;
    }
}

std::uint64_t TrappedView::distance() const noexcept {
    return reinterpret_cast<std::uint64_t>(bank_) - begin_;
}

bool TrappedView::covers(std::uint64_t address, std::size_t bytes) const noexcept {
    return address >= begin_ && address - begin_ < bytes_ && bytes <= bytes_ - (address - begin_);
}

void TrappedView::store(std::uint64_t address, const void* from, std::size_t bytes) noexcept {
    RMEM_CHECK(covers(address, bytes));
    taker_.put(address - begin_, from, bytes);
}

bool TrappedView::can_read(std::uint64_t address, std::size_t bytes) const noexcept {
    if (covers(address, bytes)) return true;
#if defined(__x86_64__)
    for (std::uint64_t at = address; at < address + bytes; at = (at | (kPage - 1)) + 1) {
        if (at / kPage == readable_page_) continue;
        if (!is_readable(at)) return false;
        readable_page_ = at / kPage;
    }
#endif
    return true;
}

bool TrappedView::read(std::uint64_t address, void* to, std::size_t bytes) const noexcept {
    if (!can_read(address, bytes)) return false;
    if (covers(address, 1) || covers(address + bytes - 1, 1)) taker_.settle();
    std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
    return true;
}

void TrappedView::run_alone(void (*body)(void*) noexcept, void* with) noexcept {
#if defined(__x86_64__)
    taker_.begin();
    readable_page_ = kNoPage;
    run_on(stack_.get() + kStackBytes, body, with);
    taker_.end();
#endif
}

}  // namespace rmem::stores
