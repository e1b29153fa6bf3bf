// SPDX-License-Identifier: Apache-2.0
#include "simulator/hunt/seed_text.hpp"

#include "rmem/error.hpp"
#include "rmem/ring/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace simulator {

namespace {

rmem::Error bad(std::string_view text) {
    return rmem::Error(
        rmem::Errc::invalid_argument,
        fmt::format("'{}' is no seed of the hunt; give a number, or what a failing hunt "
                    "has printed: <seed>:messages=<n>,faults=<i>.<j>",
                    text));
}

std::vector<unsigned> parse_places(std::string_view list, unsigned most) {
    std::vector<unsigned> places;
    while (!list.empty() && list != "none") {
        const std::size_t dot = std::min(list.find('.'), list.size());
        places.push_back(
            rmem::parse_unsigned("a fault's place", std::string(list.substr(0, dot)), most));
        list.remove_prefix(std::min(dot + 1, list.size()));
    }
    return places;
}

}  // namespace

SeedText SeedText::parse(std::string_view text, unsigned most_faults) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    SeedText result;
    for (const char c : text.substr(0, colon)) {
        if (c < '0' || c > '9' || result.seed > (UINT64_MAX - 9) / 10) throw bad(text);
        result.seed = result.seed * 10 + static_cast<unsigned>(c - '0');
    }
    if (colon == 0) throw bad(text);
    for (std::string_view rest = text.substr(colon); !rest.empty();) {
        rest.remove_prefix(1);
        const std::size_t end = std::min(rest.find(','), rest.size());
        const std::string_view item = rest.substr(0, end);
        rest.remove_prefix(end);
        if (item.starts_with("messages=")) {
            result.messages =
                rmem::parse_unsigned("messages", std::string(item.substr(9)), 1'000'000);
        } else if (item.starts_with("faults=")) {
            result.faults = parse_places(item.substr(7), most_faults - 1);
            if (!std::is_sorted(result.faults->begin(), result.faults->end())) throw bad(text);
        } else {
            throw bad(text);
        }
    }
    return result;
}

std::string SeedText::text() const {
    std::string text = fmt::format("{}", seed);
    if (messages) text += fmt::format(":messages={}", *messages);
    if (!faults) return text;
    text += messages ? "," : ":";
    return text +
           (faults->empty() ? "faults=none" : fmt::format("faults={}", fmt::join(*faults, ".")));
}

}  // namespace simulator
