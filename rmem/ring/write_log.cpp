// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/write_log.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/word_block.hpp"

#include <array>
#include <cstring>

namespace rmem {

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
    // (6) - this release-store synchronizes-with the acquire-load write_log.hpp (4)
    area_.unit(place_).part[1].store(0, std::memory_order_release);
    // (7) - this release-store synchronizes-with the acquire-load write_log.hpp (4)
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

/// Whether what was just read at the position, which may be overwritten, may be of a later record.
bool LogReader::is_beyond(std::uint64_t position) const noexcept {
    if (role_ != Role::observer) return true;
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

bool LogReader::load_words(const Entry& entry, std::uint32_t* to) const noexcept {
    if (entry.record.words == 1) {
        *to = entry.value;
        return true;
    }
    // (9) - its acquire-loads synchronize-with the release-stores (8)
    load_block(to, reinterpret_cast<const std::byte*>(&area_.unit(entry.place)),
               entry.record.words * kWordBytes);
    return !is_overwritten(entry.position);
}

bool LogReader::copy_words(const Entry& entry, std::byte* to) const noexcept {
    std::array<std::uint32_t, kMaxRecordWords> copy;
    if (!load_words(entry, copy.data())) return false;
    if (entry.record.part() != kWholeWord) {
        store_part(to, copy.front(), entry.record.part());
        return true;
    }
    store_block(to, copy.data(), entry.record.words * kWordBytes);
    return true;
}

}  // namespace rmem
