// SPDX-License-Identifier: Apache-2.0
// Where things lie in a ring's segment.

#include "rmem/base/limits.hpp"
#include "rmem/ring/delivery_board.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/ring/map_text.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/owners.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/segment.hpp"
#include "rmem/ring/waiting/word_sleepers.hpp"
#include "rmem/ring/write_log.hpp"
#include "rmem/ring/write_stamps.hpp"

namespace rmem {

namespace {

constexpr std::size_t kSleeperEntriesBytes =
    round_up(kMaxSeats * sizeof(std::atomic<std::uint64_t>), kLineBytes);

/// Of a guest, beside its log.
constexpr std::size_t kGuestBytes = kPageBytes;
static_assert(sizeof(RankSlot) + sizeof(LogHeader) <= kGuestBytes);

}  // namespace

SegmentLayout::SegmentLayout(const RingConfig& config) {
    const unsigned areas = config.is_remote() ? 1 : config.nodes;
    attention = kSegmentHeaderBytes;
    stamps = round_up(attention + kMaxSeats * sizeof(std::uint32_t), kLineBytes);
    sleepers = stamps + WriteStamps::kBytes;
    constexpr std::size_t kCounts = sizeof(SleeperCounts) + sizeof(DeliveryBoard);
    ranks = round_up(sleepers + kSleeperEntriesBytes + kCounts, kPageBytes);
    nodes = round_up(ranks + config.ranks * sizeof(RankSlot), kPageBytes);
    board = round_up(nodes + config.nodes * sizeof(NodeSlot), kPageBytes);
    log_stride = config.link == LinkKind::ring ? kLogBytes
                 : config.is_remote()          ? kClientLogBytes
                                               : 0;
    log_headers = round_up(board + (config.is_remote() ? sizeof(udp::NodeBoard) : 0), kPageBytes);
    const std::size_t headers = log_stride != 0 ? config.ranks * sizeof(LogHeader) : 0;
    logs = round_up(log_headers + headers, kPageBytes);
    tap = logs + config.ranks * log_stride;
    interrupts = tap + (config.is_remote() ? kTapBytes : 0);
    interrupt_stride = round_up(interrupt_area_bytes(config), kPageBytes);
    bank_stride = round_up(config.bank_bytes(), kPageBytes);
    banks = interrupts + areas * interrupt_stride;
    reserved = twins = banks + config.banks() * bank_stride;
    const bool has_logs = config.link != LinkKind::direct;
    if (has_logs) twin_stride = round_up(config.user_bytes, kPageBytes);
    map = twins + config.banks() * twin_stride;
    owners = map + kMaxMapBytes;
    guests = owners + Owners::area_bytes(config);
    const unsigned most_guests = config.seats() - config.ranks;
    guest_logs = guests + most_guests * kGuestBytes;
    total = guest_logs + (has_logs ? most_guests * kClientLogBytes : 0);
    if (config.link != LinkKind::ring) return;
    // Each bank has its node's area behind it. A node touches that when it joins, so who looks for
    // the touched parts of a bank (rmem/ring/touched_part.hpp) need not look through all banks.
    banks = interrupts;
    interrupts += bank_stride;
    bank_stride = interrupt_stride = bank_stride + interrupt_stride;
}

LogArea Ring::log(unsigned rank) const noexcept {
    if (rank >= config_.ranks) {
        return {*reinterpret_cast<LogHeader*>(&this->rank(rank) + 1),
                base_ + layout_.guest_logs + (rank - config_.ranks) * kClientLogBytes,
                kClientLogBytes};
    }
    return {reinterpret_cast<LogHeader*>(base_ + layout_.log_headers)[rank],
            base_ + layout_.logs + rank * layout_.log_stride, layout_.log_stride};
}

void Ring::reserve_log(unsigned guest) {
    const std::size_t at = layout_.guest_logs + (guest - config_.ranks) * kClientLogBytes;
    if (layout_.log_stride != 0) segment().reserve(base_ + at, kClientLogBytes);
}

RankSlot& Ring::rank(unsigned r) const noexcept {
    if (r < config_.ranks) return reinterpret_cast<RankSlot*>(base_ + layout_.ranks)[r];
    const std::size_t place = layout_.guests + (r - config_.ranks) * kGuestBytes;
    return *reinterpret_cast<RankSlot*>(base_ + place);
}

unsigned Ring::seats() const noexcept {
    // (1) - this acquire-load synchronizes-with the release-exchange (2): their slots have memory
    const std::uint32_t rows = delivery().guest_rows.load(std::memory_order_acquire);
    if (rows == 0) return config_.ranks;  // before a division
    return config_.guest_seat(std::min(rows, config_.guest_rows()), 0);
}

void Ring::open_row(unsigned row) {
    std::atomic<std::uint32_t>& rows = delivery().guest_rows;
    unsigned seen = rows.load(std::memory_order_relaxed);  // relaxed is enough: (2) looks again
    if (seen > row) return;
    segment().reserve(base_ + layout_.guests, (row + 1) * config_.guests_in_row() * kGuestBytes);
    // (2) - this release-exchange synchronizes-with the acquire-load (1)
    while (!rows.compare_exchange_weak(seen, std::max(seen, row + 1), std::memory_order_release)) {
    }
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
