// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node of this project (rmem/rmem.h), as a card.
///
/// Thread safety: one thread. Errors: std::runtime_error, with what rmem_last_error() says.

#include "rmem/rmem.h"
#include "tools/conform/card.hpp"

#include <functional>
#include <memory>

namespace tools::conform {

/// Opens a node, perhaps again and again; null with a code of failure.
using OpenNode = std::function<rmem_node*(int& code)>;

/// Throws what the opening said where that failed. Closes the node at its end.
std::unique_ptr<Card> card_of(OpenNode open, Reading reading = Reading::by_call);

}  // namespace tools::conform
