// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The twin of a node's bank (rmem/ring/bank.hpp), kept by one process of the node: what differs
/// between the two was stored by its program itself.
///
/// Thread safety: one thread.
/// Progress: the constructor waits for those that are storing a write at that moment. `look` never
///   waits: words that somebody else is storing are left for the next look.
/// Invariants: a word that is stored by writes alone is never taken, whatever is killed. What a
///   program has stored and nobody has sent differs, also when its process was killed.
/// Errors: Error(rank_taken) where another process keeps it; Error(no_space) where the host has no
///   memory for it; Error(timed_out) where somebody was stopped in the middle of a write.

#include "rmem/base/clock.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/segment.hpp"
#include "rmem/ring/write_log.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rmem {

class RMEM_API Twin {
public:
    /// What a look covers: whole words at a multiple of it.
    static constexpr std::size_t kBlockBytes = 256;
    static constexpr std::size_t kBlockWords = kBlockBytes / kWordBytes;

    /// The ring outlives it.
    Twin(const Ring& ring, unsigned node, Deadline deadline);
    ~Twin();
    Twin(const Twin&) = delete;
    Twin& operator=(const Twin&) = delete;

    /// Whether any word may differ.
    [[nodiscard]] bool differs(std::size_t offset, std::size_t bytes) const noexcept;

    /// The words of a block as they were seen, and which of them, a bit each, the program has
    /// stored; or perhaps a write just then. A word in a write whose writer is stopped is neither.
    struct Seen {
        std::uint64_t words = 0, undecided = 0;
        std::array<std::uint32_t, kBlockWords> now, before;
    };
    [[nodiscard]] Seen look(std::size_t offset, std::size_t bytes) noexcept;
    /// A word that was seen is on its way: the twin gets it, unless a write has come to it since.
    /// Until then it is seen again, also by the next one to keep the twin.
    void set_sent(std::size_t offset, std::uint32_t before, std::uint32_t now) noexcept;

    /// A write that was logged: the twin gets it in any case.
    void set_logged(const LogRecord& record, const void* words) noexcept;

    /// Looks for those that are in the middle of a write since the last call. They were killed: the
    /// words count as written, and those of ranks are sent (rmem/ring/unsent.hpp). Or they are
    /// stopped: nobody waits for them any more.
    void look_for_the_stuck() noexcept;
    /// The next one goes on.
    void abandon() noexcept { hold_->release(); }

private:
    /// NodeSlot::keeps_twin.
    enum : std::uint32_t { kNone = 0, kBegun = 1, kWhole = 2 };

    void leave() noexcept;
    [[nodiscard]] bool await_appliers(Deadline deadline) noexcept;
    [[nodiscard]] bool copy_bank(Deadline deadline);
    /// One that stores into the bank, and counts of its writes.
    struct Storer {
        Applier* applier;
        unsigned seat;          ///< kMaxSeats: the engine of the segment's node, on link udp
        bool is_writer;         ///< of the own writes of that seat
        std::uint64_t at_look;  ///< when a look began
        std::uint64_t stuck;    ///< when it looked for the stuck…
        std::uint64_t stopped;  ///< …where it was the same at two such looks
    };
    void meet_new() noexcept;
    bool is_alive(const Storer& storer) const noexcept;
    void mend(const Storer& storer) noexcept;

    const Ring& ring_;
    const unsigned node_;
    std::byte* const bank_;
    std::byte* const twin_;
    std::optional<ByteLock> hold_;
    std::vector<Storer> storers_;
    unsigned seats_ = 0;  ///< whose storers are known
};

/// An applier's next user comes: its former one may have been killed in the middle of a write.
void mend_applier(const Ring& ring, Applier& applier) noexcept;

}  // namespace rmem
