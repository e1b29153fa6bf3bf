// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The common part of the seeds of all hunts on the simulated ring: four ranks on a small ring, and
/// the faults that meet them. A hunt has those of the faults that it chooses, and traffic of its
/// own.
///
/// Thread safety: values. The choices follow from the random numbers, one draw a statement.

#include "billboard/environment.hpp"
#include "rmem/base/random.hpp"
#include "rmem/sim/host_profile.hpp"
#include "rmem/wire/timing.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace simulator {

enum class FaultKind : std::uint8_t {
    delay = 0,    ///< single writes of a node reach its card later
    clog,         ///< many in a row, for long: its link is clogged
    lose,         ///< writes are lost before the wire, and reported
    duplicate,    ///< writes come by twice
    cut_cable,    ///< one cable of a segment, for a while: the ring heals over the other
    cut_link,     ///< both cables of a segment, for a while: one-way loss
    kill,         ///< a process dies at an access
    fail_node,    ///< a card fails, and its processes with it
    restart,      ///< one that died is started again (follows from kill and fail_node)
    stop,         ///< a process is stopped for a while
    stall,        ///< the host takes the processor away at an access
    slow_reader,  ///< a rank reads nothing for a while, but goes on sending
    deaf,         ///< a rank computes for a while, without any progress
    count_
};

const char* name_of(FaultKind kind) noexcept;

struct Fault {
    FaultKind kind = FaultKind::delay;
    unsigned target = 0;         ///< rank or node
    unsigned at_message = 0;     ///< once this number has been posted in all
    std::uint64_t accesses = 1;  ///< of the target, after that
    std::uint64_t writes = 1;    ///< that are hit
    std::int64_t time_ns = 0;    ///< how late, or how long
    bool comes_back = true;      ///< kill, fail_node: started again, after time_ns
};

/// The requirements on a hunt's Scenario beside Seeded.
struct RingScenario {
    static constexpr unsigned kRanks = 4;

    billboard::Settings settings;
    rmem::TimingProfile timing;
    rmem::sim::HostProfile host;
    std::uint32_t incarnations_before = 0;  ///< of each rank; its epochs wrap at 256
    bool ends = false;                      ///< processes or nodes die
};

/// Sizes of data partitions, from which a seed takes one.
inline constexpr std::array<std::size_t, 4> kPartitions = {1024, 2048, 4096, 16384};

/// A fault of that kind in a seed of `messages` messages. `may_return`: a rank that dies may be
/// started again.
Fault draw_fault(FaultKind kind, unsigned messages, bool may_return, rmem::Random& random);

/// In the order in which they are due.
void put_in_order(std::vector<Fault>& faults);

}  // namespace simulator
