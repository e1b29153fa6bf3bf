// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The parts of a recording: its ring, and writes with their times. docs/design/recording.md is the
/// format.
///
/// Thread safety: values. Units: bytes, nanoseconds; times of writes are of the recording host's
/// CLOCK_MONOTONIC.

#include "rmem/base/word_block.hpp"
#include "rmem/ring/config.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace rmem {

/// The recorded ring, and the beginning of the recording, in both clocks at the same instant.
struct RecordingInfo {
    RingConfig config;               ///< without the unix group, which is the host's matter
    std::int64_t start_wall_ns = 0;  ///< since 1970, UTC
    std::int64_t start_ns = 0;

    /// The wall clock at a write's time, as if it had not been set since the start. No sum
    /// of a damaged file's times overflows.
    std::int64_t wall_ns(std::int64_t time_ns) const noexcept;
};

/// A write with its words, which belong to its maker: a reader's until its next call.
struct RecordedWrite {
    static constexpr std::uint16_t kInterrupt = 1;  ///< carried the interrupt mark
    static constexpr std::uint16_t kMeLast = 2;     ///< its own bank got it when it had come round
    static constexpr std::uint16_t kAtStart = 4;    ///< stood in the bank when the recording began
    static constexpr std::uint16_t kMissed = 8;  ///< no write: some of the rank's were missed here
    static constexpr std::uint16_t kSampled =
        16;  ///< seen by a look at that time: the writer is unknown
    static constexpr std::uint16_t kApplied = 32;  ///< delay_ns says when it was in the bank
    static constexpr std::uint16_t kMore = 64;     ///< the rank's next write is of the same commit
    static constexpr unsigned kPartShift = 8;  ///< above it: which bytes of its one word, 0: all

    std::int64_t time_ns = 0;
    unsigned node = 0;
    unsigned rank = 0;
    std::uint64_t offset = 0;  ///< bytes, a multiple of the word
    std::uint16_t flags = 0;
    std::span<const std::byte> words;  ///< whole words, as they lie in the bank; none with kMissed
    std::uint32_t delay_ns =
        0;  ///< with kApplied: from time_ns until it was in the recording node's bank, or sent

    static constexpr std::uint16_t flags_of(WordPart part) noexcept {
        return part == kWholeWord ? std::uint16_t{0}
                                  : static_cast<std::uint16_t>(part << kPartShift);
    }
    /// Of its word, or its words; the rest of these is not specified.
    constexpr WordPart part() const noexcept {
        const auto part = static_cast<WordPart>(flags >> kPartShift & kWholeWord);
        return part == 0 ? kWholeWord : part;
    }
};

/// Longer writes are several records.
inline constexpr std::size_t kMaxRecordedBytes = std::size_t{1} << 14;

/// Times of a recording lie between this and its negative: two never overflow together.
inline constexpr std::int64_t kMaxRecordedTimeNs = std::int64_t{1} << 62;

inline std::int64_t RecordingInfo::wall_ns(std::int64_t time_ns) const noexcept {
    std::int64_t wall = 0;
    if (!__builtin_add_overflow(start_wall_ns, time_ns - start_ns, &wall)) return wall;
    return time_ns > start_ns ? kMaxRecordedTimeNs : -kMaxRecordedTimeNs;
}

}  // namespace rmem
