// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/trapped_view.hpp"

#include "rmem/stores/signal_chain.hpp"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <utility>

namespace rmem::stores {

namespace {

std::array<std::atomic<TrappedView*>, TrappedView::kMost> views{};

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
constexpr std::uint64_t kTrapFlag = 1U << 8;
constexpr std::uint64_t kRedZone = 128;
constexpr std::size_t kLongestInstruction = 15;
constexpr std::size_t kPage = 4096;
constexpr unsigned kMostAtOnce = 32;  ///< stores, for one fault

std::uint64_t reg(const ucontext_t& context, int which) noexcept {
    return static_cast<std::uint64_t>(context.uc_mcontext.gregs[which]);
}
void set_reg(ucontext_t& context, int which, std::uint64_t value) noexcept {
    context.uc_mcontext.gregs[which] = static_cast<greg_t>(value);
}

/// The image of the vector registers: how long it is stands in bytes that the processor leaves to
/// the kernel (struct _fpx_sw_bytes of Linux's asm/sigcontext.h).
std::span<const std::byte> vector_image(const ucontext_t& context) noexcept {
    constexpr std::size_t kLegacyBytes = 512, kSoftwareAt = 464;
    constexpr std::uint32_t kHasMore = 0x46505853;
    struct Software {
        std::uint32_t magic, extended_size;
        std::uint64_t features;
        std::uint32_t image_size;
    } software;
    const auto* const image = reinterpret_cast<const std::byte*>(context.uc_mcontext.fpregs);
    if (image == nullptr) return {};
    std::memcpy(&software, image + kSoftwareAt, sizeof software);
    return {image, software.magic == kHasMore ? software.image_size : kLegacyBytes};
}

Registers registers_of(const ucontext_t& context) noexcept {
    Registers registers;
    for (std::size_t i = 0; i < kGeneral.size(); ++i)
        registers.general[i] = reg(context, kGeneral[i]);
    registers.next = reg(context, REG_RIP);
    registers.flags = reg(context, REG_EFL);
    registers.vectors = VectorRegisters(vector_image(context));
    return registers;
}

void put_back(const Registers& registers, ucontext_t& context) noexcept {
    for (std::size_t i = 0; i < kGeneral.size(); ++i)
        set_reg(context, kGeneral[i], registers.general[i]);
    set_reg(context, REG_RIP, registers.next);
    set_reg(context, REG_EFL, registers.flags);
}

// ---- Stepping

struct Stepping {
    TrappedView* view = nullptr;
    Step step;
    sigset_t mask;  ///< of the program
    std::array<std::byte, 64> before;
};
[[gnu::tls_model("initial-exec")]] thread_local constinit Stepping stepping{};

void begin_step(TrappedView& view, const Step& step, ucontext_t& context) noexcept {
    stepping.view = &view;
    stepping.step = step;
    stepping.mask = context.uc_sigmask;
    if (step.is_partial) {
        std::memcpy(stepping.before.data(), reinterpret_cast<const void*>(step.address),
                    std::min(step.bytes, stepping.before.size()));
    }
    const int which = kGeneral[step.general];
    set_reg(context, which, reg(context, which) + step.addend);
    set_reg(context, REG_EFL, reg(context, REG_EFL) | kTrapFlag);
    sigfillset(&context.uc_sigmask);
    sigdelset(&context.uc_sigmask, SIGTRAP);
    sigdelset(&context.uc_sigmask, SIGSEGV);
}

void end_step(ucontext_t& context) noexcept {
    const int which = kGeneral[stepping.step.general];
    set_reg(context, which, reg(context, which) - stepping.step.addend);
    set_reg(context, REG_EFL, reg(context, REG_EFL) & ~kTrapFlag);
    context.uc_sigmask = stepping.mask;
}

/// What the stepped instruction has stored is in the bank already; it is taken from there.
void take_stepped() noexcept {
    TrappedView& view = *std::exchange(stepping.view, nullptr);
    const Step& step = stepping.step;
    const auto* const now = reinterpret_cast<const std::byte*>(step.address);
    if (!step.is_partial || step.bytes > stepping.before.size())
        return view.store(step.address, now, step.bytes);
    const auto differs = [&](std::size_t i) {
        return i < step.bytes && now[i] != stepping.before[i];
    };
    for (std::size_t first = 0; first < step.bytes; ++first) {
        if (!differs(first)) continue;
        std::size_t end = first + 1;
        while (differs(end)) ++end;
        view.store(step.address + first, now + first, end - first);
        first = end;
    }
}

// ---- Handlers

[[gnu::cold]] void complain(const char* sentence) noexcept {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, sentence, std::strlen(sentence));
}

struct Fault {
    TrappedView& view;
    ucontext_t& context;
    bool is_done = false;
};

/// The instruction that the program stands before.
Outcome perform_next(TrappedView& view, Registers& registers, Step& step) noexcept {
    // It may end before the next page, which may not be there.
    const std::size_t left = kPage - registers.next % kPage;
    const auto* const code = reinterpret_cast<const std::byte*>(registers.next);
    for (const std::size_t bytes : {std::min(left, kLongestInstruction), kLongestInstruction}) {
        const Outcome outcome = perform({code, bytes}, registers, view, view.distance(), step);
        if (outcome != Outcome::unknown || bytes == kLongestInstruction) return outcome;
        std::array<std::byte, kLongestInstruction> all;
        if (!view.read(registers.next, all.data(), all.size())) break;
    }
    return Outcome::unknown;
}

void perform_fault(void* with) noexcept {
    auto& fault = *static_cast<Fault*>(with);
    Registers registers = registers_of(fault.context);
    Step step;
    const Outcome outcome = perform_next(fault.view, registers, step);
    fault.is_done = outcome != Outcome::unknown;
    if (outcome == Outcome::to_step) return begin_step(fault.view, step, fault.context);
    if (outcome == Outcome::unknown) return;
    // Stores come in groups, and each is cheaper here than a fault of its own.
    for (unsigned more = 1; more < kMostAtOnce; ++more) {
        if (perform_next(fault.view, registers, step) != Outcome::performed) break;
    }
    put_back(registers, fault.context);
}

/// Runs `body` on the program's own stack, below what it uses: a handler's stack may be small.
void on_program_stack(ucontext_t& context, void (*body)(void*) noexcept, void* with) noexcept {
    const std::uint64_t top = (reg(context, REG_RSP) - kRedZone) & ~std::uint64_t{63};
    const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
    // The kernel has made this frame there already, if the program has no other stack for signals.
    constexpr std::uint64_t kNear = 1U << 16;
    if (here < top && top - here < kNear) return body(with);
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
    if (stepping.view != nullptr) {  // the stepped instruction itself has found something else
        end_step(context);
        stepping.view = nullptr;
        return false;
    }
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
    on_program_stack(context, perform_fault, &fault);
    if (!fault.is_done) {
        complain(
            "rmem: an instruction stores into the memory of a ring in a way that cannot be "
            "captured; compile the program with rmem-cc, or set RMEM_STORES=scan\n");
    }
    return fault.is_done;
}

bool on_trap(const siginfo_t& info, ucontext_t& context) noexcept {
    if (stepping.view == nullptr || info.si_code <= 0) return false;
    end_step(context);
    on_program_stack(
        context, [](void*) noexcept { take_stepped(); }, nullptr);
    return true;
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
    look_first(SIGTRAP, on_trap);
    for (auto& one : views) {
        TrappedView* none = nullptr;
        // (2) - this release-store synchronizes-with the acquire-load (1)
        if (one.compare_exchange_strong(none, this, std::memory_order_release,
                                        std::memory_order_relaxed))
            return;
    }
    throw Error(
        Errc::invalid_argument,
        fmt::format("this process captures the stores of {} nodes already, and of no more", kMost));
#else
    throw Error(Errc::unknown_link,
                "stores are captured exactly on x86-64 alone; compile the program with rmem-cc, or "
                "set RMEM_STORES=scan");
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
    taker_.take(address - begin_, from, bytes);
}

bool TrappedView::read(std::uint64_t address, void* to, std::size_t bytes) const noexcept {
    if (covers(address, bytes)) {
        std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
        return true;
    }
    // The kernel says where there is nothing, in place of a signal inside this handler.
    const iovec into{to, bytes};
    const iovec out{reinterpret_cast<void*>(address), bytes};
    return ::process_vm_readv(::getpid(), &into, 1, &out, 1, 0) == static_cast<ssize_t>(bytes);
}

}  // namespace rmem::stores
