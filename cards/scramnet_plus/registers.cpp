// SPDX-License-Identifier: Apache-2.0
#include "cards/scramnet_plus/card.hpp"
#include "rmem/base/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace cards::scramnet_plus {

namespace {

/// 26.66 ns are 80/3, and 1.706 us are 64 of these.
constexpr std::uint64_t ticks_of(std::int64_t ns) {
    return static_cast<std::uint64_t>(ns) * 3 / 80;
}
constexpr std::uint64_t kTicksOfSlowTick = 64;

constexpr std::uint16_t kOfInterrupts = CSR0_HIE | CSR0_MME | CSR0_ORF | CSR0_NIE | CSR0_OTF;
constexpr std::uint16_t kOfFilter = CSR0_DDE | CSR0_EN4K;
constexpr std::uint16_t kWriteMeLast = CSR2_DHMW | CSR2_WOS;
/// But the size of the memory.
constexpr std::uint16_t kOfCsr8 = 0xffff ^ CSR8_MSIZMSK;
constexpr std::uint16_t kCounting8 = CSR8_FREE;
constexpr std::uint16_t kCounting9 = CSR9_ERRC | CSR9_TRGC;
constexpr unsigned kAddressHighBits = 0x7f;
constexpr std::uint16_t kNoRegister = 0xffff;

constexpr bool differ(std::uint16_t a, std::uint16_t b, std::uint16_t bits) {
    return ((a ^ b) & bits) != 0;
}

int no_register(unsigned number) {
    return refuse(
        fmt::format("there is no CSR {}; they are 0 to {}", number, Card::kRegisters - 1));
}

}  // namespace

// ---- Status

/// CSR1.
std::uint16_t Card::look_at_status() {
    latched_ |= static_cast<std::uint16_t>(errors_.tell());
    if (!node_.is_member()) latched_ |= CSR1_CD;
    if (counting() != Counting::round) static_cast<void>(read_counter());
    static_cast<void>(has_interrupt());
    std::uint16_t status = latched_;
    if (rmem_flush(node_, 0) == RMEM_ETIMEDOUT) status |= CSR1_TXFNE;
    if (is_armed_) status |= CSR1_IARM;
    return status;
}

std::uint16_t Card::status() {
    const auto lock = node_.lock();
    return look_at_status();
}

std::uint16_t Card::identity() const {
    if (has(SCR_CSR8, CSR8_IDMX))
        return static_cast<std::uint16_t>(identity_.receive << 8 | identity_.first_age);
    const unsigned nodes = std::min<unsigned>(node_.present_nodes(), TAGE_MASK);
    return static_cast<std::uint16_t>(unsigned{identity_.own} << 8 | nodes);
}

// ---- The counter of CSR13

Card::Counting Card::counting() const {
    const bool errc = has(SCR_CSR9, CSR9_ERRC), trgc = has(SCR_CSR9, CSR9_TRGC);
    if (has(SCR_CSR8, CSR8_FREE)) return trgc ? Counting::slow_time : Counting::time;
    if (errc) return trgc ? Counting::events : Counting::round;
    return trgc ? Counting::triggers : Counting::errors;
}

std::uint64_t Card::counter_source() const {
    switch (counting()) {
        case Counting::errors: return errors_.sum(registers_[SCR_CSR9]);
        case Counting::events: return node_.count_of("writes_applied");
        case Counting::time: return ticks_of(rmem::now_ns());
        case Counting::slow_time: return ticks_of(rmem::now_ns()) / kTicksOfSlowTick;
        case Counting::triggers:
        case Counting::round: break;
    }
    return 0;
}

/// Of a ring that does not answer it is what it was.
std::uint16_t Card::measure_round() {
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint16_t>::max();
    if (const auto round_ns = node_.measure_round())
        last_round_ = static_cast<std::uint16_t>(std::min(ticks_of(*round_ns), kMax));
    return last_round_;
}

