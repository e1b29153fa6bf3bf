// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/decodings.hpp"

#if defined(__x86_64__)

#include "rmem/base/check.hpp"
#include "rmem/stores/decoded.hpp"

#include <cstring>
#include <utility>

namespace rmem::stores {

namespace {

const ZydisDecoder& decoder() noexcept {
    static const ZydisDecoder made = [] {
        ZydisDecoder decoder;
        ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        return decoder;
    }();
    return made;
}

/// Which of the operands is stored to; none: nothing is.
const ZydisDecodedOperand* stored_to(const Decoded& decoded) noexcept {
    for (std::size_t i = 0; i < decoded.in.operand_count; ++i) {
        const ZydisDecodedOperand& operand = decoded[i];
        if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY && is_written(operand)) return &operand;
    }
    return nullptr;
}

/// One of the registers of the first eight that can be a base alone, and that the instruction has
/// nothing to do with, but for the address that is not needed any more.
unsigned free_register(const Decoded& decoded, const ZydisDecodedOperand& place,
                       bool keeps_index) noexcept {
    unsigned used = keeps_index ? 1U << number_of(place.mem.index) : 0;
    for (std::size_t i = 0; i < decoded.in.operand_count; ++i) {
        const ZydisDecodedOperand& operand = decoded[i];
        if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
            used |= 1U << number_of(operand.reg.value);
        } else if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY && &operand != &place) {
            used |= 1U << number_of(operand.mem.base) | 1U << number_of(operand.mem.index);
        }
    }
    for (const unsigned number : {kRsi, kRdi, kRax, kRcx, 2U, 3U}) {
        if ((used >> number & 1) == 0) return number;
    }
    return kNoGeneral;
}

bool is_general(const ZydisDecodedOperand& operand) noexcept {
    switch (ZydisRegisterGetClass(operand.reg.value)) {
        case ZYDIS_REGCLASS_INVALID:
        case ZYDIS_REGCLASS_FLAGS:
        case ZYDIS_REGCLASS_IP:
        case ZYDIS_REGCLASS_SEGMENT: return true;
        default: return number_of(operand.reg.value) != kNoGeneral;
    }
}

/// Loading and storing the image takes time, so most stores do what they need of it.
ImageUse image_use(const Decoded& decoded) noexcept {
    switch (decoded.in.meta.isa_ext) {
        case ZYDIS_ISA_EXT_BASE:
        case ZYDIS_ISA_EXT_LONGMODE:
        case ZYDIS_ISA_EXT_MOVBE:
        case ZYDIS_ISA_EXT_MOVDIR: return ImageUse::none;
        case ZYDIS_ISA_EXT_MMX: return ImageUse::change;
        default: break;
    }
    // They may raise flags in a status word.
    if (decoded.in.meta.category == ZYDIS_CATEGORY_CONVERT ||
        decoded.in.meta.category == ZYDIS_CATEGORY_X87_ALU)
        return ImageUse::change;
    for (std::size_t i = 0; i < decoded.in.operand_count; ++i) {
        const ZydisDecodedOperand& operand = decoded[i];
        if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER && is_written(operand) &&
            !is_general(operand))
            return ImageUse::change;
    }
    return ImageUse::read;
}

/// Whether nothing but a place in memory can make it fail.
bool is_plain(const Decoded& decoded) noexcept {
    const bool is_base = decoded.in.meta.isa_ext == ZYDIS_ISA_EXT_BASE ||
                         decoded.in.meta.isa_ext == ZYDIS_ISA_EXT_LONGMODE;
    if ((decoded.in.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0) return false;
    switch (decoded.in.meta.category) {
        case ZYDIS_CATEGORY_DATAXFER: break;
        case ZYDIS_CATEGORY_BINARY:
            if (decoded.in.mnemonic == ZYDIS_MNEMONIC_DIV ||
                decoded.in.mnemonic == ZYDIS_MNEMONIC_IDIV)
                return false;
            [[fallthrough]];
        case ZYDIS_CATEGORY_LOGICAL:
        case ZYDIS_CATEGORY_SHIFT:
        case ZYDIS_CATEGORY_ROTATE:
        case ZYDIS_CATEGORY_CMOV:
        case ZYDIS_CATEGORY_SETCC:
        case ZYDIS_CATEGORY_CONVERT:
            if (!is_base) return false;
            break;
        case ZYDIS_CATEGORY_MISC:
            if (decoded.in.mnemonic != ZYDIS_MNEMONIC_LEA) return false;
            break;
        default: return false;
    }
    for (std::size_t i = 0; i < decoded.in.operand_count; ++i) {
        const ZydisDecodedOperand& operand = decoded[i];
        const bool is_segment = operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
                                ZydisRegisterGetClass(operand.reg.value) == ZYDIS_REGCLASS_SEGMENT;
        const bool is_by_place = operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
                                 operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN &&
                                 operand.mem.base == ZYDIS_REGISTER_RIP;
        if (is_segment || is_by_place) return false;
    }
    return true;
}

/// The memory of a plain one; null: it goes by registers alone.
const ZydisDecodedOperand* memory_of(const Decoded& decoded) noexcept {
    for (std::size_t i = 0; i < decoded.in.operand_count; ++i) {
        const ZydisDecodedOperand& operand = decoded[i];
        if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.type != ZYDIS_MEMOP_TYPE_AGEN)
            return &operand;
    }
    return nullptr;
}

}  // namespace

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

