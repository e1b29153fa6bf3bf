// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Interrupts: being told that a word was written.
///
/// As on the card, each node marks words one by one: TIE (transmit) makes its own writes to the
/// word carry an interrupt, RIE (receive) makes such writes of others to the word raise one here.
/// `Trigger::any_write` is the card's override: every write of another node to the word raises,
/// marked or not. A write of several words raises once for each word that is watched.
/// Interrupts are also sent, as GT200 and RFM do, to a node or to all others: with a number and a
/// value, of no word of the memory, and after what was written before. They are writes of a
/// register of the sender's, above the user's memory.
/// A raised interrupt carries the address, the writing node and the value that the word held when
/// it was raised: what was written, as long as one node writes the word. It is queued: the last
/// 1024 are kept, and a reader is told with the next one taken how many it has lost.
///
/// The ranks of a node share its marks, as programs share a card. Each reads the queue by itself:
/// it gets the interrupts of all watched words since it joined, and those sent since it accepted
/// their numbers, which are its own. The marks of ranks that died go when a rank joins the node and
/// no rank that watched is alive any more; what they accepted goes when a rank joins.
///
/// Thread safety: `raise` paths (`written`, `applied`) from any process; `take` and `pending` from
///   one thread of the rank at a time; `watch` … `accept` from one thread of the rank; the rest
///   from any.
/// Progress: raising and taking are lock-free, and a reader holds nobody up. A process killed while
///   it raises costs its own interrupt (counted as missed) and no other; one stopped there
///   (SIGSTOP) delays later interrupts until it goes on or dies, or the queue has gone round.
///   Watching waits for other ranks of its own node.
/// Programs that do not use interrupts pay nothing: engines look at one word that is zero while
/// nobody watches, writers of this host at the count of their word's line, which sleepers share
/// (rmem/ring/waiting/word_sleepers.hpp).
/// Errors: `rmem::Error` (invalid_argument) for a range outside the user's memory.
/// Source: SCRAMNet+ auxiliary control RAM (ACR), CSR0 and the interrupt FIFO.

#include "rmem/base/relaxed.hpp"
#include "rmem/ring/config.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rmem {

class Ring;

struct Interrupt {
    enum class Kind : std::uint32_t { written, sent, sent_to_all };

    std::uint64_t offset = 0;  ///< of the word; its number, where it was sent
    std::uint32_t value = 0;   ///< what was written, or sent
    std::uint32_t origin = 0;  ///< the node that wrote
    std::uint64_t missed = 0;  ///< interrupts of the node lost since the last one taken
    Kind kind = Kind::written;
};

inline constexpr std::uint32_t kAllNodes = ~std::uint32_t{0};  ///< but the sender

inline constexpr unsigned kBitsPerChunk = 32;  ///< of the marks, a bit for each word

/// A register's words, in one write.
struct SentInterrupt {
    std::uint32_t to = 0;  ///< a node, or kAllNodes
    std::uint32_t value = 0;
};

/// Throws Error(invalid_argument, or bad_rank) for a node or number that there is not.
void check_sendable(const RingConfig& config, unsigned to, unsigned number);
/// The same for a set of numbers, a bit for each.
void check_acceptable(std::uint64_t numbers);

/// Which writes of others raise an interrupt at a watched word.
enum class Trigger { marked, any_write };

/// Throws Error(invalid_argument) unless the range is in the user's memory and not empty.
void check_watchable(const RingConfig& config, std::size_t offset, std::size_t bytes);

/// Bytes of one node's interrupt area in the segment.
RMEM_API std::size_t interrupt_area_bytes(const RingConfig& config) noexcept;

/// All nodes' interrupt areas, as seen by one rank, which must have joined (rmem::Membership).
class RMEM_API InterruptBoard {
public:
    InterruptBoard(const Ring& ring, unsigned node, unsigned rank);
    /// For a tool that writes as `node` without being a rank: raises in the name of `rank`, which
    /// must be alive; leaves that rank's marks alone. Only `written` may be called.
    static InterruptBoard in_the_name_of(const Ring& ring, unsigned node, unsigned rank);
    /// For the engine of the ring's own node, on link udp, where nobody else raises; it need be no
    /// rank. Only `applied` and `anyone_watches` may be called.
    static InterruptBoard of_engine(const Ring& ring, unsigned node);

