// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/batch_history.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>
#include <bit>

namespace rmem::udp {

namespace {

constexpr std::size_t kShortBytes = 64;    // a word or two, or a message as short
constexpr std::size_t kMiddleBytes = 256;  // most messages that are no blocks

}  // namespace

BatchHistory::BatchHistory(std::uint32_t places, std::size_t most_bytes)
    : entries_(std::bit_ceil(std::max(places, 1U))), most_bytes_(most_bytes) {
    const std::array<std::size_t, 3> rooms{kShortBytes, kMiddleBytes, most_bytes};
    // Not made zero: a page that no batch was put in is never touched.
    for (std::size_t i = 0; i < rooms.size(); ++i) {
        tables_[i] = {rooms[i],
                      std::make_unique_for_overwrite<std::byte[]>(entries_.size() * rooms[i])};
    }
}

std::byte* BatchHistory::room_for(std::size_t place, std::size_t bytes) const noexcept {
    const Table* table = tables_.data();
    while (bytes > table->room && table != &tables_.back()) ++table;
    return table->bytes.get() + place * table->room;
}

bool BatchHistory::put(std::uint64_t sequence, std::span<const std::byte> body) noexcept {
    RMEM_CHECK_IF(false, sequence != 0);
    if (body.size() > most_bytes_) return false;
    const std::size_t place = place_of(sequence);
    entries_[place] = {sequence, body.size()};
    std::copy(body.begin(), body.end(), room_for(place, body.size()));
    return true;
}

std::span<const std::byte> BatchHistory::find(std::uint64_t sequence) const noexcept {
    if (!contains(sequence)) return {};
    const std::size_t bytes = entry(sequence).bytes;
    return {room_for(place_of(sequence), bytes), bytes};
}

}  // namespace rmem::udp
