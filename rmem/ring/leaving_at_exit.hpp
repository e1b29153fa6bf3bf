// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A program that ends by exit(), or returns from main, and has not closed its rings: it leaves
/// them then, so that the last one removes what is theirs in /dev/shm.
///
/// Thread safety: any thread. Errors: std::bad_alloc.

namespace rmem {

class Ring;

void leave_at_exit(Ring& ring);
/// The ring is about to go.
void forget_at_exit(Ring& ring) noexcept;

}  // namespace rmem
