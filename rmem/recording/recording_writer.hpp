// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Writes a recording: docs/design/recording.md.
///
/// Memory        one block, allocated at the start; a full or old block goes out by one write(2).
/// Times         in the order in which they are to be played; they may step back.
/// Thread safety one thread at a time. No clock inside: flush_old() is told the time.
/// Errors        the constructor throws Error. add() and the others return false when the file
///               takes no more; failure() then says why, and how much was kept. Nothing is tried
///               again.

#include "rmem/recording/format.hpp"
#include "rmem/recording/output_file.hpp"
#include "rmem/recording/recorded_write.hpp"

#include <optional>
#include <vector>

namespace rmem {

class RMEM_API RecordingWriter {
public:
    static constexpr std::size_t kMinBlockBytes = std::size_t{1} << 15;  // holds the longest record

    struct Options {
        std::size_t block_bytes = std::size_t{1} << 16;  ///< most, of a block's records
        std::int64_t flush_ns = 100'000'000;  ///< a killed recorder loses no more than this
        bool sync_at_close = false;           ///< close() waits for the disk
        bool replace = false;                 ///< a file that is there
    };
    /// The writes that are safe in the file, and those that are not in it.
    struct Kept {
        std::uint64_t writes = 0;
        std::uint64_t blocks = 0;
        std::uint64_t bytes = 0;    ///< of the file
        std::uint64_t refused = 0;  ///< writes that the ring cannot have had
        std::uint64_t lost = 0;     ///< the file took no more
    };

    RecordingWriter(const std::string& path, const RecordingInfo& info, const Options& options);
    RecordingWriter(const std::string& path, const RecordingInfo& info);
    /// As close(), but the result is dropped.
    ~RecordingWriter();
    RecordingWriter(const RecordingWriter&) = delete;
    RecordingWriter& operator=(const RecordingWriter&) = delete;

    /// Takes a copy. A write of more than kMaxRecordedBytes becomes several records. False:
    /// refused, which is counted, or the file takes no more: failed().
    bool add(const RecordedWrite& write);
    /// Sends out the block if its first record is flush_ns old. To be called now and then.
    bool flush_old(std::int64_t now_ns);
    bool flush();
    /// Flushes, and marks that the recording ends here.
    bool close();

    bool failed() const noexcept { return file_.failed(); }
    std::optional<Error> failure() const;
    const Kept& kept() const noexcept { return kept_; }

private:
    bool add_record(const RecordedWrite& write);
    bool goes_into_block(const RecordedWrite& write) const noexcept;
    [[nodiscard]] bool send_block();
    std::byte* payload() noexcept { return buffer_.data() + recording_format::kBlockHeaderBytes; }

    const RingConfig config_;
    const Options options_;
    OutputFile file_;
    recording_format::Key key_;
    std::vector<std::byte> buffer_;  ///< header and records of the block that is being made
    recording_format::BlockHeader block_;
    Kept kept_;
    bool closed_ = false;
};

}  // namespace rmem
