// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A bridge's end in its ring: the node, the log that writes are taken from, the place where they
/// are made, the table of the ring's bridges, and the counters.
///
/// Thread safety: one thread.
/// Errors: `rmem::Error` from construction: what opening a node and check_places() throw. Later:
///   not_permitted when the ring has dropped the node; the process ends then, and its service
///   manager starts it once more.
/// Progress: nothing here waits for another node but the construction.
/// Units: nanoseconds of CLOCK_MONOTONIC.

#include "bridge/counters.hpp"
#include "bridge/end.hpp"
#include "bridge/table.hpp"
#include "rmem/node.hpp"
#include "tools/bridge/bridge_config.hpp"
#include "tools/record/record_source.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tools {

/// Throws invalid_argument where a region or the table is not within the ring's memory, or one lies
/// in the other.
void check_places(const BridgedRingConfig& config, std::uint64_t memory, std::uint64_t table_bytes);

/// The same, and what is wrong with its settings, as the ring would be if it were opened now.
void check_unopened(const BridgedRingConfig& config);

/// How a source's writes are noticed.
enum class Noticing { asleep, awake };

class BridgedRing {
public:
    /// Between two beats, at each of which the table is looked at.
    static constexpr std::int64_t kTableNs = 50'000'000;
    /// For so long a region waits for slots of other bridges that begin at the same time.
    static constexpr std::int64_t kSettleNs = 200'000'000;
    /// Between looks at the memory of link direct.
    static constexpr std::int64_t kSampleNs = 1'000'000;
    /// The longest time between looks at a log, whose listeners keep saying that they are there.
    static constexpr std::int64_t kLongestLookNs = 10'000'000;

    BridgedRing(const BridgedRingConfig& config, Noticing noticing);
    ~BridgedRing();
    BridgedRing(const BridgedRing&) = delete;
    BridgedRing& operator=(const BridgedRing&) = delete;

    bridge::End& end() { return end_; }
    const rmem::Node& node() const { return node_; }

    /// Readable when there may be something to look at, until take_interrupts().
    int fd() const { return fd_; }
    void take_interrupts(std::int64_t now_ns);
    /// When the next look is due.
    std::int64_t look_ns() const { return look_ns_; }
    /// Gives the end what was written in the ring. True if there was any, also in
    /// take_interrupts(), or the next look should follow at once.
    bool look(std::int64_t now_ns);
    /// Writes what has come from the other end. True if there was any.
    bool make(std::int64_t now_ns);
    /// The beat, the table, the counters, when they are due.
    void keep(std::int64_t now_ns);
    std::int64_t keep_ns() const { return keep_ns_; }

private:
    struct OwnSlot {
        bridge::Slot shown;
        std::uint32_t frames = 0;
        std::int64_t waiting_since_ns = 0;
    };

    void begin(std::int64_t now_ns);
    void take(const rmem::RecordedWrite& write, std::int64_t now_ns);
    rmem::WriteResult make_all(const bridge::Delivery& delivery, std::int64_t now_ns);
    bridge::StampBytes stamp(std::size_t region, const bridge::Delivery& delivery,
                             std::int64_t now_ns);
    [[nodiscard]] bool is_done(rmem::WriteResult result) const;
    void judge(std::size_t region, std::int64_t now_ns);
    bridge::Slot::State state_of_received(std::size_t region) const;
    std::string problem_of(std::size_t region, const bridge::Path& path) const;
    void show(std::size_t index, const bridge::Slot& slot);
    std::uint64_t slot_place(std::size_t index) const;
    std::size_t slot_of_received(std::size_t region) const { return config_.sent.size() + region; }
    std::uint64_t table_bytes() const { return node_.config().nodes * bridge::kTableBytes; }
    void count(std::int64_t now_ns);

    const BridgedRingConfig config_;
    rmem::Node node_;
    const bool is_sampled_;  ///< on link direct there is no log of what is written
    const std::uint64_t slots_at_;
    bridge::End end_;
    std::unique_ptr<RecordSource> source_;
    int fd_ = -1;
    std::int64_t look_ns_ = 0, keep_ns_ = 0;
    bool has_missed_ = false;
    bool has_taken_ = false;           ///< since look() said so
    std::vector<std::uint64_t> hops_;  ///< of what is sent
    std::vector<OwnSlot> slots_;       ///< of what is sent, then of what is received
    bridge::TableWatch watch_;
    std::vector<std::byte> table_;
    std::uint32_t beat_ = 0;
    std::uint64_t missed_ = 0, no_room_ = 0;
    std::array<std::uint64_t, bridge::kCounterNames.size()> before_{};  ///< of former bridges
    // Of make_all(): allocated once.
    std::vector<rmem::GroupedWrite> group_;
    std::vector<std::size_t> regions_;
    std::vector<bridge::StampBytes> stamps_;
};

}  // namespace tools
