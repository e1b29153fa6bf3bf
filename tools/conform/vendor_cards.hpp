// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Cards by their vendors' interfaces and nothing else: those whose library this build has.
///
/// Each is the constant <library>_card in a file of its own, <library>_card.cpp, since the vendors'
/// headers do not know of each other.
///
/// Thread safety: one thread; of the cards likewise.
/// Errors: Error(system) with the call, and what the vendor's library says of it.

#include "tools/conform/card.hpp"

#include <memory>
#include <span>

namespace tools::conform {

struct VendorCard {
    const char* option;   ///< of the command, with which of the host's cards it is
    const char* meaning;  ///< ends with an example of one
    std::unique_ptr<Card> (*open)(const std::string& which, Reading reading);
};

std::span<const VendorCard> vendor_cards();

}  // namespace tools::conform
