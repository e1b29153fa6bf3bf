// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Where one instruction of a program is executed in place of where it stands: a copy of it, by the
/// processor, with all registers of the program, on memory of this object.
///
/// The general registers are loaded and stored by a few instructions around that copy, the rest by
/// XRSTOR and XSAVE from and to the image that the kernel has made of them for the signal's handler
/// (Intel SDM volume 1, chapter 13). So nothing has to be known of what an instruction computes.
///
/// Invariant: while an instruction runs the stack pointer is the program's. So no signal may come,
///   and the instruction must not fault.
/// Trust: the image is the kernel's. PKRU is left as it is.
/// Thread safety: one thread at a time. Allocates nothing after construction, and throws nothing.
/// Errors: Error(invalid_argument) where the process may not make code (SELinux may forbid it).

#include "rmem/error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rmem::stores {

/// Of a program that stands before an instruction, on x86-64.
struct Registers {
    std::array<std::uint64_t, 16> general{};  ///< by their numbers: rax, rcx, rdx, rbx, rsp, …
    std::uint64_t flags = 0;
    std::uint64_t next = 0;      ///< the instruction pointer
    std::byte* image = nullptr;  ///< of the others, as XSAVE or FXSAVE makes it
    std::uint64_t parts = 0;     ///< what is in it, a bit each; 0: FXSAVE has made it
};

/// What an instruction does with the registers in the image.
enum class ImageUse { none, read, change };

class RMEM_API Slot {
public:
    static constexpr std::size_t kLongestInstruction = 15;
    static constexpr std::size_t kStageBytes = 16384;  ///< what XSAVE stores fits in
    static constexpr std::size_t kCopies = 128;  ///< of code: a processor that finds it written
                                                 ///< forgets what it has made of it

    Slot();
    ~Slot();
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    /// Two places for what the instruction stores, at the beginning of a page each.
    [[nodiscard]] std::byte* stage(unsigned which) const noexcept;
    /// `code`: one instruction, which is executed with these registers, and changes them (but for
    /// `next`). It takes long where that copy was another one before.
    void run(std::size_t copy, std::span<const std::byte> code, Registers& registers,
             ImageUse use) noexcept;

private:
    std::byte* code_;           ///< at the beginning; behind it the rest, which is data
    std::byte* writable_code_;  ///< the same, to be written: another mapping where it must be
};

}  // namespace rmem::stores
