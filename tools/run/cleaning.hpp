// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Removing what dead processes have left in /dev/shm, and nothing else.
///
/// Order between processes: removing happens under the ring's own lock, without which nobody joins;
/// so nothing that a live process takes part in is ever removed. Nor are the counters of a live
/// MU-Net daemon.

#include <string>
#include <vector>

namespace tools {

/// The treatment of a ring that was made to stay (`rmem make`).
enum class Staying { keep, remove };

struct Cleaned {
    std::string name;
    bool removed = false;  ///< in a dry run: would be
    std::string why;       ///< a clause: "nobody is left in it", "2 of 4 ranks are alive"
};

/// Takes away the addresses on link fabric of nodes whose ring is gone: those that were killed
/// could not.
void forget_addresses(const std::vector<std::string>& rings);

/// Whether a ring of that name is there that its last member's leaving should have removed.
[[nodiscard]] bool is_left_over(const std::string& name);

/// `force` also removes what is no ring of any version, if nobody holds a lock on it.
Cleaned clean_ring(const std::string& name, bool force, bool dry_run, Staying staying);

/// The counters of a MU-Net daemon, by their name (ports/munet/counter_board.hpp).
Cleaned clean_munet(const std::string& name, bool dry_run);

}  // namespace tools
