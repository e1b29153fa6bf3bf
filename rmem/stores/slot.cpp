// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/slot.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/descriptor.hpp"

#if defined(__x86_64__)

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

// What stands around the instruction. It is copied, and finds its data as far behind each copy.
asm(R"(
    .pushsection .rodata
    .local rmem_slot_code, rmem_slot_place, rmem_slot_end
    .set rmem_slot_data, rmem_slot_code + 65536
rmem_slot_code:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, rmem_slot_data+136(%rip)
    push rmem_slot_data+128(%rip)
    popf
    mov rmem_slot_data+0(%rip), %rax
    mov rmem_slot_data+8(%rip), %rcx
    mov rmem_slot_data+16(%rip), %rdx
    mov rmem_slot_data+24(%rip), %rbx
    mov rmem_slot_data+32(%rip), %rsp
    mov rmem_slot_data+40(%rip), %rbp
    mov rmem_slot_data+48(%rip), %rsi
    mov rmem_slot_data+56(%rip), %rdi
    mov rmem_slot_data+64(%rip), %r8
    mov rmem_slot_data+72(%rip), %r9
    mov rmem_slot_data+80(%rip), %r10
    mov rmem_slot_data+88(%rip), %r11
    mov rmem_slot_data+96(%rip), %r12
    mov rmem_slot_data+104(%rip), %r13
    mov rmem_slot_data+112(%rip), %r14
    mov rmem_slot_data+120(%rip), %r15
rmem_slot_place:
    .fill 15, 1, 0x90
    mov %rsp, rmem_slot_data+32(%rip)
    mov rmem_slot_data+136(%rip), %rsp
    pushf
    pop rmem_slot_data+128(%rip)
    cld
    mov %rax, rmem_slot_data+0(%rip)
    mov %rcx, rmem_slot_data+8(%rip)
    mov %rdx, rmem_slot_data+16(%rip)
    mov %rbx, rmem_slot_data+24(%rip)
    mov %rbp, rmem_slot_data+40(%rip)
    mov %rsi, rmem_slot_data+48(%rip)
    mov %rdi, rmem_slot_data+56(%rip)
    mov %r8, rmem_slot_data+64(%rip)
    mov %r9, rmem_slot_data+72(%rip)
    mov %r10, rmem_slot_data+80(%rip)
    mov %r11, rmem_slot_data+88(%rip)
    mov %r12, rmem_slot_data+96(%rip)
    mov %r13, rmem_slot_data+104(%rip)
    mov %r14, rmem_slot_data+112(%rip)
    mov %r15, rmem_slot_data+120(%rip)
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret
rmem_slot_end:
    .popsection
)");

extern const std::byte kSlotCode[] asm("rmem_slot_code");
extern const std::byte kSlotPlace[] asm("rmem_slot_place");
extern const std::byte kSlotEnd[] asm("rmem_slot_end");

