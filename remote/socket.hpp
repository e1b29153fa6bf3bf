// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A TCP connection of a client: the sockets of POSIX, and of Windows.
///
/// Thread safety: one thread sends and one receives at a time; end() from any.
/// Errors: `rmem::Error`: bad_environment for a malformed address, system for one that cannot
///   be reached. Later a connection that has failed is one that has ended.
/// Progress: send() and receive() give up after kLongestSilence: a peer that is there, and stopped,
///   does not hold its caller without end.
/// Units: bytes, milliseconds.

#include "rmem/error.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace remote {

struct Address {
    std::string host;
    std::uint16_t port = 0;
};

/// "host:port", "[::1]:port". `what` names the object in the error.
[[nodiscard]] Address parse_address(const std::string& what, const std::string& text);

/// Of either side: what is sent leaves at once, and a host that has fallen silent is found.
void prepare_connection(std::intptr_t handle);

class Socket {
public:
    static constexpr std::chrono::seconds kLongestSilence{10};
    /// A host that answers to nothing is given up after so long, in any case.
    static constexpr std::chrono::seconds kAliveAfter{10};
    static constexpr std::chrono::seconds kAliveEvery{5};
    static constexpr int kAliveTries = 4;

    /// Connects.
    explicit Socket(const Address& address);
    ~Socket();
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    /// False: the connection has ended.
    [[nodiscard]] bool send(std::span<const std::byte> bytes);
    /// What has come, at least one byte; 0: the connection has ended.
    [[nodiscard]] std::size_t receive(std::span<std::byte> to);
    /// Whether something has come, or the connection has ended, at the latest after `most_ms`.
    [[nodiscard]] bool wait(int most_ms);
    /// For both sides.
    void end();

private:
    std::intptr_t handle_;
};

}  // namespace remote
