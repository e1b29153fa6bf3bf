// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/segment_names.hpp"

#include "rmem/base/suggestion.hpp"
#include "rmem/ring/segment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace rmem {

std::string ring_of(const std::string& name) {
    return name.substr(0, name.rfind('@'));
}

Error no_such_ring(const std::string& name) {
    constexpr std::size_t kMaxNamed = 8;
    const std::string ring = ring_of(name);
    std::vector<std::string> here = Segment::list();
    if (ring != name && std::find(here.begin(), here.end(), ring) != here.end()) {
        return {Errc::no_such_ring,
                fmt::format("ring '{}' is one segment on this host, not one for each node: call it "
                            "'{}', and give the node by --node",
                            ring, ring)};
    }
    const std::string meant = did_you_mean(name, here);
    const std::size_t all = here.size();
    here.resize(std::min(all, kMaxNamed));
    return {
        Errc::no_such_ring,
        fmt::format("no ring '{}' on this host{}; {}; start one with `rmem run --ring {} …`", name,
                    meant,
                    here.empty() ? std::string("it has none")
                                 : fmt::format("here {}: {}{}", all == 1 ? "is" : "are",
                                               fmt::join(here, ", "), all > kMaxNamed ? ", …" : ""),
                    ring)};
}

std::string segment_named(const std::string& name) {
    std::vector<std::string> nodes;
    for (const std::string& found : Segment::list()) {
        if (found == name) return name;
        if (ring_of(found) == name) nodes.push_back(found);
    }
    if (nodes.size() > 1) {
        throw Error(Errc::bad_rank,
                    fmt::format("this host has {} nodes of ring '{}'; say which one: {}",
                                nodes.size(), name, fmt::join(nodes, ", ")));
    }
    return nodes.empty() ? name : nodes.front();
}

}  // namespace rmem
