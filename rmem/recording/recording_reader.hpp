// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reads a recording: docs/design/recording.md.
///
/// Memory        the largest block, at most 1 MiB, however long the file; each is copied, checked,
///               given out.
/// Trust         none in the file: whatever it holds, next() gives only writes that the header's
///               ring can have had, and the work is in proportion to the file's size.
/// Damage        a damaged block is left out and counted; the blocks after it are read. Bytes after
///               the last whole block are the tail: torn off when a recorder died, so no error.
/// Thread safety one thread at a time.
/// Errors        Error from the constructor (bad_recording, version_mismatch, not_permitted,
///               system), and from next() and seek() when the system cannot read the file.

#include "rmem/recording/format.hpp"
#include "rmem/recording/recorded_write.hpp"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace rmem {

/// Counts of a reader so far: complete when next() has returned false.
struct RecordingReport {
    std::uint64_t writes = 0;
    std::uint64_t blocks = 0;
    std::uint64_t lost_blocks = 0;    ///< before the last whole one
    std::uint64_t damaged_bytes = 0;  ///< before the last whole one
    std::uint64_t damaged_block = 0;  ///< the first that is lost; of use if there are any
    std::uint64_t damaged_at = 0;     ///< where in the file the first damage begins
    std::uint64_t tail_bytes = 0;     ///< after the last whole block
    bool closed = false;              ///< its recorder ended it; else it died, or is still at it

    /// Whether everything that was recorded was there.
    bool whole() const noexcept {
        return closed && lost_blocks == 0 && damaged_bytes == 0 && tail_bytes == 0;
    }
};

/// One sentence for people.
RMEM_API std::string to_string(const RecordingReport& report);

class RMEM_API RecordingReader {
public:
    /// Reads the file as long as it is now.
    explicit RecordingReader(const std::string& path);
    /// Takes the descriptor of a regular file; `name` is for sentences.
    RecordingReader(int descriptor, std::string name);
    ~RecordingReader();
    RecordingReader(const RecordingReader&) = delete;
    RecordingReader& operator=(const RecordingReader&) = delete;

    const RecordingInfo& info() const noexcept { return info_; }

    /// The next write, whose words stay until the next call. False at the end.
    bool next(RecordedWrite& write);

    /// next() gives the first write at or after that time, and then all that follow it, even if
    /// their times step back. Looks at the blocks' headers alone. The report starts again, there.
    void seek(std::int64_t time_ns);

    const RecordingReport& report() const noexcept { return report_; }

private:
    using BlockHeader = recording_format::BlockHeader;

    void open_header();
    [[nodiscard]] bool load_block();
    [[nodiscard]] bool read_payload(const BlockHeader& header);
    [[nodiscard]] std::optional<BlockHeader> find_header();
    [[nodiscard]] std::optional<BlockHeader> header_at(std::uint64_t place);
    std::optional<BlockHeader> header_in(const std::byte* from, std::uint64_t place) const noexcept;
    void pass(const BlockHeader& header) noexcept;
    std::size_t read_at(std::uint64_t place, std::size_t bytes);

    const std::string name_;
    const int fd_;
    std::uint64_t size_ = 0;
    RecordingInfo info_;
    recording_format::Key key_ = 0;
    std::vector<std::byte> buffer_;

    std::uint64_t place_ = 0;        ///< in the file: where the next block should begin
    std::uint64_t good_end_ = 0;     ///< after the last whole block
    std::uint64_t next_number_ = 0;  ///< of the next block
    BlockHeader block_;              ///< whose records lie in buffer_
    std::size_t at_ = 0;             ///< in buffer_: the next record
    std::size_t end_ = 0;
    std::int64_t from_ns_ =
        std::numeric_limits<std::int64_t>::min();  ///< seek: earlier is passed over
    RecordingReport report_;
};

}  // namespace rmem
