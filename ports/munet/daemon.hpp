// SPDX-License-Identifier: Apache-2.0
#pragma once

/// MU-Net at a node: relay, driver and, where the node belongs to a ring, network, with a way of waiting.
///
///     Daemon daemon({.driver = {.path = path}}, nullptr);
///     while (!stopped) daemon.run_for(1'000'000);
///
/// Waiting: it polls as long as something moves and a while longer (not at all where endpoints and daemon are more than
/// the processors), then yields for a millisecond, then sleeps until a program rings, a frame comes or somebody connects.
/// Programs pay one predicted branch for that.
/// Thread safety: one thread. Progress: run_for() returns after about that long, whatever others do.
/// Errors: the constructor throws rmem::Error.

#include "billboard/wake_fd.hpp"
#include "ports/munet/counter_board.hpp"
#include "ports/munet/driver.hpp"
#include "ports/munet/network.hpp"
#include "ports/munet/relay.hpp"

#include <cstdint>
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
    /// `ring`: this node's rank of its ring; null: the node is alone.
    Daemon(const DaemonConfig& config, std::unique_ptr<billboard::Endpoint> ring);
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

    bool keep(std::int64_t now);
    void show_in_ring() noexcept;
    void idle(std::int64_t now);
    void rest();
    bool has_work_before_sleep();

    const DaemonConfig config_;
    std::unique_ptr<billboard::Endpoint> ring_;
    CounterBoard board_;
    std::unique_ptr<Network> network_;
    Relay relay_;
    Driver driver_;
    std::unique_ptr<billboard::WakeFd> wake_fd_;
    const bool has_membarrier_;
    const unsigned processors_;
    unsigned idle_turns_ = 0, turns_ = 0;
    std::int64_t idle_since_ = 0, next_check_ = 0;
};

}  // namespace ports::munet