    /// RIE: watch [offset, offset + bytes) of the user's memory at this node; whole words.
    /// Watching a word again with another trigger replaces the trigger.
    void watch(std::size_t offset, std::size_t bytes, Trigger trigger);
    void unwatch(std::size_t offset, std::size_t bytes);
    /// The rank takes the node's interrupts, whichever rank watches: raisers wake it from now on.
    void attend();
    /// TIE: this node's writes to the range carry an interrupt.
    void mark(std::size_t offset, std::size_t bytes);
    void unmark(std::size_t offset, std::size_t bytes);
    /// The numbers of sent interrupts that this rank gets, a bit for each; replaces the last.
    void accept(std::uint64_t numbers);

    /// Whether any node of this host watches or accepts anything.
    bool anyone_watches() const noexcept {
        // relaxed is enough: a process that was told of the watching by its watcher sees it
        return watched_anywhere_->load(std::memory_order_relaxed) != 0;
    }
    /// Whether that node watches anything.
    bool is_watching(unsigned node) const noexcept;
    /// On `direct`, by the writer, after the store: raises at every other node that watches.
    void written(std::size_t offset, std::size_t bytes) noexcept;
    /// On links with a bank per node, by the engine, after applying a write of `origin` here.
    void applied(unsigned origin, std::size_t offset, std::size_t bytes, bool marked) noexcept {
        applied_at(node_, origin, offset, bytes, marked);
    }
    /// The same of another node, by a writer that has brought its write there.
    void applied_at(unsigned node, unsigned origin, std::size_t offset, std::size_t bytes,
                    bool marked) noexcept;
    /// Whether a write of this node to the range carries the interrupt bit.
    bool is_marked(std::size_t offset, std::size_t bytes) const noexcept {
        const std::size_t word = offset / kWordBytes;
        if (bytes != kWordBytes) return is_any_marked(offset, bytes);
        // relaxed is enough: the marks are this node's own
        return word < user_words_ &&
               (marks_[word / kBitsPerChunk].load(std::memory_order_relaxed) >>
                    word % kBitsPerChunk &
                1) != 0;
    }

    /// The oldest interrupt that this rank has not had, if any.
    std::optional<Interrupt> take() noexcept;
    /// Whether take() may have one.
    bool pending() const noexcept;

private:
    friend std::size_t interrupt_area_bytes(const RingConfig& config) noexcept;
    struct Area;
    class Guard;
    enum class Map : unsigned { receive = 0, any = 1, transmit = 2 };
    using Bits = std::atomic<std::uint32_t>;

    enum class As { member, observer, engine };
    InterruptBoard(const Ring& ring, unsigned node, unsigned rank, As as);
    static std::size_t area_bytes(const RingConfig& config) noexcept;
    Area& area(unsigned node) const noexcept;
    Bits* bits(unsigned node, Map map) const noexcept;
    /// What stands at a position of the queue. `nothing` yet; `again`: it has just changed; `lost`:
    /// it was passed over, or its raiser is dead; `overrun`: a later one has taken its place.
    enum class Found { nothing, again, lost, overrun, interrupt };

    bool is_any_marked(std::size_t offset, std::size_t bytes) const noexcept;
    void forget_the_dead();
    void count_accepted() noexcept;
    void note_watcher() noexcept;
    void count_watched(std::size_t chunk, std::uint32_t words, bool set) noexcept;
    void change(Map map, bool set, std::size_t offset, std::size_t bytes);
    template <class Raises>
    void raise_words(unsigned node, unsigned origin, std::size_t offset, std::size_t bytes,
                     Raises raises) noexcept;
    void raise_sent(unsigned node, unsigned origin, std::size_t offset, std::size_t bytes) noexcept;
    void push(unsigned node, std::size_t offset, unsigned origin) noexcept;
    void wake_watchers(const Area& to, std::uint64_t number) const noexcept;
    std::size_t number_of(std::size_t offset) const noexcept;
    bool is_for_me(const Interrupt& interrupt, std::uint64_t at) const noexcept;
    Found look(std::uint64_t at, Interrupt& interrupt) const noexcept;
    void lose(std::uint64_t count) noexcept;
    bool is_claimer_alive(std::uint64_t state) const noexcept;
    bool is_rank_alive(std::uint32_t who) const noexcept;

    const Ring& ring_;
    std::atomic<std::uint64_t>* watched_anywhere_;
    unsigned node_;
    const Bits* marks_;  ///< of that node's own writes
    std::size_t user_words_;
    unsigned rank_;
    std::uint32_t incarnation_;
    std::uint32_t claimer_;     ///< the rank that claims entries of queues
    bool attends_ = false;      ///< it is among the node's watchers
    std::uint64_t next_ = 0;    ///< the position in the node's queue that it takes next
    std::uint64_t missed_ = 0;  ///< lost since the last one taken
    /// From which position on it takes sent ones, of each number.
    std::array<Hint<std::uint64_t>, kInterruptNumbers> since_;
};

}  // namespace rmem