namespace rmem::stores {

namespace {

constexpr std::size_t kStride = 512;
constexpr std::size_t kCodeBytes = Slot::kCopies * kStride;  // and as many of data
constexpr std::size_t kAllBytes = 2 * kCodeBytes + 2 * Slot::kStageBytes;
constexpr std::uint64_t kArithmeticFlags = 0x8D5;  // what an instruction of a program goes by
constexpr std::uint64_t kHandlersFlags = 0x202;    // and never its alignment checks
constexpr std::uint64_t kProtectionKeys = 1U << 9;

/// Of a copy.
struct Data {
    std::array<std::uint64_t, 16> general;
    std::uint64_t flags;
    std::uint64_t own_stack;
};

/// The state in which compiled code finds the registers of the image.
struct alignas(64) CleanImage {
    std::array<std::uint8_t, 512> legacy{};
    std::array<std::uint64_t, 8> header{};  // nothing is in it: each part as after a reset
    constexpr CleanImage() {
        legacy[0] = 0x7F, legacy[1] = 0x03;    // x87: all exceptions masked, the longest mantissa
        legacy[24] = 0x80, legacy[25] = 0x1F;  // MXCSR: all exceptions masked
    }
};
constexpr CleanImage kClean;

std::byte* map(std::size_t bytes, int rights, int flags, int fd) noexcept {
    void* const place = ::mmap(nullptr, bytes, rights, flags, fd, 0);
    return place == MAP_FAILED ? nullptr : static_cast<std::byte*>(place);
}

}  // namespace

Slot::Slot() {
    constexpr int kAll = PROT_READ | PROT_WRITE | PROT_EXEC;
    code_ = writable_code_ = map(kAllBytes, kAll, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (code_ == nullptr) {
        // Where nothing may be both written and executed (systemd's MemoryDenyWriteExecute) it is
        // mapped twice.
        const int fd = above_standard_streams(::memfd_create("rmem-slot", MFD_CLOEXEC));
        if (fd >= 0 && ::ftruncate(fd, kAllBytes) == 0) {
            code_ = map(kAllBytes, PROT_READ | PROT_EXEC, MAP_SHARED, fd);
            writable_code_ = map(kCodeBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
        }
        const int error = errno;
        if (fd >= 0) ::close(fd);
        if (code_ == nullptr || writable_code_ == nullptr) {
            throw Error(Errc::invalid_argument,
                        fmt::format("stores cannot be captured exactly, since this process may not "
                                    "make code that it executes ({}); compile the program with "
                                    "rmem-cc, or set RMEM_STORES=scan",
                                    std::strerror(error)));
        }
    }
    ::mprotect(code_ + kCodeBytes, kAllBytes - kCodeBytes, PROT_READ | PROT_WRITE);
    for (std::size_t i = 0; i < kCopies; ++i)
        std::copy(kSlotCode, kSlotEnd, writable_code_ + i * kStride);
}

Slot::~Slot() {
    if (writable_code_ != code_) ::munmap(writable_code_, kCodeBytes);
    ::munmap(code_, kAllBytes);
}

std::byte* Slot::stage(unsigned which) const noexcept {
    return code_ + 2 * kCodeBytes + which * kStageBytes;
}

void Slot::run(std::size_t copy, std::span<const std::byte> code, Registers& registers,
               ImageUse use) noexcept {
    RMEM_CHECK(copy < kCopies && !code.empty() && code.size() <= kLongestInstruction);
    std::array<std::byte, kLongestInstruction> padded;
    padded.fill(std::byte{0x90});
    std::copy(code.begin(), code.end(), padded.begin());
    const std::size_t at = copy * kStride;
    std::byte* const place = writable_code_ + at + (kSlotPlace - kSlotCode);
    if (std::memcmp(padded.data(), place, padded.size()) != 0)
        std::copy(padded.begin(), padded.end(), place);
    Data& data = *reinterpret_cast<Data*>(code_ + kCodeBytes + at);
    data.general = registers.general;
    data.flags = (registers.flags & kArithmeticFlags) | kHandlersFlags;

    // In one piece: a compiler knows nothing of registers that are not its own in between.
    register std::uint64_t parts asm("r15") = registers.parts & ~kProtectionKeys;
    register const std::byte* enter asm("r14") = code_ + at;
    register const CleanImage* clean asm("r13") = &kClean;
    register std::byte* image asm("r12") = registers.image;
    register std::uint64_t uses asm("rbx") = static_cast<std::uint64_t>(use);
#define RMEM_EACH_PART "mov %%r15d, %%eax\n\tmov %%r15, %%rdx\n\tshr $32, %%rdx\n\t"
#define RMEM_RESTORE(from)                                            \
    "test %%r15, %%r15\n\tjz 1f\n\t" RMEM_EACH_PART "xrstor64 (" from \
    ")\n\tjmp 2f\n1:\tfxrstor64 (" from ")\n2:\n\t"
    asm volatile(
        "lea -128(%%rsp), %%rsp\n\t"  // below the red zone
        "test %%ebx, %%ebx\n\tjz 3f\n\t" RMEM_RESTORE("%%r12")
        "3:\n\tcall *%%r14\n\t"
        "cmp $1, %%ebx\n\tjb 5f\n\tje 4f\n\t"
        "test %%r15, %%r15\n\tjz 6f\n\t" RMEM_EACH_PART "xsave64 (%%r12)\n\tjmp 4f\n"
        "6:\tfxsave64 (%%r12)\n"
        "4:\n\t" RMEM_RESTORE("%%r13")
        "5:\n\tlea 128(%%rsp), %%rsp"
        :
        : "r"(parts), "r"(enter), "r"(clean), "r"(image), "r"(uses)
        : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc", "memory", "st", "xmm0",
          "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
          "xmm12", "xmm13", "xmm14", "xmm15");
#undef RMEM_RESTORE
#undef RMEM_EACH_PART
    registers.general = data.general;
    registers.flags = (registers.flags & ~kArithmeticFlags) | (data.flags & kArithmeticFlags);
}

}  // namespace rmem::stores

#else

namespace rmem::stores {

Slot::Slot() {
    throw Error(Errc::invalid_argument,
                "stores are captured exactly on x86-64 alone; compile the program with rmem-cc, or "
                "set RMEM_STORES=scan");
}
Slot::~Slot() = default;

}  // namespace rmem::stores

#endif
