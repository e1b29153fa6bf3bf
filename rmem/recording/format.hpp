// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The bytes of a recording, docs/design/recording.md: puts them and gets them, without a file.
///
/// Thread safety: functions of their arguments. Trust: get_ functions believe nothing that they
/// have not checked; the bytes must lie where nobody else can change them.

#include "rmem/recording/recorded_write.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace rmem::recording_format {

inline constexpr std::uint32_t kVersion = 3;        ///< which is written
inline constexpr std::uint32_t kOldestVersion = 1;  ///< which is read
inline constexpr std::size_t kFileHeaderBytes = 320;
inline constexpr std::size_t kBlockHeaderBytes = 48;
inline constexpr std::size_t kRecordHeaderBytes = 20;
inline constexpr std::size_t kDelayBytes = 4;  ///< after the words, with RecordedWrite::kApplied
inline constexpr std::size_t kMaxPayloadBytes = std::size_t{1} << 20;
inline constexpr std::uint64_t kMaxBlocks = std::uint64_t{1} << 48;

/// Tells a recording's blocks from those of all others: the file header's checksum.
using Key = std::uint32_t;

/// CRC-32 as zlib and Ethernet have it, going on from `before`.
RMEM_API std::uint32_t checksum(const std::byte* bytes, std::size_t count,
                                std::uint32_t before = 0) noexcept;

// ---- The file's header

RMEM_API Key put_file_header(std::byte* to, const RecordingInfo& info);

/// The header in the first `size` bytes of the file `name`, kFileHeaderBytes or all there are.
/// Throws Error (bad_recording, version_mismatch).
RMEM_API RecordingInfo get_file_header(const std::byte* from, std::size_t size,
                                       const std::string& name, Key& key);

// ---- Blocks

struct BlockHeader {
    std::uint64_t number = 0;  ///< counts from 0
    std::int64_t base_ns = 0;  ///< of its first record
    std::int32_t least = 0;    ///< of its records' times, from base_ns
    std::int32_t most = 0;
    std::uint32_t payload_bytes = 0;
    std::uint32_t records = 0;  ///< 0: the recording was closed here
    std::uint32_t payload_checksum = 0;

    std::int64_t least_ns() const noexcept { return base_ns + least; }
    std::int64_t most_ns() const noexcept { return base_ns + most; }
};

RMEM_API void put_block_header(std::byte* to, const BlockHeader& header, Key key) noexcept;

/// A header of this recording at `from` (kBlockHeaderBytes), whose values are valid.
[[nodiscard]] RMEM_API std::optional<BlockHeader> get_block_header(const std::byte* from,
                                                                   Key key) noexcept;

// ---- Records

/// Whether the ring can have had such a write. One of more than kMaxRecordedBytes it cannot.
[[nodiscard]] RMEM_API bool can_be(const RecordedWrite& write, const RingConfig& config) noexcept;

/// A time as records hold it, if they can.
[[nodiscard]] inline std::optional<std::int32_t> time_in_block(std::int64_t base_ns,
                                                               std::int64_t time_ns) noexcept {
    const std::int64_t apart = time_ns - base_ns;
    if (apart != static_cast<std::int32_t>(apart)) return std::nullopt;
    return static_cast<std::int32_t>(apart);
}

inline std::size_t record_bytes(std::size_t words_bytes, std::uint16_t flags) noexcept {
    const bool has_delay = (flags & RecordedWrite::kApplied) != 0;
    return kRecordHeaderBytes + words_bytes + (has_delay ? kDelayBytes : 0);
}
inline std::size_t record_bytes(const RecordedWrite& write) noexcept {
    return record_bytes(write.words.size(), write.flags);
}

RMEM_API void put_record(std::byte* to, const RecordedWrite& write, std::int32_t time) noexcept;

/// Whether a payload with the right checksum consists of records that can be, as many as the header
/// says.
RMEM_API bool is_whole(const std::byte* payload, const BlockHeader& header,
                       const RingConfig& config) noexcept;

/// The record at `from`, in a payload that is whole.
RMEM_API RecordedWrite get_record(const std::byte* from, std::int64_t base_ns) noexcept;

}  // namespace rmem::recording_format
