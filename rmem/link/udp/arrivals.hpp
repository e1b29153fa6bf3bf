// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What other nodes wrote, into the own bank: at once, or where a timing profile is kept not before
/// the card of that profile would have had it there.
///
/// The card's time of a write is that of an otherwise idle ring: from the store, the insertion, the
/// packets of this and of the origin's writes before it one behind the other, and the nodes and
/// cables in between. A network that is slower than the card is late, which the histogram, the
/// lateness and the bound show (rmem/link/punctuality.hpp). A write is *published* when it is in
/// the bank. Others wait for it then, so no more is deferred than a window.
///
/// Invariant: each origin's writes are applied in the order in which they come.
/// Thread safety: the engine's user; words are stored one by one with release, for readers of any
/// process.
/// Progress: nothing waits. Memory is taken for deferred writes only.
/// Units: nanoseconds of this host's clock.

#include "rmem/base/node_set.hpp"
#include "rmem/base/round_trip.hpp"
#include "rmem/base/time.hpp"
#include "rmem/link/punctuality.hpp"
#include "rmem/link/udp/protocol/datagram.hpp"
#include "rmem/link/udp/roster.hpp"
#include "rmem/link/udp/tap.hpp"
#include "rmem/ring/bank.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/ring/ring.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace rmem::udp {

class RMEM_API Arrivals {
public:
    Arrivals(Ring& ring, unsigned node, InterruptBoard& interrupts, Roster& roster, Tap& tap);

    enum class Showing : bool { in_time, at_once };
    /// The next batch of an origin; `written`: when its first write was stored, as far as the
    /// origin's clock is known.
    void take(unsigned origin, const Batch& batch, std::optional<RoundTrip::Estimate> written,
              std::int64_t now, Showing showing = Showing::in_time);
    /// When a deferred write is due.
    std::int64_t due_ns() const noexcept { return due_ns_; }
    void apply_due(std::int64_t now);
    /// All deferred writes, now: their origins' clocks or rings are gone.
    void apply_all(std::int64_t now) { apply_until(kNever, now); }
    /// All deferred writes of one, which has gone.
    void apply_all_of(unsigned origin, std::int64_t now);
    /// Number of batches taken from an origin that are not wholly in the bank yet.
    std::uint64_t behind(unsigned origin) const noexcept;

    Punctuality& punctuality() noexcept { return punctuality_; }
    const Punctuality& punctuality() const noexcept { return punctuality_; }
    /// Bounds that were broken since this was asked last; few are kept.
    [[nodiscard]] bool has_violations() const noexcept { return !violations_.empty(); }
    [[nodiscard]] std::vector<BoundViolation> take_violations() {
        return std::exchange(violations_, {});
    }
    [[nodiscard]] bool has_news() const noexcept { return any_; }
    /// Whether anything was applied since this was asked last.
    [[nodiscard]] bool take_news() noexcept { return std::exchange(any_, false); }
    /// Whether any of it lies where programs read by plain loads, and not by the billboard's calls.
    [[nodiscard]] bool take_news_of_users() noexcept { return std::exchange(any_of_users_, false); }
    /// The origins of which a deferred write was applied since the last call.
    [[nodiscard]] NodeSet take_published() noexcept { return std::exchange(published_, NodeSet()); }
    std::uint64_t deferred() const noexcept { return deferred_count_; }

private:
    struct Write {
        Place place;
        unsigned origin = 0;
        std::optional<RoundTrip::Estimate> written;
        std::int64_t due_ns = 0;
        std::uint64_t sequence = 0;  ///< the batch's
        bool has_more = false;       ///< it is not the batch's last
    };
    struct Deferred {
        Write write;
        std::vector<std::byte> words;
    };

    std::int64_t card_time(unsigned origin, std::size_t words, std::int64_t written) noexcept;
    void apply(const Write& write, const Words& words, std::int64_t now);
    void apply(unsigned origin, const Batch& batch, std::optional<RoundTrip::Estimate> written,
               std::int64_t now);
    void put(const Write& write, const Words& words, std::int64_t now);
    void count(std::uint64_t writes, std::size_t words) noexcept;
    void show(const Write& write, const Words& words, std::int64_t now) noexcept;
    void measure(const Write& write, std::int64_t now);
    [[nodiscard]] bool measure(unsigned origin, const RoundTrip::Estimate& written,
                               std::uint64_t writes, std::int64_t now) noexcept;
    void apply_until(std::int64_t due, std::int64_t now);
    void apply_until(unsigned origin, std::int64_t due, std::int64_t now);
    void find_due() noexcept;

    Ring& ring_;
    const unsigned node_;
    NodeSlot& slot_;
    const Bank bank_;
    const ApplierUse applier_;
    InterruptBoard& interrupts_;
    Roster& roster_;
    Tap& tap_;
    Punctuality punctuality_;
    const bool keeps_time_;  ///< a profile's
    std::vector<std::int64_t>
        wire_free_ns_;  ///< of each origin: when its card could insert the next packet
    std::vector<std::deque<Deferred>> deferred_;  ///< of each origin
    std::vector<std::uint64_t> taken_;            ///< of each origin: the newest batch
    NodeSet published_;
    std::int64_t due_ns_ = kNever;
    std::vector<BoundViolation> violations_;
    bool any_ = false;
    bool any_of_users_ = false;
    std::uint64_t deferred_count_ = 0;
};

}  // namespace rmem::udp
