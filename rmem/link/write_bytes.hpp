// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A write of any bytes, as the words that travel, and the parts of words where it begins and ends.
/// Thread safety: the card's.

#include "rmem/base/limits.hpp"
#include "rmem/base/word_block.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rmem {

/// Bytes beyond its own that a write may need room for.
inline constexpr std::size_t kCompletedBytes = 2 * kWordBytes;

/// Bytes within a word.
template <class C>
void write_part_of_word(C& card, std::size_t offset, const std::byte* from, std::size_t bytes) {
    const std::size_t inside = offset % kWordBytes;
    card.write_part(offset - inside, word_with(from, inside, bytes), part_of_word(inside, bytes));
}

/// The card has room for them. Not committed.
template <class C>
void write_bytes(C& card, std::size_t offset, const std::byte* from, std::size_t bytes) {
    const std::size_t head = std::min(bytes, (kWordBytes - offset % kWordBytes) % kWordBytes);
    const std::size_t middle = (bytes - head) / kWordBytes * kWordBytes;
    const std::size_t tail = bytes - head - middle;
    if (head != 0) write_part_of_word(card, offset, from, head);
    if (middle != 0) card.write(offset + head, from + head, middle);
    if (tail != 0) write_part_of_word(card, offset + head + middle, from + head + middle, tail);
}

}  // namespace rmem
