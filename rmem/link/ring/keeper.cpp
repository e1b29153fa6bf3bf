// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/keeper.hpp"

#include <utility>

namespace rmem {

NodeKeeper::NodeKeeper(std::shared_ptr<Ring> ring, unsigned node, const RingOptions& options)
    : member_(Membership::of_keeper(ring, node)) {
    if (ring->config().link != LinkKind::ring) return;
    engine_.emplace(member_, options.faults, options.check_writers);
    thread_.emplace(*ring, member_.rank(), *engine_);
}

void NodeKeeper::look() {
    if (!engine_) return;
    engine_->look_at_members();
    engine_->run(RingEngine::Caller::helper);
}

}  // namespace rmem
