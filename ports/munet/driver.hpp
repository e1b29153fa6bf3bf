// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The driver of a node: programs create endpoints by it. It listens at a Unix socket, makes the
/// memory of each endpoint, hands it to its program alone, and opens and closes endpoints at the
/// relay.
///
/// Limits, for each user (by SO_PEERCRED): bytes of endpoints' memory, and endpoints. A connection
/// that does not ask for an endpoint counts as one.
/// Memory: a memfd that can neither shrink nor grow (sealed), so that the daemon's mapping never
/// faults; its space is reserved when it is made. The daemon keeps no descriptor of it.
/// Thread safety: one thread. Progress: look() never waits. Trust: packets are read whole and
/// checked.
/// Errors: the constructor throws rmem::Error.

#include "ports/munet/relay.hpp"
#include "rmem/ring/segment.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace ports::munet {

struct DriverConfig {
    std::string path{};        ///< of the socket
    std::string unix_group{};  ///< whose members may connect; empty: everybody
    unsigned node = 0, nodes = 1;
    unsigned senders = kDefaultSenders;
    std::size_t user_bytes = std::size_t{64} << 20;
    unsigned user_endpoints = 64;
};

/// What has happened at the driver, for people.
struct DriverCounts {
    std::uint64_t created = 0, destroyed = 0, over_limit = 0, bad_requests = 0, bells = 0;
};

class RMEM_API Driver {
public:
    /// The relay outlives it. `counters`: a block for each number of an endpoint.
    Driver(DriverConfig config, Relay& relay, std::span<rmem::Counters> counters);
    ~Driver();
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;

    /// Serves connections that wait, and those that have ended. Whether there was any.
    bool look();
    /// For poll(2): readable when look() has something to do.
    int handle() const noexcept { return poll_.get(); }

    void wake(unsigned endpoint) noexcept;
    /// Tells all programs whether the daemon sleeps, and how many processes poll.
    void say_sleeps(bool sleeps) noexcept;
    void say_pollers(unsigned pollers) noexcept;

    const DriverCounts& counts() const noexcept { return counts_; }
    const DriverConfig& config() const noexcept { return config_; }

private:
    struct Client;

    void accept();
    void serve(Client& client);
    void create(Client& client, std::uint64_t send_bytes, std::uint64_t receive_bytes);
    void destroy(Client& client) noexcept;
    void watch(int fd, Client* client);

    DriverConfig config_;
    Relay& relay_;
    std::span<rmem::Counters> counters_;
    rmem::Descriptor listener_, poll_;
    std::map<int, std::unique_ptr<Client>> clients_;  ///< by descriptor
    std::array<Client*, kEndpoints> by_number_{};
    struct User {
        std::size_t bytes = 0;
        unsigned connections = 0;
    };
    std::map<std::uint32_t, User> users_;
    DriverCounts counts_;
    unsigned pollers_ = 1;
};

}  // namespace ports::munet
