// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node of the udp link as a state machine: it joins, exchanges writes with the other members,
/// notices their deaths, and learns of its own. docs/design/udp-link.md tells the whole story.
///
///     core.on_datagram(bytes, now);                 // what came
///     if (now >= core.due_ns()) core.on_tick(now);  // timers
///     if (core.has_room(words)) core.write(index, words, from, now);
///     core.commit(now);
///     core.outgoing().drain(send);                  // after each of these
///
/// Terms: rmem/link/udp/protocol/*.hpp and the design page. States: joining (in no ring), member.
/// Invariants
///   Equal configurations and calls give equal calls of the edge.
///   It is a member exactly while its view has it.
///   While it is a member, its bank is what all members' streams up to where it has applied them
///   make. Nothing of a node is applied whose incarnation is not known from a join or an admission,
///   and believed. Of two that disagree on who is in, one goes, and both come to the same answer
///   (docs/design/udp-link.md: Disagreement).
/// Threads: one user at a time; the edge does not call back into it. Progress: no call waits.
/// Trust: rmem/link/udp/protocol/exchange.hpp's.
/// Units: nanoseconds of one clock that does not go backwards, from 0.

#include "rmem/base/time.hpp"
#include "rmem/link/udp/protocol/exchange.hpp"
#include "rmem/link/udp/protocol/snapshot.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rmem::udp {

inline constexpr std::int64_t kJoinNs =
    10'000'000;                             ///< between two joins; later four times as long
inline constexpr unsigned kNodesAJoin = 8;  ///< of more nodes each makes that longer
inline constexpr std::int64_t kAdmitNs = 1'000'000;   ///< between two datagrams with admits
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

/// What a joining node was told by the member that welcomed it.
struct Welcomed {
    unsigned donor = 0;
    std::uint64_t donor_incarnation = 0;
    std::uint64_t ring_incarnation = 0;
    std::int64_t heard_ns = 0;
    NodeSet view;
    std::array<std::uint64_t, kMaxNodes> incarnations{};
};

class RMEM_API Core final : private ExchangeEdge {
public:
    static constexpr std::int64_t kLongAgo = INT64_MIN / 2;

    /// Begins to join. The authenticator and the edge outlive it.
    Core(const CoreConfig& config, const Authenticator& authenticator, CoreEdge& edge,
         std::int64_t now);

    // ---- Own writes, of a member
    [[nodiscard]] bool has_room(std::size_t words, unsigned spare = 0) const noexcept {
        return is_member_ && exchange_->has_room(words, spare);
    }
    void write(std::uint64_t index, std::size_t words, const void* from, std::int64_t now,
               std::uint8_t flags = 0) {
        exchange_->write(index, words, from, now, flags);
    }
    /// The same if there is room.
    [[nodiscard]] bool try_write(std::uint64_t index, std::size_t words, const void* from,
                                 std::int64_t now, std::uint8_t flags = 0) {
        return is_member_ && exchange_->try_write(index, words, from, now, flags);
    }
    void commit(std::int64_t now) { exchange_->commit(now); }
    /// All receivers have all own batches.
    bool is_idle() const noexcept { return exchange_->is_idle(); }

    // ---- What comes, and timers
    /// Some of what the bank was behind is in it now.
    void has_published(unsigned node, std::int64_t now) { exchange_->has_published(node, now); }
    void on_datagram(std::span<const std::byte> bytes, std::int64_t now);
    /// While it is on, many datagrams are about to come: what they ask is answered by on_tick(),
    /// all at once.
    void hold_answers(bool on) noexcept {
        holds_answers_ = on;
        exchange_->hold_answers(on);
    }
    std::int64_t due_ns() const noexcept;
    std::int64_t repair_due_ns() const noexcept { return exchange_->repair_due_ns(); }
    void on_tick(std::int64_t now);
    void ask_for_acks(std::int64_t now) { exchange_->ask_for_acks(now); }
    /// What the calls have filled: to be sent after each.
    Outgoing& outgoing() noexcept { return outgoing_; }
    const Outgoing& outgoing() const noexcept { return outgoing_; }

