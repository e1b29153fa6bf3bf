// SPDX-License-Identifier: Apache-2.0
#pragma once

/// MU-Net at a node: relay, driver and, where the node belongs to a ring, network, with a way of
/// waiting.
///
///     Daemon daemon({.driver = {.path = path}}, nullptr);
///     while (!stopped) daemon.run_for(1'000'000);
///
/// Waiting: it polls as long as something moves and a while longer (not at all where endpoints and
/// daemon are more than the processors), then yields for kYieldNs, then sleeps until a program
/// rings, a frame comes or a program connects. Programs pay one predicted branch for that.
///
/// Where the others of a ring drop the node (it was silent for too long: starved, or cut off),
/// pairings with their endpoints end, as when they die, and the daemon takes part again by a new
/// rank. Its programs and their endpoints stay.
/// Thread safety: one thread. Progress: run_for() returns after about that long, whatever others
/// do; only taking part again lasts as long as opening the ring does.
/// Errors: the constructor throws rmem::Error, and so does run_for() where taking part again fails.

#include "billboard/core/wake_fd.hpp"
#include "ports/gamma/non_member.hpp"
#include "ports/munet/counter_board.hpp"
#include "ports/munet/driver.hpp"
#include "ports/munet/network.hpp"
#include "ports/munet/relay.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace ports::munet {

struct DaemonConfig {
    DriverConfig driver;
    std::string board{};  ///< name of the counters' board; empty: none that others could read
    bool spin = false;    ///< never sleeps, never yields
};

class RMEM_API Daemon final : private Edge {
public:
    using Join = std::function<std::unique_ptr<billboard::Endpoint>()>;

    /// `join` opens this node's rank of its ring, and waits for no other; null: the node is alone.
    Daemon(const DaemonConfig& config, Join join);
    ~Daemon();
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;

    void run_for(std::int64_t ns);
    /// One look at everything; whether anything moved.
    bool turn();

    Relay& relay() noexcept { return relay_; }
    const Driver& driver() const noexcept { return driver_; }
    const CounterBoard& board() const noexcept { return board_; }

private:
    Sent send(unsigned node, std::span<const std::byte> head,
              std::span<const std::byte> data) override;
    void wake(unsigned endpoint) noexcept override;

    /// What the daemon has of its ring.
    struct Part {
        Part(std::unique_ptr<billboard::Endpoint> opened, unsigned nodes);

        std::unique_ptr<billboard::Endpoint> rank;
        Network network;
        gamma::NonMember non_member;
        std::unique_ptr<billboard::WakeFd> wake_fd;  ///< null in a simulation
    };

    bool keep(std::int64_t now);
    void look_at_ring();
    void show_in_ring() noexcept;
    void idle(std::int64_t now);
    void rest();
    [[nodiscard]] bool has_work_before_sleep();

    const DaemonConfig config_;
    const Join join_;
    std::unique_ptr<Part> ring_;  ///< null: the node is alone
    CounterBoard board_;
    Relay relay_;
    Driver driver_;
    const bool has_fences_;
    const unsigned processors_;
    unsigned idle_turns_ = 0, turns_ = 0, rejoined_ = 0;
    std::int64_t idle_since_ = 0, next_check_ = 0;
};

}  // namespace ports::munet
