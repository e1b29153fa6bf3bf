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
/// It is made of parts, each of which owns its state, and knows only those above it:
///   core_own.hpp   what all use: what it is told, its edge, the other nodes, the exchange
///   agreement.hpp  which of two members goes that disagree
///   answers.hpp    what nodes that join are answered
///   joiner.hpp     the own way into a ring
/// Here is who comes and who goes, what is said of it, and in which order what comes is dealt with.
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
#include "rmem/link/udp/protocol/answers.hpp"
#include "rmem/link/udp/protocol/core_own.hpp"
#include "rmem/link/udp/protocol/exchange.hpp"
#include "rmem/link/udp/protocol/joiner.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace rmem::udp {

class RMEM_API Core final : private ExchangeEdge {
public:
    /// Begins to join. The authenticator and the edge outlive it.
    Core(const CoreConfig& config, const Authenticator& authenticator, CoreEdge& edge,
         std::int64_t now);

    // ---- Own writes, of a member
    [[nodiscard]] bool has_room(std::size_t words, unsigned spare = 0) const noexcept {
        return own_.is_member && own_.exchange->has_room(words, spare);
    }
    void write(std::uint64_t index, std::size_t words, const void* from, std::int64_t now,
               std::uint8_t flags = 0) {
        own_.exchange->write(index, words, from, now, flags);
    }
    /// The same if there is room.
    [[nodiscard]] bool try_write(std::uint64_t index, std::size_t words, const void* from,
                                 std::int64_t now, std::uint8_t flags = 0) {
        return own_.is_member && own_.exchange->try_write(index, words, from, now, flags);
    }
    void commit(std::int64_t now) { own_.exchange->commit(now); }
    /// All receivers have all own batches.
    bool is_idle() const noexcept { return own_.exchange->is_idle(); }

    // ---- What comes, and timers
    /// Some of what the bank was behind is in it now.
    void has_published(unsigned node, std::int64_t now) { own_.exchange->has_published(node, now); }
    void on_datagram(std::span<const std::byte> bytes, std::int64_t now);
    /// While it is on, many datagrams are about to come: what they ask is answered by on_tick(),
    /// all at once.
    void hold_answers(bool on) noexcept {
        answers_.hold(on);
        own_.exchange->hold_answers(on);
    }
    std::int64_t due_ns() const noexcept;
    std::int64_t repair_due_ns() const noexcept { return own_.exchange->repair_due_ns(); }
    void on_tick(std::int64_t now);
    void ask_for_acks(std::int64_t now) { own_.exchange->ask_for_acks(now); }
    void ask_at_once() noexcept { own_.exchange->ask_at_once(); }
    /// What the calls have filled: to be sent after each.
    Outgoing& outgoing() noexcept { return own_.outgoing; }
    const Outgoing& outgoing() const noexcept { return own_.outgoing; }

    /// Tells the others that this node goes: they need not wait for it. What was written has to be
    /// acknowledged before.
    void depart(std::int64_t now);

    // ---- What is known
    bool is_member() const noexcept { return own_.is_member; }
    /// The members, this node among them when it is one.
    const NodeSet& view() const noexcept { return own_.view; }
    /// Other nodes that are joining, or have just been.
    unsigned joiners(std::int64_t now) const noexcept { return own_.joiners(now); }
    std::uint64_t incarnation() const noexcept { return own_.config.exchange.incarnation; }
    std::uint64_t ring_incarnation() const noexcept { return own_.ring_incarnation; }
    const Exchange& exchange() const noexcept { return *own_.exchange; }
    /// Of the newest incarnation of another node that was met; 0: of none.
    std::uint64_t incarnation_of(unsigned node) const noexcept {
        return own_.others[node].incarnation;
    }
    /// Over all incarnations.
    ExchangeCounters exchange_counters() const noexcept {
        return former_ + own_.exchange->counters();
    }
    const CoreCounters& counters() const noexcept { return own_.counters; }

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    /// A section that is dealt with once the exchange is through with its datagram.
    struct Pending {
        Header header;
        std::vector<std::byte> bytes;
    };

    // The exchange's edge
    void apply(unsigned origin, const Batch& batch, std::int64_t now) override;
    std::uint64_t behind(unsigned origin) const override { return own_.edge.behind(origin); }
    void on_section(const Header& header, const Section& section, std::int64_t now) override;
    void on_taken(const Header& header, const Greeting& greeting, std::int64_t now) override {
        joiner_.on_taken(header, greeting, now);
    }
    void on_odd(Odd odd, const Header& header, std::string_view text) override {
        own_.edge.on_odd(odd, header, text);
    }

    // Sections
    void deal_with(const Header& header, const Section& section, std::int64_t now);
    void on_status(const Header& header, const Status& status, std::int64_t now);
    void on_join(const Header& header, const Join& join, std::int64_t now);
    void on_admit(const Header& header, const Admit& admit, std::int64_t now);

    // Incarnations
    void begin_incarnation(std::int64_t now);
    void next_incarnation(std::int64_t now);
    void drop_out(std::int64_t now);
    void form(std::int64_t now);
    void become_member(const NodeSet& view, std::uint64_t ring_incarnation, std::int64_t now);
    void advance_joining(std::int64_t now);

    // Other nodes
    bool admit(unsigned node, std::uint64_t incarnation, std::int64_t now);
    void connect(unsigned node, std::uint64_t incarnation, std::uint64_t first, std::int64_t now);
    void leave(unsigned node, std::int64_t now);
    void look_for_the_dead(std::int64_t now);
    void end_served(std::int64_t now);
    [[nodiscard]] bool resolve_differences(std::int64_t now);
    void note_absence(std::int64_t now);
    [[nodiscard]] bool agrees(const Header& header, const Status& status, std::int64_t now);

    // Statuses
    void send_status(std::int64_t now);
    void send_status(Status::State state, std::int64_t now);
    std::int64_t heartbeat_ns() const noexcept {
        return std::max<std::int64_t>(own_.config.dead_ns / kStatusesADeath, 1);
    }
    void say_again(std::int64_t now) noexcept;

    CoreOwn own_;
    const Authenticator& authenticator_;
    Answers answers_;
    Joiner joiner_;
    std::vector<Pending> pending_;
    std::int64_t member_since_ns_ = 0;
    std::int64_t returned_until_ns_ = CoreOwn::kLongAgo;  ///< it was away until not long ago
    unsigned statuses_ = 0;
    std::int64_t first_ns_ = 0;        ///< when the first incarnation began, in the caller's clock
    std::uint64_t first_wall_ns_ = 0;  ///< and on the wall
    std::int64_t status_due_ns_ = 0;
    std::int64_t status_interval_ns_ = kStatusNs;  ///< to the status after the next one
    std::int64_t look_due_ns_ = 0;
    ExchangeCounters former_;  ///< of former incarnations
};

}  // namespace rmem::udp
