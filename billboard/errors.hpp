// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The failures of bbp_ calls: those of all C calls (rmem/base/failures.hpp), and the sentences
/// that several calls say.
/// Thread safety: a sentence belongs to the calling thread.

#include "billboard/bbp.h"
#include "rmem/base/failures.hpp"

#include <span>

namespace billboard {

using rmem::fail;
using rmem::guarded;
using rmem::last_error;

/// BBP_ETIMEDOUT, with the awaited event: a message of `src`, room that `dests` must make, the
/// arrival of `missing` (none: not known).
[[nodiscard, gnu::cold]] RMEM_API int receive_timed_out(int src);
[[nodiscard, gnu::cold]] RMEM_API int send_timed_out(std::span<const int> dests);
[[nodiscard, gnu::cold]] RMEM_API int barrier_timed_out(std::span<const int> missing);

}  // namespace billboard
