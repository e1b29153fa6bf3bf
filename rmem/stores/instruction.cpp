// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/instruction.hpp"

#if defined(__x86_64__)

#include "rmem/stores/arithmetic.hpp"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace rmem::stores {

namespace {

constexpr unsigned kRsp = 4, kRsi = 6, kRdi = 7, kRcx = 1, kRax = 0;
constexpr std::uint64_t kDirectionFlag = 1U << 10;
constexpr std::size_t kStringChunk = 1024;  ///< of a string instruction, at a time
constexpr unsigned kNoGeneral = 16;

// ---- General registers

/// The number of the register that this is, or is a part of; kNoGeneral for others.
unsigned number_of(ZydisRegister reg) noexcept {
    switch (ZydisRegisterGetClass(reg)) {
        case ZYDIS_REGCLASS_GPR8:
        case ZYDIS_REGCLASS_GPR16:
        case ZYDIS_REGCLASS_GPR32:
        case ZYDIS_REGCLASS_GPR64:
            return static_cast<unsigned>(ZydisRegisterGetId(
                ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg)));
        default: return kNoGeneral;
    }
}

bool is_high_byte(ZydisRegister reg) noexcept {
    return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH;
}

std::uint64_t value_of(const Registers& registers, ZydisRegister reg) noexcept {
    const std::uint64_t whole = registers.general[number_of(reg)];
    return is_high_byte(reg) ? whole >> 8 : whole;
}

/// As the processor does: 32 bits clear the upper half, fewer leave the rest.
void set(Registers& registers, ZydisRegister reg, std::uint64_t value) noexcept {
    std::uint64_t& whole = registers.general[number_of(reg)];
    switch (ZydisRegisterGetClass(reg)) {
        case ZYDIS_REGCLASS_GPR8: {
            const unsigned shift = is_high_byte(reg) ? 8 : 0;
            const std::uint64_t part = std::uint64_t{0xFF} << shift;
            whole = (whole & ~part) | (value << shift & part);
            return;
        }
        case ZYDIS_REGCLASS_GPR16:
            whole = (whole & ~std::uint64_t{0xFFFF}) | (value & 0xFFFF);
            return;
        case ZYDIS_REGCLASS_GPR32: whole = value & 0xFFFF'FFFF; return;
        default: whole = value;
    }
}

// ---- The instruction

struct Decoded {
    ZydisDecodedInstruction in;
    std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;

    const ZydisDecodedOperand& operator[](std::size_t i) const noexcept { return operands[i]; }
};

const ZydisDecoder& decoder() noexcept {
    static const ZydisDecoder made = [] {
        ZydisDecoder decoder;
        ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        return decoder;
    }();
    return made;
}

bool is_written(const ZydisDecodedOperand& operand) noexcept {
    return (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
}

/// Which of the operands is stored to; none: nothing is.
const ZydisDecodedOperand* stored_to(const Decoded& decoded) noexcept {
    for (std::size_t i = 0; i < decoded.in.operand_count; ++i) {
        const ZydisDecodedOperand& operand = decoded[i];
        if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY && is_written(operand)) return &operand;
    }
    return nullptr;
}

/// The address without the index of a vector.
std::optional<std::uint64_t> address_of(const Decoded& decoded, const ZydisDecodedOperandMem& place,
                                        const Registers& registers) noexcept {
    if (place.segment == ZYDIS_REGISTER_FS || place.segment == ZYDIS_REGISTER_GS)
        return std::nullopt;  // a thread's own storage is no view
    std::uint64_t address = static_cast<std::uint64_t>(place.disp.value);
    if (place.base == ZYDIS_REGISTER_RIP) {
        address += registers.next + decoded.in.length;
    } else if (place.base != ZYDIS_REGISTER_NONE) {
        if (number_of(place.base) == kNoGeneral) return std::nullopt;
        address += value_of(registers, place.base);
    }
    if (place.index != ZYDIS_REGISTER_NONE && number_of(place.index) != kNoGeneral) {
        address += value_of(registers, place.index) * place.scale;
    }
    if (decoded.in.address_width == 32) address &= 0xFFFF'FFFF;
    return address;
}

/// What a register or a constant gives.
std::optional<std::uint64_t> source_value(const ZydisDecodedOperand& operand,
                                          const Registers& registers) noexcept {
    if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) return operand.imm.value.u;
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return std::nullopt;
    if (number_of(operand.reg.value) == kNoGeneral) return std::nullopt;
    return value_of(registers, operand.reg.value);
}

