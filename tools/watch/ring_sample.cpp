// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/ring_sample.hpp"

#include "rmem/base/check.hpp"

#include <array>

namespace tools {

const char* name_of(NodeState state) {
    constexpr std::array kNames = {"absent", "joining", "up", "stopped", "down", "left"};
    return kNames.at(static_cast<std::size_t>(state));
}

void RingSample::check() const {
    if (!rmem::is_checking()) return;
    RMEM_CHECK(ranks.size() == config.ranks && nodes.size() == config.nodes);
    for (const RankSample& rank : ranks) RMEM_CHECK(rank.node < nodes.size());
    for (const NodeSample& node : nodes) {
        if (!node.engine) continue;
        for (const PeerSample& peer : node.engine->peers) RMEM_CHECK(peer.node < nodes.size());
    }
}

}  // namespace tools
