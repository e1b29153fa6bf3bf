// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/batch_history.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>
#include <bit>

namespace rmem::udp {

BatchHistory::BatchHistory(std::uint32_t places, std::size_t most_bytes)
    : entries_(std::bit_ceil(std::max(places, 1U))),
      most_bytes_(most_bytes),
      // Not made zero: a page that no batch was put in is never touched.
      bytes_(std::make_unique_for_overwrite<std::byte[]>(entries_.size() * most_bytes)) {}

bool BatchHistory::put(std::uint64_t sequence, std::span<const std::byte> body) noexcept {
    RMEM_CHECK_IF(false, sequence != 0);
    if (body.size() > most_bytes_) return false;
    const std::size_t place = place_of(sequence);
    entries_[place] = {sequence, body.size()};
    std::copy(body.begin(), body.end(), bytes_.get() + place * most_bytes_);
    return true;
}

std::span<const std::byte> BatchHistory::find(std::uint64_t sequence) const noexcept {
    if (!contains(sequence)) return {};
    return {bytes_.get() + place_of(sequence) * most_bytes_, entry(sequence).bytes};
}

void BatchHistory::clear() noexcept {
    std::fill(entries_.begin(), entries_.end(), Entry{});
}

}  // namespace rmem::udp
