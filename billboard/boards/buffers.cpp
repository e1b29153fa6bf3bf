// SPDX-License-Identifier: Apache-2.0
#include "billboard/boards/buffers.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/limits.hpp"

#include <algorithm>
#include <bit>

namespace billboard {

namespace {

/// Buffers start on lines so that two messages never share one.
constexpr std::size_t round_to_line(std::size_t bytes) {
    return rmem::round_up(bytes, rmem::kLineBytes);
}

}  // namespace

std::size_t Buffers::end() const noexcept {
    if (count_ == 0) return 0;
    const Extent& last = extents_[in_order_[count_ - 1]];
    return last.offset + round_to_line(last.bytes);
}

/// Whether the extents are those of the allocated buffers, one after the other within the data.
bool Buffers::are_in_order() const noexcept {
    std::size_t start = 0;
    std::uint32_t seen = 0;
    for (unsigned i = 0; i < count_; ++i) {
        const Extent& extent = extents_[in_order_[i]];
        if (extent.offset < start || extent.offset + extent.bytes > data_bytes_) return false;
        start = extent.offset + round_to_line(extent.bytes);
        seen |= bit(in_order_[i]);
    }
    return seen == allocated_ && (held_ & ~allocated_) == 0;
}

std::optional<unsigned> Buffers::allocate(std::size_t bytes) noexcept {
    if (allocated_ == ~std::uint32_t{0}) return std::nullopt;
    bytes = std::max<std::size_t>(bytes, 1);  // so that no two buffers have the same address
    if (bytes > data_bytes_) return std::nullopt;
    std::size_t start = end();
    unsigned place = count_;
    const bool fits_behind = start <= data_bytes_ && data_bytes_ - start >= bytes;
    if (bytes > kSmallBytes || !fits_behind) start = place = 0;
    for (; place < count_; ++place) {
        const Extent& next = extents_[in_order_[place]];
        if (start <= next.offset && next.offset - start >= bytes) break;
        start = next.offset + round_to_line(next.bytes);
    }
    if (start > data_bytes_ || data_bytes_ - start < bytes) return std::nullopt;
    const auto index = static_cast<unsigned>(std::countr_one(allocated_));
    for (unsigned i = count_; i > place; --i) in_order_[i] = in_order_[i - 1];
    in_order_[place] = static_cast<std::uint8_t>(index);
    ++count_;
    allocated_ |= bit(index);
    extents_[index] = {start, bytes};
    RMEM_CHECK_IF(false, are_in_order());
    return index;
}

void Buffers::collect(std::uint32_t busy) noexcept {
    const std::uint32_t free_now = allocated_ & ~busy & ~held_;
    if (free_now == 0) return;
    allocated_ &= ~free_now;
    unsigned kept = 0;
    for (unsigned i = 0; i < count_; ++i) {
        const std::uint8_t index = in_order_[i];
        if ((free_now & bit(index)) == 0) in_order_[kept++] = index;
    }
    count_ = kept;
}

void Buffers::free(unsigned index) noexcept {
    RMEM_CHECK_IF(false, (allocated_ & bit(index)) != 0);
    held_ &= ~bit(index);
    collect(~bit(index));
}

}  // namespace billboard