std::uint16_t Card::read_counter() {
    if (counting() == Counting::round) return measure_round();
    const std::uint64_t count = counter_base_ + counter_source();
    if (const std::uint64_t wraps = count >> 16; wraps != counter_wraps_) {
        counter_wraps_ = wraps;
        latched_ |= CSR1_GPCO;
    }
    return static_cast<std::uint16_t>(count);
}

void Card::start_counter(std::uint16_t from) {
    counter_base_ = from - counter_source();
    counter_wraps_ = 0;
}

// ---- Registers

std::uint16_t Card::read_register(unsigned number) {
    if (number >= kRegisters) {
        no_register(number);
        return kNoRegister;
    }
    const auto lock = node_.lock();
    switch (number) {
        case SCR_CSR1: {
            const std::uint16_t status = look_at_status();
            latched_ = 0;
            return status;
        }
        case SCR_CSR3: return identity();
        case SCR_CSR4: {
            const std::uint32_t address = has_interrupt() ? *first_ : 0;
            first_.reset();
            return static_cast<std::uint16_t>(address);
        }
        case SCR_CSR5:
            if (!has_interrupt()) return 0;
            return static_cast<std::uint16_t>(CSR5_IFE | (*first_ >> 16 & kAddressHighBits));
        case SCR_CSR13: return read_counter();
        default: return registers_[number];
    }
}

/// CSR8 and CSR9. The count goes on, unless another thing is counted from now on.
int Card::set_modes(unsigned number, std::uint16_t value) {
    const std::uint16_t before = registers_[number];
    const bool is_csr8 = number == SCR_CSR8;
    const bool counts_another = differ(before, value, is_csr8 ? kCounting8 : kCounting9);
    const std::uint16_t count =
        counts_another || counting() == Counting::round ? 0 : read_counter();
    registers_[number] = value;
    start_counter(count);
    return is_csr8 && differ(before, value, CSR8_IOVR) ? apply_acrs() : kDone;
}

int Card::set_register(unsigned number, std::uint16_t value) {
    const std::uint16_t before = registers_[number];
    switch (number) {
        case SCR_CSR0: {
            registers_[number] = value;
            if ((value & CSR0_RIF) != 0) empty_fifo();
            int result = kDone;
            if (differ(before, value, kOfFilter))
                result = result_of(rmem_set_data_filter(node_, has(number, kOfFilter) ? 1 : 0));
            if (result == kDone && differ(before, value, kOfInterrupts)) result = apply_acrs();
            return result;
        }
        case SCR_CSR1: is_armed_ = true; return kDone;
        case SCR_CSR2:
            registers_[number] = value;
            if (!differ(before, value, kWriteMeLast)) return kDone;
            return result_of(rmem_set_write_me_last(node_, writes_me_last() ? 1 : 0));
        case SCR_CSR3:
            if (has(SCR_CSR8, CSR8_IDMX)) {
                identity_.first_age = static_cast<std::uint8_t>(value & TAGE_MASK);
                identity_.receive = static_cast<std::uint8_t>(value >> 8);
            } else {
                identity_.own = static_cast<std::uint8_t>(value >> 8);
            }
            return kDone;
        case SCR_CSR8: return set_modes(number, value & kOfCsr8);
        case SCR_CSR9: return set_modes(number, value);
        case SCR_CSR13: start_counter(value); return kDone;
        // CSR5 is written as another register than is read: the network timeout.
        default: registers_[number] = value; return kDone;
    }
}

int Card::write_register(unsigned number, std::uint16_t value) {
    if (number >= kRegisters) return no_register(number);
    const auto lock = node_.lock();
    return set_register(number, value);
}

int Card::change_register(unsigned number, std::uint16_t mask, std::uint16_t bits) {
    const auto lock = node_.lock();
    return set_register(number,
                        static_cast<std::uint16_t>((registers_[number] & ~mask) | (bits & mask)));
}

void Card::reset() {
    const auto lock = node_.lock();
    for (unsigned number = 0; number < kRegisters; ++number)
        static_cast<void>(set_register(number, 0));
    identity_ = identity_of_node();
    byte_order_ = Long_mode;
    empty_fifo();
    is_armed_ = false;
    errors_.tell();
    latched_ = 0;
}

}  // namespace cards::scramnet_plus
