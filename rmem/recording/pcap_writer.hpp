// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Writes a capture file that Wireshark opens, a packet for each write; tools/record/rmem.lua shows
/// what is in it.
///
/// File          classic pcap, times in nanoseconds (the wall clock's), link type USER0 (147): the
///               packets were on no network, so they claim no addresses.
/// Packet        little-endian, at 0: version 1 (1 byte), zero (1), flags (2, of RecordedWrite),
///               node (2), rank (2), at 8: nanoseconds since the recording began (8), offset (8),
///               words (2), zero (2), at 28: the words, as they lie in the bank, then with
///               RecordedWrite::kApplied its delay (4).
/// Thread safety one thread at a time. Errors: as RecordingWriter's.

#include "rmem/recording/output_file.hpp"
#include "rmem/recording/recorded_write.hpp"

#include <optional>
#include <string>
#include <vector>

namespace rmem {

class RMEM_API PcapWriter {
public:
    static constexpr std::uint32_t kLinkType = 147;
    static constexpr std::size_t kPacketHeaderBytes = 28;
    static constexpr std::size_t kDelayBytes = 4;

    PcapWriter(const std::string& path, const RecordingInfo& info, bool replace = false);
    /// As close(), but the result is dropped.
    ~PcapWriter();
    PcapWriter(const PcapWriter&) = delete;
    PcapWriter& operator=(const PcapWriter&) = delete;

    /// A write that a reader gave.
    bool add(const RecordedWrite& write);
    bool close();
    std::optional<Error> failure() const;

private:
    bool flush();

    RecordingInfo info_;
    OutputFile file_;
    std::vector<std::byte> buffer_;
    std::size_t used_ = 0;
    std::uint64_t buffered_ = 0;  ///< packets
    std::uint64_t kept_ = 0;
};

}  // namespace rmem
