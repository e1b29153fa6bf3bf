// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A write of any bytes, as the whole words that travel: those that it fills in part it sends as
/// the own bank has the rest of them.
/// Thread safety: the card's.

#include "rmem/base/limits.hpp"
#include "rmem/base/word_block.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rmem {

/// Words beyond its bytes that a write may send.
inline constexpr std::size_t kCompletedBytes = 2 * kWordBytes;

template <class C>
void write_part_of_word(C& card, const std::byte* bank, std::size_t offset, const std::byte* from,
                        std::size_t bytes) {
    const std::size_t inside = offset % kWordBytes;
    const std::size_t place = offset - inside;
    std::uint32_t value = 0;
    load_block(reinterpret_cast<std::byte*>(&value), bank + place, kWordBytes);
    std::memcpy(reinterpret_cast<std::byte*>(&value) + inside, from, bytes);
    card.write(place, &value, kWordBytes);
}

/// The card has room for them. Not committed.
template <class C>
void write_whole_words(C& card, const std::byte* bank, std::size_t offset, const std::byte* from,
                       std::size_t bytes) {
    const std::size_t head = std::min(bytes, (kWordBytes - offset % kWordBytes) % kWordBytes);
    const std::size_t middle = (bytes - head) / kWordBytes * kWordBytes;
    const std::size_t tail = bytes - head - middle;
    if (head != 0) write_part_of_word(card, bank, offset, from, head);
    if (middle != 0) card.write(offset + head, from + head, middle);
    if (tail != 0)
        write_part_of_word(card, bank, offset + head + middle, from + head + middle, tail);
}

}  // namespace rmem
