// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The same failure with less: fewer messages and faults, found by leaving out.

#include <cstddef>
#include <numeric>
#include <vector>

namespace simulator {

/// `fails(scenario)` runs it. Scenarios have messages, faults, kept, with_messages() and with_faults().
template <class Scenario, class Fails>
Scenario shrunk(const Scenario& failing, Fails fails) {
    Scenario best = failing;
    for (unsigned count = best.messages / 2; count > 0; count /= 2) {
        if (const Scenario less = best.with_messages(best.messages - count); fails(less))
            best = less;
    }
    std::vector<unsigned> places(best.faults.size());
    if (best.kept) {
        places = *best.kept;
    } else {
        std::iota(places.begin(), places.end(), 0U);
    }
    for (std::size_t i = places.size(); i-- > 0;) {
        std::vector<unsigned> fewer = places;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        if (const Scenario less = best.with_faults(fewer); fails(less)) {
            best = less;
            places = fewer;
        }
    }
    return best;
}

}  // namespace simulator