// ---- Single-stepping

/// Whether another operand than `place` has to do with the register.
bool is_used_elsewhere(const Decoded& decoded, const ZydisDecodedOperand& place,
                       unsigned number) noexcept {
    for (std::size_t i = 0; i < decoded.in.operand_count; ++i) {
        const ZydisDecodedOperand& operand = decoded[i];
        if (&operand == &place) continue;
        if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER && number_of(operand.reg.value) == number)
            return true;
        if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
            (number_of(operand.mem.base) == number || number_of(operand.mem.index) == number))
            return true;
    }
    return false;
}

bool has_mask(const Decoded& decoded) noexcept {
    return decoded.in.avx.mask.mode != ZYDIS_MASK_MODE_INVALID &&
           decoded.in.avx.mask.mode != ZYDIS_MASK_MODE_DISABLED &&
           decoded.in.avx.mask.reg != ZYDIS_REGISTER_K0 &&
           decoded.in.avx.mask.reg != ZYDIS_REGISTER_NONE;
}

Outcome to_step(const Decoded& decoded, const ZydisDecodedOperand& place, std::uint64_t address,
                std::uint64_t distance, Step& step) noexcept {
    if (decoded.in.address_width != 64) return Outcome::unknown;
    step = {};
    step.address = address;
    step.bytes = place.size / 8;
    step.is_partial = has_mask(decoded);
    for (const auto& [reg, scale] : {std::pair{place.mem.base, std::uint64_t{1}},
                                     std::pair{place.mem.index, std::uint64_t{place.mem.scale}}}) {
        const unsigned number = number_of(reg);
        // A register twice in the address would move it twice; by rsp a signal finds its stack.
        if (number == kNoGeneral || number == kRsp || place.mem.base == place.mem.index ||
            distance % scale != 0 || is_used_elsewhere(decoded, place, number))
            continue;
        step.general = number;
        // A distance may be below zero: it is divided as the signed number that it is.
        step.addend = static_cast<std::uint64_t>(static_cast<std::int64_t>(distance) /
                                                 static_cast<std::int64_t>(scale));
        return Outcome::to_step;
    }
    return Outcome::unknown;
}

// ---- Strings

/// As many elements as are in the view, up to all.
std::uint64_t covered(const Destination& destination, std::uint64_t address, std::uint64_t count,
                      std::size_t size, bool is_downwards) noexcept {
    for (; count != 0; count /= 2) {
        const std::uint64_t first = is_downwards ? address - (count - 1) * size : address;
        if (count <= SIZE_MAX / size && destination.covers(first, count * size)) break;
    }
    return count;
}

/// movs and stos, as far as they stay in the view: where more is to be done the program stands
/// before the same instruction again.
Outcome perform_string(const Decoded& decoded, Registers& registers,
                       Destination& destination) noexcept {
    const ZydisMnemonic mnemonic = decoded.in.mnemonic;
    const bool is_move = mnemonic == ZYDIS_MNEMONIC_MOVSB || mnemonic == ZYDIS_MNEMONIC_MOVSW ||
                         mnemonic == ZYDIS_MNEMONIC_MOVSD || mnemonic == ZYDIS_MNEMONIC_MOVSQ;
    const bool is_fill = mnemonic == ZYDIS_MNEMONIC_STOSB || mnemonic == ZYDIS_MNEMONIC_STOSW ||
                         mnemonic == ZYDIS_MNEMONIC_STOSD || mnemonic == ZYDIS_MNEMONIC_STOSQ;
    if ((!is_move && !is_fill) || decoded.in.address_width != 64) return Outcome::unknown;
    const bool is_repeated = (decoded.in.attributes & ZYDIS_ATTRIB_HAS_REP) != 0;
    const bool is_downwards = (registers.flags & kDirectionFlag) != 0;
    const std::size_t size = stored_to(decoded)->size / 8;
    const std::uint64_t stride = is_downwards ? std::uint64_t{0} - size : size;
    std::uint64_t& to = registers.general[kRdi];
    std::uint64_t& from = registers.general[kRsi];
    const std::uint64_t all = is_repeated ? registers.general[kRcx] : 1;
    const std::uint64_t mine = covered(destination, to, all, size, is_downwards);
    if (mine == 0) return Outcome::unknown;

    std::array<std::byte, kStringChunk> chunk;
    if (is_fill) {
        for (std::size_t at = 0; at < chunk.size(); at += size)
            std::memcpy(chunk.data() + at, &registers.general[kRax], size);
    }
    std::uint64_t done = 0;
    while (done < mine) {
        std::uint64_t count = is_downwards ? 1 : std::min(mine - done, chunk.size() / size);
        // What is read may have been stored by the same instruction.
        if (is_move && to > from && (to - from) / size < count)
            count = std::max<std::uint64_t>((to - from) / size, 1);
        if (is_move && !destination.read(from, chunk.data(), count * size)) break;
        destination.store(to, chunk.data(), count * size);
        to += stride * count;
        if (is_move) from += stride * count;
        done += count;
    }
    if (done == 0) return Outcome::unknown;
    if (is_repeated) registers.general[kRcx] -= done;
    if (done == all) registers.next += decoded.in.length;
    return Outcome::performed;
}

