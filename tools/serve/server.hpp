// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The sockets of `rmem serve`: clients come, each becomes a remote::Session, and one loop makes
/// the calls of all of them on one node.
///
/// Thread safety: one thread.
/// Errors: the constructor throws `rmem::Error`: system for an address that cannot be listened at.
///   Later a failure ends only its client, with one sentence.
/// Trust: anyone who reaches the port may send anything. kMostClients are served at once, as many
///   more may be about to say hello, for kLongestHelloNs; what each can fill is bounded by its
///   session.
/// Units: nanoseconds.

#include "remote/session.hpp"
#include "remote/socket.hpp"
#include "rmem/rmem.h"
#include "tools/stop_signals.hpp"

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tools {

class Server {
public:
    using Say = std::function<void(const std::string& sentence)>;

    static constexpr std::size_t kMostClients = 16;
    static constexpr std::int64_t kLongestHelloNs = 5'000'000'000;
    /// Between looks at what clients have mapped; longer where a look takes longer.
    static constexpr std::int64_t kLookNs = 1'000'000;

    /// Port 0: the system chooses one.
    Server(rmem_node* node, const remote::Address& listen, Say say);
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    std::uint16_t port() const { return port_; }
    /// Until a signal comes.
    void run(const StopSignals& stop);

private:
    /// A socket that does not block, and its place in what is polled.
    class Connection {
    public:
        Connection(int fd, std::string peer) : fd_(fd), peer_(std::move(peer)) {}
        Connection(Connection&& other) noexcept;
        Connection& operator=(Connection&& other) noexcept;
        ~Connection();

        int fd() const { return fd_; }
        const std::string& peer() const { return peer_; }
        /// What has come goes to `take`. False: the connection has ended.
        bool receive(const std::function<void(std::span<const std::byte>)>& take) const;
        /// As much as there is room for. False: the connection has ended.
        bool send(remote::Outbox& box) const;

        std::size_t slot = 0;

    private:
        int fd_;
        std::string peer_;
    };
    struct Newcomer {
        Connection connection;
        remote::FrameQueue frames;
        std::int64_t until_ns;
    };
    struct Client {
        Client(rmem_node* node, std::uint64_t number) : session(node, number) {}

        remote::Session session;
        std::optional<Connection> calls;  ///< nothing: it has ended, and what it sent is left
        std::optional<Connection> news;
    };

    void listen(const remote::Address& address);
    void gather();
    void watch(Connection& connection, bool wants_input, bool has_output);
    bool is_ready(const std::optional<Connection>& connection) const;
    std::int64_t next_ns() const;
    void accept_one(std::int64_t now_ns);
    void greet_newcomers(std::int64_t now_ns);
    void greet(Newcomer& newcomer, const remote::Hello& hello);
    void refuse(const Newcomer& newcomer, int code, const std::string& why);
    void take_interrupts();
    void serve(Client& client, std::int64_t now_ns);
    void serve_news(Client& client);
    void look(std::int64_t now_ns);
    void forget_ended();

    rmem_node* const node_;
    const Say say_;
    std::optional<Connection> listening_;
    std::uint16_t port_ = 0;
    int interrupt_fd_ = -1;
    std::vector<pollfd> polled_;
    std::list<Newcomer> newcomers_;
    std::list<Client> clients_;
    std::int64_t look_at_ns_ = 0;
};

}  // namespace tools
