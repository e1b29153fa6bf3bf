// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The places of the billboard in the bank, word by word, and the writer of each word.
///
/// The billboard's region stands above the user's memory and is divided equally: one partition per
/// rank, each with a control partition and a data partition (as in the paper). Every word has one
/// writer. In partition `r`:
///
///   state        writer r   incarnation; the incarnation that has left
///   groups       writer r   hashes of the group names r has joined
///   barriers     writer r   arrival counts: one line for all ranks, one word per group id
///   descriptors  writer r   32 × { offset | part | class, length, sequence }: of a message in the
///                data
///   ack[s]       writer s   s's answers to r's messages: consumed count, ACK flags, confirmation,
///                           with lines the line that s reads
///   paper:  message[s]  writer s   MESSAGE flags: one toggled bit per buffer of s
///   inline: pair[d]     writers r and r+d, half a line each: the slots of both directions, a flag
///                                 word and kHeadBytes of payload
///           line[s][n]  writer s   n lines that are a ring: a word, and kInlineBytes of messages
///           bell[s]     writer s   posts of s so far; used by more than 16 ranks on one bank
///           filled[32]  writer r   bytes that are in place of a message posted before it was whole
///   data         writer r   the messages
///
/// Two layouts, fixed when the ring is made: `paper` as printed, and `inline`, where flag and
/// payload of a short message share a line, so that it costs one cache-line transfer, and longer
/// ones lie in lines behind each other. The two directions of a pair share a slot's line, since a
/// rank that answers at once then owns the line already: measured 1.0 to 1.3 hops one way against
/// 1.4 to 2.1 with a line for each direction (docs/design/billboard.md).
///
/// Units: offsets in bytes from the start of the bank unless named words. All places follow from
/// (user_bytes, ranks, layout, data bytes); their hash is part of the ring's configuration.

#include "rmem/ring/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace billboard {

inline constexpr unsigned kBuffers = 32;       ///< per rank: one bit each in a flag word
inline constexpr std::size_t kHeadBytes = 28;  ///< inline: as much beside a slot's flag word
inline constexpr std::size_t kInlineBytes =
    60;  ///< inline: as much in lines, however few there are
/// inline: of a message without buffer, which may be 1.5 KiB behind the header of a protocol.
inline constexpr std::size_t kMaxLineBytes = 1536 + 64;
/// inline: lines of all pairs of ranks together, about; and of one pair and direction.
inline constexpr std::uint32_t kLinesInAll = 1U << 16, kMaxLines = 1024, kFewestLines = 8;
/// The same where a bank's lines are in all banks of the host, and in the caches of their writers.
inline constexpr std::uint32_t kMaxLinesOfRing = 64;
inline constexpr std::size_t kTakenBytes = kMaxLineBytes;  ///< room for any without a buffer
inline constexpr unsigned kBellRanks = 16;     ///< more ranks than this on one bank ring bells
inline constexpr unsigned kBarrierIds = 64;    ///< BBP_MAX_BARRIERS
inline constexpr unsigned kJoinedGroups = 16;  ///< BBP_MAX_JOINED
inline constexpr std::size_t kMinDataBytes = 1024;
inline constexpr std::size_t kMaxDataBytes = std::size_t{1} << 26;  ///< 24 bits of word offset
inline constexpr std::size_t kDefaultDataBytes = std::size_t{1} << 22;
inline constexpr std::size_t kDefaultDataTotal = std::size_t{1} << 26;  ///< for many ranks together
inline constexpr std::size_t kDefaultDataBytesReplicated = std::size_t{1} << 18;
/// For many ranks together on link ring, where a host has a bank for each node: memory for all
/// partitions in all banks would grow with the square of the nodes, and so the time to start them.
inline constexpr std::size_t kDefaultDataTotalOfBank = std::size_t{1} << 22;

/// `inline`, `paper`; and of simulated programs: `inline`, with messages written in pieces as in a
/// bank that ranks share.
enum class Layout : std::uint32_t { lines = 1, paper = 2, pieces = 3 };

RMEM_API const char* name_of(Layout layout) noexcept;
RMEM_API Layout parse_layout(const std::string& text);

/// Traffic that never meets: BBP_ANY takes `user` messages only.
enum class Class : std::uint8_t {
    user = 0,
    barrier = 1,
    fm = 2,
    gamma = 3,
    dp = 4,
    munet = 5,
    mpi = 6
};

/// Which part of a message a posted buffer holds.
enum class Part : std::uint8_t {
    whole = 0,
    filling = 1,  ///< whole, but posted before it was filled: see filled[]
    first = 2,    ///< of a message larger than a partition; starts with the 8-byte total
    more = 3,
    last = 4,
    aborted = 5,  ///< the sender takes the message back
    offered = 6,  ///< the first of a large message that can be read past the ring (core/far.hpp)
    read =
        7  ///< empty: acknowledged before `offered` is by those who have read, after it by others
};

/// A buffer descriptor as its three words say it.
struct Descriptor {
    std::size_t offset = 0;  ///< of the data within the data partition
    std::uint32_t length = 0;
    std::uint32_t sequence = 0;
    Class cls = Class::user;
    Part part = Part::whole;

    static constexpr unsigned kWords = 3;
    static constexpr unsigned kStride = 16;  ///< bytes from one descriptor to the next

