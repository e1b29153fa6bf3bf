// SPDX-License-Identifier: Apache-2.0
#include "rmem/recording/recording_reader.hpp"

#include "rmem/base/small_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace rmem {

using recording_format::kBlockHeaderBytes;
using recording_format::kFileHeaderBytes;
using recording_format::kMaxPayloadBytes;

namespace {

constexpr std::int64_t kFromTheStart = std::numeric_limits<std::int64_t>::min();
constexpr std::size_t kScanBytes = std::size_t{1} << 16;
static_assert(kScanBytes <= kMaxPayloadBytes);

Error unreadable(const std::string& name, int error) {
    const Errc kind = error == EACCES || error == EPERM ? Errc::not_permitted : Errc::system;
    return {kind, fmt::format("the recording '{}' cannot be read: {}", name, system_words(error))};
}

int open_to_read(const std::string& path) {
    // Non-blocking, because a pipe without a writer would wait; for files it means nothing.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) throw unreadable(path, errno);
    return fd;
}

}  // namespace

RecordingReader::RecordingReader(const std::string& path)
    : RecordingReader(open_to_read(path), path) {}

RecordingReader::RecordingReader(int descriptor, std::string name)
    : name_(std::move(name)), fd_(descriptor) {
    try {
        open_header();
    } catch (...) {
        ::close(fd_);
        throw;
    }
}

RecordingReader::~RecordingReader() {
    ::close(fd_);
}

void RecordingReader::open_header() {
    struct stat status {};
    if (::fstat(fd_, &status) != 0) throw unreadable(name_, errno);
    if (!S_ISREG(status.st_mode)) {
        throw Error(Errc::bad_recording,
                    fmt::format("'{}' is not a regular file; give one with a recording", name_));
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
    const std::size_t got = read_at(0, kFileHeaderBytes);
    info_ = recording_format::get_file_header(buffer_.data(), got, name_, key_);
    seek(kFromTheStart);
}

// ---- Writes

bool RecordingReader::next(RecordedWrite& write) {
    do {
        if (at_ == end_ && !load_block()) return false;
        write = recording_format::get_record(buffer_.data() + at_, block_.base_ns);
        at_ += recording_format::record_bytes(write);
    } while (write.time_ns < from_ns_);
    from_ns_ = kFromTheStart;
    ++report_.writes;
    return true;
}

void RecordingReader::seek(std::int64_t time_ns) {
    place_ = good_end_ = kFileHeaderBytes;
    next_number_ = 0;
    at_ = end_ = 0;
    from_ns_ = time_ns;
    report_ = {};
    while (time_ns != kFromTheStart) {
        const auto header = find_header();
        if (!header || (header->records != 0 && header->most_ns() >= time_ns)) break;
        pass(*header);
    }
    const bool closed = report_.closed;
    report_ = {};
    report_.closed = closed;
}

// ---- Blocks

bool RecordingReader::load_block() {
    while (const auto header = find_header()) {
        if (!read_payload(*header)) {
            // Its length is under the header's checksum: believed, so that no byte is read twice.
            place_ += kBlockHeaderBytes + header->payload_bytes;
            continue;
        }
        pass(*header);
        if (header->records == 0) continue;
        block_ = *header;
        at_ = 0;
        end_ = header->payload_bytes;
        return true;
    }
    report_.tail_bytes = size_ - std::min(good_end_, size_);
    return false;
}

bool RecordingReader::read_payload(const BlockHeader& header) {
    return read_at(place_ + kBlockHeaderBytes, header.payload_bytes) == header.payload_bytes &&
           recording_format::checksum(buffer_.data(), header.payload_bytes) ==
               header.payload_checksum &&
           recording_format::is_whole(buffer_.data(), header, info_.config);
}

/// Counts a whole block, and the writes lost before it.
void RecordingReader::pass(const BlockHeader& header) noexcept {
    if (report_.lost_blocks == 0 && report_.damaged_bytes == 0) {
        report_.damaged_block = next_number_;
        report_.damaged_at = good_end_;
    }
    ++report_.blocks;
    report_.lost_blocks += header.number - next_number_;
    report_.damaged_bytes += place_ - good_end_;
    report_.closed = header.records == 0;
    next_number_ = header.number + 1;
    place_ += kBlockHeaderBytes + header.payload_bytes;
    good_end_ = place_;
}

/// The next header of this recording, and place_ where it is. Spoils buffer_.
std::optional<RecordingReader::BlockHeader> RecordingReader::find_header() {
    if (const auto header = header_at(place_)) return header;
    for (std::uint64_t from = place_ + 1; from < size_;) {
        const std::size_t got = read_at(from, kScanBytes);
        if (got < kBlockHeaderBytes) break;
        const std::size_t last = got - kBlockHeaderBytes;
        for (std::size_t i = 0; i <= last; ++i) {
            const auto header = header_in(buffer_.data() + i, from + i);
            if (!header) continue;
            place_ = from + i;
            return header;
        }
        from += last + 1;
    }
    place_ = size_;
    return std::nullopt;
}

std::optional<RecordingReader::BlockHeader> RecordingReader::header_at(std::uint64_t place) {
    if (read_at(place, kBlockHeaderBytes) < kBlockHeaderBytes) return std::nullopt;
    return header_in(buffer_.data(), place);
}

std::optional<RecordingReader::BlockHeader> RecordingReader::header_in(
    const std::byte* from, std::uint64_t place) const noexcept {
    auto header = recording_format::get_block_header(from, key_);
    if (!header || header->number < next_number_) return std::nullopt;
    if (header->payload_bytes > size_ - place - kBlockHeaderBytes) return std::nullopt;
    return header;
}

/// Into buffer_, which grows to the largest block. Less only at the file's end.
std::size_t RecordingReader::read_at(std::uint64_t place, std::size_t bytes) {
    if (place >= size_) return 0;
    const std::size_t wanted = std::min<std::uint64_t>(bytes, size_ - place);
    if (buffer_.size() < wanted) buffer_.resize(wanted);
    std::size_t done = 0;
    while (done < wanted) {
        const ssize_t count =
            ::pread(fd_, buffer_.data() + done, wanted - done, static_cast<off_t>(place + done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw unreadable(name_, errno);
        if (count == 0) break;  // shortened since
        done += static_cast<std::size_t>(count);
    }
    return done;
}

std::string to_string(const RecordingReport& report) {
    std::string text = fmt::format("{} writes in {} blocks", report.writes, report.blocks);
    if (report.lost_blocks != 0 || report.damaged_bytes != 0) {
        text += fmt::format("; {} blocks are lost by damage ({} bytes)", report.lost_blocks,
                            report.damaged_bytes);
        text += report.lost_blocks == 0 ? fmt::format(", at byte {}", report.damaged_at)
                                        : fmt::format(", the first is block {} at byte {}",
                                                      report.damaged_block, report.damaged_at);
    }
    if (report.tail_bytes != 0) {
        text += fmt::format("; {} bytes after the last whole block are torn off or damaged",
                            report.tail_bytes);
    }
    if (!report.closed) text += "; it was not closed: its recorder died, or is still at work";
    return text;
}

}  // namespace rmem
