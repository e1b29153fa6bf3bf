// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Whose the bytes of a ring's memory are, and who has written others': for rings that look
/// (`rmem run --owners`).
///
/// Each byte of the user's memory has an owner: a node, a rank, anybody, or, where the map says so,
/// nobody: then it is a canary. The table is made once, before the ring's programs come; a Node
/// that is opened in a ring that has one looks each of its writes up (rmem/link/owned_card.hpp).
/// Writes of others' bytes are kept in a list of the last kReports, which anybody can read.
/// Limits: a program that stores into the segment itself asks nobody. On `direct` a plain store
/// through rmem_stores is one of these.
/// Thread safety: any process. Progress: wait-free but `put`, which waits for the ring's lock.
/// Trust: others may have written the table and the list; what is read is bounded.
/// Errors: `rmem::Error` from `put`: no_space, timed_out; invalid_argument for too many owners.

#include "rmem/base/limits.hpp"
#include "rmem/error.hpp"
#include "rmem/ring/config.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rmem {

class Ring;

enum class OwnerMode : std::uint32_t { off, report, enforce };
[[nodiscard]] RMEM_API std::optional<OwnerMode> parse_owner_mode(const std::string& text) noexcept;

struct ByteOwner {
    enum class Kind : std::uint16_t { anybody, node, rank, nobody };
    Kind kind = Kind::anybody;
    std::uint16_t number = 0;

    friend bool operator==(const ByteOwner&, const ByteOwner&) = default;
};
RMEM_API std::string text_of(const ByteOwner& owner);

struct OwnedRange {
    std::uint64_t offset = 0, bytes = 0;
    ByteOwner owner;
};

/// A write of another's bytes.
struct ForeignWrite {
    std::int64_t time_ns = 0;                   ///< CLOCK_REALTIME
    std::uint64_t offset = 0;                   ///< of the first byte that is another's
    std::uint64_t bytes = 0;                    ///< of the write, from there on
    std::uint64_t before = 0, after = 0;        ///< the first eight of them, as they lie in memory
    std::uint32_t node = 0, rank = 0, pid = 0;  ///< who wrote
    ByteOwner owner;
    std::uint32_t refused = 0;  ///< not 0: nothing was written
    std::array<char, 32> program{};
};

class RMEM_API Owners {
public:
    static constexpr std::size_t kReports = 64;
    static std::size_t area_bytes(const RingConfig& config) noexcept;

    /// What is in no range is anybody's, or with `has_canaries` nobody's. False: there is a table.
    static bool put(const Ring& ring, OwnerMode mode, std::span<const OwnedRange> ranges,
                    bool has_canaries);
    /// `off`: there is no table.
    static OwnerMode mode_of(const Ring& ring) noexcept;

    Owners(const Ring& ring, Member member);

    OwnerMode mode() const noexcept { return mode_; }
    /// Whether a word's line is all one's own, or anybody's: then the word may be written.
    bool is_in_own_line(std::size_t offset) const noexcept {
        return is_own(lines_[offset / kLineBytes]);
    }
    /// The first byte of the range that is another's; nothing: it may be written. The range is in
    /// the user's memory.
    std::optional<std::size_t> find_foreign(std::size_t offset, std::size_t bytes) const noexcept;
    ByteOwner owner_of(std::size_t offset) const noexcept;

    void report(ForeignWrite write) const noexcept;
    /// How many there were, since the ring was made.
    std::uint64_t reports() const noexcept;
    /// The last ones, the oldest first.
    std::vector<ForeignWrite> last() const;

private:
    struct Area;

    bool is_own(std::uint8_t code) const noexcept {
        return code == own_node_ || code == own_rank_ || code == 0;
    }
    std::optional<std::size_t> find_in_bytes(std::size_t at, std::size_t end) const noexcept;

    Area* area_;
    const std::uint8_t* lines_;  ///< of each line of the memory: whose all of it is, or anybody's
    const std::uint8_t* codes_;  ///< of each byte
    std::size_t bytes_;
    OwnerMode mode_;
    std::uint8_t own_node_, own_rank_;  ///< codes; 0, which is anybody's, where nothing is
};

}  // namespace rmem