    /// Tells the others that this node goes: they need not wait for it. What was written has to be
    /// acknowledged before.
    void depart(std::int64_t now);

    // ---- What is known
    bool is_member() const noexcept { return is_member_; }
    /// The members, this node among them when it is one.
    const NodeSet& view() const noexcept { return view_; }
    /// Other nodes that are joining, or have just been.
    unsigned joiners(std::int64_t now) const noexcept;
    std::uint64_t incarnation() const noexcept { return config_.exchange.incarnation; }
    std::uint64_t ring_incarnation() const noexcept { return ring_incarnation_; }
    const Exchange& exchange() const noexcept { return *exchange_; }
    /// Of the newest incarnation of another node that was met; 0: of none.
    std::uint64_t incarnation_of(unsigned node) const noexcept { return others_[node].incarnation; }
    /// Over all incarnations.
    ExchangeCounters exchange_counters() const noexcept { return former_ + exchange_->counters(); }
    const CoreCounters& counters() const noexcept { return counters_; }

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

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
    struct Owed {
        unsigned node = 0;
        std::uint64_t cookie = 0;
    };
    /// A section that is dealt with once the exchange is through with its datagram.
    struct Pending {
        Header header;
        std::vector<std::byte> bytes;
    };

    // The exchange's edge
    void apply(unsigned origin, const Batch& batch, std::int64_t now) override;
    std::uint64_t behind(unsigned origin) const override { return edge_.behind(origin); }
    void on_section(const Header& header, const Section& section, std::int64_t now) override;
    void on_taken(const Header& header, const Greeting& greeting, std::int64_t now) override;
    void on_odd(Odd odd, const Header& header, std::string_view text) override {
        edge_.on_odd(odd, header, text);
    }

    // Sections
    void deal_with(const Header& header, const Section& section, std::int64_t now);
    void on_status(const Header& header, const Status& status, std::int64_t now);
    void on_join(const Header& header, const Join& join, std::int64_t now);
    void on_welcome(const Header& header, const Welcome& welcome, std::int64_t now);
    void on_admit(const Header& header, const Admit& admit, std::int64_t now);
    void on_snapshot_request(const Header& header, const SnapshotRequest& request,
                             std::int64_t now);

    // Joining
    void begin_incarnation(std::int64_t now);
    void next_incarnation(std::int64_t now);
    bool admit(unsigned node, std::uint64_t incarnation, std::int64_t now);
    void connect(unsigned node, std::uint64_t incarnation, std::uint64_t first, std::int64_t now);
    bool is_connected(unsigned node, std::uint64_t incarnation) const noexcept;
    bool has_met(unsigned node, std::uint64_t incarnation) const noexcept {
        return others_[node].incarnation == incarnation;
    }
    bool is_of_donor(const Header& header) const noexcept {
        return welcomed_ && header.origin == welcomed_->donor &&
               header.incarnation == welcomed_->donor_incarnation;
    }
    bool all_have_admitted() const noexcept;
    bool is_of_ring(unsigned node) const noexcept;
    void leave_other_rings(std::int64_t now);
    bool knows_rings() const noexcept;
    bool all_are_joining(std::int64_t now) const noexcept;
    bool may_form(std::int64_t now) const noexcept;
    void form(std::int64_t now);
    void become_member(const NodeSet& view, std::uint64_t ring_incarnation, std::int64_t now);
    void advance_joining(std::int64_t now);
    bool is_donor() const noexcept;

    // Members
    void leave(unsigned node, std::int64_t now);
    void look_for_the_dead(std::int64_t now);
    void end_served(std::int64_t now);
    [[nodiscard]] bool resolve_differences(std::int64_t now);
    void note_absence(std::int64_t now);
    bool stands_against_ring(std::uint64_t ring_incarnation) const noexcept;
    [[nodiscard]] bool agrees(const Header& header, const Status& status, std::int64_t now);
    bool stands_against(unsigned node, const Status& status, bool ended_it,
                        std::int64_t now) const noexcept;
    bool has_ended_any_of(const NodeSet& nodes) const noexcept;
    unsigned supporters() const noexcept;
    unsigned supporters_of(unsigned node, const NodeSet& view) const noexcept;
    void drop_out(std::int64_t now);
    void update_window() noexcept;

