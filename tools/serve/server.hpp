// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The sockets of `rmem serve`: clients come, each becomes a remote::Session, and one loop makes
/// the calls of all of them on one node.
///
/// Thread safety: one thread.
/// Errors: the constructor throws `rmem::Error`: system for an address that cannot be listened at.
///   Later a failure ends only its client, with one sentence.
/// Trust: anyone who reaches the port may send anything. kMaxClients are served at once, as many
///   more may be about to say hello, for kLongestHelloNs; what each can fill is bounded by its
///   session, and what all have mapped by the memory. A client that does not open its second
///   connection in that time is ended, and where another comes, one that is silent for too long.
/// Invariants, executed: there are no more clients than places, and no turn compares more than
///   kPagesATurn of a client's pages, so none waits for what another has mapped; what is ready has
///   been polled.
/// Units: nanoseconds.

#include "remote/session.hpp"
#include "remote/socket.hpp"
#include "rmem/rmem.h"
#include "tools/sparingly.hpp"
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

    static constexpr std::size_t kMaxClients = 16;
    static constexpr std::int64_t kLongestHelloNs = 5'000'000'000;
    /// Between looks at what clients have mapped; longer where a look takes longer.
    static constexpr std::int64_t kLookNs = 1'000'000;
    static constexpr std::size_t kPagesATurn = 64;

    /// Port 0: the system chooses one. `silence_ns`: after which a client loses its place, where
    /// another comes.
    Server(rmem_node* node, const remote::Address& listen, std::int64_t silence_ns, Say say);
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
        bool send(rmem::ByteQueue& box) const;

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
        Client(rmem_node* node, std::uint64_t number, remote::Twins& twins)
            : session(node, number, twins) {}

        remote::Session session;
        std::optional<Connection> calls;  ///< nothing: all that it had sent is here
        std::optional<Connection> news;
        bool has_ended = false;     ///< nobody reads its answers; what it sent is done yet
        bool had_news = false;      ///< once
        std::int64_t heard_ns = 0;  ///< last
        std::size_t left = 0;       ///< pages of this round
    };

    void listen(const remote::Address& address);
    void gather();
    void watch(Connection& connection, bool wants_input, bool has_output);
    bool is_ready(const std::optional<Connection>& connection) const;
    std::int64_t next_ns() const;
    void accept_one(std::int64_t now_ns);
    void greet_newcomers(std::int64_t now_ns);
    void greet(Newcomer& newcomer, const remote::Hello& hello, std::int64_t now_ns);
    bool has_place(std::int64_t now_ns);
    void say_sparingly(const std::string& sentence);
    void refuse(const Newcomer& newcomer, int code, const std::string& why);
    void take_interrupts();
    void serve(Client& client, std::int64_t now_ns);
    void serve_news(Client& client);
    void look(std::int64_t now_ns);
    void forget_ended(std::int64_t now_ns);

    rmem_node* const node_;
    const std::int64_t silence_ns_;
    const Say say_;
    std::optional<Connection> listening_;
    std::uint16_t port_ = 0;
    int interrupt_fd_ = -1;
    std::vector<pollfd> polled_;
    std::list<Newcomer> newcomers_;
    remote::Twins twins_;  ///< of all clients
    std::list<Client> clients_;
    std::int64_t look_at_ns_ = 0;
    std::int64_t round_ns_ = 0;  ///< when the round of looks began; 0: none goes on
    Sparingly sparingly_;
};

}  // namespace tools
