// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Counters in shared memory: any process can read them while the owner computes, hangs or is dead.
///
/// Each block has one writer (the rank, or the process that runs the node's engine), so counting is
/// a plain add, stored atomically only for the readers' sake. Counters start at zero when the ring
/// is made and only grow (a restarted rank goes on where its former incarnation stopped), except
/// the `_max` and the `_now` ones. Nothing is counted here that the hot path would pay for:
/// messages per pair are the FIFOs' own positions (billboard/boards/layout.hpp).

#include "rmem/base/relaxed.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rmem {

/// What it means to a person who watches the ring that a counter grows.
enum class CounterKind : unsigned char {
    losses,
    retransmissions,
    back_pressure,
    refusals,
    bound,
    members,
    other,
    work,  ///< nothing: it is what a ring does
};

struct CounterName {
    const char* name;
    const char* unit;
    const char* meaning;
    CounterKind kind = CounterKind::other;
};

inline constexpr std::size_t kCountersPerBlock = 32;
inline constexpr std::size_t kCountersPerPort = 16;

/// From a list of counters, a macro that calls its argument with (identifier, unit, meaning) for
/// each: the enum `Id`, with count_ after the last, and the array `kNames` in its order. A block
/// has `room` for them.
#define RMEM_DEFINE_COUNTERS(Id, kNames, LIST, room)                                       \
    enum class Id : unsigned { LIST(RMEM_COUNTER_ID) count_ };                             \
    inline constexpr std::array<::rmem::CounterName, static_cast<std::size_t>(Id::count_)> \
        kNames = {{LIST(RMEM_COUNTER_NAME)}};                                              \
    static_assert(kNames.size() <= (room))
#define RMEM_COUNTER_ID(id, unit, meaning) id,
#define RMEM_COUNTER_NAME(id, unit, meaning) {#id, unit, meaning},

/// The same of a list that tells the kind of each: (identifier, kind, unit, meaning).
#define RMEM_DEFINE_KIND_COUNTERS(Id, kNames, LIST, room)                                  \
    enum class Id : unsigned { LIST(RMEM_KIND_COUNTER_ID) count_ };                        \
    inline constexpr std::array<::rmem::CounterName, static_cast<std::size_t>(Id::count_)> \
        kNames = {{LIST(RMEM_KIND_COUNTER_NAME)}};                                         \
    static_assert(kNames.size() <= (room))
#define RMEM_KIND_COUNTER_ID(id, kind, unit, meaning) id,
#define RMEM_KIND_COUNTER_NAME(id, kind, unit, meaning) \
    {#id, unit, meaning, ::rmem::CounterKind::kind},

/// X(identifier, kind, unit, meaning)
#define RMEM_LINK_COUNTERS(X)                                                                      \
    X(writes_sent, work, "writes", "writes handed to the link")                                    \
    X(bytes_sent, work, "bytes", "of the writes sent")                                             \
    X(writes_applied, work, "writes", "writes of others applied to this bank")                     \
    X(bytes_applied, work, "bytes", "of the writes applied")                                       \
    X(writes_filtered, work, "words", "words not sent because they did not change (data filter)")  \
    X(writes_lost_fifo, losses, "writes", "writes lost to a full transmit FIFO (fifo=lose)")       \
    X(held_off, back_pressure, "writes", "writes that waited for room in the transmit FIFO")       \
    X(back_pressure, back_pressure, "calls", "calls told that the outbound queue is full")         \
    X(flushes, work, "calls", "flush calls completed")                                             \
    X(late_published, bound, "writes", "writes seen over 0.2 us after the model had passed them")  \
    X(late_by_host, bound, "writes",                                                               \
      "writes that fell due while the host had taken the processor")                               \
    X(late_max_ns, work, "ns", "largest lateness of a write that fell due while we ran")           \
    X(bound_violations, bound, "writes", "writes whose propagation exceeded the bound")            \
    X(bound_missed_by_host, bound, "writes",                                                       \
      "writes in time on the wire, applied late by the host")                                      \
    X(interrupts_raised, work, "interrupts", "interrupts raised at this node")                     \
    X(interrupts_lost, losses, "interrupts", "interrupts lost to ranks that were slow")            \
    X(races_found, other, "writes", "concurrent writes of two nodes to one word (RMEM_CHECK)")     \
    X(ring_switches, retransmissions, "events",                                                    \
      "times a cut cable was healed over the second ring")                                         \
    X(ring_breaks, members, "events", "times both cables of a segment were cut")                   \
    X(nodes_bypassed, members, "events", "dead nodes taken out of the ring")                       \
    X(aged_out, losses, "writes", "strays removed by age")                                         \
    X(lost_on_wire, losses, "writes", "writes lost on a cut cable")                                \
    X(engine_takeovers, other, "events", "times the helper thread ran the engine for a busy rank") \
    X(faults_injected, other, "events", "faults injected by RMEM_FAULTS")                          \
    X(records_refused, refusals, "records", "records of a log that are not valid; skipped")        \
    X(stores_captured, work, "stores", "plain stores of programs into their view of the memory")   \
    X(stores_held_off, back_pressure, "stores", "captured stores that waited for room")            \
    X(stores_lost, losses, "stores", "captured stores that reached the own bank alone")            \
    X(scans, work, "looks", "looks for stores by comparing (RMEM_STORES=scan)")                    \
    X(scans_late, bound, "looks", "of them, later than 50 us after the one before")                \
    X(scan_gap_max_ns, work, "ns", "longest time from one such look to the next")                  \
    X(messages_sampled, work, "samples", "on direct one of 1024 short messages from rank to rank")

RMEM_DEFINE_KIND_COUNTERS(LinkCounter, kLinkCounterNames, RMEM_LINK_COUNTERS, kCountersPerBlock);

/// A line-aligned block of counters with one writer.
template <std::size_t Size>
struct alignas(64) CounterBlock {
    std::array<Counter<>, Size> values;

    template <class Id>
    void add(Id id, std::uint64_t n = 1) noexcept {
        values[static_cast<std::size_t>(id)].add(n);
    }
    template <class Id>
    void set(Id id, std::uint64_t n) noexcept {
        values[static_cast<std::size_t>(id)].set(n);
    }
    /// For the few values that several processes count (interrupts raised by writers on `direct`).
    template <class Id>
    void add_shared(Id id, std::uint64_t n = 1) noexcept {
        values[static_cast<std::size_t>(id)].add_shared(n);
    }
    template <class Id>
    void raise_shared_to(Id id, std::uint64_t n) noexcept {
        values[static_cast<std::size_t>(id)].raise_shared_to(n);
    }
    template <class Id>
    void raise_to(Id id, std::uint64_t n) noexcept {
        values[static_cast<std::size_t>(id)].raise_to(n);
    }
    template <class Id>
    std::uint64_t get(Id id) const noexcept {
        return values[static_cast<std::size_t>(id)].get();
    }
};

using Counters = CounterBlock<kCountersPerBlock>;

/// A block of its own for each library on top of a rank's protocol, as the ports are, and for a
/// bridge, whose is the last.
inline constexpr std::size_t kPortBlocks = 5;
using PortCounters = CounterBlock<kCountersPerPort>;

}  // namespace rmem
