// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The hosts of a scenario, the network between them, and virtual time: their actions go to the
/// trace and are checked against the ledger. The faults are the hunt's
/// (simulator/udp_hunt/hunt.cpp).
///
///     world.start(node); world.run_for(ns); …
///
/// Thread safety: none. Equal scenarios and calls give equal traces. Units: nanoseconds of virtual
/// time.

#include "rmem/base/check.hpp"
#include "rmem/base/random.hpp"
#include "simulator/udp_hunt/host.hpp"
#include "simulator/udp_hunt/hunt.hpp"
#include "simulator/udp_hunt/ledger.hpp"
#include "simulator/udp_hunt/trace.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace simulator::udp {

/// A datagram that an attacker has kept.
struct Recorded {
    unsigned from = 0;
    std::uint64_t incarnation = 0;
    std::vector<std::byte> bytes;
};

class World {
public:
    static constexpr std::size_t kMaxRecorded = 2000;

    /// All three outlive it. No host is up.
    World(const Scenario& scenario, const HuntOptions& options, Findings& findings);

    std::int64_t now() const noexcept { return now_; }
    void run_for(std::int64_t span_ns);
    /// Not before now().
    void at(std::int64_t time_ns, std::function<void()> what) {
        RMEM_CHECK(time_ns >= now_);
        timers_.emplace(time_ns, std::move(what));
    }
    /// Calls passed to at() that are not due yet happen now.
    void hurry();

    Host& host(unsigned node) { return *hosts_[node]; }
    Network& network() noexcept { return network_; }
    Ledger& ledger() noexcept { return ledger_; }
    Trace& trace() noexcept { return trace_; }
    /// If it is not up.
    void start(unsigned node);

    /// All of them that are up are members of one ring, with no other's view, and have all of each
    /// other.
    bool is_whole(std::uint32_t nodes_as_bits = ~0U) const;
    /// How often each node was dropped, and how often members were given up.
    std::uint64_t drops(unsigned node) const { return drops_[node]; }
    const std::vector<std::uint64_t>& all_drops() const noexcept { return drops_; }
    std::uint64_t left() const noexcept { return members_left_; }

    /// Some of the sent datagrams, from the beginning on.
    const std::vector<Recorded>& recorded() const noexcept { return recorded_; }
    /// Its incarnation is that of a node that is up.
    bool is_of_now(const Recorded& recorded) const;
    /// All nodes hear it.
    void play(const Recorded& recorded);
    /// All banks are as they have to be then. `nothing_stopped`: no host has.
    void check_banks(bool nothing_stopped);
    std::string describe() const;
    void collect_coverage();

    bool is_recorded = true;  ///< the sent datagrams
    bool in_trouble = false;  ///< faults are met: a node that joins now joins in traffic

private:
    // The hosts' events
    void on_sent(unsigned node, std::span<const std::byte> datagram);
    void record(unsigned node, std::span<const std::byte> datagram);
    bool on_applied(unsigned node, unsigned origin, const rmem::udp::Batch& batch);
    void on_changed(unsigned node, const char* what, unsigned other);

    std::int64_t due_ns() const;
    void act();
    void deliver();
    void check_windows();

    const Scenario& scenario_;
    const HuntOptions& options_;
    Findings& findings_;
    Trace trace_;
    Ledger ledger_;
    Network network_;
    rmem::udp::Authenticator authenticator_;
    HostEvents events_;
    std::vector<std::unique_ptr<Host>> hosts_;
    std::multimap<std::int64_t, std::function<void()>> timers_;
    std::int64_t now_ = 1;
    std::uint64_t acts_ = 0;  ///< since time last went on
    std::uint64_t members_left_ = 0, dropped_ = 0;
    std::vector<std::uint64_t> drops_;  ///< of each node
    std::vector<Recorded> recorded_;
    std::uint64_t sent_ = 0;
    rmem::Random record_random_;
    std::vector<std::byte> altered_;
};

}  // namespace simulator::udp
