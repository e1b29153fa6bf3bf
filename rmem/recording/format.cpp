// SPDX-License-Identifier: Apache-2.0
#include "rmem/recording/format.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <bit>
#include <cstring>

namespace rmem::recording_format {

namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

// The end of the line tells when a transfer has changed line ends.
constexpr char kFileMagic[8] = {'R', 'M', 'E', 'M', 'R', 'E', 'C', '\n'};
constexpr char kBlockMagic[4] = {'R', 'M', 'B', 'K'};

// Places in the file's header
constexpr std::size_t kVersionAt = 8, kSizeAt = 12, kWallAt = 16, kStartAt = 24, kNodesAt = 32,
                      kRanksAt = 36, kLinkAt = 40, kUserBytesAt = 48, kSystemBytesAt = 56,
                      kSystemHashAt = 64, kBoundAt = 72, kNameAt = 80, kTimingAt = 144,
                      kFileChecksumAt = 316;
constexpr std::size_t kNameBytes = kTimingAt - kNameAt;
constexpr std::size_t kTimingBytes = 168;
static_assert(kNameBytes > kMaxNameBytes && kTimingAt + kTimingBytes <= kFileChecksumAt);

// Places in a block's header; its checksum covers the key and what follows the checksum
constexpr std::size_t kBlockChecksumAt = 4, kNumberAt = 8, kBaseAt = 16, kLeastAt = 24, kMaxAt = 28,
                      kPayloadBytesAt = 32, kRecordsAt = 36, kPayloadChecksumAt = 40;

// Places in a record
constexpr std::size_t kTimeAt = 0, kNodeAt = 4, kRankAt = 6, kOffsetAt = 8, kWordsAt = 16,
                      kFlagsAt = 18;

template <class T>
void put(std::byte* to, std::size_t at, T value) noexcept {
    std::memcpy(to + at, &value, sizeof value);
}

template <class T>
T get(const std::byte* from, std::size_t at) noexcept {
    T value;
    std::memcpy(&value, from + at, sizeof value);
    return value;
}

void put_text(std::byte* to, std::size_t at, std::size_t room, const std::string& text) {
    if (text.size() >= room) {
        throw Error(Errc::invalid_argument,
                    fmt::format("'{}' is too long for a recording; give less than {} characters",
                                text, room));
    }
    std::memcpy(to + at, text.data(), text.size());
}

std::string get_text(const std::byte* from, std::size_t at, std::size_t room) {
    const char* text = reinterpret_cast<const char*>(from + at);
    return {text, ::strnlen(text, room)};
}

bool is_time(std::int64_t ns) noexcept {
    return ns > -kMaxRecordedTimeNs && ns < kMaxRecordedTimeNs;
}

std::uint32_t header_checksum(const std::byte* header, Key key) noexcept {
    std::byte bytes[sizeof key];
    std::memcpy(bytes, &key, sizeof key);
    return checksum(header + kNumberAt, kBlockHeaderBytes - kNumberAt,
                    checksum(bytes, sizeof bytes));
}

RingConfig get_config(const std::byte* from) {
    RingConfig config;
    config.name = get_text(from, kNameAt, kNameBytes);
    config.nodes = get<std::uint32_t>(from, kNodesAt);
    config.ranks = get<std::uint32_t>(from, kRanksAt);
    config.link = static_cast<LinkKind>(get<std::uint32_t>(from, kLinkAt));
    config.user_bytes = get<std::uint64_t>(from, kUserBytesAt);
    config.system_bytes = get<std::uint64_t>(from, kSystemBytesAt);
    config.system_hash = get<std::uint64_t>(from, kSystemHashAt);
    config.bound_ns = get<std::int64_t>(from, kBoundAt);
    config.timing = parse_timing(get_text(from, kTimingAt, kTimingBytes));
    config.check();
    return config;
}

Error bad(const std::string& name, const std::string& why) {
    return {Errc::bad_recording, fmt::format("'{}' cannot be read as a recording: {}", name, why)};
}

}  // namespace