// ---- Vectors

bool is_vector(const ZydisDecodedOperand& operand) noexcept {
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return false;
    const ZydisRegisterClass kind = ZydisRegisterGetClass(operand.reg.value);
    return kind == ZYDIS_REGCLASS_XMM || kind == ZYDIS_REGCLASS_YMM || kind == ZYDIS_REGCLASS_ZMM;
}

unsigned vector_number(const ZydisDecodedOperand& operand) noexcept {
    return static_cast<unsigned>(ZydisRegisterGetId(operand.reg.value));
}

struct Vector {
    alignas(kVectorBytes) std::array<std::byte, kVectorBytes> bytes{};

    Vector(const Registers& registers, unsigned number) noexcept {
        registers.vectors.copy(number, bytes.data(), bytes.size());
    }
    /// The highest bit of an element, which masks of AVX go by.
    [[nodiscard]] bool sign(std::size_t element, std::size_t size) const noexcept {
        return (bytes[element * size + size - 1] & std::byte{0x80}) != std::byte{};
    }
};

/// Stores the elements that `mask` has bits for; neighbours as one store.
bool store_masked(Destination& destination, std::uint64_t address, const Vector& vector,
                  std::uint64_t mask, std::size_t elements, std::size_t size) noexcept {
    const auto has = [&](std::size_t i) { return i < elements && (mask >> i & 1) != 0; };
    for (std::size_t i = 0; i < elements; ++i) {
        if (has(i) && !destination.covers(address + i * size, size)) return false;
    }
    for (std::size_t first = 0; first < elements; ++first) {
        if (!has(first)) continue;
        std::size_t end = first + 1;
        while (has(end)) ++end;
        destination.store(address + first * size, vector.bytes.data() + first * size,
                          (end - first) * size);
        first = end;
    }
    return true;
}

std::uint64_t bits(std::size_t count) noexcept {
    return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

std::uint64_t writemask(const Decoded& decoded, const Registers& registers) noexcept {
    if (!has_mask(decoded)) return ~std::uint64_t{0};
    return registers.vectors.mask(
        static_cast<unsigned>(ZydisRegisterGetId(decoded.in.avx.mask.reg)));
}

/// One element to each address.
bool perform_scatter(const Decoded& decoded, const ZydisDecodedOperand& place,
                     const Registers& registers, Destination& destination) noexcept {
    const ZydisDecodedOperand* source = nullptr;
    for (std::size_t i = 0; i < decoded.in.operand_count; ++i) {
        if (is_vector(decoded[i])) source = &decoded[i];
    }
    const auto base = address_of(decoded, place.mem, registers);
    if (source == nullptr || !base) return false;
    const bool has_wide_indices = decoded.in.mnemonic == ZYDIS_MNEMONIC_VSCATTERQPS ||
                                  decoded.in.mnemonic == ZYDIS_MNEMONIC_VSCATTERQPD ||
                                  decoded.in.mnemonic == ZYDIS_MNEMONIC_VPSCATTERQD ||
                                  decoded.in.mnemonic == ZYDIS_MNEMONIC_VPSCATTERQQ;
    const std::size_t index_size = has_wide_indices ? 8 : 4;
    const std::size_t size = source->element_size / 8;
    const Vector values(registers, vector_number(*source));
    const Vector indices(registers, static_cast<unsigned>(ZydisRegisterGetId(place.mem.index)));
    const std::size_t index_bytes =
        ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, place.mem.index) / 8;
    const std::size_t elements =
        std::min<std::size_t>(source->size / 8 / size, index_bytes / index_size);
    const std::uint64_t mask = writemask(decoded, registers) & bits(elements);
    std::array<std::uint64_t, 16> places{};
    for (std::size_t i = 0; i < elements; ++i) {
        std::int64_t index = 0;
        if (index_size == 8) {
            std::memcpy(&index, indices.bytes.data() + i * 8, 8);
        } else {
            std::int32_t narrow = 0;
            std::memcpy(&narrow, indices.bytes.data() + i * 4, 4);
            index = narrow;
        }
        places[i] = *base + static_cast<std::uint64_t>(index) * place.mem.scale;
        if ((mask >> i & 1) != 0 && !destination.covers(places[i], size)) return false;
    }
    for (std::size_t i = 0; i < elements; ++i) {
        if ((mask >> i & 1) != 0)
            destination.store(places[i], values.bytes.data() + i * size, size);
    }
    return true;
}

