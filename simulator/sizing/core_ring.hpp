// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A ring of many nodes of the udp link in virtual time: the link's own protocol cores, on hosts
/// whose calls cost time and a network that loses datagrams.
///
///     CoreRing ring({.nodes = 32}, udp_costs);
///     ring.join(); ring.write_alone(100); ring.figures();
///
/// A host has one processor for its node, which does one thing at a time: a datagram that has come,
/// or a timer, and then the calls that send what the core has made of it. Its socket holds a
/// limited number of datagrams. One switch joins all hosts. Multicast is one datagram that the
/// switch copies; by fan-out the host makes the copies, each on its line.
///
/// Equal shapes, costs and calls give equal figures: no clock and no floating point decides when
/// something happens.
/// Thread safety: none. Errors: throws rmem::Error when nodes do not get as far as they should in
///   kPatienceNs of virtual time.
/// Units: nanoseconds of virtual time; losses in parts of a million datagrams, each copy by itself.

#include "rmem/base/random.hpp"
#include "rmem/link/udp/protocol/core.hpp"
#include "simulator/sizing/costs.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

namespace simulator::sizing {

inline constexpr std::int64_t kPatienceNs = 60'000'000'000;
/// Between two writes of write_alone(): by then the one before is everywhere and acknowledged.
inline constexpr std::int64_t kAloneNs = 2'000'000;
/// Batches under way at most. A few are enough for writes that are alone, and keep the histories of
/// 256 times 255 streams short.
inline constexpr std::uint32_t kShortWindow = 64;

struct RingShape {
    unsigned nodes = 2;
    bool fan_out = false;
    std::size_t write_bytes = 4;        ///< of one write, which is one datagram
    std::uint32_t lost_ppm = 0;         ///< once all have joined
    std::int64_t start_ns = 1'000'000;  ///< between two nodes' starts
    std::uint32_t window = kShortWindow;
    std::size_t socket_datagrams = 1024;  ///< of kDefaultPayload: what is not called small
    std::uint64_t seed = 1;
};

/// Of the writes of write_alone().
struct RingFigures {
    std::int64_t join_ns = 0;  ///< from the first start until all are members and know it
    std::int64_t p50_ns = 0,
                 p99_ns = 0;       ///< from a store until it is in another bank, of all banks
    std::int64_t last_ns = 0;      ///< the same of the last bank; mean of all writes
    std::int64_t sender_ns = 0;    ///< of the writer's processor until the write has left
    std::int64_t node_ns = 0;      ///< of the busiest processor, with all that a write causes
    double sends = 0;              ///< of the writer for a write: datagrams that it hands over
    double datagrams = 0;          ///< of all nodes for a write, acknowledgements among them
    double resent = 0;             ///< those that there are for losses alone
    std::size_t memory_bytes = 0;  ///< of a node's protocol, beside its bank
    std::uint64_t overflowed = 0;  ///< datagrams for which a socket had no room
};

/// Of the frames of write_frames().
struct FrameFigures {
    double busy = 0;               ///< the busiest processor's part of the time
    double acks = 0;               ///< datagrams of a node for a frame that only acknowledge
    std::uint64_t refused = 0;     ///< writes that found no room
    std::uint64_t overflowed = 0;  ///< as RingFigures'
};

class CoreRing {
public:
    CoreRing(const RingShape& shape, const Costs& costs);
    ~CoreRing();
    CoreRing(const CoreRing&) = delete;
    CoreRing& operator=(const CoreRing&) = delete;

    /// All nodes start, one after the other, until each is a member and has all others in its view.
    void join();
    /// Each writes once: from then on all have a history of each.
    void write_each();
    /// Node 0 writes that often, each time alone.
    void write_alone(unsigned writes);
    RingFigures figures() const;
    /// Each node writes once a frame, as a rig's do: all at one instant, or evenly spread.
    FrameFigures write_frames(unsigned frames, std::int64_t frame_ns, bool together);
    /// All banks have the same words.
    bool banks_are_equal() const;

private:
    class Host;
    using Bytes = std::shared_ptr<const std::vector<std::byte>>;
    /// A datagram comes to a host, or (without one) the host's processor may have something to do.
    struct Event {
        std::int64_t at_ns;
        std::uint64_t number;  ///< of two at one time the one that was made first comes first
        unsigned node;
        Bytes datagram;
        bool operator<(const Event& other) const noexcept {
            return at_ns != other.at_ns ? at_ns > other.at_ns : number > other.number;
        }
    };
    /// Over all nodes: datagrams sent, and which of these are there for losses alone.
    struct Totals {
        std::uint64_t datagrams = 0, again = 0, acks = 0;
    };

    template <class Done>
    void run_until(Done done, const char* what);
    void run_for(std::int64_t span_ns);
    void take_event();
    void push(std::int64_t at_ns, unsigned node, Bytes datagram);
    void wake(Host& host);
    void send_to_all(Host& from);
    void post(unsigned to, const Bytes& datagram, std::int64_t at_switch_ns);
    void note_arrival(std::int64_t at_ns);
    unsigned copies() const noexcept { return shape_.fan_out ? shape_.nodes - 1 : 1; }
    bool all_have_joined() const;
    bool all_are_idle() const;
    Totals totals() const;
    std::vector<std::int64_t> all_busy_ns() const;
    std::int64_t busiest_since(const std::vector<std::int64_t>& then) const;
    std::uint64_t overflowed() const;

    const RingShape shape_;
    const Costs costs_;
    rmem::Random random_;
    rmem::udp::Authenticator authenticator_;
    std::vector<std::unique_ptr<Host>> hosts_;
    std::priority_queue<Event> events_;
    std::uint64_t events_made_ = 0;
    std::int64_t now_ = 0;
    bool has_losses_ = false;

    std::int64_t stored_ns_ = 0;                        ///< node 0's newest write
    unsigned arrived_ = 0;                              ///< banks that it is in
    std::vector<std::int64_t> took_ns_, last_took_ns_;  ///< each arrival; each write's last one
    RingFigures figures_;
};

}  // namespace simulator::sizing