std::optional<Copy> copy_of(const Decoded& decoded, const ZydisDecodedOperand& place,
                            bool keeps_index) noexcept {
    const std::span<const std::byte> code = decoded.code();
    const auto& raw = decoded.in.raw;
    Copy copy;
    copy.at = decoded.at;
    if (place.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN || raw.modrm.offset == 0) {
        if (decoded.in.address_width != 64) return std::nullopt;
        std::copy_n(code.begin(), decoded.in.length, copy.bytes.begin());
        copy.length = decoded.in.length;
        if (place.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
            copy.by = number_of(place.mem.base);
        // By a register, but not the stack's, as the copy has another stack; or by a whole address.
        const bool is_known = copy.by == kNoGeneral ? raw.disp.size == 64 : copy.by != kRsp;
        return is_known ? std::optional(copy) : std::nullopt;
    }
    copy.by = free_register(decoded, place, keeps_index);
    if (copy.by == kNoGeneral) return std::nullopt;
    const auto base = static_cast<std::byte>(copy.by);
    constexpr std::byte kAddressSize{0x67};
    const bool has_rex = (decoded.in.attributes & ZYDIS_ATTRIB_HAS_REX) != 0;
    const bool has_vex = (decoded.in.attributes & ZYDIS_ATTRIB_HAS_VEX) != 0;
    const bool has_evex = (decoded.in.attributes & ZYDIS_ATTRIB_HAS_EVEX) != 0;
    const bool has_xop = (decoded.in.attributes & ZYDIS_ATTRIB_HAS_XOP) != 0;
    // Where the first bits of index and base are, negated in all but REX.
    const std::size_t bits_at = has_evex                       ? raw.evex.offset + 1U
                                : has_xop                      ? raw.xop.offset + 1U
                                : has_vex && raw.vex.size == 3 ? raw.vex.offset + 1U
                                                               : code.size();
    const std::byte bits{static_cast<unsigned char>(keeps_index ? 0x20 : 0x60)};
    for (std::size_t i = 0; i < raw.modrm.offset; ++i) {
        if (i < raw.prefix_count && code[i] == kAddressSize) continue;
        std::byte byte = code[i];
        if (i == bits_at) byte |= bits;
        if (has_rex && i == raw.rex.offset) byte &= ~(bits >> 5);
        copy.add(byte);
    }
    const std::byte reg = code[raw.modrm.offset] & std::byte{0x38};
    if (keeps_index) {
        copy.add(reg | std::byte{4});
        copy.add((code[raw.sib.offset] & std::byte{0xF8}) | base);
    } else {
        copy.add(reg | base);
    }
    for (std::size_t i = raw.imm[0].size != 0 ? raw.imm[0].offset : decoded.in.length;
         i < decoded.in.length; ++i)
        copy.add(code[i]);
    return copy;
}

void run(Copy copy, std::uint64_t place, Registers& registers, Slot& slot, ImageUse use) noexcept {
    if (copy.by == kNoGeneral) {
        std::memcpy(copy.bytes.data() + copy.length - sizeof place, &place, sizeof place);
        return slot.run(copy.at, copy.code(), registers, use);
    }
    std::uint64_t& by = registers.general[copy.by];
    const std::uint64_t own = std::exchange(by, place);
    slot.run(copy.at, copy.code(), registers, use);
    by = own;
}

struct Decodings::Kept {
    std::uint64_t place = 0;
    bool is_good = false;
    Decoded decoded;
};

Decodings::Decodings() : kept_(std::make_unique<std::array<Kept, kKept>>()) {}
Decodings::~Decodings() = default;

const Decoded* Decodings::at(std::uint64_t place, std::span<const std::byte> code) noexcept {
    Kept& kept = (*kept_)[place % kKept];
    Decoded& decoded = kept.decoded;
    const bool is_same = kept.is_good && kept.place == place && code.size() >= decoded.in.length &&
                         std::equal(decoded.code().begin(), decoded.code().end(), code.begin());
    if (is_same) return &decoded;
    kept.place = place;
    kept.is_good = ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder(), code.data(), code.size(),
                                                       &decoded.in, decoded.operands.data()));
    if (!kept.is_good) return nullptr;
    RMEM_CHECK(decoded.in.length != 0 && decoded.in.length <= code.size());
    std::copy_n(code.begin(), decoded.in.length, decoded.bytes.begin());
    decoded.use = image_use(decoded);
    decoded.is_plain = is_plain(decoded);
    decoded.stored = stored_to(decoded);
    decoded.memory = decoded.stored != nullptr ? decoded.stored : memory_of(decoded);
    decoded.at = place % kKept;
    decoded.copy.reset();
    if (decoded.memory != nullptr) decoded.copy = copy_of(decoded, *decoded.memory, false);
    return &decoded;
}

}  // namespace rmem::stores

#endif
