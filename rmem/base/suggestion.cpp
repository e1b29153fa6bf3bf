// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/suggestion.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rmem {

unsigned edits_between(std::string_view a, std::string_view b) {
    const std::size_t width = b.size() + 1;
    // Row i: from the first i letters of a to each beginning of b.
    std::vector<unsigned> rows((a.size() + 1) * width);
    const auto at = [&](std::size_t i, std::size_t j) -> unsigned& { return rows[i * width + j]; };
    for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = static_cast<unsigned>(i);
    for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = static_cast<unsigned>(j);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const unsigned replaced = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
            at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replaced});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
            }
        }
    }
    return at(a.size(), b.size());
}

std::string nearest_name(std::string_view written, const std::vector<std::string>& names,
                         unsigned most) {
    std::string nearest;
    unsigned least = most + 1;
    for (const std::string& name : names) {
        const unsigned edits = edits_between(written, name);
        if (edits >= least || 2 * edits >= written.size()) continue;
        least = edits;
        nearest = name;
    }
    return nearest;
}

std::string did_you_mean(std::string_view written, const std::vector<std::string>& names) {
    const std::string nearest = nearest_name(written, names);
    return nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest);
}

}  // namespace rmem
