// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node of this project (rmem/rmem.h), as a card.
///
/// Thread safety: one thread. Errors: std::runtime_error, with what rmem_last_error() says.

#include "rmem/rmem.h"
#include "tools/conform/card.hpp"

#include <memory>

namespace tools::conform {

/// Throws what the opening said where `code` is one of failure. Closes the node at its end.
std::unique_ptr<Card> card_of(rmem_node* node, int code, Reading reading = Reading::by_call);

}  // namespace tools::conform
