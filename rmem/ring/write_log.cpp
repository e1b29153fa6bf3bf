// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/write_log.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/word_block.hpp"

#include <array>
#include <cstring>

namespace rmem {

namespace {

constexpr std::uint32_t kPad = 0x8000'0000U;  // flag of a record that only fills the array's end

}  // namespace

// ---- Writer

LogWriter::LogWriter(const LogArea& log) noexcept
    : area_(log),
      // relaxed is enough: written by this rank's former incarnation, whose end the rank's lock
      // tells
      head_(area_.header().head.load(std::memory_order_relaxed)),
      place_(area_.place_of(head_)),
      // relaxed is enough: as above
      limit_(area_.header().reclaimed.load(std::memory_order_relaxed) + area_.capacity()) {}

void LogWriter::note_quiet(std::int64_t now) noexcept {
    area_.header().quiet_ns.store(now, std::memory_order_relaxed);  // relaxed is enough: (14)
    // (14) - this release-store synchronizes-with the acquire-load (15)
    area_.header().quiet.store(head_, std::memory_order_release);
}

void LogWriter::reclaim(std::uint64_t position) noexcept {
    if (position > head_ || position + area_.capacity() <= limit_) return;
    limit_ = position + area_.capacity();
    // relaxed is enough: the release-stores write_log.hpp (3) of the overwriting words publish it
    area_.header().reclaimed.store(position, std::memory_order_relaxed);
}

void LogWriter::pad() noexcept {
    // (6) - this release-store synchronizes-with the acquire-loads (4)
    area_.unit(place_).part[1].store(0, std::memory_order_release);
    // (7) - this release-store synchronizes-with the acquire-loads (4)
    area_.unit(place_).part[2].store(kPad, std::memory_order_release);
    head_ += area_.capacity() - place_;
    place_ = 0;
}

void LogWriter::put_words(const void* words, std::uint32_t count) noexcept {
    // (8) - its release-stores synchronize-with the acquire-loads (9)
    store_block(reinterpret_cast<std::byte*>(&area_.unit(place_ + 1)), words, count * kWordBytes);
}

// ---- Reader

LogReader::LogReader(const LogArea& log, Role role) noexcept : area_(log), role_(role) {}

std::uint64_t LogReader::oldest() const noexcept {
    // (10) - this acquire-load synchronizes-with the release-store write_log.hpp (3) of the
    // overwriting words
    return area_.header().reclaimed.load(std::memory_order_acquire);
}

/// Whether what was just read at the position may be of a later record.
bool LogReader::is_overwritten(std::uint64_t position) const noexcept {
    if (oldest() <= position) return false;
    if (role_ == Role::member) return true;
    // A reader that has read a part of a later record sees the head where that record, or the pad
    // before it, begins. (13) - this acquire-load synchronizes-with the release-store
    // write_log.hpp (2)
    const std::uint64_t head = area_.header().head.load(std::memory_order_acquire);
    return head + 2 * LogArea::units_of(kMaxRecordWords) > position + area_.capacity();
}

void LogReader::skip_all() noexcept {
    // (11) - this acquire-load synchronizes-with the release-store write_log.hpp (2)
    seek(area_.header().head.load(std::memory_order_acquire));
}

std::uint64_t LogReader::quiet_before(std::int64_t time_ns) const noexcept {
    // (15) - this acquire-load synchronizes-with the release-store (14)
    const std::uint64_t quiet = area_.header().quiet.load(std::memory_order_acquire);
    // relaxed is enough: a later time than that of this position keeps more
    return area_.header().quiet_ns.load(std::memory_order_relaxed) < time_ns ? quiet : 0;
}

LogReader::Found LogReader::peek(Entry& entry) noexcept {
    while (refresh()) {
        if (head_ - position_ > area_.capacity()) {
            return head_ > position_ ? Found::lapped : Found::corrupt;
        }
        const std::uint64_t place = area_.place_of(position_);
        std::uint64_t parts[4];
        for (unsigned i = 0; i < 4; ++i) {
            // (4) - this acquire-load synchronizes-with the release-stores write_log.hpp (3), (6)
            // and (7)
            parts[i] = area_.unit(place).part[i].load(std::memory_order_acquire);
        }
        if (is_overwritten(position_)) return Found::lapped;
        entry.record.flags = static_cast<std::uint32_t>(parts[2]);
        if ((entry.record.flags & kPad) != 0) {
            position_ += area_.capacity() - place;
            continue;
        }
        entry.record.written_ns = static_cast<std::int64_t>(parts[0]);
        entry.record.offset =
            (parts[1] & ((std::uint64_t{1} << LogWriter::kWordsShift) - 1)) * kWordBytes;
        entry.record.words = static_cast<std::uint32_t>(parts[1] >> LogWriter::kWordsShift);
        entry.record.delay_ns = static_cast<std::uint32_t>(parts[2] >> 32U);
        entry.record.queued_words = static_cast<std::uint32_t>(parts[3] >> 32U);
        entry.position = position_;
        entry.next = position_ + LogArea::units_of(entry.record.words);
        const bool whole = entry.record.words >= 1 && entry.record.words <= kMaxRecordWords &&
                           entry.next <= head_ &&
                           place + LogArea::units_of(entry.record.words) <= area_.capacity();
        return whole ? Found::record : Found::corrupt;
    }
    return Found::none;
}

bool LogReader::load_words(const Entry& entry, std::uint32_t* to) const noexcept {
    const std::uint64_t place = area_.place_of(entry.position);
    if (entry.record.words == 1) {
        // (12) - this acquire-load synchronizes-with the release-store write_log.hpp (3)
        *to = static_cast<std::uint32_t>(area_.unit(place).part[3].load(std::memory_order_acquire));
    } else {
        // (9) - its acquire-loads synchronize-with the release-stores (8)
        load_block(to, reinterpret_cast<const std::byte*>(&area_.unit(place + 1)),
                   entry.record.words * kWordBytes);
    }
    return !is_overwritten(entry.position);
}

bool LogReader::copy_words(const Entry& entry, std::byte* to) const noexcept {
    std::array<std::uint32_t, kMaxRecordWords> copy;
    if (!load_words(entry, copy.data())) return false;
    store_write(to, copy.data(), entry.record.words * kWordBytes);
    return true;
}

}  // namespace rmem
