// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An instruction as it was decoded, and what is the same each time that it comes: its copy with
/// another address, and what it does with registers.
///
/// Thread safety: values; the rest as rmem/stores/decodings.hpp. Units: bytes.
/// Source: Intel SDM volume 2; decoding is Zydis'. On x86-64 alone.

#include "rmem/stores/slot.hpp"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rmem::stores {

inline constexpr unsigned kRax = 0, kRcx = 1, kRsp = 4, kRsi = 6, kRdi = 7, kNoGeneral = 16;

/// A copy of an instruction, and the register by which it finds the other place.
struct Copy {
    std::array<std::byte, Slot::kLongestInstruction> bytes;
    std::size_t length = 0;
    std::size_t at = 0;        ///< in the slot
    unsigned by = kNoGeneral;  ///< none: the place is in the code

    void add(std::byte byte) noexcept { bytes[length++] = byte; }
    [[nodiscard]] std::span<const std::byte> code() const noexcept {
        return std::span(bytes).first(length);
    }
};

struct Decoded {
    ZydisDecodedInstruction in;
    std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
    std::array<std::byte, Slot::kLongestInstruction> bytes;
    // Of each: where it stores, or what memory it uses at all; and what is plain (see below).
    const ZydisDecodedOperand *stored, *memory;
    std::optional<Copy> copy;  ///< with another address of its memory
    ImageUse use;
    bool is_plain;
    std::size_t at;  ///< its copy in the slot

    const ZydisDecodedOperand& operator[](std::size_t i) const noexcept { return operands[i]; }
    [[nodiscard]] std::span<const std::byte> code() const noexcept {
        return std::span(bytes).first(in.length);
    }
};

/// The number of the register that this is, or is a part of; kNoGeneral for others.
[[nodiscard]] unsigned number_of(ZydisRegister reg) noexcept;
[[nodiscard]] inline std::uint64_t value_of(const Registers& registers,
                                            ZydisRegister reg) noexcept {
    return registers.general[number_of(reg)];
}
[[nodiscard]] inline bool is_written(const ZydisDecodedOperand& operand) noexcept {
    return (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
}
/// The address without the index of a vector.
[[nodiscard]] std::optional<std::uint64_t> address_of(const Decoded& decoded,
                                                      const ZydisDecodedOperandMem& place,
                                                      const Registers& registers) noexcept;
/// With a register alone as its address, or (`keeps_index`) with one in place of its base.
[[nodiscard]] std::optional<Copy> copy_of(const Decoded& decoded, const ZydisDecodedOperand& place,
                                          bool keeps_index) noexcept;
/// Executes the copy, which goes to `place`.
void run(Copy copy, std::uint64_t place, Registers& registers, Slot& slot, ImageUse use) noexcept;

}  // namespace rmem::stores
