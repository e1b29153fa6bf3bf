// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The programs of the hunt on MPI's messages: each rank sends, receives, cancels, peeks, claims
/// and makes progress at random until enough has been sent, then receives what is still unexpected
/// until the model misses nothing, cancels what still waits, and leaves.
///
/// Nothing waits forever: a rank that gets nowhere for kSettleNs leaves, and the model says what is
/// missing.
/// Thread safety: none; one world's programs.

#include "rmem/sim/process.hpp"
#include "simulator/hunt/findings.hpp"
#include "simulator/mpi_hunt/model.hpp"
#include "simulator/mpi_hunt/tap.hpp"

#include <array>
#include <cstdint>
#include <functional>

namespace simulator::mpi {

class Traffic {
public:
    static constexpr std::int64_t kSettleNs = 1'000'000'000;  ///< virtual

    Traffic(const Scenario& scenario, Model& model, Findings& findings, DoMischief mischief);

    /// The program of a process of the rank.
    void run(rmem::sim::Process& process);
    /// It has died.
    void dies(unsigned rank) { incarnations_.at(rank) = nullptr; }
    /// Lets a rank make no progress until that time.
    void deafen(unsigned rank, std::int64_t until_ns) { deaf_until_ns_.at(rank) = until_ns; }

    /// Called when another message was sent.
    std::function<void()> on_sent;
    /// While some faults are still to come, traffic goes on.
    std::function<bool()> more_to_come;

private:
    struct Incarnation;

    void act(Incarnation& me);
    void send(Incarnation& me);
    void receive(Incarnation& me);
    void post(Incarnation& me, Waiting& waiting);
    void cancel(Incarnation& me);
    void peek(Incarnation& me);
    void end_claim(Incarnation& me);
    bool progress(Incarnation& me);
    void settle(Incarnation& me);
    void receive_unexpected(Incarnation& me);
    void leave(Incarnation& me);
    std::size_t some_size(Incarnation& me) const;
    std::uint64_t some_tag(Incarnation& me, bool untagged) const;
    bool enough() const;
    bool is_quiet() const;
    void check_credit();
    void note_coverage(const Incarnation& me);

    const Scenario& scenario_;
    Model& model_;
    Findings& findings_;
    DoMischief mischief_;
    std::array<Incarnation*, Model::kRanks> incarnations_{};
    std::array<std::int64_t, Model::kRanks> deaf_until_ns_{};
    unsigned finished_ = 0;
    std::int64_t settle_until_ns_ = 0;
};

}  // namespace simulator::mpi
