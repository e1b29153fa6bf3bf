// SPDX-License-Identifier: Apache-2.0
#include "rmem/recording/recording_writer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rmem {

using recording_format::kBlockHeaderBytes;
using recording_format::kFileHeaderBytes;
using recording_format::kMaxPayloadBytes;
using recording_format::kRecordHeaderBytes;

static_assert(RecordingWriter::kMinBlockBytes >=
              kRecordHeaderBytes + kMaxRecordedBytes + recording_format::kDelayBytes);

static const RecordingWriter::Options& checked(const RecordingWriter::Options& options) {
    if (options.block_bytes < RecordingWriter::kMinBlockBytes ||
        options.block_bytes > kMaxPayloadBytes) {
        throw Error(
            Errc::invalid_argument,
            fmt::format("invalid size of a recording's blocks: {} bytes; must be {} to {}",
                        options.block_bytes, RecordingWriter::kMinBlockBytes, kMaxPayloadBytes));
    }
    return options;
}

RecordingWriter::RecordingWriter(const std::string& path, const RecordingInfo& info)
    : RecordingWriter(path, info, Options{}) {}

RecordingWriter::RecordingWriter(const std::string& path, const RecordingInfo& info,
                                 const Options& options)
    : config_((info.config.check(), info.config)),
      options_(checked(options)),
      file_(path, options.replace),
      buffer_(kBlockHeaderBytes + options.block_bytes) {
    key_ = recording_format::put_file_header(buffer_.data(), info);
    if (!file_.append({buffer_.data(), kFileHeaderBytes})) throw file_.failure("nothing is kept");
    kept_.bytes = file_.bytes();
}

RecordingWriter::~RecordingWriter() {
    close();
}

bool RecordingWriter::add(const RecordedWrite& write) {
    RecordedWrite part = write;
    do {
        part.words = write.words.subspan(part.offset - write.offset);
        part.words = part.words.first(std::min(part.words.size(), kMaxRecordedBytes));
        if (!add_record(part)) return false;
        part.offset += part.words.size();
    } while (part.offset - write.offset < write.words.size());
    return true;
}

bool RecordingWriter::add_record(const RecordedWrite& write) {
    if (!recording_format::can_be(write, config_)) {
        ++kept_.refused;
        return false;
    }
    if (!goes_into_block(write)) flush();
    if (failed() || closed_) {
        ++kept_.lost;
        return false;
    }
    if (block_.records == 0) block_.base_ns = write.time_ns;
    const std::int32_t time = *recording_format::time_in_block(block_.base_ns, write.time_ns);
    recording_format::put_record(payload() + block_.payload_bytes, write, time);
    block_.least = std::min(block_.least, time);
    block_.most = std::max(block_.most, time);
    block_.payload_bytes += static_cast<std::uint32_t>(recording_format::record_bytes(write));
    ++block_.records;
    return true;
}

bool RecordingWriter::goes_into_block(const RecordedWrite& write) const noexcept {
    if (block_.records == 0) return true;
    return block_.payload_bytes + recording_format::record_bytes(write) <= options_.block_bytes &&
           recording_format::time_in_block(block_.base_ns, write.time_ns).has_value();
}

bool RecordingWriter::flush_old(std::int64_t now_ns) {
    if (block_.records == 0 || now_ns - block_.base_ns < options_.flush_ns) return !failed();
    return flush();
}

bool RecordingWriter::flush() {
    if (block_.records == 0) return !failed();
    const std::uint32_t records = block_.records;
    const bool sent = send_block();
    (sent ? kept_.writes : kept_.lost) += records;
    return sent;
}

/// An empty one marks the end.
bool RecordingWriter::send_block() {
    block_.payload_checksum = recording_format::checksum(payload(), block_.payload_bytes);
    recording_format::put_block_header(buffer_.data(), block_, key_);
    const bool sent = file_.append({buffer_.data(), kBlockHeaderBytes + block_.payload_bytes});
    if (sent) ++kept_.blocks;
    kept_.bytes = file_.bytes();
    block_ = {.number = block_.number + 1};
    return sent;
}

bool RecordingWriter::close() {
    if (closed_) return !failed();
    closed_ = true;
    if (flush() && send_block() && options_.sync_at_close) file_.sync();
    return file_.close();
}

std::optional<Error> RecordingWriter::failure() const {
    if (!failed()) return std::nullopt;
    return file_.failure(fmt::format("{} writes in {} blocks ({} bytes) are kept, {} are lost",
                                     kept_.writes, kept_.blocks, kept_.bytes, kept_.lost));
}

}  // namespace rmem
