// SPDX-License-Identifier: Apache-2.0
#include "tools/conform/vendor_cards.hpp"

#include <vector>

namespace tools::conform {

// RMEM_CARDS is CARD(rfm2g) CARD(scgt) and so on, by tools/CMakeLists.txt.
#define CARD(library) extern const VendorCard library##_card;
RMEM_CARDS
#undef CARD

std::span<const VendorCard> vendor_cards() {
#define CARD(library) library##_card,
    static const std::vector<VendorCard> cards = {RMEM_CARDS};
#undef CARD
    return cards;
}

}  // namespace tools::conform
