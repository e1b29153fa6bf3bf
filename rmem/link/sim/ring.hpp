// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A simulated ring as protocols see it; elsewhere these are Ring and Membership of
/// rmem/ring/ring.hpp.
///
/// Thread safety: the simulation's thread. Errors: Error(bad_rank, rank_taken) from the
/// constructor.

#include "rmem/sim/world.hpp"

#include <memory>

namespace rmem::sim {

class Ring {
public:
    explicit Ring(World& world) : world_(world) {}
    const RingConfig& config() const noexcept { return world_.ring(); }
    World& world() const noexcept { return world_; }

private:
    World& world_;
};

/// A rank's counters over all its incarnations.
struct RankSlot {
    Counters& protocol;
};

/// The running process as a rank of its world, until it is destroyed or the process is killed.
class RMEM_API Membership {
public:
    Membership(std::shared_ptr<Ring> ring, Member member);
    ~Membership();
    Membership(const Membership&) = delete;
    Membership& operator=(const Membership&) = delete;

    Ring& ring() const noexcept { return *ring_; }
    unsigned rank() const noexcept { return process_.rank(); }
    unsigned node() const noexcept { return process_.node(); }
    std::uint32_t incarnation() const noexcept { return incarnation_; }
    RankSlot slot() const noexcept { return slot_; }
    /// False once the process was killed: nothing may be written in its name.
    bool held() const noexcept;
    Process& process() const noexcept { return process_; }

private:
    std::shared_ptr<Ring> ring_;
    Process& process_;
    std::uint32_t incarnation_;
    RankSlot slot_;
};

}  // namespace rmem::sim
