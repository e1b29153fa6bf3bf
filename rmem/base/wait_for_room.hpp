// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How long a write of a card's program waits for room, as it would for a card's bus: in this
/// process (cards/), or in the one that makes it for a program elsewhere (remote/).

#include <cstdint>

namespace rmem {

inline constexpr std::int64_t kLongestWaitForRoomNs = 2'000'000'000;

}  // namespace rmem