/// Which bytes of the vector are stored, for stores of a vector or a part of it; kVectorBytes: it
/// is no such store.
std::size_t first_byte(const Decoded& decoded, std::size_t stored) noexcept {
    switch (decoded.in.mnemonic) {
        case ZYDIS_MNEMONIC_MOVAPS:
        case ZYDIS_MNEMONIC_MOVAPD:
        case ZYDIS_MNEMONIC_MOVUPS:
        case ZYDIS_MNEMONIC_MOVUPD:
        case ZYDIS_MNEMONIC_MOVDQA:
        case ZYDIS_MNEMONIC_MOVDQU:
        case ZYDIS_MNEMONIC_MOVNTPS:
        case ZYDIS_MNEMONIC_MOVNTPD:
        case ZYDIS_MNEMONIC_MOVNTDQ:
        case ZYDIS_MNEMONIC_MOVNTSS:
        case ZYDIS_MNEMONIC_MOVNTSD:
        case ZYDIS_MNEMONIC_MOVSS:
        case ZYDIS_MNEMONIC_MOVSD:
        case ZYDIS_MNEMONIC_MOVD:
        case ZYDIS_MNEMONIC_MOVQ:
        case ZYDIS_MNEMONIC_MOVLPS:
        case ZYDIS_MNEMONIC_MOVLPD:
        case ZYDIS_MNEMONIC_VMOVAPS:
        case ZYDIS_MNEMONIC_VMOVAPD:
        case ZYDIS_MNEMONIC_VMOVUPS:
        case ZYDIS_MNEMONIC_VMOVUPD:
        case ZYDIS_MNEMONIC_VMOVDQA:
        case ZYDIS_MNEMONIC_VMOVDQU:
        case ZYDIS_MNEMONIC_VMOVDQA32:
        case ZYDIS_MNEMONIC_VMOVDQA64:
        case ZYDIS_MNEMONIC_VMOVDQU8:
        case ZYDIS_MNEMONIC_VMOVDQU16:
        case ZYDIS_MNEMONIC_VMOVDQU32:
        case ZYDIS_MNEMONIC_VMOVDQU64:
        case ZYDIS_MNEMONIC_VMOVNTPS:
        case ZYDIS_MNEMONIC_VMOVNTPD:
        case ZYDIS_MNEMONIC_VMOVNTDQ:
        case ZYDIS_MNEMONIC_VMOVSS:
        case ZYDIS_MNEMONIC_VMOVSD:
        case ZYDIS_MNEMONIC_VMOVD:
        case ZYDIS_MNEMONIC_VMOVQ:
        case ZYDIS_MNEMONIC_VMOVLPS:
        case ZYDIS_MNEMONIC_VMOVLPD: return 0;
        case ZYDIS_MNEMONIC_MOVHPS:
        case ZYDIS_MNEMONIC_MOVHPD:
        case ZYDIS_MNEMONIC_VMOVHPS:
        case ZYDIS_MNEMONIC_VMOVHPD: return 8;
        case ZYDIS_MNEMONIC_EXTRACTPS:
        case ZYDIS_MNEMONIC_PEXTRB:
        case ZYDIS_MNEMONIC_PEXTRW:
        case ZYDIS_MNEMONIC_PEXTRD:
        case ZYDIS_MNEMONIC_PEXTRQ:
        case ZYDIS_MNEMONIC_VEXTRACTPS:
        case ZYDIS_MNEMONIC_VPEXTRB:
        case ZYDIS_MNEMONIC_VPEXTRW:
        case ZYDIS_MNEMONIC_VPEXTRD:
        case ZYDIS_MNEMONIC_VPEXTRQ:
            return static_cast<std::size_t>(decoded[2].imm.value.u) % (16 / stored) * stored;
        case ZYDIS_MNEMONIC_VEXTRACTF128:
        case ZYDIS_MNEMONIC_VEXTRACTI128:
            return static_cast<std::size_t>(decoded[2].imm.value.u) % 2 * 16;
        default: return kVectorBytes;
    }
}

