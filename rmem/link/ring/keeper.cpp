// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/keeper.hpp"

#include "rmem/base/clock.hpp"

#include <cstdint>
#include <utility>

namespace rmem {

namespace {

constexpr std::int64_t kQuietNs = 10'000'000;

}  // namespace

NodeKeeper::NodeKeeper(std::shared_ptr<Ring> ring, unsigned node, const RingOptions& options)
    : member_(Membership::of_keeper(ring, node)) {
    if (ring->config().link != LinkKind::ring) return;
    engine_.emplace(member_, options.faults, options.check_writers);
    thread_.emplace(*ring, member_.rank(), *engine_);
}

void NodeKeeper::look() {
    if (!engine_) return;
    engine_->look_at_members();
    // Not beside a program that runs the engine: this process may lose its processor in it.
    if (now_ns() - engine_->ran_ns() > kQuietNs) engine_->run(RingEngine::Caller::helper);
}

}  // namespace rmem
