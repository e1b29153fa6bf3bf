// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Tells which datagrams of one incarnation of a node have been here before.
///
/// It knows the greatest number seen and which of the kSize numbers up to it have been seen; what
/// is older counts as seen. A network that turns datagrams around by less than that loses none by
/// it. Ask only after the tag was found right: a number from a stranger would move the window.
///
/// Thread safety: one thread at a time. Errors: none.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace rmem::udp {

class ReplayWindow {
public:
    /// How many numbers are told apart: the newest one and those before it.
    static constexpr std::uint64_t kSize = 1024;

    /// Begins again: that number and all before it count as seen.
    void begin_at(std::uint64_t number) noexcept {
        seen_.fill(0);
        for (std::uint64_t back = 0; back < kSize && back <= number; ++back) {
            seen_[slot_of(number - back)] |= std::uint64_t{1} << ((number - back) % kWordBits);
        }
        newest_ = number;
        none_yet_ = false;
    }

    /// True for a number that is not too old, the first time.
    [[nodiscard]] bool accept(std::uint64_t number) noexcept {
        if (none_yet_ || number > newest_) {
            advance(number);
        } else if (newest_ - number >= kSize) {
            return false;
        }
        std::uint64_t& word = seen_[slot_of(number)];
        const std::uint64_t bit = std::uint64_t{1} << (number % kWordBits);
        const bool is_new = (word & bit) == 0;
        word |= bit;
        return is_new;
    }

private:
    static constexpr std::uint64_t kWordBits = 64;
    /// More than the window needs, so that whole words can be cleared ahead of the newest number,
    /// and a power of two.
    static constexpr std::size_t kWords = 2 * kSize / kWordBits;

    static constexpr std::size_t slot_of(std::uint64_t number) noexcept {
        return static_cast<std::size_t>(number / kWordBits % kWords);
    }

    void advance(std::uint64_t number) noexcept {
        if (none_yet_) newest_ = number;
        none_yet_ = false;
        const std::uint64_t words =
            std::min<std::uint64_t>(number / kWordBits - newest_ / kWordBits, kWords);
        for (std::uint64_t i = 0; i < words; ++i) seen_[slot_of(number - i * kWordBits)] = 0;
        newest_ = number;
    }

    std::array<std::uint64_t, kWords> seen_{};
    std::uint64_t newest_ = 0;
    bool none_yet_ = true;
};

}  // namespace rmem::udp
