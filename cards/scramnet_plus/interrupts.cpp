// SPDX-License-Identifier: Apache-2.0
#include "cards/scramnet_plus/card.hpp"

#include <fmt/format.h>

#include <utility>

namespace cards::scramnet_plus {

namespace {

constexpr std::uint8_t kAcrBits = ACR_MASK | ACR_TRIG3;

}  // namespace

// ---- Auxiliary control RAM

/// The effect of this ACR on its long word, as the enables of CSR0 are.
Card::Effect Card::effect_of(std::uint8_t acr) const {
    const bool all_watch = has(SCR_CSR0, CSR0_HIE | CSR0_ORF);
    const bool all_mark = has(SCR_CSR0, CSR0_NIE | CSR0_OTF);
    return {all_watch || (has(SCR_CSR0, CSR0_MME) && (acr & ACR_RIE) != 0),
            all_mark || (has(SCR_CSR0, CSR0_NIE) && (acr & ACR_TIE) != 0)};
}

int Card::trigger() const {
    return has(SCR_CSR8, CSR8_IOVR) ? RMEM_ANY_WRITE : RMEM_MARKED;
}

int Card::apply_effect(std::size_t word, std::size_t words, Effect effect) {
    if (!has_effects_ && effect == Effect{}) return kDone;
    const std::size_t offset = word * kWordBytes, bytes = words * kWordBytes;
    int code = effect.watches ? rmem_watch(node_, offset, bytes, trigger())
                              : rmem_unwatch(node_, offset, bytes);
    if (code >= RMEM_OK) {
        code = effect.marks ? rmem_mark(node_, offset, bytes) : rmem_unmark(node_, offset, bytes);
    }
    has_effects_ = has_effects_ || effect.watches || effect.marks;
    // Not before: what tells of interrupts costs a thread.
    if (effect.watches && scr_csr_fd < 0) scr_csr_fd = rmem_interrupt_fd(node_);
    return result_of(code);
}

/// All of them, in runs of the same effect.
int Card::apply_acrs() {
    const std::size_t words = memory_bytes() / kWordBytes;
    for (std::size_t word = 0; word < words;) {
        const Effect effect = effect_of(acr_at(word));
        std::size_t end = acrs_.empty() ? words : word + 1;
        while (end < words && effect_of(acr_at(end)) == effect) ++end;
        if (const int result = apply_effect(word, end - word, effect); result != kDone)
            return result;
        word = end;
    }
    return kDone;
}

void Card::drop_effects() {
    if (!has_effects_) return;
    static_cast<void>(rmem_unwatch(node_, 0, memory_bytes()));
    static_cast<void>(rmem_unmark(node_, 0, memory_bytes()));
    has_effects_ = false;
}

std::uint8_t Card::acr(std::size_t word) {
    const auto lock = node_.lock();
    return acr_at(word);
}

int Card::set_acr(std::size_t word, std::uint8_t value) {
    const std::size_t words = memory_bytes() / kWordBytes;
    if (word >= words) {
        return refuse(fmt::format("there is no long word {}, and no ACR of it; the last is {}",
                                  word, words - 1));
    }
    value &= kAcrBits;
    const auto lock = node_.lock();
    if (acrs_.empty() && value != 0) acrs_.resize(words);
    const Effect before = effect_of(acr_at(word));
    if (!acrs_.empty()) acrs_[word] = value;
    const Effect after = effect_of(value);
    return before == after ? kDone : apply_effect(word, 1, after);
}

int Card::fill_acrs(std::uint8_t value) {
    value &= kAcrBits;
    const auto lock = node_.lock();
    acrs_.assign(value == 0 ? 0 : memory_bytes() / kWordBytes, value);
    return apply_acrs();
}

// ---- The interrupt FIFO: the node's queue, and in front of it what CSR5 and CSR4 show

bool Card::has_interrupt() {
    rmem_interrupt interrupt;
    while (!first_ && rmem_next_interrupt(node_, &interrupt, 0) == RMEM_OK) {
        if (interrupt.missed != 0) latched_ |= CSR1_INTFF;
        // Others are of cards of another kind, which share the ring.
        if (interrupt.kind == RMEM_WORD_WRITTEN)
            first_ = static_cast<std::uint32_t>(interrupt.offset);
    }
    // The host is told once, until it arms the card again.
    if (first_ && has(SCR_CSR0, CSR0_HIE)) is_armed_ = false;
    return first_.has_value();
}

std::optional<std::uint32_t> Card::take_interrupt() {
    const auto lock = node_.lock();
    static_cast<void>(has_interrupt());
    return std::exchange(first_, std::nullopt);
}

void Card::empty_fifo() {
    first_.reset();
    node_.drop_interrupts();
}

}  // namespace cards::scramnet_plus
