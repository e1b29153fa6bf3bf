// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What one seed of the hunt on MPI's messages is: a small ring, the messages, and the faults that meet it.
///
/// Thread safety: values. Errors: simulator/hunt/seeded.hpp's.

#include "billboard/environment.hpp"
#include "rmem/sim/host_profile.hpp"
#include "simulator/hunt/seeded.hpp"

#include <cstddef>
#include <cstdint>

namespace simulator::mpi {

enum class FaultKind : std::uint8_t {
    delay = 0,  ///< single writes of a node reach its card later
    clog,       ///< many in a row, for long
    duplicate,  ///< writes come by twice
    cut_cable,  ///< one cable of a segment, for a while: the ring heals over the other
    kill,       ///< a process dies at an access; MPI's ranks do not come back
    fail_node,  ///< a card fails, and its process with it
    stop,       ///< a process is stopped for a while
    stall,      ///< the host takes the processor away at an access
    deaf,       ///< a rank computes for a while, without any progress
    count_
};
inline constexpr std::size_t kFaultKinds = static_cast<std::size_t>(FaultKind::count_);

const char* name_of(FaultKind kind) noexcept;

struct Fault {
    FaultKind kind = FaultKind::delay;
    unsigned target = 0;         ///< rank or node
    unsigned at_message = 0;     ///< once so many have been sent in all
    std::uint64_t accesses = 1;  ///< of the target, after that
    std::uint64_t writes = 1;    ///< that are hit
    std::int64_t time_ns = 0;    ///< how late, or how long
};

struct Scenario : Seeded<Scenario, Fault, 300, 10> {
    static constexpr unsigned kRanks = 4;

    billboard::Settings settings;
    rmem::TimingProfile timing;
    rmem::sim::HostProfile host;
    bool ends = false;  ///< processes die
    /// Some ranks, by their bits, send and receive without the channel interface: mpi_channel/billboard_transport.hpp.
    unsigned direct = 0;

    /// Messages long enough that unexpected ones take all their credit, on a link that takes no time. Rank 0 then
    /// sends nothing, so that credit comes back by itself, and receives seldom.
    bool heavy = false;

    static Scenario of_seed(std::uint64_t seed);
};

}  // namespace simulator::mpi
