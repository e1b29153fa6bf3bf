// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/tap.hpp"

#include <algorithm>
#include <limits>

namespace rmem::udp {

namespace {

constexpr std::uint32_t kGap = 4;  // beside the flags of LogRecord

}  // namespace

LogRecord packed(const TappedWrite& write) noexcept {
    constexpr std::int64_t kMaxNs = std::numeric_limits<std::uint32_t>::max();
    LogRecord record;
    record.written_ns = write.written_ns;
    record.offset = write.offset;
    record.words = write.words;
    if (write.is_interrupt) record.flags |= LogRecord::kInterrupt;
    if (write.is_me_last) record.flags |= LogRecord::kMeLast;
    if (write.has_more) record.flags |= LogRecord::kMore;
    if (write.is_gap) record.flags |= kGap;
    record.flags |= LogRecord::flags_of(write.part);
    record.delay_ns = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(write.applied_ns - write.written_ns, 0, kMaxNs));
    record.queued_words = write.origin;
    return record;
}

TappedWrite unpacked(const LogRecord& record) noexcept {
    TappedWrite write;
    write.origin = record.queued_words;
    write.written_ns = record.written_ns;
    if (__builtin_add_overflow(record.written_ns, std::int64_t{record.delay_ns},
                               &write.applied_ns)) {
        write.applied_ns = record.written_ns;
    }
    write.offset = record.offset;
    write.words = record.words;
    write.part = record.part();
    write.is_interrupt = (record.flags & LogRecord::kInterrupt) != 0;
    write.is_me_last = (record.flags & LogRecord::kMeLast) != 0;
    write.has_more = (record.flags & LogRecord::kMore) != 0;
    write.is_gap = (record.flags & kGap) != 0;
    return write;
}

bool listen(Ring& ring, std::int64_t now) noexcept {
    // relaxed is enough: a time by itself
    ring.board().tap_until_ns.store(now + Tap::kLeaseNs, std::memory_order_relaxed);
    // (2) - this acquire-load synchronizes-with the release-store (1)
    return ring.board().tap_open.load(std::memory_order_acquire) != 0;
}

Tap::Tap(Ring& ring) : board_(ring.board()), log_(LogArea(ring.tap(), kTapBytes)) {
    // relaxed is enough: a listener waits until this engine opens it again
    board_.tap_open.store(0, std::memory_order_relaxed);
}

void Tap::keep(std::int64_t now) noexcept {
    // relaxed is enough: a time by itself
    const bool is_wanted = board_.tap_until_ns.load(std::memory_order_relaxed) > now;
    if (is_wanted == is_open_) return;
    is_open_ = is_wanted;
    if (is_open_) show_gap(now);
    // (1) - this release-store synchronizes-with the acquire-load (2): what is not shown is in the
    // bank
    board_.tap_open.store(is_open_ ? 1 : 0, std::memory_order_release);
}

void Tap::show(const TappedWrite& write, std::span<const std::byte> words) noexcept {
    LogRecord record = packed(write);
    const std::uint32_t flags = record.flags;
    const std::byte* from = words.data();
    for (std::size_t left = words.size() / kWordBytes; left != 0; left -= record.words) {
        record.words = static_cast<std::uint32_t>(std::min<std::size_t>(left, kMaxRecordWords));
        record.flags = record.words < left ? flags | LogRecord::kMore : flags;
        append(record, from);
        from += record.words * kWordBytes;
        record.offset += record.words * kWordBytes;
    }
}

void Tap::show_gap(std::int64_t now) noexcept {
    if (!is_open_) return;
    TappedWrite gap;
    gap.written_ns = gap.applied_ns = now;
    gap.words = 1;  // as many as a record has at least
    gap.is_gap = true;
    const std::uint32_t nothing = 0;
    append(packed(gap), &nothing);
}

/// A reader that has not read what is overwritten has lost it.
void Tap::append(const LogRecord& record, const void* words) noexcept {
    if (!log_.fits(LogArea::units_of(record.words))) log_.reclaim(log_.head());
    log_.append(record, words);
}

}  // namespace rmem::udp