Outcome perform_vector(const Decoded& decoded, const ZydisDecodedOperand& place,
                       std::uint64_t address, const Registers& registers,
                       Destination& destination) noexcept {
    const auto performed = [](bool done) { return done ? Outcome::performed : Outcome::unknown; };
    const std::size_t stored = place.size / 8;
    switch (decoded.in.mnemonic) {
        case ZYDIS_MNEMONIC_VMASKMOVPS:
        case ZYDIS_MNEMONIC_VMASKMOVPD:
        case ZYDIS_MNEMONIC_VPMASKMOVD:
        case ZYDIS_MNEMONIC_VPMASKMOVQ: {
            const Vector choice(registers, vector_number(decoded[1]));
            const std::size_t size = decoded[2].element_size / 8;
            std::uint64_t mask = 0;
            for (std::size_t i = 0; i < stored / size; ++i)
                mask |= std::uint64_t{choice.sign(i, size)} << i;
            return performed(store_masked(destination, address,
                                          Vector(registers, vector_number(decoded[2])), mask,
                                          stored / size, size));
        }
        case ZYDIS_MNEMONIC_MASKMOVDQU:
        case ZYDIS_MNEMONIC_VMASKMOVDQU: {
            const Vector choice(registers, vector_number(decoded[1]));
            std::uint64_t mask = 0;
            for (std::size_t i = 0; i < 16; ++i) mask |= std::uint64_t{choice.sign(i, 1)} << i;
            return performed(store_masked(
                destination, address, Vector(registers, vector_number(decoded[0])), mask, 16, 1));
        }
        default: break;
    }
    const ZydisDecodedOperand* source = nullptr;
    for (std::size_t i = 0; i < decoded.in.operand_count_visible; ++i) {
        if (is_vector(decoded[i])) source = &decoded[i];
    }
    if (source == nullptr || stored > kVectorBytes) return Outcome::to_step;
    const std::size_t first = first_byte(decoded, stored);
    if (first == kVectorBytes) return Outcome::to_step;
    const Vector vector(registers, vector_number(*source));
    if (!has_mask(decoded)) {
        if (!destination.covers(address, stored)) return Outcome::unknown;
        destination.store(address, vector.bytes.data() + first, stored);
        return Outcome::performed;
    }
    const std::size_t size = std::max<std::size_t>(place.element_size / 8, 1);
    return performed(store_masked(destination, address, vector, writemask(decoded, registers),
                                  stored / size, size));
}

// ---- General stores

