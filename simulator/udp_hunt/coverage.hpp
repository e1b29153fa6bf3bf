// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The coverage marks of the hunt on the udp link: it must meet them beside the faults themselves.

#include "simulator/hunt/findings.hpp"

#include <cstddef>
#include <cstdint>

namespace simulator::udp {

enum class CoverageMark : std::uint8_t {
    overtaken = 0,    ///< a datagram came after one that was sent later
    socket_overflow,  ///< datagrams were lost because a node did not read
    too_long,         ///< a datagram did not reach a node that takes shorter ones
    back_pressure,    ///< a member had no room to write
    nak_sent,         ///< a node asked for batches that it lacked
    retransmitted,
    probed,
    forwarded,          ///< batches of the dead went from one survivor to another
    in_parts,           ///< a message went in several batches
    joined_in_traffic,  ///< a bank was taken while others wrote
    died,               ///< a member was given up
    dropped,            ///< a node learnt that it was, and began a new incarnation
    two_rings,          ///< there were two at a time
    refused,            ///< a damaged datagram was recognized
    replayed,           ///< one that had been there before was
    wrapped,            ///< a stream's numbers went through zero
    signed_run,
    unsigned_run,
    count_
};
inline constexpr std::size_t kCoverageMarks = static_cast<std::size_t>(CoverageMark::count_);

const char* name_of(CoverageMark mark) noexcept;

}  // namespace simulator::udp
