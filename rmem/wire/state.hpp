// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The wire model's inside: the places of packets on the ring, and the next events.
///
/// Thread safety: none.
/// Invariants:    of each packet at most one hop event is pending, and at most one delivery for
///                each node; the packet ends with its last event, a record with its last packet.
/// Units:         picoseconds since base_ns_.
/// Errors:        none.
/// Source:        docs/design/wire-model.md, whose terms these are.

#include "rmem/base/check.hpp"
#include "rmem/base/limits.hpp"
#include "rmem/wire/model.hpp"
#include "rmem/wire/queue.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace rmem {

namespace detail {

inline constexpr std::uint64_t kPsPerNs = 1000;
inline constexpr std::uint32_t kNoPacket = UINT32_MAX;
inline constexpr std::uint32_t kEverywhere = UINT32_MAX;
/// In a delivery's detail; the rest counts the packet's writes.
inline constexpr std::uint16_t kStrayBit = 0x8000;
inline constexpr std::uint16_t kCursorBits = 0x7fff;

/// A write on its way: in the TX FIFO, in packets, or both.
struct WireRecord {
    std::uint64_t stored = 0;     ///< by the host
    std::uint64_t held_back = 0;  ///< by a fault: that much later into the TX FIFO
    std::uint64_t entry = 0;      ///< into the TX FIFO
    std::uint64_t tag = 0;
    std::uint64_t end_word = 0;  ///< of the origin's stream of words, once admitted
    std::uint64_t word_address = 0;
    std::uint32_t words = 0;
    std::uint32_t packets = 0;            ///< that still hold words of it
    std::uint32_t reaches = kEverywhere;  ///< how far from the source, when it is lost
    bool interrupt = false;
    bool lost = false;
};

/// A slice of one origin's stream of words, on the ring.
struct WirePacket {
    std::uint64_t first_word = 0;
    std::uint64_t first_record = 0;
    std::uint64_t last_record = 0;
    std::uint64_t start = 0;  ///< its first bit left the source
    std::uint32_t words = 0;
    std::uint32_t events = 0;  ///< that name it; it ends with the last one
    std::uint32_t age = 0;
    std::uint16_t origin = 0;
    bool open = false;     ///< PLUS: still growing at its source
    bool circled = false;  ///< has gone past its bypassed source
};

struct WireNode {
    bool alive = true;
    bool armed = false;             ///< an insertion event is pending
    bool report_next_sent = false;  ///< once, to writers that wait for room
    std::array<bool, 2> cable_up{true, true};
    std::uint8_t cable = 0;  ///< the ring that the segment behind this node uses

    // The way to the next live node; recomputed when the ring changes.
    std::uint16_t next = 0;
    bool reaches_next = true;
    std::uint64_t path_ps = 0;

    // The output link.
    std::uint64_t free_at = 0;
    std::uint32_t open_packet = kNoPacket;  ///< sends this one, which may still grow
    std::uint64_t open_start = 0;

    // The input, after a change: no head is through earlier than the one before it has passed.
    std::uint64_t input_floor = 0;
    std::uint32_t floor_packet = kNoPacket;  ///< the one before, while it may grow
    std::uint64_t floor_start = 0;           ///< when its head is through

    // The own TX FIFO, a stream of words.
    NumberedRing<WireRecord> records;
    std::uint64_t next_record = 0;     ///< holds the next word to send
    std::uint64_t unadmitted = 0;      ///< the first record that may not fit
    std::uint64_t entered_record = 0;  ///< for the high-water mark
    std::uint64_t submitted_words = 0;
    std::uint64_t admitted_words = 0;
    std::uint64_t started_words = 0;
    std::uint64_t last_time = 0;
    std::uint64_t last_entry = 0;

    // Fair insertion.
    std::uint32_t own_packet = kNoPacket;  ///< open one
    std::uint64_t own_start = 0;
    std::uint64_t own_end = 0;
    std::uint32_t own_words = 0;
    std::uint64_t pace = 0;     ///< no own packet starts earlier, even alone
    std::uint64_t paid_at = 0;  ///< when the link's packets and their gaps are paid for
    std::uint64_t turn_at = 0;  ///< when every transmitter seen has had a turn
    std::array<std::uint64_t, kMaxNodes / 64> seen{};  ///< origins, since the last own packet
    std::array<std::uint64_t, kMaxNodes / 64> seen_before{};  ///< in the interval before
    std::uint64_t seen_cost = 0;

