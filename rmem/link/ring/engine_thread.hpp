// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The thread that runs a node's engine when the program does not.
///
/// A rank that computes makes no progress: it would be deaf, and hold up the others' logs. While
/// writes have to be applied here the thread looks each kLookNs, and runs the engine if nobody of
/// the node did since. After kIdleLooks without any, or where writers bring their writes
/// themselves, it sleeps until it is woken (rmem/ring/waiting/sleeping_engines.hpp): idle, for
/// nothing.
///
/// While a program reads its bank by plain loads (`set_always(true)`) each write is to be there as
/// soon as it is due. The thread polls, and yields after each look, until there was no write for
/// kPollNs. When a yield costs it the processor, because programs spin on all of them, it sleeps
/// instead and is woken by each write, with real-time priority if the system allows it: then it
/// stays awake for kLingerNs, sleeps on for kNapNs, so that a stream of writes does not wake it for
/// each, and after each kNapNs of work for as long, since a thread that stayed would keep those
/// programs from seeing what it applies. It tries to poll again after kShortestCrowdNs, and each
/// time later.
///
/// Thread safety: set_always() from any thread; the rest from the owner's.
/// Errors: std::system_error when there can be no thread.

#include "rmem/base/helper_thread.hpp"
#include "rmem/link/ring/engine.hpp"
#include "rmem/ring/waiting/sleeping_engines.hpp"

namespace rmem {

class RMEM_API RingEngineThread {
public:
    static constexpr unsigned kIdleLooks = 20;
    static constexpr std::int64_t kPollNs = 3'000'000;
    static constexpr std::int64_t kShortestCrowdNs = 100'000'000;
    static constexpr std::int64_t kLingerNs = 5'000;  ///< without a write
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
    [[nodiscard]] bool has_processor_to_spare(std::int64_t now);
    [[nodiscard]] bool sleep(State state, std::int64_t longest_ns, std::uint64_t written);
    [[nodiscard]] bool has_moved() noexcept;
    void catch_up();

    const unsigned rank_;
    RingEngine& engine_;
    const SleepingEngines sleeping_;
    std::atomic<bool> always_{false};
    bool polls_ = true;  ///< as any other thread; else with real-time priority
    std::int64_t crowded_until_ns_ = 0;
    std::int64_t crowd_ns_ = kShortestCrowdNs;  ///< how long it does not try then
    std::int64_t checked_ns_ = 0;               ///< the members
    std::uint64_t brought_;                     ///< of the engine, at the last look
    std::int64_t ran_ns_ = 0;                   ///< the engine, likewise
    unsigned idle_looks_ = kIdleLooks - 1;      ///< one is enough where nothing has moved yet
    HelperThread thread_;                       // last: it uses all of this
};

}  // namespace rmem
