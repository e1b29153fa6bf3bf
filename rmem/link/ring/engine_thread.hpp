// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The thread that runs a node's engine when the program does not.
///
/// A rank that computes makes no progress: it would be deaf, and hold up the others' logs. The
/// thread wakes about each kLookNs and runs the engine once if nobody of this process did since.
/// While a program reads its bank by plain loads (`set_always(true)`) it runs the engine all the
/// time: spinning where there are processors to spare, else yielding, and napping while nothing
/// moves.
///
/// Thread safety: set_always() from any thread; the rest from the owner's.
/// Errors: std::system_error when there can be no thread.

#include "rmem/base/helper_thread.hpp"
#include "rmem/link/ring/engine.hpp"

namespace rmem {

class RMEM_API RingEngineThread {
public:
    static constexpr std::int64_t kNapNs = 50'000;

    RingEngineThread(Ring& ring, RingEngine& engine);

    void set_always(bool always);

private:
    // relaxed is enough: its setter wakes the thread
    bool is_always() const noexcept { return always_.load(std::memory_order_relaxed); }
    void work();
    void run_always();

    Ring& ring_;
    RingEngine& engine_;
    unsigned processors_;
    std::atomic<bool> always_{false};
    HelperThread thread_;
};

}  // namespace rmem
