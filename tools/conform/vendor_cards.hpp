// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Cards by their vendors' interfaces and nothing else: those whose library this build has.
///
/// Each is in a file of its own, <library>_card.cpp, since the vendors' headers do not know of each
/// other.
///
/// Thread safety: one thread; of the cards likewise.
/// Errors: Error(system) with the call, and what the vendor's library says of it.

#include "tools/conform/card.hpp"

#include <memory>
#include <span>

namespace conform {

struct VendorCard {
    const char* option;  ///< of the command, with which of the host's cards it is
    const char* meaning;
    std::unique_ptr<Card> (*open)(const std::string& which, Reading reading);
};

std::span<const VendorCard> vendor_cards();

// ---- What they are opened by, in the file of each

/// The 5565 family, by rfm2g_api.h. `device` is as RFM2gOpen takes it: "/dev/rfm2g0".
std::unique_ptr<Card> open_rfm2g(const std::string& device, Reading reading);
/// GT100 and GT200, by scgtapi.h.
std::unique_ptr<Card> open_scgt(const std::string& unit, Reading reading);
/// SC150, by scrplus.h. A process has one.
std::unique_ptr<Card> open_scramnet_plus(const std::string& unit, Reading reading);

}  // namespace conform
