// SPDX-License-Identifier: Apache-2.0
#include "rmem/recording/pcap_writer.hpp"

#include "rmem/base/time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace rmem {

namespace {

constexpr std::size_t kPcapHeaderBytes = 24;
constexpr std::size_t kFrameBytes = 16;  // before each packet
constexpr std::size_t kMaxBytes =
    kFrameBytes + PcapWriter::kPacketHeaderBytes + kMaxRecordedBytes + PcapWriter::kDelayBytes;
constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
static_assert(kMaxBytes <= kBufferBytes && kPcapHeaderBytes <= kBufferBytes);

/// Writes one value behind the other; the host's byte order is the file's, and the magic tells it.
class Values {
public:
    explicit Values(std::byte* to) : to_(to) {}

    template <class T>
    Values& operator<<(T value) {
        std::memcpy(to_, &value, sizeof value);
        to_ += sizeof value;
        return *this;
    }
    std::byte* end() const { return to_; }

private:
    std::byte* to_;
};

}  // namespace

PcapWriter::PcapWriter(const std::string& path, const RecordingInfo& info, bool replace)
    : info_(info), file_(path, replace), buffer_(kBufferBytes), used_(kPcapHeaderBytes) {
    constexpr std::uint32_t kNanosecondMagic = 0xa1b23c4d;
    Values(buffer_.data()) << kNanosecondMagic << std::uint16_t{2} << std::uint16_t{4}
                           << std::uint32_t{0} << std::uint32_t{0}
                           << static_cast<std::uint32_t>(kMaxBytes) << kLinkType;
}

PcapWriter::~PcapWriter() {
    close();
}

bool PcapWriter::add(const RecordedWrite& write) {
    const bool has_delay = (write.flags & RecordedWrite::kApplied) != 0;
    const std::size_t packet =
        kPacketHeaderBytes + write.words.size() + (has_delay ? kDelayBytes : 0);
    if (packet > kMaxBytes - kFrameBytes) return false;
    if (used_ + kFrameBytes + packet > buffer_.size() && !flush()) return false;

    // The format's seconds are unsigned, of 32 bits.
    const std::int64_t wall = std::clamp<std::int64_t>(
        info_.wall_ns(write.time_ns), 0, std::numeric_limits<std::uint32_t>::max() * kNsPerSecond);
    Values values(buffer_.data() + used_);
    values << static_cast<std::uint32_t>(wall / kNsPerSecond)
           << static_cast<std::uint32_t>(wall % kNsPerSecond) << static_cast<std::uint32_t>(packet)
           << static_cast<std::uint32_t>(packet);
    values << std::uint8_t{1} << std::uint8_t{0} << write.flags
           << static_cast<std::uint16_t>(write.node) << static_cast<std::uint16_t>(write.rank)
           << write.time_ns - info_.start_ns << write.offset
           << static_cast<std::uint16_t>(write.words.size() / kWordBytes) << std::uint16_t{0};
    if (!write.words.empty()) std::memcpy(values.end(), write.words.data(), write.words.size());
    if (has_delay) Values(values.end() + write.words.size()) << write.delay_ns;
    used_ += kFrameBytes + packet;
    ++buffered_;
    return true;
}

bool PcapWriter::flush() {
    if (!file_.append({buffer_.data(), used_})) return false;
    kept_ += buffered_;
    buffered_ = used_ = 0;
    return true;
}

bool PcapWriter::close() {
    if (used_ != 0) flush();
    return file_.close();
}

std::optional<Error> PcapWriter::failure() const {
    if (!file_.failed()) return std::nullopt;
    return file_.failure(fmt::format("{} packets are kept", kept_));
}

}  // namespace rmem
