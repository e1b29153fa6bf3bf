// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Taking a rank into its node on the `ring` link: what the bank holds, and from where the logs
/// count.
///
/// The first rank of a node (or the first after all of it died) copies the bank of a live node, if
/// there is one, and goes on from the positions in the logs which that bank had reached before the
/// copy. The writes between those positions and the copy are applied twice, which changes nothing
/// in the end; the engine is run up to date before the program sees the bank. A further rank goes
/// on where the others of its node are. Where no node is alive, one that was there before goes on
/// from its own bank, and a new one copies the bank of one that was.
///
/// Invariants: what a rank delivers while a bank is being copied may be missing in it, so it has of
///   a log what it has applied, and is nobody's source, until the engine has read the logs.
/// Thread safety: the caller holds the node's engine (rmem/link/ring/engine_lock.hpp).

#include "rmem/ring/ring.hpp"

#include <cstdint>

namespace rmem {

/// Sets the node's `applied` and `present` for this rank. True when the node was taken in again:
/// then the engine applies what all logs have above `applied`, delivered or not.
[[nodiscard]] RMEM_API bool take_in(Ring& ring, unsigned node, unsigned rank);
/// The bank is up to date: the rank is resident in the node.
RMEM_API void settle_in(Ring& ring, unsigned node, unsigned rank,
                        std::uint32_t incarnation) noexcept;

/// Whether anybody who has joined the node is alive; Ring::is_present() counts one that still
/// copies a bank, too. A system call for each that ever joined, up to the first that does.
[[nodiscard]] RMEM_API bool is_node_alive(const Ring& ring, unsigned node) noexcept;

/// While nobody takes part, a bank stays as it was when the last of its node left. The hardware's
/// cards go on applying: this gives each bank what the one has that has applied most. The caller
/// holds the ring's life-cycle lock, and is alone.
RMEM_API void level_banks(Ring& ring);

/// The rank leaves; the node stays in the ring while others of it live.
RMEM_API void take_out(Ring& ring, unsigned node, unsigned rank) noexcept;

}  // namespace rmem
