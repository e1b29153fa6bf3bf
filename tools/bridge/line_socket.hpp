// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The TCP connection between two half-bridges, with its encryption: one at a time, made again and
/// again for as long as the bridge runs.
///
/// A listener takes all that come, kMaxNewcomers at once: the line is the first that shows the
/// key, and one that shows it while there is a line waits for the end of that. One that does not
/// within kGreetingNs is closed; where there is no place left, so is the oldest from where
/// most have come.
/// Invariants, executed: what becomes the line has shown the key; there are never more newcomers.
/// Trust: anyone may come. A newcomer costs a SecureLine and one receive, and keeps nobody out.
/// Errors: `rmem::Error` from the constructor: an address that cannot be listened at, a key file
///   that is no good. Later a failure ends the connection, and take_problem() says why.
/// Progress: nothing waits.
/// Thread safety: one thread. Units: nanoseconds of CLOCK_MONOTONIC.

#include "bridge/secure_line.hpp"
#include "rmem/ring/segment.hpp"
#include "tools/bridge/bridge_config.hpp"
#include "tools/sparingly.hpp"

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tools {

class LineSocket {
public:
    static constexpr std::int64_t kGreetingNs = 5'000'000'000;
    static constexpr std::size_t kMaxNewcomers = 16;
    /// From the end of a connection, or of a try, to the next try.
    static constexpr std::int64_t kAgainNs = 500'000'000;
    /// What waits for the connection to take it; then nothing more is sealed.
    static constexpr std::size_t kMaxWaitingBytes = std::size_t{64} << 10;

    explicit LineSocket(const FarConfig& config);

    /// The port that is listened at.
    std::uint16_t port() const { return port_; }
    /// Which line it is; each has another number.
    unsigned number() const { return number_; }
    /// The other side has shown that it has the key.
    bool is_up() const { return line_ && line_->is_greeted(); }
    /// Connects, accepts, receives and sends, as far as it goes at once. `wants_input`: what comes
    /// can be taken.
    void run(std::int64_t now_ns, bool wants_input);
    /// What the other side has said.
    std::vector<std::byte> take_plain();
    /// Seals what there is room for.
    void send(rmem::ByteQueue& plain);
    /// This side has no use for it any more, and the other is told (`is_last`) or not.
    void close(std::int64_t now_ns, bool is_last);
    /// Why the last connection has ended; once.
    std::string take_problem() { return std::exchange(problem_, {}); }

    void add_to(std::vector<pollfd>& polled, bool wants_input, std::int64_t now_ns) const;
    std::int64_t due_ns(std::int64_t now_ns) const;

private:
    void listen();
    void connect(std::int64_t now_ns);
    void finish_connecting(std::int64_t now_ns);
    /// A TCP connection, and what is said on it.
    struct Connection {
        rmem::Descriptor socket;
        std::unique_ptr<bridge::SecureLine> line;
        std::int64_t greeted_by_ns = 0;
        std::string from;  ///< the host

        bool is_greeted() const { return line->is_ready(); }
        /// Why it has ended; empty: it has not.
        std::string receive();
        std::string flush();
    };
    static Connection begin(rmem::Descriptor socket, const rmem::udp::MasterKey& key,
                            bridge::SecureLine::Side side, std::int64_t now_ns);

    void accept(std::int64_t now_ns);
    void make_room();
    void greet_newcomers(std::int64_t now_ns);
    void tell(const std::string& why, std::int64_t now_ns);
    void end(std::int64_t now_ns, const std::string& why);

    const FarConfig config_;
    const rmem::udp::MasterKey key_;
    rmem::Descriptor listening_, connecting_;
    std::uint16_t port_ = 0;
    std::optional<Connection> line_;
    std::list<Connection> newcomers_;  ///< of a listener, the oldest first
    unsigned number_ = 0;
    std::int64_t again_ns_ = 0, answered_by_ns_ = 0;
    std::string problem_, last_failure_;
    Sparingly sparingly_;
};

}  // namespace tools
