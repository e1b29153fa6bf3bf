// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What all parts of a node's engine use: the node, how much of each log its bank has, and the time
/// that a run goes by.
///
/// A part has references to those that it uses, which stand above it in RingEngine's list of parts.
/// What is applied of a log only grows.
/// Thread safety: one thread at a time (rmem/link/ring/engine_lock.hpp), of all parts, except where
///   they say so.

#include "rmem/base/clock.hpp"
#include "rmem/base/relaxed.hpp"
#include "rmem/link/punctuality.hpp"
#include "rmem/ring/membership.hpp"
#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/write_log.hpp"

#include <atomic>
#include <cstdint>
#include <utility>

namespace rmem {

class EngineTime {
public:
    static constexpr std::int64_t kPublishNs = 200;  ///< a record is seen within this, or late

    EngineTime(const RingConfig& config, NodeSlot& slot) : punctuality_(config, slot) {}

    void begin() noexcept {
        now_ns_ = now_ns();
        punctuality_.begin(now_ns_);
        work_ns_ = 0;
    }
    void end() noexcept {
        if (work_ns_ != 0) look(now_ns());
        punctuality_.end();
    }
    /// The logs were read, and nothing was new: the run goes on later.
    void go_on() noexcept {
        note_read();
        now_ns_ = now_ns();
        look(now_ns_);
    }
    void look(std::int64_t now) noexcept { punctuality_.look(now, std::exchange(work_ns_, 0)); }
    /// What has been done since the last look may have taken that long.
    void add_work(std::int64_t ns) noexcept { work_ns_ += ns; }
    /// The logs were read at now(); with `never` it is as if they never were.
    void note_read(bool never = false) noexcept { read_ns_ = never ? 0 : now_ns_; }

    std::int64_t now() const noexcept { return now_ns_; }
    /// When the logs were read before now.
    std::int64_t read_ns() const noexcept { return read_ns_; }
    /// When a write counts as done: at its time, unless its writer was stopped before it had
    /// published it, which shows in that we looked in between and did not see it.
    std::int64_t publication_of(const LogRecord& record) const noexcept {
        return read_ns_ - record.written_ns > kPublishNs ? read_ns_ : record.written_ns;
    }
    const Punctuality& punctuality() const noexcept { return punctuality_; }
    Punctuality& punctuality() noexcept { return punctuality_; }

private:
    static std::int64_t now_ns() noexcept { return rmem::now_ns(); }

    Punctuality punctuality_;
    std::int64_t now_ns_ = 0;
    std::int64_t read_ns_ = 0;
    std::int64_t work_ns_ = 0;
};

struct EngineNode {
    explicit EngineNode(Membership& member)
        : ring(member.ring()),
          config(ring.config()),
          node(member.node()),
          rank(member.rank()),
          slot(ring.node(node)),
          time(config, slot),
          seats(ring.seats()) {}

    /// Whether the engine has applied it.
    bool has_applied(unsigned r, const LogReader::Entry& entry) const noexcept {
        // relaxed is enough: the engine's lock orders it
        return entry.position < slot.applied[r].load(std::memory_order_relaxed);
    }
    void set_applied(unsigned r, std::uint64_t position) noexcept {
        // relaxed is enough: as in has_applied()
        auto& applied = slot.applied[r];
        std::uint64_t has = applied.load(std::memory_order_relaxed);
        // A writer that has claimed its log may raise it meanwhile.
        // (1) - this release-exchange synchronizes-with the acquire-loads rmem/ring/applied.hpp (1)
        // and engine_outward.cpp (7), engine_outward.cpp (8), engine_outward.cpp (9) and
        // engine_outward.cpp (11); relaxed is enough where it fails: nothing is read behind it
        while (position > has &&
               !applied.compare_exchange_weak(has, position, std::memory_order_release,
                                              std::memory_order_relaxed)) {
        }
    }

    Ring& ring;
    const RingConfig& config;
    const unsigned node;
    const unsigned rank;
    NodeSlot& slot;
    EngineTime time;
    Hint<unsigned> seats;  ///< Ring::seats(), as the engine knows it: what it looks at
};

}  // namespace rmem
