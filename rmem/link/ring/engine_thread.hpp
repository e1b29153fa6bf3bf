// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The thread that runs a node's engine when the program does not.
///
/// A rank that computes makes no progress: it would be deaf, and hold up the others' logs. While
/// writes go on the thread looks each kLookNs, and runs the engine if nobody of this process did
/// since. After kIdleLooks without any it sleeps until the next write (rmem/ring/
/// sleeping_engines.hpp), so an idle process has no wake-ups.
///
/// While a program reads its bank by plain loads (`set_always(true)`) each write is to be there as
/// soon as it is due. With processors to spare the thread runs the engine all the time, and sleeps
/// after kSpinNs without a write. Else it sleeps after kLingerNs, at first for kNapNs, so that a
/// stream of writes does not wake it for each, and after each kNapNs for as long; with real-time
/// priority if the system allows it. A thread that yields would wait for the end of the time slice
/// of a program that spins, and one that stayed would keep that program from seeing what it
/// applies.
///
/// Thread safety: set_always() from any thread; the rest from the owner's.
/// Errors: std::system_error when there can be no thread.

#include "rmem/base/helper_thread.hpp"
#include "rmem/link/ring/engine.hpp"
#include "rmem/ring/sleeping_engines.hpp"

namespace rmem {

class RMEM_API RingEngineThread {
public:
    static constexpr unsigned kIdleLooks = 20;
    static constexpr std::int64_t kSpinNs = 300'000;
    static constexpr std::int64_t kLingerNs = 5'000;  ///< the same without processors to spare
    static constexpr std::int64_t kNapNs = 50'000;    ///< between two turns of the processor
    static constexpr std::int64_t kNearNs = 50'000;   ///< what is due within this is not slept for
    static constexpr std::int64_t kCatchUpNs = 100'000;  ///< at once, for one that waits for it

    RingEngineThread(Ring& ring, unsigned rank, RingEngine& engine);

    void set_always(bool always);

private:
    using State = SleepingEngines::State;

    // relaxed is enough: its setter wakes the thread
    bool is_always() const noexcept { return always_.load(std::memory_order_relaxed); }
    void work();
    void look();
    void run_always();
    [[nodiscard]] bool sleep(State state, std::int64_t longest_ns, std::uint64_t written);
    [[nodiscard]] bool has_moved() noexcept;
    void catch_up();

    Ring& ring_;
    const unsigned rank_;
    RingEngine& engine_;
    const SleepingEngines sleeping_;
    const unsigned processors_;
    std::atomic<bool> always_{false};
    bool has_real_time_ = false;   ///< was asked for
    std::int64_t checked_ns_ = 0;  ///< the members
    std::uint64_t applied_ = 0;    ///< of all logs, at the last look
    std::uint64_t runs_ = 0;       ///< of the engine, likewise
    unsigned idle_looks_ = 0;
    HelperThread thread_;  // last: it uses all of this
};

}  // namespace rmem
