// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Of two members of a ring that disagree on who is in, one goes, and both come to the same answer
/// (docs/design/udp-link.md: Disagreement).
///
/// It depends on what both know of all members' views. Thread safety: the core's.

#include "rmem/link/udp/protocol/core_own.hpp"

namespace rmem::udp {

enum class Judgement : std::uint8_t { both_stay, this_one_goes, the_other_goes };

/// This node of late.
struct Lately {
    bool is_new = false;        ///< a member for less than a dead time-out
    bool has_returned = false;  ///< it was away until not long ago
};

/// Of this node and another member of its ring, which has said that; notes its view.
[[nodiscard]] Judgement judge(CoreOwn& own, const Header& header, const Status& status,
                              const Lately& lately) noexcept;

}  // namespace rmem::udp
