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

    explicit NodeInterrupts(std::size_t user_bytes) : marks_(user_bytes / kWordBytes) {}

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
    /// Whether a write of this node to the range carries the interrupt bit.
    bool is_marked(std::size_t offset, std::size_t bytes) const {
        const auto words = words_of(offset, bytes);
        return std::any_of(words.begin(), words.end(),
                           [](std::uint8_t word) { return (word & kTransmit) != 0; });
    }
    /// The ranks that set any.
    const std::vector<unsigned>& users() const { return users_; }
    void forget_all() { *this = NodeInterrupts(marks_.size() * kWordBytes); }

    // ---- The queue
    /// What the arrival of a write of another node raises.
    Raised raise(unsigned origin, std::size_t offset, std::span<const std::byte> data,
                 bool is_marked) {
        Raised raised;
        const std::uint8_t raising = is_marked ? kAny | kReceive : kAny;
        const auto words = words_of(offset, data.size());
        for (std::size_t i = 0; i < words.size(); ++i) {
            if ((words[i] & raising) == 0) continue;
            if (queue_.size() == kInterruptQueueEntries) {
                ++raised.lost;
                continue;
            }
            Interrupt& entry = queue_.emplace_back();
            entry.offset = offset + i * kWordBytes;
            entry.origin = origin;
            std::memcpy(&entry.value, data.data() + i * kWordBytes, kWordBytes);
            ++raised.queued;
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
        if (std::find(users_.begin(), users_.end(), rank) == users_.end()) users_.push_back(rank);
        for (std::uint8_t& word : words_of(offset, bytes)) word |= mark;
    }
    void clear(unsigned mark, std::size_t offset, std::size_t bytes) {
        for (std::uint8_t& word : words_of(offset, bytes)) word &= static_cast<std::uint8_t>(~mark);
    }

    std::vector<std::uint8_t> marks_;  ///< of each word of the user's memory
    std::vector<unsigned> users_;
    std::deque<Interrupt> queue_;
    std::uint64_t missed_ = 0;  ///< lost and not yet reported
};

}  // namespace rmem::sim
