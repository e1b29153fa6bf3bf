// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A register-insertion ring as arithmetic: writes with their times go in, arrivals with theirs
/// come out. No clock, thread, socket or shared memory; the `ring` link feeds it real time, the
/// simulator virtual time. The rules, and what they approximate: docs/design/wire-model.md.
///
/// Thread safety: none; one thread at a time owns a model.
/// Invariants:    outcomes come in time order; an origin's writes reach every node in the order of
///                submission; a write reaches each node that is alive on its way once, or is
///                reported as lost; nothing is early; equal inputs give equal outputs on every
///                compiler, however advance() is sliced.
/// Units:         nanoseconds of the caller's clock; picoseconds inside, rounded up on the way out.
/// Errors:        the constructor throws Error; the rest returns values and counts. It allocates
///                only while its queues grow to the load's size.
/// Source:        SCRAMNet+ SC150e hardware reference, 2.4 and 5.5.

#include "rmem/base/time.hpp"
#include "rmem/wire/timing.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace rmem {

struct WireWrite {
    std::uint16_t origin = 0;
    bool interrupt = false;           ///< travels in a packet of its own
    std::uint32_t bytes = 4;          ///< words touched count as whole words
    std::uint64_t offset = 0;         ///< decides what is sequential
    std::int64_t time_ns = 0;         ///< of the store
    std::int64_t extra_delay_ns = 0;  ///< a fault: later by this; later writes queue behind
    std::uint64_t tag = 0;            ///< the caller's own, given back with every outcome
};

enum class WireSubmit : std::uint8_t {
    accepted = 0,
    clamped,  ///< accepted, but its time had passed: counted, taken as now
    refused   ///< no such origin, or no bytes
};

enum class WireOutcomeKind : std::uint8_t {
    arrived = 0,  ///< the write's last word is in `node`'s memory
    returned,     ///< the source has it back and removed it: `flush` counts these
    stray,        ///< again in `node`: its source was bypassed when it came round
    lost,         ///< `node` is the last one that can have it; those behind it do not
    sent  ///< a packet with its first word, or with more of it, goes on the wire (if asked for)
};

enum class WireLoss : std::uint8_t { none = 0, fifo_full, cable, dead_node };

struct WireOutcome {
    std::int64_t time_ns = 0;
    std::uint64_t tag = 0;
    std::uint16_t node = 0;
    std::uint16_t origin = 0;
    WireOutcomeKind kind = WireOutcomeKind::arrived;
    WireLoss cause = WireLoss::none;
    bool interrupt = false;
};

/// Of one node, or summed over the ring (the max_ fields: the largest).
struct WireCounters {
    std::uint64_t submitted = 0;          ///< writes
    std::uint64_t clamped = 0;            ///< writes submitted too late
    std::uint64_t sent = 0;               ///< own packets put on the wire
    std::uint64_t sent_words = 0;         ///< words in them
    std::uint64_t passed = 0;             ///< others' packets passed on: hops
    std::uint64_t received = 0;           ///< others' writes that arrived
    std::uint64_t returned = 0;           ///< own writes that came back whole
    std::uint64_t removed_by_source = 0;  ///< own packets taken off the ring
    std::uint64_t aged_out = 0;           ///< packets removed here by their age
    std::uint64_t lost_fifo_full = 0;     ///< own writes, policy `lose`
    std::uint64_t lost_cable = 0;         ///< own writes
    std::uint64_t lost_dead_node = 0;     ///< own writes of a bypassed node
    std::uint64_t held_off = 0;           ///< own writes that found the TX FIFO full
    std::uint64_t retransmitted = 0;      ///< own packets sent again (PLATINUM)
    std::uint64_t switch_overs = 0;       ///< of the segment behind this node
    std::uint64_t bypasses = 0;
    std::uint64_t max_fifo_words = 0;
    std::uint64_t max_insertion_wait_ns = 0;  ///< an own packet, for passing ones

    /// Sums; of the max_ fields, the larger.
    RMEM_API WireCounters& operator+=(const WireCounters& c) noexcept;
};

class RMEM_API WireModel {
public:
    /// `start_ns`: no write is older. Throws Errc::bad_node_count above 256 nodes or below 1.
    WireModel(const TimingProfile& profile, std::uint32_t nodes, std::int64_t start_ns = 0);
    ~WireModel();
    WireModel(WireModel&&) noexcept;
    WireModel& operator=(WireModel&&) noexcept;

    /// Takes a write of now or later. Writes of one origin come in order; those of different
    /// origins in any.
    WireSubmit submit(const WireWrite& write);

    /// Everything up to and including `until_ns`, as sink(const WireOutcome&). The sink must not
    /// call the model. Time never runs backwards: an earlier `until_ns` does nothing.
    template <class Sink>
    void advance(std::int64_t until_ns, Sink&& sink) {
        using Target = std::remove_reference_t<Sink>;
        run(
            until_ns,
            [](void* target, const WireOutcome& outcome) {
                (*static_cast<Target*>(target))(outcome);
            },
            const_cast<void*>(static_cast<const void*>(std::addressof(sink))));
    }

    /// From now on outcomes say, too, when writes leave their source.
    void report_sent(bool on) noexcept;

    std::int64_t now_ns() const noexcept;
    /// The earliest time at which advance() has something to do; kNever when idle.
    std::int64_t next_time_ns() const noexcept;
    /// The next arrival at `node`, or of a write of `origin`, until that time, if it is certain: it
    /// will come as it is told here, even if another node has another one before.
    std::optional<WireOutcome> next_arrival(std::uint32_t node, std::uint32_t origin,
                                            std::int64_t until_ns) const noexcept;

    /// Words in the node's TX FIFO now.
    std::uint32_t fifo_occupancy(std::uint32_t node) const noexcept;
    /// The earliest time at which `words` more fit: now, or a lower bound to ask again at.
    std::int64_t room_at(std::uint32_t node, std::uint32_t words = 1) const noexcept;
    /// When the next word of the packet that the node is sending leaves its FIFO; kNever without
    /// one.
    std::int64_t next_word_ns(std::uint32_t node) const noexcept;
    /// The next time that words of this node go on the wire, an outcome says so, as report_sent()
    /// does for all.
    void report_next_sent(std::uint32_t node) noexcept;

    /// Bypasses a node, or takes it in again. Not before now.
    void set_alive(std::uint32_t node, bool alive, std::int64_t time_ns);
    /// The segment from `from_node` to its successor, on ring 0 (primary) or 1. Not before now.
    void set_cable(std::uint32_t ring, std::uint32_t from_node, bool up, std::int64_t time_ns);

    std::uint32_t nodes() const noexcept;
    const TimingProfile& profile() const noexcept;
    WireCounters counters(std::uint32_t node) const noexcept;
    WireCounters totals() const noexcept;

private:
    friend struct PlantedBug;  ///< a test's, which a check finds
    class State;
    using Call = void (*)(void* target, const WireOutcome& outcome);

    void run(std::int64_t until_ns, Call call, void* target);

    std::unique_ptr<State> state_;
};

}  // namespace rmem
