// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The registers of a program that stands before an instruction, on x86-64.
///
/// General ones are copied, and can be changed; vectors are read where the kernel has put them: the
/// image that XSAVE makes, in its standard format (Intel SDM volume 1, chapter 13).
/// Trust: the image is the kernel's; what it says to hold beyond its end is zero.
/// Thread safety: a value.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rmem::stores {

inline constexpr std::size_t kVectorBytes = 64;

/// Vector registers by number, of all sizes. What the image does not hold is zero, as in the
/// processor.
class VectorRegisters {
public:
    VectorRegisters() = default;
    /// `image`: the legacy area of 512 bytes alone, or with the header and what it says.
    explicit VectorRegisters(std::span<const std::byte> image) noexcept : image_(image) {}

    /// The first `bytes` (at most kVectorBytes) of register `number` (below 32).
    void copy(unsigned number, void* to, std::size_t bytes) const noexcept;
    /// The mask register k0 to k7.
    [[nodiscard]] std::uint64_t mask(unsigned number) const noexcept;

private:
    void copy_part(unsigned component, std::size_t at, std::size_t size, std::byte* to,
                   std::size_t from, std::size_t bytes) const noexcept;

    std::span<const std::byte> image_;
};

struct Registers {
    std::array<std::uint64_t, 16> general{};  ///< by their numbers: rax, rcx, rdx, rbx, rsp, …
    std::uint64_t next = 0;                   ///< the instruction pointer
    std::uint64_t flags = 0;
    VectorRegisters vectors;
};

}  // namespace rmem::stores
