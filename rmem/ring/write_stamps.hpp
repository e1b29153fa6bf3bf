// SPDX-License-Identifier: Apache-2.0
#pragma once

/// When sampled writes were made: how propagation is measured on `direct`.
///
/// A clock costs as much as a write there, so each rank stamps one of kStampEvery one-word writes,
/// just before it stores the word. A reader that was waiting for that word already when it was
/// written looks for its stamp, and the age of the stamp is the propagation: both clocks included,
/// so it is never shown too small. Words that nobody waits for, longer writes and plain stores are
/// not measured. Messages of the billboard's `inline` layout are sampled alike: one of kStampEvery
/// from rank to rank.
///
/// A stamp is one word of 64 bits: time, origin, and a tag made of offset and value. Writers that
/// meet in one place of the table lose a sample; a killed one leaves no half. A reader takes
/// another word's stamp for its own once in 2^16 such meetings within one wait.
/// Thread safety: any process. Progress: wait-free. Units: nanoseconds of rmem/base/clock.hpp.

#include "rmem/base/hash.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rmem {

inline constexpr unsigned kStampEvery = 1024;  ///< one-word writes of a rank to one stamp

class WriteStamps {
public:
    static constexpr std::size_t kPlaces = 64;
    static constexpr std::size_t kBytes = kPlaces * sizeof(std::uint64_t);

    struct Stamp {
        std::int64_t written_ns = 0;
        unsigned origin = 0;
    };

    explicit WriteStamps(std::atomic<std::uint64_t>* places) noexcept : places_(places) {}

    /// Before the word is stored (with release).
    void put(std::size_t offset, std::uint32_t value, unsigned origin, std::int64_t now) noexcept;
    /// Whether there may be a stamp of that write: find() knows, at the price of a clock.
    bool may_have(std::size_t offset, std::uint32_t value) const noexcept {
        // relaxed is enough: the acquire-load of the word came before it
        return tag_of(place_of(offset).load(std::memory_order_relaxed)) == tag(offset, value);
    }
    /// The stamp of that write, if it was made between `since` and `now`; after the word was loaded
    /// (with acquire).
    std::optional<Stamp> find(std::size_t offset, std::uint32_t value, std::int64_t since,
                              std::int64_t now) const noexcept;

private:
    static constexpr unsigned kTimeBits = 40;  ///< 18 minutes; a longer wait is not measured
    static constexpr unsigned kOriginBits = 8;
    static constexpr unsigned kTagBits = 16;

    static constexpr std::uint64_t tag_of(std::uint64_t stamp) noexcept {
        return stamp & ((1U << kTagBits) - 1);
    }
    static std::uint64_t tag(std::size_t offset, std::uint32_t value) noexcept {
        return mixed(offset, value) >> (64 - kTagBits);
    }
    static std::uint64_t mixed(std::size_t offset, std::uint32_t value) noexcept {
        return golden_mix(std::uint64_t{offset} << 32, value ^ 0x5bd1e995U);
    }
    std::atomic<std::uint64_t>& place_of(std::size_t offset) const noexcept {
        return places_[offset / 4 % kPlaces];
    }

    std::atomic<std::uint64_t>* places_;
};

inline void WriteStamps::put(std::size_t offset, std::uint32_t value, unsigned origin,
                             std::int64_t now) noexcept {
    const std::uint64_t time = static_cast<std::uint64_t>(now) << (64 - kTimeBits);
    const std::uint64_t from = std::uint64_t{origin & 0xff} << kTagBits;
    // relaxed is enough: the release-store of the word follows it
    place_of(offset).store(time | from | tag(offset, value), std::memory_order_relaxed);
}

inline std::optional<WriteStamps::Stamp> WriteStamps::find(std::size_t offset, std::uint32_t value,
                                                           std::int64_t since,
                                                           std::int64_t now) const noexcept {
    // relaxed is enough: the acquire-load of the word came before it
    const std::uint64_t found = place_of(offset).load(std::memory_order_relaxed);
    if (tag_of(found) != tag(offset, value)) return std::nullopt;
    constexpr std::uint64_t kTimeMask = (std::uint64_t{1} << kTimeBits) - 1;
    const std::uint64_t age =
        (static_cast<std::uint64_t>(now) - (found >> (64 - kTimeBits))) & kTimeMask;
    if (now - since >= std::int64_t{1} << kTimeBits) return std::nullopt;
    const std::int64_t written = now - static_cast<std::int64_t>(age);
    if (written < since) return std::nullopt;
    return Stamp{written, static_cast<unsigned>((found >> kTagBits) & 0xff)};
}

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace rmem
