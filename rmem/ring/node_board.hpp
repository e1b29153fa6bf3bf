// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The state that a node's engine shows on this host: to the programs that share the node, and to
/// tools.
///
/// It lies in the node's segment (rmem/ring/ring.hpp). Writer: the engine's process, except where
/// it says so. Times and counts are for people; operations that programs rely on are numbered.

#include "rmem/ring/config.hpp"
#include "rmem/ring/counters.hpp"
#include "rmem/ring/notice.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/udp_counters.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace rmem::udp {

/// The process that runs the engine, or ran it last.
enum class EngineKind : std::uint32_t { none = 0, program = 1, daemon = 2 };

/// The local knowledge of another node.
struct NodeView {
    std::atomic<std::uint64_t> incarnation;  ///< of its presence in the ring; 0: none yet
    std::atomic<std::int64_t> round_trip_ns;
    std::atomic<std::int64_t> clock_error_ns;  ///< -1: its clock is not known
    std::atomic<std::uint64_t> batches_applied;
};

struct NodeBoard {
    /// How many threads of the engine's process sleep: who gives it work rings its bell.
    alignas(kLineBytes) std::atomic<std::uint32_t> asleep;
    std::atomic<std::uint32_t> kind;  ///< EngineKind
    std::atomic<std::uint32_t> pid;   ///< 0: it has ended, or has not run
    /// The membership epoch: counts the node's joins and ends, over all engines; odd while the node
    /// is a member. A program that has opened in one epoch sees all others as dead in the next.
    std::atomic<std::uint32_t> membership_epoch;
    std::array<std::atomic<std::uint64_t>, kMaxNodes / 64> members;  ///< a bit each
    std::atomic<std::uint64_t> incarnation, ring_incarnation;
    std::atomic<std::uint32_t> window;  ///< batches that may be under way
    std::atomic<std::uint32_t> socket_room;
    std::atomic<std::uint32_t> engines;    ///< counts the engines that there were
    std::atomic<std::uint32_t> real_time;  ///< 1: the engine's helper thread has such a priority
    std::atomic<std::int64_t> started_ns;
    Hint<std::uint32_t> processor;  ///< on which the engine has sent last, and 1; 0: none
    alignas(kLineBytes) CounterBlock<kUdpCounters> counters;
    /// Until when recorders listen to the tap (rmem/link/udp/tap.hpp), theirs; and whether it is
    /// open.
    alignas(kLineBytes) std::atomic<std::int64_t> tap_until_ns;
    std::atomic<std::uint32_t> tap_open;
    /// Counts programs that have come or gone; theirs.
    alignas(kLineBytes) std::atomic<std::uint32_t> membership_changes;
    /// Of each rank's log: up to where its program wants it to leave now. The program's.
    alignas(kLineBytes) std::array<std::atomic<std::uint64_t>, kMaxSeats> committed;
    /// Of each rank: the membership epoch in which its program has opened, and where its log began
    /// then. Programs of a former epoch are not heard any more. The program's.
    std::array<std::atomic<std::uint64_t>, kMaxSeats> begun;
    std::array<std::atomic<std::uint32_t>, kMaxSeats> opened;
    /// Up to where it is in the node's stream, and up to where all members have it.
    alignas(kLineBytes) std::array<std::atomic<std::uint64_t>, kMaxSeats> consumed;
    std::array<std::atomic<std::uint64_t>, kMaxSeats> completed;
    std::atomic<std::uint32_t> arrivals;  ///< counts runs that brought writes to the users' memory
    std::array<NodeView, kMaxNodes> nodes;
    Notice notice;    ///< its remark about others that it refuses
    Applier applier;  ///< of what the engine applies (rmem/ring/bank.hpp)
};

}  // namespace rmem::udp
