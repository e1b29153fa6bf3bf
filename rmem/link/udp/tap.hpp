// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Where a node's engine shows each write that goes through it, for recorders on this host.
///
/// A log of kTapBytes in the node's segment (rmem/ring/write_log.hpp): what others wrote when it is
/// applied, what this node's programs wrote when it is sent, each behind its store into the bank.
/// The engine waits for nobody: a reader that is too slow finds its place overwritten
/// (LogReader::Found::lapped), and knows so.
///
/// Open      while somebody listens. Listeners say so until a time that they put off again and
///           again (NodeBoard::tap_until_ns), so one that was killed costs kLeaseNs more, and no
///           write a branch more than that on is_open() ever after. The engine looks for listeners
///           now and then (EngineWork::kKeepNs).
/// Gaps      a record says that the bank is not what the writes shown make of it: the tap was
///           closed before, or the node has begun a new incarnation in the ring, with the bank of
///           another member.
/// Order     each origin's writes in their order, all in the order of this node's bank.
/// Times     nanoseconds of this host's CLOCK_MONOTONIC. A batch says when its first write was
///           stored, and all its writes bear that time; the clock of another host is known with an
///           error (rmem/base/round_trip.hpp).
/// Thread safety: the engine's user. Progress: nothing waits, nothing is allocated.
/// Trust: a reader believes nothing that it has not bounded; see unpacked().

#include "rmem/ring/node_board.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/write_log.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace rmem::udp {

/// A write, or a part of a long one, as the tap shows it.
struct TappedWrite {
    unsigned origin = 0;
    std::int64_t written_ns = 0;
    std::int64_t applied_ns =
        0;  ///< in this node's bank, or sent; at most 4.29 s after `written_ns` can be told
    std::uint64_t offset = 0;
    std::uint32_t words = 0;
    WordPart part = kWholeWord;  ///< of its one word, if it has not all
    bool is_interrupt = false, is_me_last = false;
    bool has_more = false;  ///< the origin's next one is of the same batch
    bool is_gap = false;    ///< no write: only the times count
};

class RMEM_API Tap {
public:
    static constexpr std::int64_t kLeaseNs = 2'000'000'000;

    explicit Tap(Ring& ring);

    bool is_open() const noexcept { return is_open_; }
    /// Opens or closes it, by whether a recorder listens.
    void keep(std::int64_t now) noexcept;
    /// Only while it is open. `words` has the write's words.
    void show(const TappedWrite& write, std::span<const std::byte> words) noexcept;
    void show_gap(std::int64_t now) noexcept;

private:
    void append(const LogRecord& record, const void* words) noexcept;

    NodeBoard& board_;
    LogWriter log_;
    bool is_open_ = false;
};

/// For a listener, in any process: says that it listens, until Tap::kLeaseNs from now. True once
/// the tap is open: what was written before and is not in the log from its present head on, is in
/// the bank.
RMEM_API bool listen(Ring& ring, std::int64_t now) noexcept;

/// A write as the log has it, and back; the words go beside it.
RMEM_API LogRecord packed(const TappedWrite& write) noexcept;
/// All values are to be bounded by the ring's configuration.
RMEM_API TappedWrite unpacked(const LogRecord& record) noexcept;

}  // namespace rmem::udp
