// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/direct/card.hpp"

#include "rmem/base/fence.hpp"

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
      attention_(ring_.attention()),
      waiter_(ring_, rank_),
      board_(ring_, node_, rank_),
      samples_(member_),
      interrupts_(ring_, rank_, board_) {}

void DirectCard::write(std::size_t offset, const void* from, std::size_t bytes) {
    const auto* data = static_cast<const std::byte*>(from);
    if (filter_) return store_changed(offset, data, bytes);
    if (bytes == kWordBytes && --until_stamp_ == 0) {
        until_stamp_ = kStampEvery;
        samples_.stamp(offset, word_at(data));
    }
    store(offset, data, bytes);
}

void DirectCard::store(std::size_t offset, const std::byte* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += kWordBytes) {
        // (1) - this release-store synchronizes-with the acquire-loads rmem/node.cpp (1) and
        // tools/record/record_source.cpp (1) of a reader
        word(offset + at).store(word_at(from + at), std::memory_order_release);
    }
    sent_.add(LinkCounter::writes_sent);
    sent_.add(LinkCounter::bytes_sent, bytes);
    if (board_.anyone_watches()) [[unlikely]] {
        board_.written(offset, bytes);
    }
}

void DirectCard::store_changed(std::size_t offset, const std::byte* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += kWordBytes) {
        const std::size_t place = offset + at;
        // relaxed is enough: it is only compared
        const bool is_same = word(place).load(std::memory_order_relaxed) == word_at(from + at);
        if (is_same && !board_.is_marked(place, kWordBytes)) {
            sent_.add(LinkCounter::writes_filtered);
        } else {
            store(place, from + at, kWordBytes);
        }
    }
}

void DirectCard::commit() {
    light_fence();
    for (unsigned r = 0; r < ring_.config().ranks; ++r) {
        // relaxed is enough: the fence orders it after the stores before it
        if (attention_[r].load(std::memory_order_relaxed) != 0 && r != rank_) [[unlikely]] {
            wake_rank(ring_, r);
        }
    }
}

bool DirectCard::flush(Deadline) {
    sent_.add(LinkCounter::flushes);
    return true;
}

void DirectCard::has_seen(std::size_t offset, std::uint32_t value, std::int64_t waited_since_ns) {
    const auto violation = samples_.seen(offset, value, waited_since_ns);
    if (violation && on_violation_) on_violation_(*violation);
}

}  // namespace rmem
