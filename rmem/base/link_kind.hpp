// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The links by name. What each is: rmem/ring/config.hpp, docs/guide/choosing-link-and-layout.md.

#include "rmem/error.hpp"

#include <cstdint>
#include <string>

namespace rmem {

/// How writes travel between banks.
enum class LinkKind : std::uint32_t { direct = 1, ring = 2, udp = 3, sim = 4, fabric = 5 };

/// Whether the other nodes are elsewhere.
constexpr bool is_remote(LinkKind link) noexcept {
    return link == LinkKind::udp || link == LinkKind::fabric;
}

RMEM_API const char* name_of(LinkKind link) noexcept;
/// Whether there is a link of that number, as a segment may have another.
[[nodiscard]] bool is_known(LinkKind link) noexcept;
RMEM_API LinkKind parse_link(const std::string& text);

}  // namespace rmem