template <class T>
Outcome perform_on_memory(const Decoded& decoded, std::uint64_t address, std::uint64_t source,
                          Registers& registers, Destination& destination) noexcept {
    T memory = 0;
    if (!destination.read(address, &memory, sizeof memory)) return Outcome::unknown;
    const ZydisMnemonic mnemonic = decoded.in.mnemonic;
    auto operand = static_cast<T>(source);
    if (mnemonic == ZYDIS_MNEMONIC_XCHG || mnemonic == ZYDIS_MNEMONIC_XADD) {
        const std::size_t reg = decoded[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? 0 : 1;
        if (mnemonic == ZYDIS_MNEMONIC_XCHG) {
            std::swap(memory, operand);
        } else {
            exchange_and_add(memory, operand, registers.flags);
        }
        destination.store(address, &memory, sizeof memory);
        set(registers, decoded[reg].reg.value, operand);
        return Outcome::performed;
    }
    if (mnemonic == ZYDIS_MNEMONIC_CMPXCHG) {
        auto expected = static_cast<T>(registers.general[kRax]);
        if (compare_and_exchange(memory, expected, operand, registers.flags)) {
            destination.store(address, &memory, sizeof memory);
        } else {
            set(registers, decoded[2].reg.value, expected);
        }
        return Outcome::performed;
    }
    if (!compute(arithmetic_of(mnemonic), memory, operand, registers.flags))
        return Outcome::to_step;
    destination.store(address, &memory, sizeof memory);
    return Outcome::performed;
}

Outcome perform_general(const Decoded& decoded, const ZydisDecodedOperand& place,
                        std::uint64_t address, Registers& registers,
                        Destination& destination) noexcept {
    const std::size_t size = place.size / 8;
    if (!destination.covers(address, size)) return Outcome::unknown;
    const ZydisDecodedOperand& other = &place == &decoded.operands[0] ? decoded[1] : decoded[0];
    auto source = source_value(other, registers);
    switch (decoded.in.mnemonic) {
        case ZYDIS_MNEMONIC_MOV:
        case ZYDIS_MNEMONIC_MOVNTI:
        case ZYDIS_MNEMONIC_MOVDIRI:
            if (!source) return Outcome::to_step;  // of a segment register
            destination.store(address, &*source, size);
            return Outcome::performed;
        case ZYDIS_MNEMONIC_MOVBE: {
            if (!source) return Outcome::to_step;
            const std::uint64_t swapped = __builtin_bswap64(*source) >> (64 - place.size);
            destination.store(address, &swapped, size);
            return Outcome::performed;
        }
        case ZYDIS_MNEMONIC_KMOVB:
        case ZYDIS_MNEMONIC_KMOVW:
        case ZYDIS_MNEMONIC_KMOVD:
        case ZYDIS_MNEMONIC_KMOVQ: {
            const std::uint64_t mask =
                registers.vectors.mask(static_cast<unsigned>(ZydisRegisterGetId(other.reg.value)));
            destination.store(address, &mask, size);
            return Outcome::performed;
        }
        default: break;
    }
    if (const auto condition = condition_of(decoded.in.mnemonic)) {
        const std::uint8_t value = holds(*condition, registers.flags) ? 1 : 0;
        destination.store(address, &value, sizeof value);
        return Outcome::performed;
    }
    if (!source) source = 0;  // of an operation with one operand
    switch (size) {
        case 1:
            return perform_on_memory<std::uint8_t>(decoded, address, *source, registers,
                                                   destination);
        case 2:
            return perform_on_memory<std::uint16_t>(decoded, address, *source, registers,
                                                    destination);
        case 4:
            return perform_on_memory<std::uint32_t>(decoded, address, *source, registers,
                                                    destination);
        case 8:
            return perform_on_memory<std::uint64_t>(decoded, address, *source, registers,
                                                    destination);
        default: return Outcome::to_step;
    }
}

}  // namespace

Outcome perform(std::span<const std::byte> code, Registers& registers, Destination& destination,
                std::uint64_t distance, Step& step) noexcept {
    Decoded decoded;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder(), code.data(), code.size(), &decoded.in,
                                             decoded.operands.data())))
        return Outcome::unknown;
    const ZydisDecodedOperand* const place = stored_to(decoded);
    if (place == nullptr) return Outcome::unknown;
    if (decoded.in.meta.category == ZYDIS_CATEGORY_STRINGOP)
        return perform_string(decoded, registers, destination);

    Outcome outcome = Outcome::unknown;
    const auto address = address_of(decoded, place->mem, registers);
    if (!address) return Outcome::unknown;
    if (place->mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
        if (perform_scatter(decoded, *place, registers, destination)) outcome = Outcome::performed;
    } else {
        bool has_vector = false;
        for (std::size_t i = 0; i < decoded.in.operand_count_visible; ++i)
            has_vector = has_vector || is_vector(decoded[i]);
        outcome = has_vector ? perform_vector(decoded, *place, *address, registers, destination)
                             : perform_general(decoded, *place, *address, registers, destination);
    }
    if (outcome == Outcome::performed) registers.next += decoded.in.length;
    if (outcome != Outcome::to_step) return outcome;
    if (!destination.covers(*address, place->size / 8)) return Outcome::unknown;
    return to_step(decoded, *place, *address, distance, step);
}

}  // namespace rmem::stores

#else  // every store is unknown

namespace rmem::stores {

Outcome perform(std::span<const std::byte>, Registers&, Destination&, std::uint64_t,
                Step&) noexcept {
    return Outcome::unknown;
}

}  // namespace rmem::stores

#endif
