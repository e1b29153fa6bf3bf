// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The way of a node into a ring: it says that it joins, takes all members' streams and the donor's
/// bank, and knows when it is one of them, or that there is no ring.
///
/// Invariant: the parts of a bank that are here are one donor's.
/// Threads, progress, trust, units: the core's (rmem/link/udp/protocol/core.hpp).

#include "rmem/link/udp/protocol/core_own.hpp"
#include "rmem/link/udp/protocol/snapshot.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace rmem::udp {

inline constexpr std::int64_t kJoinNs =
    10'000'000;                             ///< between two joins; later four times as long
inline constexpr unsigned kNodesAJoin = 8;  ///< of more nodes each makes that longer
/// What a joining node was told by the member that welcomed it.
struct Welcomed {
    unsigned donor = 0;
    std::uint64_t donor_incarnation = 0;
    std::uint64_t ring_incarnation = 0;
    std::int64_t heard_ns = 0;
    NodeSet view;
    std::array<std::uint64_t, kMaxNodes> incarnations{};
};

class RMEM_API Joiner {
public:
    /// What is next: to go on, to begin again as another incarnation, or to be a member.
    enum class Verdict : std::uint8_t { go_on, restart, join };

    explicit Joiner(CoreOwn& own) : own_(own) {}

    /// A new incarnation of this node joins; and it is a member.
    void begin(std::int64_t now);
    void end() noexcept;

    // ---- What comes
    /// False: what is here of the bank goes with no donor's any more.
    [[nodiscard]] bool on_welcome(const Header& header, const Welcome& welcome, std::int64_t now);
    void on_taken(const Header& header, const Greeting& greeting, std::int64_t now);
    void take_answer(const Header& header, const Section& section);
    void note_member(std::int64_t now) noexcept { heard_member_ns_ = now; }
    void note_applied(unsigned origin, const Batch& batch);
    void note_admission(unsigned node, std::uint64_t first) noexcept {
        if (taker_) taker_->note_admission(node, first);
    }
    /// `has_begun`: something of its stream was applied.
    void note_departure(unsigned node, bool has_begun);
    bool has_parts() const noexcept { return taker_ && taker_->parts_here() != 0; }
    bool has_heard_member() const noexcept { return heard_member_ns_ >= 0; }

    // ---- Timers
    /// When advance() is to be called.
    std::int64_t due_ns() const noexcept {
        return taker_ && all_have_admitted() ? taker_->request_due_ns() : kNever;
    }
    /// The time for which its timers were late does not count.
    void excuse(std::int64_t now) noexcept;
    /// Nobody is there whose ring it could join.
    [[nodiscard]] bool may_form(std::int64_t now) noexcept;
    bool is_of_other_ring(unsigned node) const noexcept;
    [[nodiscard]] Verdict advance(std::int64_t now);
    /// To be a member of.
    NodeSet ring() const noexcept;
    std::uint64_t ring_incarnation() const noexcept { return welcomed_->ring_incarnation; }

    // ---- Saying so
    std::int64_t join_due_ns() const noexcept { return join_due_ns_; }
    /// Somebody is there who has not met this node.
    void join_again(std::int64_t now) noexcept {
        join_due_ns_ = std::min(join_due_ns_, std::max(now, joined_at_ns_ + join_ns()));
    }
    void send_join(std::int64_t now);
    void send_greetings(std::int64_t now);

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    bool all_have_admitted() const noexcept;
    bool is_of_ring(unsigned node) const noexcept;
    bool knows_rings() const noexcept;
    bool all_are_joining(std::int64_t now) const noexcept;
    void request(std::int64_t now);
    /// Each join is answered by all: in a large ring they are rarer.
    std::int64_t join_ns() const noexcept {
        return kJoinNs * std::max(own_.config.exchange.nodes / kNodesAJoin, 1U);
    }

    CoreOwn& own_;
    std::int64_t heard_member_ns_ = -1;
    std::int64_t taken_ns_ =
        CoreOwn::kLongAgo;  ///< when it heard last that its number is another's
    /// Since when others say so again and again.
    std::int64_t taken_since_ns_ = CoreOwn::kLongAgo;
    std::uint64_t cookie_ = 0;
    unsigned joins_ = 0;                             ///< sent in this incarnation
    std::int64_t joined_at_ns_ = CoreOwn::kLongAgo;  ///< when the last was sent
    std::int64_t join_due_ns_ = kNever;
    std::int64_t joining_since_ns_ = 0;  ///< less the time for which its timers were late
    std::int64_t excused_ns_ = 0;        ///< up to then
    std::optional<Welcomed> welcomed_;
    MemberIncarnation parts_from_;        ///< whose bank the parts are of that are here
    bool must_restart_ = false;           ///< among them are words that may be another ring's
    std::optional<SnapshotTaker> taker_;  ///< none: it is a member
};

}  // namespace rmem::udp
