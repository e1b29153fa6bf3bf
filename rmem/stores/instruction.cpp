// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/instruction.hpp"

#if defined(__x86_64__)

#include "rmem/base/limits.hpp"
#include "rmem/stores/decoded.hpp"

#include <cpuid.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace rmem::stores {

namespace {

constexpr std::uint64_t kZeroFlag = 1U << 6, kDirectionFlag = 1U << 10;
constexpr std::size_t kStringChunk = 1024;  ///< of a string instruction, at a time

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
    // By either prefix, though one of them is documented for other instructions.
    const auto* const prefixes = decoded.in.raw.prefixes;
    const bool is_repeated = std::any_of(
        prefixes, prefixes + decoded.in.raw.prefix_count,
        [](const auto& prefix) { return prefix.value == 0xF2 || prefix.value == 0xF3; });
    const bool is_downwards = (registers.flags & kDirectionFlag) != 0;
    const std::size_t size = decoded.stored->size / 8;
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

bool is_bit_test(ZydisMnemonic mnemonic) noexcept {
    return mnemonic == ZYDIS_MNEMONIC_BTS || mnemonic == ZYDIS_MNEMONIC_BTR ||
           mnemonic == ZYDIS_MNEMONIC_BTC;
}

/// How far from its address an instruction stores.
std::uint64_t displacement(const Decoded& decoded, const ZydisDecodedOperand& place,
                           const Registers& registers) noexcept {
    const std::int64_t size = place.size / 8;
    // Of the bit's number in a register, whatever is beyond the operand is part of the address.
    if (is_bit_test(decoded.in.mnemonic) && decoded[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
        auto bit = static_cast<std::int64_t>(value_of(registers, decoded[1].reg.value));
        if (size == 2) bit = static_cast<std::int16_t>(bit);
        if (size == 4) bit = static_cast<std::int32_t>(bit);
        return static_cast<std::uint64_t>((bit >> (size == 2 ? 4 : size == 4 ? 5 : 6)) * size);
    }
    // The address is one of after the pop.
    const bool pops = decoded.in.mnemonic == ZYDIS_MNEMONIC_POP;
    return pops && number_of(place.mem.base) == kRsp ? static_cast<std::uint64_t>(size) : 0;
}

bool saves_image(const Decoded& decoded) noexcept {
    return decoded.in.meta.category == ZYDIS_CATEGORY_XSAVE ||
           decoded.in.meta.category == ZYDIS_CATEGORY_XSAVEOPT;
}

bool stores_in_part(const Decoded& decoded) noexcept {
    switch (decoded.in.mnemonic) {
        case ZYDIS_MNEMONIC_FXSAVE:
        case ZYDIS_MNEMONIC_FXSAVE64:
        case ZYDIS_MNEMONIC_MASKMOVQ:
        case ZYDIS_MNEMONIC_MASKMOVDQU:
        case ZYDIS_MNEMONIC_VMASKMOVDQU:
        case ZYDIS_MNEMONIC_VMASKMOVPS:
        case ZYDIS_MNEMONIC_VMASKMOVPD:
        case ZYDIS_MNEMONIC_VPMASKMOVD:
        case ZYDIS_MNEMONIC_VPMASKMOVQ: return true;
        default: break;
    }
    const auto& mask = decoded.in.avx.mask;
    return saves_image(decoded) ||
           (mask.mode != ZYDIS_MASK_MODE_INVALID && mask.mode != ZYDIS_MASK_MODE_DISABLED);
}

std::size_t size_of(const Decoded& decoded, const ZydisDecodedOperand& place) noexcept {
    if (!saves_image(decoded)) return place.size / 8;
    unsigned all = 0, most = 0, unused = 0;
    __get_cpuid_count(0xD, 0, &all, &most, &unused, &unused);
    return most;
}

/// Calls `take(first, end)` for each run of elements that `has` says yes to.
template <class Has, class Take>
bool for_each_run(std::size_t count, Has has, Take take) {
    for (std::size_t first = 0; first < count; ++first) {
        if (!has(first)) continue;
        std::size_t end = first + 1;
        while (end < count && has(end)) ++end;
        if (!take(first, end)) return false;
        first = end;
    }
    return true;
}

// ---- Most instructions

Outcome perform_in_part(const Copy& copy, std::uint64_t address, std::size_t size,
                        Registers& registers, Destination& destination, Slot& slot,
                        ImageUse use) noexcept {
    std::byte* const ones = slot.stage(0) + address % kLineBytes;
    std::byte* const others = slot.stage(1) + address % kLineBytes;
    // What is there may be a part of what comes out. (What cannot be read is not stored to.)
    if (!destination.read(address, ones, size)) std::memset(ones, 0, size);
    std::array<std::byte, Slot::kStageBytes - kLineBytes> before;
    std::memcpy(before.data(), ones, size);
    for (std::size_t i = 0; i < size; ++i) others[i] = ~before[i];
    const Registers at_first = registers;
    run(copy, reinterpret_cast<std::uint64_t>(others), registers, slot, use);
    registers = at_first;
    run(copy, reinterpret_cast<std::uint64_t>(ones), registers, slot, use);
    const auto is_stored = [&](std::size_t i) {
        return ones[i] != before[i] || others[i] != ~before[i];
    };
    const auto is_covered = [&](std::size_t first, std::size_t end) {
        return destination.covers(address + first, end - first);
    };
    if (!for_each_run(size, is_stored, is_covered)) {
        registers = at_first;
        return Outcome::overruns;
    }
    for_each_run(size, is_stored, [&](std::size_t first, std::size_t end) {
        destination.store(address + first, ones + first, end - first);
        return true;
    });
    return Outcome::performed;
}

Outcome perform_whole(const Decoded& decoded, const Copy& copy, const ZydisDecodedOperand& place,
                      std::uint64_t address, std::uint64_t bits, Registers& registers,
                      Destination& destination, Slot& slot, ImageUse use) noexcept {
    const std::size_t size = place.size / 8;
    if (!destination.covers(address, size)) return Outcome::overruns;
    std::byte* const stage = slot.stage(0) + address % kLineBytes;
    if ((place.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0 &&
        !destination.read(address, stage, size))
        return Outcome::unknown;
    run(copy, reinterpret_cast<std::uint64_t>(stage) - bits, registers, slot, use);
    switch (decoded.in.mnemonic) {
        case ZYDIS_MNEMONIC_CMPXCHG:
        case ZYDIS_MNEMONIC_CMPXCHG8B:
        case ZYDIS_MNEMONIC_CMPXCHG16B:
            if ((registers.flags & kZeroFlag) == 0) return Outcome::performed;  // and not stored
            break;
        default: break;
    }
    destination.store(address, stage, size);
    return Outcome::performed;
}

/// What the processor may have to refuse is not begun in its place.
bool may_fault(const Decoded& decoded, const Registers& registers, bool is_next,
               std::uint64_t address, std::size_t size, ImageUse use) noexcept {
    if (decoded.in.meta.category == ZYDIS_CATEGORY_CONVERT) {
        constexpr std::uint32_t kAllMasked = 0x1F80;
        std::uint32_t mxcsr = 0;
        std::memcpy(&mxcsr, registers.image + 24, sizeof mxcsr);
        if ((mxcsr & kAllMasked) != kAllMasked) return true;
    }
    return is_next && (use == ImageUse::change || (use == ImageUse::read && address % size != 0) ||
                       decoded.in.mnemonic == ZYDIS_MNEMONIC_CMPXCHG16B ||
                       decoded.in.meta.category == ZYDIS_CATEGORY_SYSTEM);
}

// ---- Many places

/// What `instruction` (without its address) stores to (%rsi).
void store_by(std::initializer_list<unsigned char> instruction, std::byte* to, Registers registers,
              Slot& slot) noexcept {
    Copy copy;
    for (const unsigned char byte : instruction) copy.add(std::byte{byte});
    copy.by = kRsi;
    run(copy, reinterpret_cast<std::uint64_t>(to), registers, slot, ImageUse::read);
}

/// Executes an instruction on the bank, and takes what it has stored to these places, in turn.
bool perform_in_bank(const Decoded& decoded, const ZydisDecodedOperand& place, std::uint64_t base,
                     std::span<const std::uint64_t> places, std::size_t size, Registers& registers,
                     Destination& destination, Slot& slot, std::uint64_t distance) noexcept {
    const auto copy = copy_of(decoded, place, true);
    const auto is_inside = [&](std::uint64_t at) { return destination.covers(at, size); };
    if (!copy || !std::all_of(places.begin(), places.end(), is_inside)) return false;
    run(*copy, base + distance, registers, slot, ImageUse::change);
    for (const std::uint64_t at : places)
        destination.store(at, reinterpret_cast<const void*>(at + distance), size);
    return true;
}

/// One element to each address.
bool perform_scatter(const Decoded& decoded, const ZydisDecodedOperand& place, std::uint64_t base,
                     Registers& registers, Destination& destination, Slot& slot,
                     std::uint64_t distance) noexcept {
    const bool has_wide_indices = decoded.in.mnemonic == ZYDIS_MNEMONIC_VSCATTERQPS ||
                                  decoded.in.mnemonic == ZYDIS_MNEMONIC_VSCATTERQPD ||
                                  decoded.in.mnemonic == ZYDIS_MNEMONIC_VPSCATTERQD ||
                                  decoded.in.mnemonic == ZYDIS_MNEMONIC_VPSCATTERQQ;
    const auto index = static_cast<unsigned>(ZydisRegisterGetId(place.mem.index));
    const auto mask = static_cast<unsigned>(ZydisRegisterGetId(decoded.in.avx.mask.reg));
    std::byte* const indices = slot.stage(0);
    std::byte* const chosen = slot.stage(1);
    // vmovdqu64 %zmm<index>, (%rsi) and kmovw %k<mask>, (%rsi)
    store_by(
        {0x62, static_cast<unsigned char>(0x61 | (~index >> 3 & 1) << 7 | (~index >> 4 & 1) << 4),
         0xFE, 0x48, 0x7F, static_cast<unsigned char>((index & 7) << 3 | kRsi)},
        indices, registers, slot);
    store_by({0xC5, 0xF8, 0x91, static_cast<unsigned char>(mask << 3 | kRsi)}, chosen, registers,
             slot);
    std::uint16_t is_chosen = 0;
    std::memcpy(&is_chosen, chosen, sizeof is_chosen);
    const std::size_t index_size = has_wide_indices ? 8 : 4;
    const std::size_t size = place.element_size / 8;
    const std::size_t count = std::min<std::size_t>(
        ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, place.mem.index) / 8 / index_size,
        decoded[2].size / place.element_size);
    std::array<std::uint64_t, 16> places;
    std::size_t all = 0;
    for (std::size_t i = 0; i < count; ++i) {
        std::int64_t wide = 0;
        std::int32_t narrow = 0;
        std::memcpy(&wide, indices + i * 8, sizeof wide);
        std::memcpy(&narrow, indices + i * 4, sizeof narrow);
        const std::int64_t of = has_wide_indices ? wide : narrow;
        if ((is_chosen >> i & 1) != 0)
            places[all++] = base + static_cast<std::uint64_t>(of) * place.mem.scale;
    }
    return perform_in_bank(decoded, place, base, std::span(places).first(all), size, registers,
                           destination, slot, distance);
}

/// A row to each address.
bool perform_tile(const Decoded& decoded, const ZydisDecodedOperand& place, std::uint64_t address,
                  Registers& registers, Destination& destination, Slot& slot,
                  std::uint64_t distance) noexcept {
    struct Config {
        std::uint8_t palette, first_row, unused[14];
        std::uint16_t row_bytes[16];
        std::uint8_t rows[16];
    } config;
    store_by({0xC4, 0xE2, 0x79, 0x49, kRsi}, slot.stage(0), registers, slot);  // sttilecfg (%rsi)
    std::memcpy(&config, slot.stage(0), sizeof config);
    const auto tile = static_cast<std::size_t>(ZydisRegisterGetId(decoded[1].reg.value));
    if (tile >= 16 || config.rows[tile] > 16 || config.row_bytes[tile] == 0) return false;
    const std::uint64_t stride = number_of(place.mem.index) == kNoGeneral
                                     ? 0
                                     : value_of(registers, place.mem.index) * place.mem.scale;
    std::array<std::uint64_t, 16> places;
    const std::uint64_t base = address - stride;
    std::size_t all = 0;
    for (std::size_t row = config.first_row; row < config.rows[tile]; ++row)
        places[all++] = base + row * stride;
    return perform_in_bank(decoded, place, base, std::span(places).first(all),
                           config.row_bytes[tile], registers, destination, slot, distance);
}

/// A line that is cleared (by the address of any of its bytes) or copied.
Outcome store_line(std::uint64_t address, std::optional<std::uint64_t> from,
                   Destination& destination) noexcept {
    std::array<std::byte, kLineBytes> line{};
    if (address % line.size() != 0 || !destination.covers(address, line.size()) ||
        (from && !destination.read(*from, line.data(), line.size())))
        return Outcome::unknown;
    destination.store(address, line.data(), line.size());
    return Outcome::performed;
}

Outcome perform_decoded(const Decoded& decoded, bool is_next, Registers& registers,
                        Destination& destination, Slot& slot, std::uint64_t distance) noexcept {
    if (decoded.in.mnemonic == ZYDIS_MNEMONIC_CLZERO)
        return store_line(registers.general[kRax] & ~(kLineBytes - 1), {}, destination);
    const ZydisDecodedOperand* const place = decoded.stored;
    if (place == nullptr) return Outcome::unknown;
    auto address = address_of(decoded, place->mem, registers);
    if (!address) return Outcome::unknown;
    if (decoded.in.mnemonic == ZYDIS_MNEMONIC_MOVDIR64B) {
        const auto from = address_of(decoded, decoded[1].mem, registers);
        return from ? store_line(*address, from, destination) : Outcome::unknown;
    }
    const bool is_scatter = place->mem.type == ZYDIS_MEMOP_TYPE_VSIB;
    if (is_scatter || decoded.in.mnemonic == ZYDIS_MNEMONIC_TILESTORED) {
        const auto perform_many = is_scatter ? perform_scatter : perform_tile;
        const bool is_done = !is_next && perform_many(decoded, *place, *address, registers,
                                                      destination, slot, distance);
        return is_done ? Outcome::performed : Outcome::unknown;
    }
    const std::uint64_t bits = displacement(decoded, *place, registers);
    *address += bits;
    const std::size_t size = size_of(decoded, *place);
    const ImageUse use = decoded.use;
    const auto& copy = decoded.copy;
    if (!copy || size == 0 || size > Slot::kStageBytes - kLineBytes ||
        may_fault(decoded, registers, is_next, *address, size, use))
        return Outcome::unknown;
    if (stores_in_part(decoded))
        return perform_in_part(*copy, *address, size, registers, destination, slot, use);
    if (!destination.covers(*address, 1)) return Outcome::unknown;
    return perform_whole(decoded, *copy, *place, *address, bits, registers, destination, slot, use);
}

}  // namespace

Outcome perform(const Decoded& decoded, bool is_next, Registers& registers,
                Destination& destination, Slot& slot, std::uint64_t distance) noexcept {
    if (decoded.in.meta.category == ZYDIS_CATEGORY_STRINGOP)
        return perform_string(decoded, registers, destination);
    const Outcome outcome =
        perform_decoded(decoded, is_next, registers, destination, slot, distance);
    if (outcome == Outcome::performed) registers.next += decoded.in.length;
    return outcome;
}

}  // namespace rmem::stores

#endif
