// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What all parts of a core use: what it is told, its edge, what it knows of the other nodes, and
/// the exchange with them.
///
/// A part has a reference to it, and to those parts that stand above it in the core's list
/// (rmem/link/udp/protocol/core.hpp).
/// Thread safety, progress, trust, units: the core's.

#include "rmem/base/random.hpp"
#include "rmem/link/udp/protocol/exchange.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rmem::udp {

inline constexpr std::int64_t kFormNs = 150'000'000;  ///< of silence: a ring is formed
/// The same where a carrier has to connect first.
inline constexpr std::int64_t kFormConnectedNs = 500'000'000;
inline constexpr std::int64_t kGiveWayNs =
    1'000'000'000;  ///< to a member, or a lower node that joins
/// From a status that says something new to the next one: the first may be lost.
inline constexpr std::int64_t kStatusNs = 50'000'000;
inline constexpr std::int64_t kDeadNs = 2'000'000'000;  ///< of silence: a node counts as dead
/// From then on the interval doubles, up to this part of the dead time-out. Statuses then find
/// death alone (what is lost of a stream, its probes find), and each wakes a node that does
/// nothing: so there are few. A live node is dropped when all in a dead time-out are lost. A node
/// that misses another for half of it speaks more often, and so does each that hears it.
inline constexpr std::int64_t kStatusesADeath = 8;
inline constexpr unsigned kStatusesAnAbout = 20;  ///< one of this number says what the ring is

struct CoreConfig {
    ExchangeConfig exchange;
    std::int64_t dead_ns = kDeadNs;
    /// Bytes that the own socket holds, by bytes_charged().
    std::size_t socket_room = 256 * bytes_charged(kDefaultPayload);
    /// From a true source of random numbers: cookies, nonces and later incarnations' salts.
    std::uint64_t seed = 1;
    std::string about;  ///< the ring's name and settings, for people
};

class CoreEdge {
public:
    CoreEdge() = default;
    virtual ~CoreEdge() = default;
    CoreEdge(const CoreEdge&) = delete;
    CoreEdge& operator=(const CoreEdge&) = delete;

    virtual void apply(unsigned origin, const Batch& batch, std::int64_t now) = 0;
    /// As ExchangeEdge's. Only of members the bank may be behind, and not when one has left.
    virtual std::uint64_t behind(unsigned) const { return 0; }
    /// A word of the donor's bank.
    virtual void store(std::uint64_t index, std::uint32_t value) = 0;
    /// Hands over what the own programs have stored into the bank and not handed over yet, before
    /// it is given to another node. False: some of it finds no room.
    [[nodiscard]] virtual bool hand_over_all(std::int64_t) { return true; }
    /// The bank as it is now.
    virtual std::span<const std::byte> bank() = 0;
    /// Whether these words are zeros, without a look at them. Asked of what nothing has been stored
    /// into since bank() was called, or since the incarnation began. No is always right.
    virtual bool is_blank(std::uint64_t, std::size_t) { return false; }
    /// The bank is a new ring's: zeros.
    virtual void clear_bank() = 0;
    /// This node is a member from now on, with this bank.
    virtual void has_joined(std::int64_t now) = 0;
    /// It is no member any more, and joins again as a new incarnation.
    virtual void was_dropped(std::int64_t now) = 0;
    /// Another node is a member, or not any more.
    virtual void member_came(unsigned node, std::int64_t now) = 0;
    virtual void member_left(unsigned node, std::int64_t now) = 0;
    /// As ExchangeEdge's. A namesake: the origin, if that is this node's number, or else the origin
    /// says that there is one.
    virtual void on_odd(Odd, const Header&, std::string_view) {}
};

/// What happened, each a count.
struct CoreCounters {
    std::uint64_t rings_formed = 0, joined = 0, dropped = 0;
    std::uint64_t members_came = 0, members_left = 0;
    std::uint64_t joins_sent = 0, welcomes_sent = 0, requests_answered = 0;
};

struct CoreOwn {
    static constexpr std::int64_t kLongAgo = INT64_MIN / 2;

    /// Another node.
    struct Other {
        std::uint64_t incarnation =
            0;  ///< of the newest incarnation that was connected; 0: none yet
        std::uint64_t admitted_from = 0;     ///< of the own stream, it counts as a receiver
        std::uint64_t ring_incarnation = 0;  ///< in which it is a member, as it said; 0: it has not
        NodeSet view;                        ///< its last status', in this node's ring
        std::int64_t heard_joining_ns = -1;
        std::uint32_t socket_room = 0;
        bool has_admitted =
            false;            ///< it has said from where on this node's incarnation gets its stream
        bool had_me = false;  ///< its view once had this node's incarnation
        bool ended = false;   ///< that incarnation is over here
        bool served = false;  ///< it joins, and may have parts of the bank from this node
        bool was_shown = false;  ///< a welcome as long as what reaches this node
    };
    CoreOwn(const CoreConfig& as, CoreEdge& to)
        : config(as), edge(to), others(as.exchange.nodes), random_state(as.seed) {}

    unsigned me() const noexcept { return config.exchange.node; }
    NodeIncarnation my_incarnation() const noexcept { return named(me()); }
    /// As it is known here.
    std::uint64_t incarnation_of(unsigned node) const noexcept {
        return node == me() ? config.exchange.incarnation : others[node].incarnation;
    }
    NodeIncarnation named(unsigned node) const noexcept {
        return NodeIncarnation::of(static_cast<std::uint16_t>(node), incarnation_of(node));
    }
    std::uint64_t incarnation_sum_of(const NodeSet& nodes) const noexcept {
        std::uint64_t sum = 0;
        nodes.for_each([&](unsigned node) {
            if (node < others.size()) sum += sum_of_incarnations(node, incarnation_of(node));
        });
        return sum;
    }
    bool has_met(unsigned node, std::uint64_t incarnation) const noexcept {
        return others[node].incarnation == incarnation;
    }
    bool is_connected(unsigned node, std::uint64_t incarnation) const noexcept {
        return exchange->takes(node) && has_met(node, incarnation);
    }
    /// Other nodes that are joining, or have just been.
    unsigned joiners(std::int64_t now) const noexcept {
        unsigned count = 0;
        for (unsigned node = 0; node < others.size(); ++node) {
            const std::int64_t heard = others[node].heard_joining_ns;
            const std::int64_t lately = view.contains(node) ? kFormNs : kGiveWayNs;
            if (heard >= 0 && now - heard < lately) ++count;
        }
        return count;
    }
    /// What the smallest socket holds is shared by all who may send to it at once.
    void update_window() noexcept {
        std::size_t least = config.socket_room;
        view.for_each([&](unsigned node) {
            const std::size_t room = others[node].socket_room;
            if (node != me() && room != 0) least = std::min(least, room);
        });
        const unsigned senders = std::max(view.size(), 2U) - 1;
        exchange->set_window(least / senders);
    }
    std::uint16_t greeting_flags() const noexcept { return is_member ? Greeting::kIsMember : 0; }
    /// What it makes need not be secret, only different each time.
    std::uint64_t random() noexcept { return next_random(random_state); }

    CoreConfig config;
    CoreEdge& edge;
    Outgoing outgoing;
    std::unique_ptr<Exchange> exchange;
    std::vector<Other> others;
    std::uint64_t random_state;
    bool is_member = false;
    NodeSet view;  ///< the members
    std::uint64_t ring_incarnation = 0;
    CoreCounters counters;
};

}  // namespace rmem::udp