std::uint32_t checksum(const std::byte* bytes, std::size_t count, std::uint32_t before) noexcept {
    return static_cast<std::uint32_t>(
        ::crc32_z(before, reinterpret_cast<const unsigned char*>(bytes), count));
}

// ---- The file's header

Key put_file_header(std::byte* to, const RecordingInfo& info) {
    std::memset(to, 0, kFileHeaderBytes);
    std::memcpy(to, kFileMagic, sizeof kFileMagic);
    put(to, kVersionAt, kVersion);
    put(to, kSizeAt, static_cast<std::uint32_t>(kFileHeaderBytes));
    put(to, kWallAt, info.start_wall_ns);
    put(to, kStartAt, info.start_ns);
    put(to, kNodesAt, info.config.nodes);
    put(to, kRanksAt, info.config.ranks);
    put(to, kLinkAt, static_cast<std::uint32_t>(info.config.link));
    put(to, kUserBytesAt, std::uint64_t{info.config.user_bytes});
    put(to, kSystemBytesAt, std::uint64_t{info.config.system_bytes});
    put(to, kSystemHashAt, info.config.system_hash);
    put(to, kBoundAt, info.config.bound_ns);
    put_text(to, kNameAt, kNameBytes, info.config.name);
    put_text(to, kTimingAt, kTimingBytes, to_string(info.config.timing));
    const Key key = checksum(to, kFileChecksumAt);
    put(to, kFileChecksumAt, key);
    return key;
}

RecordingInfo get_file_header(const std::byte* from, std::size_t size, const std::string& name,
                              Key& key) {
    if (size < sizeof kFileMagic || std::memcmp(from, kFileMagic, sizeof kFileMagic) != 0) {
        throw bad(name, "it does not begin as one; give a file that `rmem record` wrote");
    }
    if (size < kFileHeaderBytes) {
        throw bad(name, fmt::format("it ends in its header, after {} bytes of {}; nothing was kept",
                                    size, kFileHeaderBytes));
    }
    if (const auto version = get<std::uint32_t>(from, kVersionAt);
        version < kOldestVersion || version > kVersion) {
        throw Error(
            Errc::version_mismatch,
            fmt::format("the recording '{}' has version {} of the format (or is damaged), "
                        "and this library reads versions {} to {}; use the one that wrote it",
                        name, version, kOldestVersion, kVersion));
    }
    key = get<Key>(from, kFileChecksumAt);
    if (checksum(from, kFileChecksumAt) != key) {
        throw bad(name, "its header is damaged (the checksum is wrong); use an undamaged copy");
    }
    RecordingInfo info;
    info.start_wall_ns = get<std::int64_t>(from, kWallAt);
    info.start_ns = get<std::int64_t>(from, kStartAt);
    if (get<std::uint32_t>(from, kSizeAt) != kFileHeaderBytes || !is_time(info.start_ns) ||
        !is_time(info.start_wall_ns)) {
        throw bad(name, "its header has an invalid size or invalid times");
    }
    try {
        info.config = get_config(from);
    } catch (const Error& error) {
        throw bad(name, "its ring is not valid: " + error.sentence());
    }
    return info;
}

// ---- Blocks

void put_block_header(std::byte* to, const BlockHeader& header, Key key) noexcept {
    std::memset(to, 0, kBlockHeaderBytes);
    std::memcpy(to, kBlockMagic, sizeof kBlockMagic);
    put(to, kNumberAt, header.number);
    put(to, kBaseAt, header.base_ns);
    put(to, kLeastAt, header.least);
    put(to, kMaxAt, header.most);
    put(to, kPayloadBytesAt, header.payload_bytes);
    put(to, kRecordsAt, header.records);
    put(to, kPayloadChecksumAt, header.payload_checksum);
    put(to, kBlockChecksumAt, header_checksum(to, key));
}

