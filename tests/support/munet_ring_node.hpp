// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node of MU-Net that is a rank of a ring: its daemon and its programs at once, so that all of
/// it runs where processes are simulated too.
///
/// Thread safety: one thread of the test; libraries' threads may share the process endpoint.

#include "billboard/process/process_endpoint.hpp"
#include "ports/munet/network.hpp"
#include "tests/support/conformance.hpp"
#include "tests/support/munet_node.hpp"

#include <sched.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace rmem::test {

/// A node of the ring that this rank is in.
class RingNode final : public ports::munet::Edge {
public:
    explicit RingNode(const Rank& me, unsigned senders = 4)
        : nodes_(static_cast<unsigned>(me.ranks)),
          node_(static_cast<unsigned>(me.rank)),
          senders_(senders),
          network_(process_->endpoint(), nodes_),
          relay({.node = node_, .nodes = nodes_, .chunk = network_.chunk()}, *this) {}

    MunetEndpoint& create(std::size_t send = 65536, std::size_t receive = 65536) {
        endpoints.push_back(std::make_unique<MunetEndpoint>(
            relay, node_, munet_geometry(send, receive, senders_), 1, [this] { step(); }));
        return *endpoints.back();
    }
    void step() {
        if (++steps_ % 256 == 0) look_for_the_dead();
        if (turn()) return;
        if (test::is_simulated()) return rest(std::chrono::microseconds(1));
        ::sched_yield();
    }
    void look_for_the_dead() {
        const auto held = process_->hold();
        network_.check(relay);
    }
    bool turn() {
        const auto held = process_->hold();
        const bool moved = network_.deliver_to(relay);
        return relay.turn() || moved;
    }
    void step_until(const std::function<bool()>& holds, const char* what) {
        const std::int64_t end = clock_ns() + kLong;
        while (!holds()) {
            step();
            check(clock_ns() < end, what);
        }
    }
    Sent send(unsigned node, std::span<const std::byte> head,
              std::span<const std::byte> data) override {
        return network_.send(node, head, data);
    }
    void wake(unsigned) noexcept override {}

private:
    std::shared_ptr<billboard::ProcessEndpoint> process_ = billboard::ProcessEndpoint::open();
    unsigned nodes_, node_, senders_, steps_ = 0;
    ports::munet::Network network_;

public:
    ports::munet::Relay relay;
    std::vector<std::unique_ptr<MunetEndpoint>> endpoints;
};

}  // namespace rmem::test