    WireCounters counters;
};

}  // namespace detail

class WireModel::State {
    using Record = detail::WireRecord;
    using Packet = detail::WirePacket;
    using Node = detail::WireNode;
    using WireEvent = detail::WireEvent;
    using WireEventKind = detail::WireEventKind;
    using WireEventQueue = detail::WireEventQueue;
    static constexpr std::uint64_t kPsPerNs = detail::kPsPerNs;
    static constexpr std::uint32_t kNoPacket = detail::kNoPacket;
    // 64 bits of picoseconds last for 213 days; long before that the origin of time moves on.
    // Packets still under way began less than the margin ago.
    static constexpr std::uint64_t kRebaseAfter = std::uint64_t{1} << 61;
    static constexpr std::uint64_t kRebaseMargin = 1'000'000'000'000;

public:
    State(const TimingProfile& profile, std::uint32_t nodes, std::int64_t start_ns);

    WireSubmit submit(const WireWrite& write);
    void run(std::int64_t until_ns, Call call, void* target);
    void schedule_fault(std::uint32_t node, std::uint16_t detail, std::int64_t time_ns);

    std::int64_t to_ns(std::uint64_t ps) const noexcept {
        return base_ns_ + static_cast<std::int64_t>((ps + kPsPerNs - 1) / kPsPerNs);
    }
    std::uint64_t to_ps(std::int64_t ns) const noexcept {
        return ns <= base_ns_ ? 0 : static_cast<std::uint64_t>(ns - base_ns_) * kPsPerNs;
    }
    std::int64_t next_time_ns() const noexcept {
        const std::uint64_t next = queue_.next_time();
        return next == WireEventQueue::kNever ? kNever : to_ns(next);
    }
    std::optional<WireOutcome> next_arrival(std::uint32_t node, std::uint32_t origin,
                                            std::int64_t until_ns) const noexcept;
    std::int64_t now_ns() const noexcept { return to_ns(now_); }
    void report_sent(bool on) noexcept { report_sent_ = on; }
    std::uint32_t occupancy(const Node& node) const noexcept;
    std::int64_t room_at(const Node& node, std::uint32_t words) const noexcept;
    std::int64_t next_word_ns(const Node& node) const noexcept;
    void report_next_sent(std::uint32_t node) noexcept { nodes_[node].report_next_sent = true; }
    const std::vector<Node>& nodes() const noexcept { return nodes_; }
    const TimingProfile& profile() const noexcept { return profile_; }

    /// A fault's detail; a cable's adds 2 * ring + up to kCable.
    enum FaultDetail : std::uint16_t { kDies = 0, kRevives, kCable };

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    void handle(const WireEvent& event);

    // The TX FIFO.
    void enter(std::uint16_t id, std::uint64_t number);
    void admit(Node& node, Record& record);
    void on_entry(std::uint16_t id);
    void note_entered(Node& node);
    void skip_lost(Node& node);
    bool sendable(const Node& node) const noexcept;
    std::uint64_t unstarted_of_packet(const Node& node) const noexcept;
    void refuse(Node& node, std::uint64_t number, WireLoss cause);
    void drop_queue(std::uint16_t id);
    void cancel_turns(std::uint16_t id);

    // Own packets.
    void arm(std::uint16_t id);
    void on_insertion(std::uint16_t id);
    void start_packet(std::uint16_t id);
    bool may_append(const Node& node, const Packet& packet) const noexcept;
    void append(Node& node, Packet& packet);
    bool may_grow(const Node& node, std::uint32_t index) const noexcept;
    void on_extend(const WireEvent& event);
    void close(Node& node, std::uint32_t index);

