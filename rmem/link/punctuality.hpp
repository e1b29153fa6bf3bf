// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Measures how punctual a node's engine is: propagation, lateness, and the bound.
///
/// Terms
///   propagation   from the store at the origin until the words are in this bank
///   lateness      how much later than the wire model says they are there
///   gap           two looks at the clock further apart than kAwayNs and what the engine's own work
///                 in between explains: the host took the processor, or the program did not poll
/// A write that fell due before the end of a gap, or before the engine had caught up with what the
/// gap had left it to do, is late by the host, not by the engine: it is counted in late_by_host and
/// kept out of the lateness histogram. Its propagation is recorded anyway.
///
/// The bound is for a write that finds its transmit FIFO empty; a derived one grows by what was
/// queued before it (LogRecord::queued_words), a configured one is what it is.
///
/// Where the origin's clock is known with an error, only what breaks the bound for certain counts
/// as a violation.
///
/// Thread safety: only the thread that runs the node's engine. Units: nanoseconds.

#include "rmem/ring/bound_violation.hpp"
#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/ring.hpp"

#include <cstdint>
#include <optional>

namespace rmem {

class RMEM_API Punctuality {
public:
    static constexpr std::int64_t kAwayNs = 1'500;
    static constexpr std::int64_t kWhenItComes = INT64_MIN;  ///< a due time: no profile is kept

    /// A write that was applied.
    struct Arrival {
        unsigned origin = 0;
        std::uint64_t offset = 0;
        std::uint32_t words = 0;
        std::uint32_t queued_words = 0;
        std::int64_t written_ns = 0;
        std::int64_t doubt_ns = 0;   ///< it may have been written that much earlier or later
        std::int64_t unseen_ns = 0;  ///< of the propagation: before the writer had published it
        std::int64_t due_ns = 0;
        std::int64_t applied_ns = 0;
    };

    Punctuality(const RingConfig& config, NodeSlot& slot);

    /// The engine begins; it (or that of another process of the node) last ran until engine_ran_ns.
    void begin(std::int64_t now) noexcept {
        // relaxed is enough, as for end(): the engine's lock orders it
        last_ns_ = slot_.engine_ran_ns.load(std::memory_order_relaxed);
        look(now, 0);
        begin_ns_ = now;
    }
    /// The clock was read; `work_ns`: what the engine's own work since then may have taken.
    void look(std::int64_t now, std::int64_t work_ns) noexcept {
        catching_up_ = catching_up_ || now - last_ns_ > kAwayNs + work_ns;
        if (catching_up_) gap_end_ns_ = now;
        last_ns_ = now;
    }
    /// The engine has done what was due.
    void end() noexcept {
        if (last_ns_ - begin_ns_ <= kAwayNs) catching_up_ = false;
        // relaxed is enough: the engine's lock orders it
        slot_.engine_ran_ns.store(last_ns_, std::memory_order_relaxed);
    }

    /// Records an arrival; a broken bound is returned, and counted.
    std::optional<BoundViolation> arrived(const Arrival& arrival) noexcept {
        return arrived(arrival, slot_);
    }
    /// The same at another node, to which this process has brought the write.
    std::optional<BoundViolation> arrived(const Arrival& arrival, NodeSlot& slot) const noexcept;
    /// Records that many writes at a time, which have no due time and kept the bound. False: they
    /// may not have, and none is recorded. Only where nobody else records arrivals at the node: a
    /// locked addition would wait until the bank has the words that were stored before it.
    [[nodiscard]] bool arrived_in_time(std::int64_t propagation_ns, std::int64_t doubt_ns,
                                       std::uint64_t writes) noexcept;

    /// The bound for one word into an empty FIFO; 0: none.
    std::int64_t bound() const noexcept { return bound_ns_; }

private:
    bool is_in_time(std::int64_t certain_ns) const noexcept {
        return bound_ns_ == 0 || certain_ns <= bound_ns_;
    }
    std::int64_t bound_of(const Arrival& arrival) const noexcept;
    void note_lateness(const Arrival& arrival, NodeSlot& slot) const noexcept;

    const RingConfig& config_;
    NodeSlot& slot_;
    std::int64_t bound_ns_;
    std::int64_t begin_ns_ = 0;
    std::int64_t last_ns_ = 0;
    bool catching_up_ = false;
    std::int64_t gap_end_ns_ = 0;
};

}  // namespace rmem
