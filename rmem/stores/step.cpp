// SPDX-License-Identifier: Apache-2.0
// What stands between two stores of a run.
#include "rmem/stores/instruction.hpp"

#if defined(__x86_64__)

#include "rmem/base/limits.hpp"
#include "rmem/stores/decoded.hpp"

#include <array>

namespace rmem::stores {

namespace {

/// The condition of a jump, by the lowest bits of its code: asked of the processor (setcc %al).
bool holds(unsigned condition, std::size_t at, Registers registers, Slot& slot) noexcept {
    const std::array<std::byte, 3> ask = {
        std::byte{0x0F}, static_cast<std::byte>(0x90U | condition), std::byte{0xC0}};
    slot.run(at, ask, registers, ImageUse::none);
    return (registers.general[kRax] & 0xFF) != 0;
}

/// A near jump to a place that stands in it.
bool jump(const Decoded& decoded, Registers& registers, Slot& slot) noexcept {
    constexpr unsigned kShort = 0x70, kNear = 0x80;
    const ZydisDecodedOperand& to = decoded[0];
    if (to.type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !to.imm.is_relative) return false;
    bool is_taken = decoded.in.mnemonic == ZYDIS_MNEMONIC_JMP;
    if (decoded.in.meta.category == ZYDIS_CATEGORY_COND_BR) {
        const unsigned family = decoded.in.opcode & 0xF0U;
        if (family != kShort && family != kNear) return false;  // those that count
        is_taken = holds(decoded.in.opcode & 0xFU, decoded.at, registers, slot);
    } else if (!is_taken) {
        return false;
    }
    registers.next += decoded.in.length;
    if (is_taken) registers.next += static_cast<std::uint64_t>(to.imm.value.s);
    return true;
}

/// The address of what stands beside the code: a copy stands elsewhere.
bool take_address(const Decoded& decoded, Registers& registers) noexcept {
    const ZydisDecodedOperand& to = decoded[0];
    if (decoded.in.mnemonic != ZYDIS_MNEMONIC_LEA || to.size != 64 ||
        decoded[1].mem.base != ZYDIS_REGISTER_RIP)
        return false;
    const auto address = address_of(decoded, decoded[1].mem, registers);
    if (!address) return false;
    registers.general[number_of(to.reg.value)] = *address;
    registers.next += decoded.in.length;
    return true;
}

/// Of those that are plain; a vector's is at a multiple of its size, since some must be.
bool may_touch(const ZydisDecodedOperand& place, std::uint64_t address, ImageUse use,
               const Registers& registers, const Destination& destination) noexcept {
    constexpr std::uint64_t kBelow = 128, kAbove = 32768;  // of the stack's end: the red zone, too
    const std::size_t size = place.size / 8;
    if (place.mem.type != ZYDIS_MEMOP_TYPE_MEM || size == 0 || size > kLineBytes) return false;
    if (use != ImageUse::none && address % size != 0) return false;
    // Who reads the view may wait for somebody.
    if (destination.covers(address, 1) || destination.covers(address + size - 1, 1)) return false;
    const std::uint64_t above = address - (registers.general[kRsp] - kBelow);
    return above < kAbove || (!is_written(place) && destination.can_read(address, size));
}

}  // namespace

bool step(const Decoded& decoded, Registers& registers, const Destination& destination,
          Slot& slot) noexcept {
    if (jump(decoded, registers, slot) || take_address(decoded, registers)) return true;
    if (!decoded.is_plain) return false;
    if (decoded.memory != nullptr) {
        const ZydisDecodedOperand& place = *decoded.memory;
        const auto address = address_of(decoded, place.mem, registers);
        if (!address || !decoded.copy ||
            !may_touch(place, *address, decoded.use, registers, destination))
            return false;
        run(*decoded.copy, *address, registers, slot, decoded.use);
    } else {
        slot.run(decoded.at, decoded.code(), registers, decoded.use);
    }
    registers.next += decoded.in.length;
    return true;
}

}  // namespace rmem::stores

#endif
