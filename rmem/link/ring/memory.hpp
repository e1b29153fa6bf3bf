// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The `ring` link as one rank sees it: a bank per node, kept by the node's engine.
///
/// Contract: rmem/link/memory.hpp. A write goes into the own bank and into the rank's log, from
/// where the engines of all nodes take it (docs/design/ring-link.md). Own writes are in the own
/// bank at once, or with write-me-last when they have come round the ring.
///
/// Room     room(bytes) grants a group of writes. No room: the log is full of writes that a live
///          node has not applied, or the transmit FIFO is too full (hold-off). A group of more
///          words than half the FIFO may wait for it between its writes, at the wire's speed. A
///          group that may be larger than the log is granted when the log is empty, and may
///          wait for the slowest node.
/// Loss     with fifo=lose a write that finds the FIFO full is lost to all other banks, and
///          counted.
/// Threads  one thread, and the helper inside (rmem/link/ring/engine_thread.hpp); `load` and `data`
///          from any.
/// Leaving  the destructor waits up to kLeaveNs until the others have the own writes. In a process
///          forked since it only forgets: rank, log and helper are the parent's.
/// Errors   the constructor throws Error (bad_fault, bad_environment, timed_out).

#include "rmem/link/bank_writer.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/link/ring/delivery.hpp"
#include "rmem/link/ring/engine.hpp"
#include "rmem/link/ring/engine_thread.hpp"
#include "rmem/ring/applied.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace rmem {

/// Options of a rank beyond the contract, mostly for tests of programs.
struct RingOptions {
    FaultPlan faults;            ///< RMEM_FAULTS
    bool check_writers = false;  ///< RMEM_CHECK=writers
    bool helper = true;          ///< off: for tests that want to be the only ones to move anything

    /// From the environment, for a ring of that configuration.
    RMEM_API static RingOptions from(const Environment& environment, const RingConfig& config);
};

class RMEM_API RingMemory : public BankWriter<RingMemory> {
public:
    using Options = RingOptions;
    using Ring = rmem::Ring;
    using Membership = rmem::Membership;
    static constexpr bool kFar = false;
    static constexpr std::size_t kMaxPostWords = kMaxRecordWords;
    static constexpr unsigned kRefusalsPerYield = 64;
    static constexpr unsigned kCallsPerRun = 64;   ///< of progress(), where there is nothing to do
    static constexpr unsigned kSleepsPerRun = 16;  ///< of kMaxSleepNs that nobody ended

    /// With the options that the environment names.
    explicit RingMemory(Membership& member);
    RingMemory(Membership& member, const RingOptions& options);
    ~RingMemory();
    RingMemory(const RingMemory&) = delete;
    RingMemory& operator=(const RingMemory&) = delete;

    // ---- The Memory concept, besides BankWriter's part
    [[nodiscard]] bool room(std::size_t bytes);
    /// Ranks that sleep for a write were woken by it, or are by notify().
    static void commit() noexcept {}
    std::uint64_t come_round() const noexcept { return applied_of(ring_, node_, rank_); }
    bool in_flight() const noexcept { return engine_.busy() || refused_ != 0; }
    /// A dead rank's writes are still on their way for a while: until then it counts as alive.
    bool is_alive(unsigned rank) const noexcept {
        if (ring_.is_alive(rank)) return true;
        if (has_applied_all(rank)) return false;
        engines_.wake(rank_);
        return true;
    }
    /// Where the wire takes time it is one of cards, which promise no order inside a write.
    void post(std::size_t offset, const std::uint32_t* words, std::size_t count) {
        if (!takes_time_) return BankWriter::post(offset, words, count);
        if (count > 1) write(offset + kWordBytes, words + 1, (count - 1) * kWordBytes);
        post_word(offset, *words);
    }
    void progress() {
        if (!engine_.is_idle() || ++unrun_ % kCallsPerRun == 0) run_idly();
    }

    Step wait(Deadline deadline) {
        if (engine_.is_idle()) {
            const Step step = waiter_.step(deadline);
            if (step == Step::check_peers) run_idly();
            return step;
        }
        if (refused_ == 0 && waiter_.sleeps_on() && ++slept_ % kSleepsPerRun != 0) {
            const Step step = waiter_.step(deadline);
            if (step == Step::expired) engine_.run();
            return step;
        }
        if (engine_.run()) {
            refused_ = 0;
        } else if (++refused_ % kRefusalsPerYield == 0) {
            yield_to_holder();
        }
        if (engine_.busy()) waiter_.stay_awake();
        return waiter_.step(deadline);
    }

