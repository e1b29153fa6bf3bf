// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/batch_history.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>
#include <bit>
#include <new>

namespace rmem::udp {

BatchHistory::BatchHistory(std::uint32_t places, std::size_t most_bytes, std::size_t kept_bytes)
    : places_(std::bit_ceil(std::max(places, 1U))),
      most_bytes_(most_bytes),
      room_(kept_bytes + 2 * most_bytes) {}  // one that is put, and one that did not fit the end

/// False if there is none.
bool BatchHistory::take_memory_for(std::size_t bytes) noexcept {
    const auto take = [](std::unique_ptr<std::byte[]>& memory, std::size_t room) {
        if (!memory) memory.reset(new (std::nothrow) std::byte[room]);
        return memory != nullptr;
    };
    // calloc, because it touches no page that is zeros
    if (!entries_) entries_.reset(static_cast<Entry*>(std::calloc(places_, sizeof(Entry))));
    if (!entries_) return false;
    if (bytes <= kShortBytes) return take(short_, places_ * kShortBytes);
    if (bytes <= kMiddleBytes) return take(middle_, places_ * kMiddleBytes);
    return take(ring_, room_);
}

std::size_t BatchHistory::memory_bytes() const noexcept {
    std::size_t bytes = 0;
    if (entries_) bytes += places_ * sizeof(Entry);
    if (short_) bytes += places_ * kShortBytes;
    if (middle_) bytes += places_ * kMiddleBytes;
    if (ring_) bytes += room_;
    return bytes;
}

std::byte* BatchHistory::bytes_of(const Entry& entry) const noexcept {
    const auto place = static_cast<std::size_t>(&entry - entries_.get());
    if (entry.bytes <= kShortBytes) return short_.get() + place * kShortBytes;
    if (entry.bytes <= kMiddleBytes) return middle_.get() + place * kMiddleBytes;
    return ring_.get() + entry.begin % room_;
}

/// What does not fit before the ring's end begins at its start.
std::uint64_t BatchHistory::begin_in_ring(std::size_t bytes) noexcept {
    const std::size_t left = room_ - end_ % room_;
    const std::uint64_t begin = bytes <= left ? end_ : end_ + left;
    end_ = begin + bytes;
    return begin;
}

bool BatchHistory::put(std::uint64_t sequence, std::span<const std::byte> body) noexcept {
    RMEM_CHECK_IF(false, sequence != 0);
    if (body.size() > most_bytes_ || !take_memory_for(body.size())) return false;
    Entry& its = entries_[place_of(sequence)];
    its = {sequence, 0, body.size()};
    if (body.size() > kMiddleBytes) its.begin = begin_in_ring(body.size());
    std::copy(body.begin(), body.end(), bytes_of(its));
    return true;
}

std::span<const std::byte> BatchHistory::find(std::uint64_t sequence) const noexcept {
    if (!contains(sequence)) return {};
    const Entry& its = entry(sequence);
    return {bytes_of(its), its.bytes};
}

}  // namespace rmem::udp
