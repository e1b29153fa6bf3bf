// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What one seed of the hunt is: a small ring, traffic, and the faults that meet it.
///
/// Thread safety: values. Errors: simulator/hunt/seeded.hpp's.

#include "billboard/environment.hpp"
#include "rmem/sim/host_profile.hpp"
#include "simulator/hunt/seeded.hpp"

#include <cstddef>
#include <cstdint>

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
    count_
};
inline constexpr std::size_t kFaultKinds = static_cast<std::size_t>(FaultKind::count_);

const char* name_of(FaultKind kind) noexcept;

struct Fault {
    FaultKind kind = FaultKind::delay;
    unsigned target = 0;         ///< rank or node
    unsigned at_message = 0;     ///< once so many have been posted in all
    std::uint64_t accesses = 1;  ///< of the target, after that
    std::uint64_t writes = 1;    ///< that are hit
    std::int64_t time_ns = 0;    ///< how late, or how long
    bool comes_back = true;      ///< kill, fail_node: started again, after time_ns
};

struct Scenario : Seeded<Scenario, Fault, 2000, 20> {
    static constexpr unsigned kRanks = 4;

    billboard::Settings settings;
    rmem::TimingProfile timing;
    rmem::sim::HostProfile host;
    std::uint32_t lives_before = 0;  ///< of each rank; its epochs wrap at 256
    bool loses = false;              ///< faults that lose writes are among them
    bool ends = false;               ///< processes or nodes die

    static Scenario of_seed(std::uint64_t seed);
};

}  // namespace simulator
