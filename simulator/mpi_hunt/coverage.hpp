// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The coverage marks of the hunt on MPI's messages: it must meet them beside the faults
/// themselves.

#include "simulator/hunt/findings.hpp"

#include <cstddef>
#include <cstdint>

namespace simulator::mpi {

enum class CoverageMark : std::uint8_t {
    short_sent = 0,
    eager_sent,
    rendezvous_sent,
    out_of_credit,  ///< a message was asked for because its sender had no credit
    flow_packet,    ///< credit came back in a packet of its own
    bundle,         ///< packets that had waited left together
    waited,         ///< something stayed at its sender because there was no room
    unexpected,
    from_any,  ///< a receive of any source got one
    to_self,
    cut,        ///< a message was longer than its receive
    several,    ///< one receive took more than one
    cancelled,  ///< a receive
    too_late,   ///< to be cancelled
    peeked,
    claimed_received,
    claimed_discarded,
    send_gone,     ///< a send ended with its receiver
    receive_gone,  ///< a receive with its sender
    drained,       ///< a message was received whole of a sender that was dead by then
    count_
};
inline constexpr std::size_t kCoverageMarks = static_cast<std::size_t>(CoverageMark::count_);

const char* name_of(CoverageMark mark) noexcept;

}  // namespace simulator::mpi
