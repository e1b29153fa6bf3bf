// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/link_kind.hpp"

#include "rmem/base/suggestion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace rmem {

namespace {

struct LinkName {
    LinkKind link;
    const char* name;
};

constexpr std::array<LinkName, 5> kLinkNames = {{
    {LinkKind::direct, "direct"},
    {LinkKind::ring, "ring"},
    {LinkKind::udp, "udp"},
    {LinkKind::fabric, "fabric"},
    {LinkKind::sim, "sim"},
}};

}  // namespace

const char* name_of(LinkKind link) noexcept {
    for (const auto& entry : kLinkNames) {
        if (entry.link == link) return entry.name;
    }
    return "unknown";
}

bool is_known(LinkKind link) noexcept {
    return std::any_of(kLinkNames.begin(), kLinkNames.end(),
                       [&](const LinkName& entry) { return entry.link == link; });
}

LinkKind parse_link(const std::string& text) {
    for (const auto& entry : kLinkNames) {
        if (text == entry.name) return entry.link;
    }
    std::vector<std::string> names;
    for (const auto& entry : kLinkNames) names.emplace_back(entry.name);
    throw Error(Errc::unknown_link,
                fmt::format("there is no link '{}' (RMEM_LINK){}; give direct, ring, udp or fabric",
                            text, did_you_mean(text, names)));
}

}  // namespace rmem
