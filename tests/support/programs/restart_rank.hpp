// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One rank of ring-restarts: sends to and receives from all others while any of them may die and
/// come back.
///
/// Each message says of which life of its sender it is, and its number in what that life has sent
/// to this one. The rank fails unless, of each other rank,
///   - the messages of a life come from number 0 on, each once, in order, intact;
///   - nothing comes of a life that it was told the end of (BBP_EPEER of a receive), or that is
///     older than one it has heard;
///   - a new life is heard only after BBP_EPEER;
///   - nothing comes that was meant for its own former self.
/// A rank that all others are dead to has lost its node: it opens the ring again, as a new life.
/// Thread safety: one thread. Errors: `CheckFailed`.

#include "tests/support/programs/restart_record.hpp"

namespace rmem::test {

/// Lives until the record says that it may leave. The ring and the rank's place in it are the
/// environment's.
void live_as_rank(RestartRecord& record, std::uint64_t seed);

}  // namespace rmem::test