    constexpr std::uint32_t place_word() const noexcept {
        return static_cast<std::uint32_t>(offset / rmem::kWordBytes) |
               (static_cast<std::uint32_t>(cls) << 24) | (static_cast<std::uint32_t>(part) << 28);
    }
    static constexpr Descriptor from_words(std::uint32_t place, std::uint32_t length,
                                           std::uint32_t sequence) noexcept {
        return {(place & 0xffffffU) * rmem::kWordBytes, length, sequence,
                static_cast<Class>((place >> 24) & 0xfU), static_cast<Part>(place >> 28)};
    }
};

/// The values that decide the places.
struct BoardConfig {
    Layout layout = Layout::lines;
    std::size_t data_bytes = 0;  ///< data partition per rank; 0: the default for link and ranks
};

/// The values that a ring with a billboard of this version was made with, found again from its
/// sizes; none for another version.
[[nodiscard]] RMEM_API std::optional<BoardConfig> board_of(const rmem::RingConfig& config);

/// The places, computed once.
class RMEM_API Geometry {
public:
    Geometry(const rmem::RingConfig& config, BoardConfig board);

    /// The region's size and hash, for RingConfig::system_bytes and system_hash.
    std::size_t region_bytes() const noexcept { return region_bytes_; }
    std::uint64_t hash() const noexcept;

    Layout layout() const noexcept { return layout_; }
    unsigned ranks() const noexcept { return ranks_; }
    std::size_t data_bytes() const noexcept { return data_bytes_; }
    /// inline: per pair of ranks and direction, a power of two.
    std::uint32_t lines() const noexcept { return lines_; }
    /// inline: how many the longest message touches, and how long that is.
    std::uint32_t lines_of_longest() const noexcept {
        return static_cast<std::uint32_t>((kHeaderBytes + most_line_bytes() + kLineRest - 1) /
                                          kLineRest) +
               1;
    }
    std::size_t most_line_bytes() const noexcept {
        return std::min(kMaxLineBytes, lines_ / 4 * kLineRest - kHeaderBytes);
    }

    std::size_t incarnation(unsigned r) const noexcept { return partition(r); }
    std::size_t departed(unsigned r) const noexcept { return partition(r) + 4; }
    std::size_t group_hash(unsigned r, unsigned i) const noexcept {
        return partition(r) + kLine + i * 8;
    }
    std::size_t barrier(unsigned r) const noexcept { return partition(r) + 3 * kLine; }
    std::size_t barrier(unsigned r, unsigned id) const noexcept {
        return partition(r) + 4 * kLine + id * 4;
    }
    std::size_t descriptor(unsigned r, unsigned buffer) const noexcept {
        return partition(r) + descriptors_ + buffer * Descriptor::kStride;
    }
    /// s's answers in r's partition.
    std::size_t consumed(unsigned r, unsigned s) const noexcept { return ack(r, s, 0); }
    std::size_t ack_flags(unsigned r, unsigned s) const noexcept { return ack(r, s, 1); }
    std::size_t confirmed(unsigned r, unsigned s) const noexcept { return ack(r, s, 2); }
    std::size_t position(unsigned r, unsigned s) const noexcept { return ack(r, s, 3); }
    /// paper: the flags that s sets for r.
    std::size_t message_flags(unsigned r, unsigned s) const noexcept {
        return partition(r) + messages_ + s * 4;
    }
    /// inline: from s to r.
    std::size_t slot(unsigned r, unsigned s) const noexcept {
        // The pair's line lies with the rank from which the other is nearer, counting upwards.
        const unsigned up = (s + ranks_ - r) % ranks_, down = ranks_ - up;
        const bool here = up == 0 || up < down || (up == down && r < s);
        const std::size_t line =
            here ? partition(r) + slots_ + up * kLine : partition(s) + slots_ + down * kLine;
        return line + (s <= r ? 0 : kLine / 2);
    }
    /// inline: the first one from s to r; the next ones follow.
    std::size_t lines(unsigned r, unsigned s) const noexcept {
        return partition(r) + lines_at_ + std::size_t{s} * lines_ * kLine;
    }
    std::size_t bell(unsigned r, unsigned s) const noexcept {
        return partition(r) + bells_ + s * 4;
    }
    std::size_t filled(unsigned r, unsigned buffer) const noexcept {
        return partition(r) + filled_ + buffer * kLine;
    }
    std::size_t data(unsigned r) const noexcept { return partition(r) + data_; }
    std::size_t partition(unsigned r) const noexcept { return base_ + r * partition_bytes_; }
    std::size_t partition_bytes() const noexcept { return partition_bytes_; }

private:
    static constexpr std::size_t kLine = rmem::kLineBytes;
    static constexpr std::size_t kHeaderBytes = rmem::kWordBytes;       // of a message in lines
    static constexpr std::size_t kLineRest = kLine - rmem::kWordBytes;  // beside a line's word
    std::size_t ack(unsigned r, unsigned s, unsigned which) const noexcept {
        return partition(r) + acks_ + s * ack_stride_ + which * ack_step_;
    }

    Layout layout_;
    unsigned ranks_;
    std::uint32_t lines_ = 0;
    std::size_t base_, data_bytes_, partition_bytes_ = 0, region_bytes_ = 0;
    std::size_t descriptors_ = 0, acks_ = 0, ack_stride_ = 0, ack_step_ = 0, messages_ = 0;
    std::size_t slots_ = 0, lines_at_ = 0, bells_ = 0, filled_ = 0, data_ = 0;
};

}  // namespace billboard
