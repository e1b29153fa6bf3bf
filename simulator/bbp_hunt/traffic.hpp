// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The programs of a hunt: each rank sends, multicasts, receives, views, composes and polls at
/// random until enough has been posted, then receives until nothing is missing any more, and
/// leaves.
///
/// No call waits forever: each is a try or has a deadline, so a rank that gets nowhere shows as
/// messages that are missing at the end.
/// Thread safety: none; one world's programs.

#include "billboard/endpoint.hpp"
#include "rmem/base/random.hpp"
#include "simulator/bbp_hunt/ledger.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace simulator::bbp {

/// How a rank gets its endpoint; tests of the hunt plant faulty ones.
using OpenEndpoint = std::function<std::unique_ptr<billboard::Endpoint>()>;

class Traffic {
public:
    static constexpr unsigned kMessagesABarrier = 400;
    static constexpr std::int64_t kSettleNs =
        400'000'000;  ///< virtual; then messages count as lost

    Traffic(const Scenario& scenario, Ledger& ledger, Findings& findings, OpenEndpoint open);

    /// The program of a process of the rank.
    void run(rmem::sim::Process& process);

    /// Called when another message was posted.
    std::function<void()> on_posted;
    /// While some faults are still to come, traffic goes on.
    std::function<bool()> more_to_come;
    /// Lets a rank receive nothing until that time.
    void starve(unsigned rank, std::int64_t until_ns) { ranks_[rank].starved_until_ns = until_ns; }

    unsigned finished() const { return finished_; }

private:
    struct RankState {
        std::int64_t starved_until_ns = 0;
        unsigned barriers = 0;  ///< that it has come to
    };
    struct Me;

    void send(Me& me);
    void multicast(Me& me);
    void compose(Me& me);
    void receive(Me& me, bool patient);
    void look(Me& me);
    void view(Me& me);
    void act(Me& me);
    void barrier(Me& me);
    unsigned barriers_due() const;
    void settle(Me& me);
    static std::size_t free_buffers(Me& me);
    void check_buffers(Me& me, std::size_t buffers);
    void note_error(Me& me, int peer, int code, const char* call);
    void posted(Me& me, std::span<const int> dests, std::uint64_t number, int code);
    std::size_t some_size(Me& me) const;
    bool enough() const;

    const Scenario& scenario_;
    Ledger& ledger_;
    Findings& findings_;
    OpenEndpoint open_;
    std::size_t partition_;
    std::array<RankState, Scenario::kRanks> ranks_{};
    std::array<std::vector<std::byte>, Scenario::kRanks> out_, in_;
    unsigned opened_ = 0;
    unsigned finished_ = 0;
    std::int64_t settle_until_ns_ = 0;
};

}  // namespace simulator::bbp
