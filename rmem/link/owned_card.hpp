// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A card whose writes are looked up first: whether the bytes are another's (rmem/ring/owners.hpp).
///
/// What is another's is reported, on stderr and in the ring's list, and written all the same; where
/// owners are enforced it is not written, and the call throws Error(invalid_argument). Then what a
/// write has of a word before the first word of another's may be written.
/// Stores that are captured throw nothing: the store is left out. What rmem-cc and `scan` find is
/// in the own bank already, and goes to nobody.
/// Contract and thread safety: rmem/link/card.hpp.

#include "rmem/link/card.hpp"

#include <memory>

namespace rmem {

/// The card, or where its ring, which is shared memory, looks after owners one that does.
[[nodiscard]] std::unique_ptr<Card> looked_after(std::unique_ptr<Card> card);

}  // namespace rmem
