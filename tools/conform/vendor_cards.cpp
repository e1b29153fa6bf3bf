// SPDX-License-Identifier: Apache-2.0
#include "tools/conform/vendor_cards.hpp"

#include <vector>

namespace conform {

std::span<const VendorCard> vendor_cards() {
    static const std::vector<VendorCard> cards = {
#ifdef RMEM_WITH_RFM2G
        {"--rfm2g", "An RFM2g card: its device, as RFM2gOpen takes it", open_rfm2g},
#endif
#ifdef RMEM_WITH_SCGT
        {"--scgt", "A SCRAMNet GT card: its unit, as scgtOpen takes it", open_scgt},
#endif
#ifdef RMEM_WITH_SCRAMNET_PLUS
        {"--scramnet", "A SCRAMNet+ card: its unit, as sp_scram_init takes it", open_scramnet_plus},
#endif
    };
    return cards;
}

}  // namespace conform