    // Passing packets.
    std::uint64_t free_at(const Node& node) const noexcept;
    void occupy(Node& node, std::uint32_t index, std::uint64_t leave);
    std::uint64_t input_floor(const Node& node) const noexcept;
    void follow(Node& next, std::uint32_t index, std::uint64_t head);
    void on_hop(const WireEvent& event);
    void give_way(Node& node, const Packet& packet, std::uint64_t leave);
    void take_turn(Node& node);
    static std::uint64_t own_turn(const Node& node) noexcept {
        return std::min(node.paid_at, node.turn_at);
    }
    std::uint64_t forward(std::uint32_t index, std::uint16_t from, std::uint64_t leave,
                          std::uint16_t cursor = 0);
    void on_delivery(const WireEvent& event);
    std::optional<WireOutcomeKind> kind_of(const WireEvent& delivery) const noexcept;
    void expect(std::uint32_t index, std::uint16_t id, std::uint64_t head, std::uint16_t detail);

    // Faults, and the ends of things.
    void on_fault(const WireEvent& event);
    void bypass(std::uint16_t id);
    void rejoin(std::uint16_t id);
    void set_cable(std::uint16_t id, std::uint8_t ring, bool up);
    /// One segment failing while packets are on it.
    struct Cut {
        std::uint16_t sender = 0;
        std::uint16_t receiver = 0;
        bool healed = false;
        std::uint64_t busy_until = 0;  ///< sending again
        std::vector<WireEvent> deliveries;
    };
    void damage(std::uint16_t from, bool healed);
    [[nodiscard]] bool damage_head(const WireEvent& hop, std::uint16_t arrived, Cut* cut);
    void damage_body(const WireEvent& delivery, const Cut& cut);
    std::uint16_t live_before(std::uint16_t id) const noexcept;
    void lose_rest(std::uint32_t index, std::uint64_t first_record, std::uint16_t at);
    void lose(Node& origin, std::uint64_t number, std::uint16_t at, WireLoss cause);
    void retrace();
    void on_instant(std::uint16_t origin);
    std::uint32_t new_packet();
    void release(std::uint32_t index);
    void drop_finished(Node& node);
    void rebase();

    void push(WireEventKind kind, std::uint64_t time, std::uint16_t node,
              std::uint32_t packet = kNoPacket, std::uint16_t detail = 0) {
        WireEvent event;
        event.time = std::max(time, now_);
        event.packet = packet;
        event.node = node;
        event.detail = detail;
        queue_.push(kind, event);
    }
    void emit(WireOutcomeKind kind, WireLoss cause, std::uint16_t node, std::uint16_t origin,
              const Record& record) {
        RMEM_CHECK_IF(false, kind != WireOutcomeKind::arrived || now_ >= record.stored);
        call_(target_, outcome_at(now_, kind, cause, node, origin, record));
    }
    WireOutcome outcome_at(std::uint64_t time, WireOutcomeKind kind, WireLoss cause,
                           std::uint16_t node, std::uint16_t origin,
                           const Record& record) const noexcept {
        WireOutcome outcome;
        outcome.time_ns = to_ns(time);
        outcome.tag = record.tag;
        outcome.node = node;
        outcome.origin = origin;
        outcome.kind = kind;
        outcome.cause = cause;
        outcome.interrupt = record.interrupt;
        return outcome;
    }
    /// How far behind its source a node lies; the source itself, when it comes round, farthest.
    std::uint32_t distance(std::uint16_t origin, std::uint16_t id) const noexcept {
        const auto count = static_cast<std::uint32_t>(nodes_.size());
        const std::uint32_t steps = id + count - origin;
        return id == origin ? count : steps >= count ? steps - count : steps;
    }
    std::uint16_t after(std::uint32_t id) const noexcept {
        return static_cast<std::uint16_t>(id + 1 == nodes_.size() ? 0 : id + 1);
    }

    TimingProfile profile_;
    std::int64_t base_ns_;  ///< picosecond 0
    std::uint64_t now_ = 0;
    std::uint64_t gap_ = 0;
    std::vector<std::uint64_t> tail_;  ///< from a packet's first bit to the end of its n-th word
    std::vector<Node> nodes_;
    std::vector<Packet> packets_;
    std::vector<std::uint32_t> free_packets_;
    WireEventQueue queue_;
    Call call_ = nullptr;
    void* target_ = nullptr;
    bool report_sent_ = false;
};

}  // namespace rmem
