// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The interrupts of a simulated node: the words that raise, and interrupts not yet taken.
///
/// Their meaning is in rmem/interrupts.hpp; ranges have been checked there.
/// Thread safety: none, a simulation is one thread.

#include "rmem/interrupts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rmem::sim {

class NodeInterrupts {
public:
    struct Raised {
        std::uint64_t queued = 0, lost = 0;
    };

    NodeInterrupts(const RingConfig& config, unsigned node)
        : registers_(config.registers_offset()),
          node_(node),
          marks_(config.user_bytes / kWordBytes) {}

    // ---- Marks, set and cleared by a rank of the node
    void watch(unsigned rank, std::size_t offset, std::size_t bytes, Trigger trigger) {
        unwatch(offset, bytes);
        set(rank, trigger == Trigger::any_write ? kAny : kReceive, offset, bytes);
    }
    void unwatch(std::size_t offset, std::size_t bytes) { clear(kAny | kReceive, offset, bytes); }
    void mark(unsigned rank, std::size_t offset, std::size_t bytes) {
        set(rank, kTransmit, offset, bytes);
    }
    void unmark(std::size_t offset, std::size_t bytes) { clear(kTransmit, offset, bytes); }
    void accept(unsigned rank, std::uint64_t numbers) {
        note_user(rank);
        accepted_ = numbers;
    }
    /// Whether a write of this node to the range carries the interrupt bit.
    bool is_marked(std::size_t offset, std::size_t bytes) const {
        const auto words = words_of(offset, bytes);
        return std::any_of(words.begin(), words.end(),
                           [](std::uint8_t word) { return (word & kTransmit) != 0; });
    }
    /// The ranks that set any.
    const std::vector<unsigned>& users() const { return users_; }
    void forget_all() {
        std::fill(marks_.begin(), marks_.end(), std::uint8_t{0});
        users_.clear();
        queue_.clear();
        missed_ = accepted_ = 0;
    }

    // ---- The queue
    /// What the arrival of a write of another node raises.
    Raised raise(unsigned origin, std::size_t offset, std::span<const std::byte> data,
                 bool is_marked) {
        Raised raised;
        if (offset >= registers_) {
            raise_sent(raised, origin, offset, data);
            missed_ += raised.lost;
            return raised;
        }
        const std::uint8_t raising = is_marked ? kAny | kReceive : kAny;
        const auto words = words_of(offset, data.size());
        for (std::size_t i = 0; i < words.size(); ++i) {
            if ((words[i] & raising) == 0) continue;
            Interrupt entry;
            entry.offset = offset + i * kWordBytes;
            entry.origin = origin;
            std::memcpy(&entry.value, data.data() + i * kWordBytes, kWordBytes);
            queue(raised, entry);
        }
        missed_ += raised.lost;
        return raised;
    }
    bool pending() const { return !queue_.empty(); }
    std::optional<Interrupt> take() {
        if (queue_.empty()) return std::nullopt;
        Interrupt taken = queue_.front();
        queue_.pop_front();
        taken.missed = std::exchange(missed_, 0);
        return taken;
    }

private:
    static constexpr std::uint8_t kReceive = 1, kAny = 2, kTransmit = 4;

    void queue(Raised& raised, const Interrupt& entry) {
        if (queue_.size() == kInterruptQueueEntries) {
            ++raised.lost;
            return;
        }
        queue_.push_back(entry);
        ++raised.queued;
    }
    /// The write of a register.
    void raise_sent(Raised& raised, unsigned origin, std::size_t offset,
                    std::span<const std::byte> data) {
        SentInterrupt sent;
        if (data.size() != sizeof sent) return;
        std::memcpy(&sent, data.data(), sizeof sent);
        const std::size_t number = (offset - registers_) / kRegisterBytes % kInterruptNumbers;
        const bool is_for_all = sent.to == kAllNodes;
        if ((accepted_ >> number & 1) == 0 || (sent.to != node_ && !is_for_all)) return;
        queue(raised, {number, sent.value, origin, 0,
                       is_for_all ? Interrupt::Kind::sent_to_all : Interrupt::Kind::sent});
    }
    void note_user(unsigned rank) {
        if (std::find(users_.begin(), users_.end(), rank) == users_.end()) users_.push_back(rank);
    }

    /// The marks of the words that the range touches; only the user's memory has marks.
    std::span<const std::uint8_t> words_of(std::size_t offset, std::size_t bytes) const {
        const std::size_t first = std::min(offset / kWordBytes, marks_.size());
        const std::size_t end =
            std::min((offset + bytes + kWordBytes - 1) / kWordBytes, marks_.size());
        return std::span(marks_).subspan(first, end - first);
    }
    std::span<std::uint8_t> words_of(std::size_t offset, std::size_t bytes) {
        const auto words = std::as_const(*this).words_of(offset, bytes);
        return {marks_.data() + (words.data() - marks_.data()), words.size()};
    }
    void set(unsigned rank, std::uint8_t mark, std::size_t offset, std::size_t bytes) {
        note_user(rank);
        for (std::uint8_t& word : words_of(offset, bytes)) word |= mark;
    }
    void clear(unsigned mark, std::size_t offset, std::size_t bytes) {
        for (std::uint8_t& word : words_of(offset, bytes)) word &= static_cast<std::uint8_t>(~mark);
    }

    std::size_t registers_;  ///< where they begin
    unsigned node_;
    std::uint64_t accepted_ = 0;       ///< numbers of sent ones
    std::vector<std::uint8_t> marks_;  ///< of each word of the user's memory
    std::vector<unsigned> users_;
    std::deque<Interrupt> queue_;
    std::uint64_t missed_ = 0;  ///< lost and not yet reported
};

}  // namespace rmem::sim
