// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a killed rank has stored into its node's bank and not sent: it is sent in its name. On a
/// card what is in the memory was sent.
///
/// A writer says while it stores, by its Applying (rmem/ring/bank.hpp), where, and where its log
/// ended before. What it has not logged from there on is taken from the bank, as it is there now.
/// So it is sent once, unless somebody else writes the same words at that moment; and what was
/// killed before it was stored was never written.
///
/// The next program of that rank does so; before that, the node's engine, or its keeper's, that
/// finds the rank dead, before it says so to others.
/// Thread safety: any process; the rank's byte lock is held, so nobody else appends to its log.
/// Progress: waits for nothing but who is just storing a write. It takes system calls.
/// Trust: place and log are bounded by the bank and the log before they are used.

#include "rmem/ring/ring.hpp"
#include "rmem/ring/write_log.hpp"

namespace rmem {

/// Of a former process of this rank; `log`: the rank's, whose byte lock the caller has. False:
/// without room in it for all; it goes on there the next time.
[[nodiscard]] RMEM_API bool send_unsent(const Ring& ring, unsigned rank, LogWriter& log);

/// Of a rank of this node that was found dead. False: as above. True, too, where a new process of
/// that rank has come: it does so itself.
[[nodiscard]] RMEM_API bool send_unsent_of_dead(const Ring& ring, unsigned rank) noexcept;

}  // namespace rmem
