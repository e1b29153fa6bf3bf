// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One rank of ring-restarts: sends to and receives from all others while any of them may die and
/// come back.
///
/// Each message tells its sender's incarnation, and its number among that incarnation's messages to
/// this one. The rank fails unless, of each other rank,
///   - the messages of an incarnation come from number 0 on, each once, in order, intact;
///   - nothing comes of an incarnation that it was told the end of (BBP_EPEER of a receive), or
///     that is older than one it has heard;
///   - a new incarnation is heard only after BBP_EPEER;
///   - nothing comes that was meant for its own former incarnation.
/// A rank that all others are dead to has lost its node: it opens the ring again, as a new
/// incarnation.
/// Thread safety: one thread. Errors: `CheckFailed`.

#include "tests/support/programs/restart_record.hpp"

namespace rmem::test {

/// Runs until the record says that it may leave. The ring and the rank's place in it are the
/// environment's.
void live_as_rank(RestartRecord& record, std::uint64_t seed);

}  // namespace rmem::test
