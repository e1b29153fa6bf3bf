// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The interrupts of a simulated node: the words that raise, and interrupts not yet taken.
///
/// Their meaning is in rmem/ring/interrupts.hpp; ranges have been checked there.
/// Thread safety: none, a simulation is one thread.

#include "rmem/ring/interrupts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rmem::sim {

class NodeInterrupts {
public:
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
        auto& since = readers_[rank].since;
        for (unsigned number = 0; number < kInterruptNumbers; ++number) {
            if ((numbers >> number & 1) == 0) {
                since.erase(number);
            } else {
                since.emplace(number, end());
            }
        }
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
    }
    /// The rank begins: it reads what is raised from now on.
    void begin(unsigned rank) { readers_[rank] = {end(), 0, {}}; }
    void end(unsigned rank) { readers_.erase(rank); }

    // ---- The queue
    /// How many interrupts the arrival of a write of another node raises.
    std::uint64_t raise(unsigned origin, std::size_t offset, std::span<const std::byte> data,
                        bool is_marked) {
        if (offset >= registers_) return raise_sent(origin, offset, data);
        const std::uint8_t raising = is_marked ? kAny | kReceive : kAny;
        const auto words = words_of(offset, data.size());
        std::uint64_t raised = 0;
        for (std::size_t i = 0; i < words.size(); ++i) {
            if ((words[i] & raising) == 0) continue;
            Interrupt entry;
            entry.offset = offset + i * kWordBytes;
            entry.origin = origin;
            std::memcpy(&entry.value, data.data() + i * kWordBytes, kWordBytes);
            queue(entry);
            ++raised;
        }
        return raised;
    }
    bool pending(unsigned rank) const {
        const auto found = readers_.find(rank);
        const Reader reader = found == readers_.end() ? Reader{} : found->second;
        for (std::uint64_t at = std::max(reader.next, first_); at < end(); ++at) {
            if (is_for(reader, at)) return true;
        }
        return false;
    }
    std::optional<Interrupt> take(unsigned rank) {
        Reader& reader = readers_[rank];
        if (reader.next < first_) reader.missed += first_ - std::exchange(reader.next, first_);
        while (reader.next < end()) {
            const std::uint64_t at = reader.next++;
            if (!is_for(reader, at)) continue;
            Interrupt taken = queue_[at - first_];
            taken.missed = std::exchange(reader.missed, 0);
            return taken;
        }
        return std::nullopt;
    }

private:
    static constexpr std::uint8_t kReceive = 1, kAny = 2, kTransmit = 4;

    struct Reader {
        std::uint64_t next = 0;                        ///< the position that it takes next
        std::uint64_t missed = 0;                      ///< lost and not yet reported
        std::map<std::uint64_t, std::uint64_t> since;  ///< by number: from which position on
    };

    std::uint64_t end() const { return first_ + queue_.size(); }
    bool is_for(const Reader& reader, std::uint64_t at) const {
        const Interrupt& entry = queue_[at - first_];
        if (entry.kind == Interrupt::Kind::written) return true;
        const auto since = reader.since.find(entry.offset);
        return since != reader.since.end() && since->second <= at;
    }
    void queue(const Interrupt& entry) {
        queue_.push_back(entry);
        if (queue_.size() <= kInterruptQueueEntries) return;
        queue_.pop_front();
        ++first_;
    }
    /// The write of a register.
    std::uint64_t raise_sent(unsigned origin, std::size_t offset, std::span<const std::byte> data) {
        SentInterrupt sent;
        if (data.size() != sizeof sent) return 0;
        std::memcpy(&sent, data.data(), sizeof sent);
        const std::size_t number = (offset - registers_) / kRegisterBytes % kInterruptNumbers;
        const bool is_for_all = sent.to == kAllNodes;
        const bool is_accepted =
            std::any_of(readers_.begin(), readers_.end(),
                        [&](const auto& one) { return one.second.since.count(number) != 0; });
        if (!is_accepted || (sent.to != node_ && !is_for_all)) return 0;
        queue({number, sent.value, origin, 0,
               is_for_all ? Interrupt::Kind::sent_to_all : Interrupt::Kind::sent});
        return 1;
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
    std::vector<std::uint8_t> marks_;  ///< of each word of the user's memory
    std::vector<unsigned> users_;
    std::deque<Interrupt> queue_;  ///< the last
    std::uint64_t first_ = 0;      ///< the position of the first in the queue
    std::map<unsigned, Reader> readers_;
};

}  // namespace rmem::sim
