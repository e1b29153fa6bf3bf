// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The table of a bridged ring: what its bridges take from the ring and bring to it, and whether
/// words would go in a circle. docs/design/bridge.md has the terms.
///
/// The table lies in the user's memory where the configuration says, kTableBytes for each node of
/// the ring. A node writes its own part alone, kSlots slots, one for each region. A slot's first
/// words say what it is, under a checksum, since several words are not written in one piece; the
/// others change by themselves: a beat, and the stamp of the region's last frame.
///
/// Invariants, executed: a table is whole slots; a path has at most one hop more than it may.
/// Trust: a slot is another node's; one that is not whole counts as empty.
/// Thread safety: values; a TableWatch has one thread.
/// Units: bytes of the ring's memory, nanoseconds.

#include "bridge/message.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace bridge {

inline constexpr std::size_t kSlotBytes = 128;
inline constexpr std::size_t kSlots = kMaxRegions;  ///< of a node
inline constexpr std::size_t kTableBytes = kSlots * kSlotBytes;
/// Where a slot has its beat, a word, and then its stamp.
inline constexpr std::size_t kBeatAt = 96;
inline constexpr std::size_t kStampAt = 100;

struct Slot {
    enum class Use : std::uint8_t { none, takes, brings };
    enum class State : std::uint8_t { waiting, open, refused };

    Use use = Use::none;
    State state = State::waiting;
    std::uint64_t offset = 0, bytes = 0;
    std::uint64_t hop = 0;
    Path path;  ///< of what a region brings

    bool operator==(const Slot&) const = default;
};

/// What a slot says first: kBeatAt bytes.
using SlotBytes = std::array<std::byte, kBeatAt>;
[[nodiscard]] SlotBytes encoded(const Slot& slot);
[[nodiscard]] std::optional<Slot> read_slot(std::span<const std::byte> bytes);

/// Of the last frame that was brought to a region.
struct Stamp {
    std::uint32_t frames = 0;
    std::uint32_t hops = 0;
    std::uint64_t stored_wall_ns = 0;  ///< when the source stored it, since 1970, UTC
    std::uint32_t age_us = 0;          ///< when it was written here
    std::uint32_t error_us = 0;        ///< of both, at most; UINT32_MAX: the clocks are not known
};
inline constexpr std::size_t kStampBytes = 24;
static_assert(kStampAt + kStampBytes <= kSlotBytes);
using StampBytes = std::array<std::byte, kStampBytes>;
[[nodiscard]] StampBytes encoded(const Stamp& stamp);
[[nodiscard]] Stamp read_stamp(std::span<const std::byte, kStampBytes> bytes);

/// The slots of a ring's bridges that run.
class TableWatch {
public:
    /// A slot whose beat has not changed for so long is of a bridge that has ended.
    static constexpr std::int64_t kGoneNs = 1'000'000'000;

    /// The table, kTableBytes for each node, as it is now.
    void look(std::span<const std::byte> table, std::int64_t now_ns);
    [[nodiscard]] const std::vector<Slot>& live() const { return live_; }

private:
    struct Seen {
        std::uint32_t beat = 0;
        std::int64_t since_ns = 0;
        bool is_known = false;
    };

    std::vector<Seen> seen_;
    std::vector<Slot> live_;
};

/// The hops that the words of a range have behind them, and at last `own`. Longer than kMaxHops by
/// one if there are more: then it is to be refused.
[[nodiscard]] Path path_to(std::span<const Slot> live, std::uint64_t offset, std::uint64_t bytes,
                           std::uint64_t own);

/// The slot whose bridge would take words of that range around to where they came from, and has
/// more right to than the hop that would bring them: null if there is none.
[[nodiscard]] const Slot* circle_through(std::span<const Slot> live, std::uint64_t offset,
                                         std::uint64_t bytes, const Path& path, Slot::State state);

}  // namespace bridge
