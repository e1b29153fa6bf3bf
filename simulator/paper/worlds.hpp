// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Worlds for measurements: the paper's hosts on a ring, all ranks running one program.
///
/// Equal testbeds give equal times, in whole nanoseconds of virtual time.
/// Errors: rmem::Error when a world cannot be made, a bbp_ call fails, or the ranks wait for each
/// other.
/// Thread safety: the calling thread's; one at a time (rmem/sim/world.hpp).

#include "billboard/simulation.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace simulator {

/// The machines of an experiment: by default the paper's four, on a ring with fixed packets.
struct Testbed {
    rmem::sim::HostProfile host = rmem::sim::parse_host("pentium-ii");
    std::string timing = "scramnet-burst";
    unsigned nodes = 4;
    unsigned ranks = 4;  ///< spread evenly over the nodes
    rmem::sim::Topology topology{1, 0, 0};
    billboard::BarrierKind barrier = billboard::BarrierKind::paper;
    std::size_t partition_bytes = 65536;  ///< each rank's room for messages
    std::size_t user_bytes = 4096;        ///< memory beside the billboard
};

/// One program for all ranks.
using RankProgram = std::function<void(rmem::sim::Process&)>;

/// Runs the program between bbp_init and bbp_finalize on every rank. All begin together, after a
/// barrier, and nobody leaves before all are through: an idle rank does not disturb.
void run_billboard(const Testbed& testbed, const RankProgram& program);

/// Runs it on every rank of a world that has no billboard: bare memory (rmem/link/sim/memory.hpp).
void run_bare(const Testbed& testbed, const RankProgram& program,
              rmem::sim::Observer* observer = nullptr);

/// Throws what bbp_last_error says when `result` is a failure; gives it back otherwise.
int checked(int result);

/// Lets the process sleep until that time, if it is still to come.
void sleep_until(rmem::sim::Process& process, std::int64_t time_ns);

}  // namespace simulator