    // Sending
    DatagramWriter& begin_greeting(std::int64_t now);
    void send_greetings(std::int64_t now);
    std::uint16_t greeting_flags() const noexcept { return is_member_ ? Greeting::kIsMember : 0; }
    void send_join(std::int64_t now);
    void send_status(std::int64_t now);
    void send_status(Status::State state, std::int64_t now);
    void send_welcome(const Owed& owed, std::int64_t now);
    void send_refusal(unsigned node, std::uint64_t cookie, std::int64_t now);
    void owe_welcome(unsigned node, std::uint64_t cookie, std::int64_t now);
    void owe_admit(unsigned node, std::uint64_t cookie, std::int64_t now);
    void send_admits(std::int64_t now);
    std::int64_t admit_due_ns() const noexcept {
        if (!owed_welcomes_.empty()) return 0;
        return owed_admits_.empty() ? kNever : admit_next_ns_;
    }
    void request(std::int64_t now);
    std::uint64_t incarnation_sum_of(const NodeSet& nodes) const noexcept;
    std::uint64_t random() noexcept;
    std::int64_t heartbeat_ns() const noexcept {
        return std::max<std::int64_t>(config_.dead_ns / kStatusesADeath, 1);
    }
    void say_again(std::int64_t now) noexcept;
    /// Each join is answered by all: in a large ring they are rarer.
    std::int64_t join_ns() const noexcept {
        return kJoinNs * std::max(config_.exchange.nodes / kNodesAJoin, 1U);
    }

    unsigned me() const noexcept { return config_.exchange.node; }
    NodeIncarnation my_incarnation() const noexcept {
        return NodeIncarnation::of(config_.exchange.node, config_.exchange.incarnation);
    }

    CoreConfig config_;
    const Authenticator& authenticator_;
    CoreEdge& edge_;
    Outgoing outgoing_;
    std::unique_ptr<Exchange> exchange_;
    std::vector<Other> others_;
    std::vector<Pending> pending_;
    std::vector<Owed> owed_admits_, owed_welcomes_;
    std::vector<bool> given_;  ///< parts of the bank, to all, while answers are held
    bool holds_answers_ = false;
    std::int64_t admit_next_ns_ = kLongAgo;
    std::uint64_t random_state_;

    bool is_member_ = false;
    NodeSet view_;
    std::uint64_t ring_incarnation_ = 0;
    std::int64_t heard_member_ns_ = -1;
    std::int64_t member_since_ns_ = 0;
    std::int64_t returned_until_ns_ = kLongAgo;  ///< it was away until not long ago
    unsigned statuses_ = 0;
    std::int64_t first_ns_ = 0;        ///< when the first incarnation began, in the caller's clock
    std::uint64_t first_wall_ns_ = 0;  ///< and on the wall

    // While joining
    std::int64_t taken_ns_ = kLongAgo;        ///< when it heard last that its number is another's
    std::int64_t taken_since_ns_ = kLongAgo;  ///< since when others say so again and again
    std::uint64_t cookie_ = 0;
    unsigned joins_ = 0;                    ///< sent in this incarnation
    std::int64_t joined_at_ns_ = kLongAgo;  ///< when the last was sent
    std::int64_t joining_since_ns_ = 0;     ///< less the time for which its timers were late
    std::int64_t excused_ns_ = 0;           ///< up to then
    std::optional<Welcomed> welcomed_;
    MemberIncarnation parts_from_;  ///< whose bank the parts are of that are here
    bool must_restart_ = false;     ///< among them are words that may be another ring's
    std::optional<SnapshotTaker> taker_;

    std::int64_t join_due_ns_ = kNever;
    std::int64_t status_due_ns_ = 0;
    std::int64_t status_interval_ns_ = kStatusNs;  ///< to the status after the next one
    std::int64_t look_due_ns_ = 0;
    CoreCounters counters_;
    ExchangeCounters former_;  ///< of former incarnations
};

}  // namespace rmem::udp
