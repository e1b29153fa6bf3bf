// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The part of a Node that differs by link: its card.
///
/// A card has joined its ring when it is made, and leaves it when it is destroyed. Offsets and
/// sizes are whole words inside the user's memory, which Node has checked; what is less than a word
/// is a part of one.
/// Thread safety: `before_load`, `poll`, `give_way` and `take` from any thread, the rest from the
/// node's own.

#include "rmem/base/histogram.hpp"
#include "rmem/base/word_block.hpp"
#include "rmem/ring/bound_violation.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace rmem {

/// A card's interrupts; the contracts are in rmem/ring/interrupts.hpp and rmem/node.hpp.
class CardInterrupts {
public:
    CardInterrupts() = default;
    virtual ~CardInterrupts() = default;
    CardInterrupts(const CardInterrupts&) = delete;
    CardInterrupts& operator=(const CardInterrupts&) = delete;

    virtual void watch(std::size_t offset, std::size_t bytes, Trigger trigger) = 0;
    virtual void unwatch(std::size_t offset, std::size_t bytes) = 0;
    virtual void mark(std::size_t offset, std::size_t bytes) = 0;
    virtual void unmark(std::size_t offset, std::size_t bytes) = 0;
    virtual void accept(std::uint64_t numbers) = 0;
    /// The oldest interrupt; none while a callback gets them.
    [[nodiscard]] virtual std::optional<Interrupt> take() = 0;
    virtual int fd() = 0;
    virtual void on_interrupt(std::function<void(const Interrupt&)> callback) = 0;
};

class Card {
public:
    Card() = default;
    virtual ~Card() = default;
    Card(const Card&) = delete;
    Card& operator=(const Card&) = delete;

    // ---- Its ring
    virtual const RingConfig& config() const = 0;
    virtual Member member() const = 0;
    virtual bool is_alive(unsigned rank) const = 0;
    /// Its node is still in the incarnation in which this card was opened: others receive its
    /// writes.
    virtual bool is_member() const { return true; }
    /// Null in a simulated process: its ring is no shared memory.
    virtual const Ring* ring() const = 0;
    virtual std::uint64_t counter(LinkCounter id) const = 0;
    virtual const Histogram& propagation() const = 0;
    virtual std::int64_t bound_ns() const = 0;
    virtual void on_bound_violation(std::function<void(const BoundViolation&)> callback) = 0;

    // ---- Memory
    virtual std::byte* bank() const = 0;
    /// Whether writes of `bytes` bytes in all can be taken now.
    [[nodiscard]] virtual bool room(std::size_t bytes) = 0;
    virtual void write(std::size_t offset, const void* from, std::size_t bytes) = 0;
    /// Bytes of the word at the offset.
    virtual void write_part(std::size_t offset, std::uint32_t value, WordPart part) = 0;
    /// Bytes of a word, or all, with their room and commit, where the link has a short way for them
    /// just now. False: nothing was written.
    [[nodiscard]] virtual bool write_at_once(std::size_t, std::uint32_t, WordPart) { return false; }
    /// Words that the bank has already, by a store of the program, go to the others. Not on
    /// `direct`, where they have them.
    virtual void forward(std::size_t, const void*, std::size_t) {}
    virtual void forward_part(std::size_t, std::uint32_t, WordPart) {}
    /// Throws where a write of this would be refused, before others of its group are made.
    virtual void refuse_foreign(std::size_t, const void*, std::size_t) {}
    /// The same card for stores that are captured, which throw nothing.
    virtual Card& for_stores() { return *this; }
    /// Wakes ranks that may wait for these writes.
    virtual void commit() = 0;
    /// Writes a register, and commits; there is room for it.
    virtual void send(unsigned number, const SentInterrupt& sent) {
        write(config().register_offset(member().node, number), &sent, sizeof sent);
        commit();
    }
    [[nodiscard]] virtual bool flush(Deadline deadline) = 0;
    virtual void poll() = 0;
    /// After a look that found nothing (rmem/ring/waiting/waiting.hpp).
    virtual void give_way() = 0;
    /// Announces that `words` words of the bank are loaded next: applies what is due.
    virtual void before_load(std::size_t words) = 0;
    /// For readers that do not call.
    virtual void keep_applying() = 0;

    // ---- Waiting for a word to change, or (nullopt) for an interrupt
    virtual void begin_wait(std::optional<std::size_t> offset) = 0;
    virtual Step wait(Deadline deadline) = 0;
    virtual void end_wait() = 0;
    /// A word was awaited since then, and has just been seen with this value.
    virtual void has_seen(std::size_t offset, std::uint32_t value,
                          std::int64_t waited_since_ns) = 0;

    // ---- Options
    virtual void set_write_me_last(bool on) = 0;
    virtual void set_data_filter(bool on) = 0;
    virtual CardInterrupts& interrupts() = 0;
};

}  // namespace rmem
