// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Whose the numbers of interrupts are that nodes send (rmem.h): cards of several kinds may share a
/// ring, and each lets in its own.
///
///      0 to 31  broadcast interrupts of SCRAMNet GT
///           32  its unicast interrupt
///     33 to 37  RFM2g's events, RFM2GEVENT_RESET to RFM2GEVENT_INTR4
///           38  raises nothing anywhere: goes round to test a ring (RFM2g)
///           39  the same, to time it (SCRAMNet GT and SCRAMNet+)
///
/// SCRAMNet+ sends none: its interrupts are of words that are written. Constants: any thread.

#include "rmem/rmem.h"

#include <cstdint>

namespace cards {

inline constexpr unsigned kBroadcastNumbers = 32;
inline constexpr unsigned kUnicastNumber = kBroadcastNumbers;
inline constexpr unsigned kFirstEventNumber = kUnicastNumber + 1;
inline constexpr unsigned kEventNumbers = 5;
inline constexpr unsigned kRingTestNumber = kFirstEventNumber + kEventNumbers;
inline constexpr unsigned kRoundTimeNumber = kRingTestNumber + 1;
static_assert(kRoundTimeNumber + 1 == RMEM_INTERRUPT_NUMBERS);

/// For rmem_accept_interrupts.
constexpr std::uint64_t numbers_from(unsigned first, unsigned count) {
    return ((std::uint64_t{1} << count) - 1) << first;
}

}  // namespace cards