    void begin_wait_for_word(std::size_t offset) noexcept {
        waiter_.begin_for_word(sleepers_, offset);
    }
    void begin_wait_for_interrupt() {
        interrupts().attend();
        waiter_.begin_for_interrupt();
    }

    /// The write of a word, or of bytes of it, as write() with room and commit(), where this rank
    /// delivers and nobody watches anything. False: nothing was written.
    [[nodiscard]] bool write_at_once(std::size_t offset, std::uint32_t value, WordPart part) {
        if (!delivery_.is_on() || !log_.fits(LogArea::units_of(1)) || fifo_depth_ != 0 ||
            engine_.interrupts().anyone_watches())
            return false;
        const Applying applying(applier_, offset, 1, part, log_.head());
        LogRecord record;
        record.offset = offset;
        record.words = 1;
        record.flags = LogRecord::flags_of(part);
        own_bank_.store_of_word(record, value, applying.any_twin());
        delivery_.time(record);
        append(record, &value);
        return true;
    }

    // ---- The card's options
    /// True when every live node has applied the own writes and they have come round; false when
    /// the deadline passed.
    [[nodiscard]] bool flush(Deadline deadline);
    /// The helper runs the engine all the time, for programs that read the bank by plain loads.
    void keep_applying(bool on);

    RingEngine& engine() noexcept { return engine_; }
    InterruptBoard& interrupts() noexcept { return engine_.interrupts(); }
    void on_bound_violation(RingEngine::ViolationHook hook) {
        engine_.on_bound_violation(std::move(hook));
    }
    std::int64_t bound_ns() const noexcept { return engine_.punctuality().bound(); }

private:
    friend class BankWriter<RingMemory>;

    // For BankWriter
    void send(std::size_t offset, const void* from, std::size_t words, std::uint32_t flags);
    std::uint32_t mark_of(std::size_t offset, std::size_t bytes) const noexcept;
    static constexpr bool is_heard() noexcept { return true; }
    static void announce() noexcept {}

    bool has_applied_all(unsigned rank) const noexcept;
    void send_record(std::size_t offset, const void* from, std::uint32_t words,
                     std::uint32_t flags);
    /// The record goes into the log and, where this rank delivers, to all nodes.
    void append(const LogRecord& record, const void* words) {
        log(record, words);
        if (delivery_.is_on() && delivery_.deliver(log_.head(), record, words)) return;
        leave_to_engines(record);
    }
    [[gnu::noinline]] void leave_to_engines(const LogRecord& record);
    void tell(std::size_t offset, std::size_t bytes, std::int64_t now) noexcept;
    void wake_behind(std::uint64_t position) noexcept;
    void wait_for_log(std::uint64_t units);
    [[nodiscard]] bool enter_fifo(std::uint32_t words, std::int64_t& now);
    void look_at_fifo(std::int64_t now);
    std::uint64_t reclaim();
    void begin_delivering();
    [[nodiscard]] bool may_stay();
    void stay();
    [[nodiscard]] bool bring(std::int64_t now, std::int64_t end);
    void bring_come_round();
    void run_idly();
    bool counts(unsigned node, std::uint32_t epoch) const noexcept;
    void check_slow_node(unsigned node, std::uint32_t epoch, std::int64_t now);
    /// Its holder may want this processor.
    static void yield_to_holder() noexcept;

    const Membership& member_;
    const unsigned node_;

    const bool takes_time_;  ///< the wire
    const std::int64_t most_stay_ns_;
    std::int64_t stay_budget_ns_ = 0;
    std::int64_t stayed_ns_ = 0;      ///< when it has stayed last
    bool stays_ = false;              ///< the write at hand waits until it is due
    std::uint64_t brought_ = 0;       ///< where the log ended when what had come round was brought
    std::uint64_t users_end_ = 0;     ///< position after the newest write to the memory of users
    const std::uint32_t fifo_depth_;  ///< words; 0: no limit
    const bool fifo_loses_;
    std::uint32_t queued_ = 0;       ///< words in the FIFO, at most
    std::int64_t queued_at_ns_ = 0;  ///< when that was looked up
    unsigned refused_ = 0;           ///< how often in turn another thread held the engine
    unsigned unrun_ = 0;             ///< calls of progress()
    unsigned slept_ = 0;             ///< sleeps that no rank ended

    std::vector<std::uint32_t> dead_epoch_;  ///< of each node: its `present` when it was found dead
    std::int64_t next_liveness_ns_ = 0;

    const WordSleepers sleepers_;
    const SleepingEngines engines_;
    RingEngine engine_;
    RingDelivery delivery_;
    std::unique_ptr<RingEngineThread> helper_;  // last: it uses the engine
};

static_assert(Memory<RingMemory>);

}  // namespace rmem
