// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/direct/card.hpp"

#include "rmem/base/word_block.hpp"

#include <cstring>

namespace rmem {

namespace {

std::uint32_t word_at(const std::byte* from) {
    std::uint32_t value = 0;
    std::memcpy(&value, from, sizeof value);
    return value;
}

}  // namespace

DirectCard::DirectCard(const std::shared_ptr<Seat<DirectMemory>>& seat)
    : HostCard(membership_of(seat)),
      ring_(member_.ring()),
      node_(member_.node()),
      rank_(member_.rank()),
      bank_(ring_.bank(node_)),
      sent_(member_.slot().link),
      sleepers_(ring_),
      waiter_(ring_, rank_),
      board_(ring_, node_, rank_),
      samples_(member_),
      block_bytes_(sent_.get(LinkCounter::bytes_sent) -
                   sent_.get(LinkCounter::writes_sent) * kWordBytes),
      interrupts_(ring_, rank_, board_) {}

void DirectCard::write(std::size_t offset, const void* from, std::size_t bytes) {
    const auto* data = static_cast<const std::byte*>(from);
    if (bytes == kWordBytes) return write_word(offset, word_at(data));
    if (filter_) return store_changed(offset, data, bytes);
    store_block(bank_ + offset, data, bytes);
    block_bytes_ += bytes - kWordBytes;
    const std::uint64_t writes = sent_.get(LinkCounter::writes_sent) + 1;
    count(writes);
    if ((writes & (kStampEvery - 1)) == 0) usual_ = 0;  // the next word is stamped instead
    if (sleepers_.is_wanted(offset, bytes)) [[unlikely]]
        tell(offset, bytes);
}

/// No thread sleeps for a register, and its lines are not counted as watched.
void DirectCard::send(unsigned number, const SentInterrupt& sent) {
    const std::size_t offset = config().register_offset(node_, number);
    store_block(bank_ + offset, &sent, sizeof sent);
    block_bytes_ += sizeof sent - kWordBytes;
    count(sent_.get(LinkCounter::writes_sent) + 1);
    light_fence();
    if (board_.anyone_watches()) board_.written(offset, sizeof sent);
}

void DirectCard::tell(std::size_t offset, std::size_t bytes) {
    if (board_.anyone_watches()) board_.written(offset, bytes);
    sleepers_.wake(offset, bytes);
}

void DirectCard::write_unusual(std::size_t offset, std::uint32_t value) {
    if (filter_) {
        return store_changed(offset, reinterpret_cast<const std::byte*>(&value), kWordBytes);
    }
    usual_ = kStampEvery - 1;
    samples_.stamp(offset, value);
    store_word(offset, value, sent_.get(LinkCounter::writes_sent) + 1);
}

void DirectCard::write_part_unusual(std::size_t offset, std::uint32_t value, WordPart part) {
    // relaxed is enough: it is only compared
    const std::uint32_t before = word(offset).load(std::memory_order_relaxed);
    const std::uint32_t after = with_part(before, value, part);
    if (filter_) {
        if (after == before && !board_.is_marked(offset, kWordBytes))
            return sent_.add(LinkCounter::writes_filtered);
    } else {
        usual_ = kStampEvery - 1;
        samples_.stamp(offset, after);
    }
    store_part(bank_ + offset, value, part);
    note(offset, sent_.get(LinkCounter::writes_sent) + 1);
}

void DirectCard::store_changed(std::size_t offset, const std::byte* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += kWordBytes) {
        const std::size_t place = offset + at;
        const std::uint32_t value = word_at(from + at);
        // relaxed is enough: it is only compared
        const bool is_same = word(place).load(std::memory_order_relaxed) == value;
        if (is_same && !board_.is_marked(place, kWordBytes)) {
            sent_.add(LinkCounter::writes_filtered);
        } else {
            store_word(place, value, sent_.get(LinkCounter::writes_sent) + 1);
        }
    }
}

bool DirectCard::flush(Deadline) {
    sent_.add(LinkCounter::flushes);
    return true;
}

void DirectCard::report(const BoundViolation& late) {
    if (on_violation_) on_violation_(late);
}

}  // namespace rmem
