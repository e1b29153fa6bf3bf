// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The thread that runs a node's engine when the program does not.
///
/// A rank that computes makes no progress: it would be deaf, and hold up the others' logs. The
/// helper wakes about each kLookNs and runs the engine once if nobody of this process did since.
/// While a program reads its bank by plain loads (`set_always(true)`) it runs the engine all the
/// time: spinning where there are processors to spare, else yielding, and napping while nothing
/// moves.
///
/// Thread safety: set_always() from any thread; the rest from the owner's.
/// Errors: std::system_error when there can be no thread.

#include "rmem/link/ring/engine.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace rmem {

class RMEM_API EngineHelper {
public:
    static constexpr std::int64_t kLookNs = 1'000'000;
    static constexpr std::int64_t kNapNs = 50'000;

    EngineHelper(Ring& ring, RingEngine& engine);
    ~EngineHelper();
    EngineHelper(const EngineHelper&) = delete;
    EngineHelper& operator=(const EngineHelper&) = delete;

    void set_always(bool always);

private:
    void work();
    void run_always(std::unique_lock<std::mutex>& lock);

    Ring& ring_;
    RingEngine& engine_;
    unsigned processors_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool stop_ = false;
    std::atomic<bool> always_{false};
    std::thread thread_;
};

}  // namespace rmem
