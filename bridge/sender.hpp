// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The source's half of a bridge's end: writes of the source ring in, frames for the other end out.
///
/// While a region is open, and nothing is behind, each write leaves in the frame of its commit. A
/// write that finds the window full, or a limit reached, only changes the region's image, and is
/// conflated: pump() sends a copy of what changed as soon as there is room for half a window, or
/// the limit allows. docs/design/bridge.md says what order a copy keeps.
///
/// Order: what leaves of a region is in the order of take(); a copy has all that came before it.
/// Invariants, executed: only open regions leave; frames are numbered one by one, and the last of
///   them wait for an acknowledgement, with all of their bytes; times never go back.
/// Room: what waits is at most kWindowBytes, a frame of each origin, and a copy of each region.
/// Thread safety: one thread. Nothing here knows clocks: times are arguments.
/// Units: bytes, nanoseconds of CLOCK_MONOTONIC.

#include "bridge/image.hpp"
#include "bridge/message.hpp"
#include "rmem/base/word_block.hpp"
#include "rmem/stores/mode.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

namespace bridge {

/// A region that an end sends.
struct SentRegion {
    std::string name;
    std::uint64_t offset = 0, bytes = 0;  ///< whole words of the source's memory
    std::vector<rmem::WordRange> sync;    ///< of the source's memory, within the region
    std::uint64_t bytes_per_second = 0, writes_per_second = 0;  ///< 0: no limit
};

/// A write of the source ring.
struct SourceWrite {
    unsigned origin = 0;  ///< whose order it is in
    std::int64_t stored_ns = 0;
    std::uint64_t offset = 0;
    std::span<const std::byte> words;
    bool is_interrupt = false;
    bool has_more = false;                   ///< the commit goes on with the origin's next write
    rmem::WordPart part = rmem::kWholeWord;  ///< of its one word, if it has not all
};

struct SenderCounts {
    std::uint64_t writes = 0, bytes = 0;  ///< sent, copies among them
    std::uint64_t frames = 0;
    std::uint64_t copies = 0;     ///< after a loss, or of what was conflated
    std::uint64_t conflated = 0;  ///< writes that changed the image alone
};

class Sender {
public:
    static constexpr std::size_t kWindowBytes = std::size_t{1} << 20;
    /// A commit of which nothing more came for so long has lost its writer.
    static constexpr std::int64_t kUnfinishedNs = 100'000'000;
    /// What a limit allows at once, after a pause.
    static constexpr std::int64_t kBurstNs = 100'000'000;

    explicit Sender(std::vector<SentRegion> regions);

    [[nodiscard]] std::size_t regions() const { return regions_.size(); }
    [[nodiscard]] const SentRegion& region(std::size_t index) const { return regions_[index].sent; }

    // ---- The source
    /// What lies in the memory comes next, by take_seen(); what does not is zero.
    void begin_anew(std::int64_t now_ns);
    /// What a look at the memory has found: what it replaced is not known, nor the order of what
    /// one look finds. It leaves as a copy.
    void take_seen(const SourceWrite& write, std::int64_t now_ns);
    void take(const SourceWrite& write, std::int64_t now_ns);
    /// That word's next write in a copy carries the interrupt mark: its writes are not seen singly.
    void mark(std::uint64_t offset, std::int64_t now_ns);

    // ---- The line
    /// The other end takes the region from now on: a fresh copy is sent.
    void open(std::size_t region, std::int64_t now_ns);
    void close(std::size_t region);
    [[nodiscard]] bool is_open(std::size_t region) const { return regions_[region].is_open; }
    /// The line has ended, and what it carried is lost.
    void close_all();
    /// The other end has taken all frames up to that one. False: there was none of that number.
    [[nodiscard]] bool acknowledge(std::uint64_t number, std::int64_t now_ns);
    /// Sends what can be sent.
    void pump(std::int64_t now_ns);
    /// When pump() has more to do without another call; rmem::kNever: not before one.
    [[nodiscard]] std::int64_t due_ns(std::int64_t now_ns) const;
    [[nodiscard]] rmem::ByteQueue& out() { return out_; }

    /// How long the oldest that the other end lacks has been waiting.
    [[nodiscard]] std::int64_t lag_ns(std::int64_t now_ns) const;
    /// Since when frames wait for an acknowledgement, and none came; rmem::kNever: none waits.
    [[nodiscard]] std::int64_t silent_since_ns() const;
    [[nodiscard]] bool is_behind(std::size_t region) const {
        return regions_[region].image.is_dirty();
    }
    [[nodiscard]] const SenderCounts& counts() const { return counts_; }

private:
    /// What a limit allows: an amount in a second, and kBurstNs of it at once.
    class Limit {
    public:
        explicit Limit(std::uint64_t per_second);
        bool allows(std::int64_t now_ns);
        void spend(std::uint64_t amount) { left_ -= static_cast<double>(amount); }
        std::int64_t due_ns(std::int64_t now_ns) const;

    private:
        double per_ns_, most_, left_;
        std::int64_t at_ns_ = 0;
    };
    struct Region {
        explicit Region(SentRegion region);

        SentRegion sent;
        Image image;
        Limit bytes, writes;
        bool is_open = false;
        bool is_fresh = false;  ///< its next copy is one after a loss, or of what was conflated
        std::int64_t behind_since_ns = 0;
    };
    /// A commit that is being taken.
    struct Open {
        unsigned origin = 0;
        std::uint32_t flags = 0;  ///< of its frames
        std::int64_t stored_ns = 0, since_ns = 0;
        std::vector<std::byte> pieces;
        unsigned count = 0;
        std::uint64_t bytes = 0;
        std::uint64_t admitted = 0;  ///< regions, a bit each
    };
    struct Sent {
        std::uint64_t number = 0;
        std::size_t bytes = 0;
        std::int64_t at_ns = 0;
    };

    [[nodiscard]] Open& open_of(const SourceWrite& write, std::int64_t now_ns);
    [[nodiscard]] bool admits(Open& open, std::size_t region, std::int64_t now_ns);
    void take_part(Open& open, std::size_t region, const SourceWrite& write, std::int64_t now_ns);
    void put(Open& open, std::size_t region, std::size_t word, std::span<const std::byte> words,
             bool has_mark, std::int64_t now_ns);
    void send(Open& open, std::int64_t now_ns);
    void send_open(std::int64_t now_ns);
    void copy(std::int64_t now_ns);
    void come_to(std::int64_t now_ns);
    void check_window() const;
    void note_behind(Region& region, std::int64_t now_ns);

    std::vector<Region> regions_;
    std::vector<Open> open_;
    std::deque<Sent> unacknowledged_;
    std::size_t unacknowledged_bytes_ = 0;
    std::uint64_t number_ = 0;
    std::int64_t heard_ns_ = 0, latest_ns_ = 0;
    bool is_full_ = false;
    rmem::ByteQueue out_;
    SenderCounts counts_;
};

}  // namespace bridge
