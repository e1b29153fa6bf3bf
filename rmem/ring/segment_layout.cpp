// SPDX-License-Identifier: Apache-2.0
// Where things lie in a ring's segment.

#include "rmem/base/limits.hpp"
#include "rmem/ring/delivery_board.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/segment.hpp"
#include "rmem/ring/waiting/word_sleepers.hpp"
#include "rmem/ring/write_log.hpp"
#include "rmem/ring/write_stamps.hpp"

namespace rmem {

namespace {

constexpr std::size_t kSleeperEntriesBytes =
    round_up(kMaxWriters * sizeof(std::atomic<std::uint64_t>), kLineBytes);

}  // namespace

SegmentLayout::SegmentLayout(const RingConfig& config) {
    const unsigned areas = config.is_remote() ? 1 : config.nodes;
    attention = kSegmentHeaderBytes;
    stamps = round_up(attention + kMaxSeats * sizeof(std::uint32_t), kLineBytes);
    sleepers = stamps + WriteStamps::kBytes;
    constexpr std::size_t kCounts = sizeof(SleeperCounts) + sizeof(DeliveryBoard);
    ranks = round_up(sleepers + kSleeperEntriesBytes + kCounts, kPageBytes);
    nodes = round_up(ranks + config.seats() * sizeof(RankSlot), kPageBytes);
    board = round_up(nodes + config.nodes * sizeof(NodeSlot), kPageBytes);
    log_stride = config.link == LinkKind::ring ? kLogBytes
                 : config.is_remote()          ? kClientLogBytes
                                               : 0;
    log_headers = round_up(board + (config.is_remote() ? sizeof(udp::NodeBoard) : 0), kPageBytes);
    const std::size_t headers = log_stride != 0 ? config.writers() * sizeof(LogHeader) : 0;
    logs = round_up(log_headers + headers, kPageBytes);
    tap = logs + config.writers() * log_stride;
    interrupts = tap + (config.is_remote() ? kTapBytes : 0);
    interrupt_stride = round_up(interrupt_area_bytes(config), kPageBytes);
    bank_stride = round_up(config.bank_bytes(), kPageBytes);
    banks = interrupts + areas * interrupt_stride;
    reserved = twins = total = banks + config.banks() * bank_stride;
    if (config.link == LinkKind::direct) return;
    twin_stride = round_up(config.user_bytes, kPageBytes);
    total = twins + config.banks() * twin_stride;
    if (config.link != LinkKind::ring) return;
    // Each bank has its node's area behind it. A node touches that when it joins, so who looks for
    // the touched parts of a bank (rmem/ring/touched_part.hpp) need not look through all banks.
    banks = interrupts;
    interrupts += bank_stride;
    bank_stride = interrupt_stride = bank_stride + interrupt_stride;
}

LogArea Ring::log(unsigned rank) const noexcept {
    return {reinterpret_cast<LogHeader*>(base_ + layout_.log_headers)[rank],
            base_ + layout_.logs + rank * layout_.log_stride, layout_.log_stride};
}

RankSlot& Ring::rank(unsigned r) const noexcept {
    return reinterpret_cast<RankSlot*>(base_ + layout_.ranks)[r];
}

NodeSlot& Ring::node(unsigned n) const noexcept {
    return reinterpret_cast<NodeSlot*>(base_ + layout_.nodes)[n];
}

std::byte* Ring::interrupt_area(unsigned node) const noexcept {
    const unsigned index = config_.is_remote() ? 0 : node;
    return base_ + layout_.interrupts + index * layout_.interrupt_stride;
}

udp::NodeBoard& Ring::board() const noexcept {
    return *reinterpret_cast<udp::NodeBoard*>(base_ + layout_.board);
}

std::atomic<std::uint32_t>* Ring::attention() const noexcept {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(base_ + layout_.attention);
}

std::atomic<std::uint64_t>* Ring::sleeper_entries() const noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(base_ + layout_.sleepers);
}

SleeperCounts& Ring::sleeper_counts() const noexcept {
    return *reinterpret_cast<SleeperCounts*>(base_ + layout_.sleepers + kSleeperEntriesBytes);
}

DeliveryBoard& Ring::delivery() const noexcept {
    return *reinterpret_cast<DeliveryBoard*>(base_ + layout_.sleepers + kSleeperEntriesBytes +
                                             sizeof(SleeperCounts));
}

std::atomic<std::uint64_t>* Ring::stamps() const noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(base_ + layout_.stamps);
}

}  // namespace rmem
