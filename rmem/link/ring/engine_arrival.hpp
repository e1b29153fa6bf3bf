// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The last step of a write: it falls due, is stored into a bank, measured and counted, and those
/// that want it are woken.
///
/// Invariants: what was stored ahead of the model comes by the model before anything else is.
/// Errors: none; a write that was overwritten in its log is not stored.

#include "rmem/link/ring/engine_logs.hpp"
#include "rmem/link/ring/engine_members.hpp"
#include "rmem/link/ring/engine_node.hpp"
#include "rmem/link/ring/race_check.hpp"
#include "rmem/ring/bank.hpp"
#include "rmem/ring/bound_violation.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/ring/waiting/word_sleepers.hpp"
#include "rmem/ring/write_log.hpp"
#include "rmem/wire/model.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace rmem {

class RMEM_API EngineArrival {
public:
    using ViolationHook = std::function<void(const BoundViolation&)>;

    /// A write that comes to a bank, ready to be stored.
    struct Coming {
        std::int64_t due_ns;
        std::uint64_t tag;
        unsigned node;
        LogRecord record;  ///< without words: nothing comes
        std::array<std::uint32_t, kMaxRecordWords> words;
    };

    EngineArrival(EngineNode& own, const EngineMembers& members, bool check_writers);

    void begin_run() noexcept { applied_any_ = arrived_any_ = false; }
    /// In this run, to the own bank; to any.
    bool has_applied_any() const noexcept { return applied_any_; }
    bool has_any_arrived() const noexcept { return arrived_any_; }

    /// A write of another node is due here.
    void arrive(const LogReader& log, unsigned rank, const Flight& flight, std::int64_t due_ns);
    /// A write of this node is seen; is back at its source.
    void note_own(const LogRecord& record) noexcept {
        if (checker_)
            checker_->wrote(record.offset, record.words, record.written_ns, record.part());
    }
    void come_round(const LogReader& log, unsigned rank, const LogReader::Entry& entry);
    /// What a log holds by now, into a node's bank.
    void store(const LogReader& log, const LogReader::Entry& entry, unsigned node) const;
    /// Measures and counts a write that is in a node's bank now, and wakes those that want it.
    std::optional<BoundViolation> note(unsigned node, unsigned rank, const Flight& flight,
                                       std::int64_t due_ns);

    /// As soon as it is due, before the model says so.
    void store_ahead(const Coming& coming);
    bool is_ahead() const noexcept { return ahead_.at_ns != 0; }
    /// When this arrival was stored so; 0: it was not.
    std::int64_t take_ahead(const WireOutcome& arrival) noexcept {
        if (ahead_.tag != arrival.tag || ahead_.node != arrival.node) return 0;
        return std::exchange(ahead_.at_ns, 0);
    }

    /// A sleeping rank of this node may be waiting for what was applied.
    void wake_node() const noexcept;

    InterruptBoard& interrupts() noexcept { return interrupts_; }
    const InterruptBoard& interrupts() const noexcept { return interrupts_; }
    /// Whether a watcher wants to know when each write came.
    bool is_watched() const noexcept { return checker_ || hook_; }
    void set_hook(ViolationHook hook) { hook_ = std::move(hook); }
    const ViolationHook& hook() const noexcept { return hook_; }
    bool has_violations() const noexcept { return !violations_.empty(); }
    std::vector<BoundViolation> take_violations() noexcept {
        return std::exchange(violations_, {});
    }
    void on_race(RaceChecker::Report report) {
        if (checker_) checker_->set_report(std::move(report));
    }

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    struct Ahead {
        std::uint64_t tag = 0;
        unsigned node = 0;
        std::int64_t at_ns = 0;  ///< 0: there is none
    };

    EngineNode& own_;
    const EngineMembers& members_;
    const ApplierUse applier_;
    std::vector<Bank> banks_;  // of each node
    InterruptBoard interrupts_;
    const WordSleepers sleepers_;
    std::optional<RaceChecker> checker_;
    Ahead ahead_;
    std::vector<BoundViolation> violations_;
    ViolationHook hook_;
    bool applied_any_ = false;
    bool arrived_any_ = false;
};

}  // namespace rmem
