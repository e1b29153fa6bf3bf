// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The coverage marks of the hunt on the billboard: it must meet them beside the faults themselves.

#include "simulator/hunt/findings.hpp"

#include <cstddef>
#include <cstdint>

namespace simulator::bbp {

enum class CoverageMark : std::uint8_t {
    overtaken = 0,  ///< a write arrived before an older one of another origin
    fifo_full,      ///< a sender was told that the transmit FIFO is full
    send_waited,    ///< a sender was told to wait, or waited, for room
    collected,      ///< garbage was collected in the data partition
    in_parts,       ///< a message larger than a partition came whole
    multicast,      ///< a multicast was delivered to all it named
    bound_broken,   ///< a write was later than the bound, and counted
    peer_error,     ///< a call said BBP_EPEER
    drained,        ///< a message was received of a sender that was dead by then
    forgiven,       ///< a message suffered from a loss that the link had reported
    barrier_passed,
    numbers_wrapped,  ///< a sequence number went through zero
    epochs_wrapped,   ///< the 8 bits of a rank's incarnation that messages carry
    count_
};
inline constexpr std::size_t kCoverageMarks = static_cast<std::size_t>(CoverageMark::count_);

const char* name_of(CoverageMark mark) noexcept;

}  // namespace simulator::bbp