std::optional<BlockHeader> get_block_header(const std::byte* from, Key key) noexcept {
    if (std::memcmp(from, kBlockMagic, sizeof kBlockMagic) != 0) return std::nullopt;
    if (get<std::uint32_t>(from, kBlockChecksumAt) != header_checksum(from, key)) {
        return std::nullopt;
    }
    BlockHeader header;
    header.number = get<std::uint64_t>(from, kNumberAt);
    header.base_ns = get<std::int64_t>(from, kBaseAt);
    header.least = get<std::int32_t>(from, kLeastAt);
    header.most = get<std::int32_t>(from, kMaxAt);
    header.payload_bytes = get<std::uint32_t>(from, kPayloadBytesAt);
    header.records = get<std::uint32_t>(from, kRecordsAt);
    header.payload_checksum = get<std::uint32_t>(from, kPayloadChecksumAt);
    const bool can_be = header.number < kMaxBlocks && is_time(header.base_ns) &&
                        header.least <= 0 && header.most >= 0 &&
                        header.payload_bytes <= kMaxPayloadBytes &&
                        header.payload_bytes >= header.records * kRecordHeaderBytes &&
                        (header.records != 0 || header.payload_bytes == 0);
    if (!can_be) return std::nullopt;
    return header;
}

// ---- Records

bool can_be(const RecordedWrite& write, const RingConfig& config) noexcept {
    const std::size_t bytes = write.words.size();
    const bool missed = (write.flags & RecordedWrite::kMissed) != 0;
    return write.node < config.nodes && write.rank < config.ranks && is_time(write.time_ns) &&
           bytes % kWordBytes == 0 && bytes <= kMaxRecordedBytes && (bytes == 0) == missed &&
           (write.part() == kWholeWord || bytes == kWordBytes) && write.offset % kWordBytes == 0 &&
           write.offset <= config.bank_bytes() && bytes <= config.bank_bytes() - write.offset;
}

void put_record(std::byte* to, const RecordedWrite& write, std::int32_t time) noexcept {
    put(to, kTimeAt, time);
    put(to, kNodeAt, static_cast<std::uint16_t>(write.node));
    put(to, kRankAt, static_cast<std::uint16_t>(write.rank));
    put(to, kOffsetAt, write.offset);
    put(to, kWordsAt, static_cast<std::uint16_t>(write.words.size() / kWordBytes));
    put(to, kFlagsAt, write.flags);
    if (!write.words.empty()) {
        std::memcpy(to + kRecordHeaderBytes, write.words.data(), write.words.size());
    }
    if ((write.flags & RecordedWrite::kApplied) != 0) {
        put(to, kRecordHeaderBytes + write.words.size(), write.delay_ns);
    }
}

bool is_whole(const std::byte* payload, const BlockHeader& header,
              const RingConfig& config) noexcept {
    std::size_t left = header.payload_bytes;
    for (std::uint32_t record = 0; record < header.records; ++record) {
        if (left < kRecordHeaderBytes) return false;
        const std::size_t bytes = record_bytes(get<std::uint16_t>(payload, kWordsAt) * kWordBytes,
                                               get<std::uint16_t>(payload, kFlagsAt));
        if (left < bytes) return false;
        const RecordedWrite write = get_record(payload, header.base_ns);
        if (!can_be(write, config)) return false;
        if (write.time_ns < header.least_ns() || write.time_ns > header.most_ns()) return false;
        payload += bytes;
        left -= bytes;
    }
    return left == 0;
}

RecordedWrite get_record(const std::byte* from, std::int64_t base_ns) noexcept {
    RecordedWrite write;
    write.time_ns = base_ns + get<std::int32_t>(from, kTimeAt);
    write.node = get<std::uint16_t>(from, kNodeAt);
    write.rank = get<std::uint16_t>(from, kRankAt);
    write.offset = get<std::uint64_t>(from, kOffsetAt);
    write.flags = get<std::uint16_t>(from, kFlagsAt);
    write.words = {from + kRecordHeaderBytes, get<std::uint16_t>(from, kWordsAt) * kWordBytes};
    if ((write.flags & RecordedWrite::kApplied) != 0) {
        write.delay_ns = get<std::uint32_t>(from, kRecordHeaderBytes + write.words.size());
    }
    return write;
}

}  // namespace rmem::recording_format
