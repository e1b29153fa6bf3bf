// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A card of the 5565 family, by its vendor's interface (rfm2g_api.h) and nothing else.
///
/// Words are poked and peeked, blocks are RFM2gWrite and RFM2gRead, an interrupt is the first of
/// the four. Read by a pointer, the memory is what RFM2gUserMemoryBytes gives.
///
/// Thread safety: one thread.
/// Errors: Error(system) with the call and what RFM2gErrorMsg says of it.

#include "tools/conform/card.hpp"

#include <memory>

namespace conform {

/// `device` is as RFM2gOpen takes it: "/dev/rfm2g0".
std::unique_ptr<Card> open_rfm2g(const std::string& device, Reading reading);

}  // namespace conform
