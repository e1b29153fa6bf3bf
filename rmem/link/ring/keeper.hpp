// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Keeps a node while no program of it runs: a card applies what comes, whether or not anybody
/// looks.
///
/// It takes the node's own seat (rmem/ring/ring.hpp), runs the node's engine on link `ring` while
/// nobody else of the node does, and writes nothing. A program that comes goes on where the bank
/// is. On link `direct` the bank is everybody's: there the node only counts as present.
/// Thread safety: one thread at a time; the engine's thread is its own.
/// Errors: rank_taken when another process keeps the node; those of RingEngine.

#include "rmem/link/ring/engine.hpp"
#include "rmem/link/ring/engine_thread.hpp"
#include "rmem/link/ring/memory.hpp"
#include "rmem/ring/ring.hpp"

#include <memory>
#include <optional>

namespace rmem {

class RMEM_API NodeKeeper {
public:
    /// On a link of this host.
    NodeKeeper(std::shared_ptr<Ring> ring, unsigned node, const RingOptions& options);
    /// Looks at the ring's members now and then, in whose absence its engine may sleep: what a
    /// program of the node was killed in is sent. Some system calls.
    void look();

private:
    Membership member_;
    std::optional<RingEngine> engine_;
    std::optional<RingEngineThread> thread_;
};

}  // namespace rmem
