// SPDX-License-Identifier: Apache-2.0
#pragma once

/// `rmem node --munet`: MU-Net for the programs of a node, beside the node's engine or without one.
///
/// Three ways, by the command line's and the environment's settings of the ring:
///   alone      no number of nodes is given: the programs of this host talk to each other
///   as a rank  on link direct or ring: the daemon is the first rank of its node
///   beside     on link udp: the same, in a thread of its own beside the engine
/// Thread safety: one thread; MunetThread's members are for the thread that made it.

#include "billboard/environment.hpp"
#include "ports/munet/daemon.hpp"
#include "rmem/base/helper_thread.hpp"
#include "rmem/ring/config.hpp"
#include "rmem/ring/ring.hpp"
#include "tools/settings.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace tools {

class MunetOptions {
public:
    void add_to(cli::App& command);

    bool wanted() const { return wanted_; }
    /// Of a daemon that says what happens by `say`.
    ports::munet::DaemonConfig config(const rmem::RingConfig& ring, unsigned node) const;

private:
    bool wanted_ = false, spin_ = false;
    std::string memory_ = "64M", socket_;
    unsigned senders_ = ports::munet::kDefaultSenders;
    unsigned endpoints_ = ports::munet::DriverConfig{}.user_endpoints;
};

using SayLine = std::function<void(const std::string&)>;

/// Alone, or as a rank of a ring without an engine of its own, until a signal comes.
void run_munet(const MunetOptions& options, const rmem::RingConfig& ring, unsigned node,
               bool is_alone, const SayLine& say);

/// Beside an engine that runs in another thread: begins when the node is a member.
class MunetThread {
public:
    MunetThread(const MunetOptions& options, std::shared_ptr<rmem::Ring> ring, SayLine say);
    ~MunetThread() { stop(); }
    MunetThread(const MunetThread&) = delete;
    MunetThread& operator=(const MunetThread&) = delete;

    /// Tells it to leave the ring, for which the engine must still run: until it has_ended.
    void stop();
    bool has_ended() const;

    bool has_failed() const;
    /// Throws what it failed of.
    void rethrow() const;

private:
    void run();

    const MunetOptions& options_;
    std::shared_ptr<rmem::Ring> ring_;
    SayLine say_;
    std::atomic<bool> stop_{false}, failed_{false}, ended_{false};
    std::exception_ptr failure_;
    rmem::HelperThread thread_;
};

}  // namespace tools
