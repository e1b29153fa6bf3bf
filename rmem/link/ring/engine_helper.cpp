// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/engine_helper.hpp"

#include "rmem/base/signals_blocked.hpp"
#include "rmem/ring/waiting.hpp"

#include <sched.h>

#include <chrono>

namespace rmem {

namespace {

constexpr int kRunsPerLook = 1'000;  // between looks at what else there is to do

}  // namespace

EngineHelper::EngineHelper(Ring& ring, RingEngine& engine)
    : ring_(ring), engine_(engine), processors_(allowed_processors()) {
    const SignalsBlocked blocked;
    thread_ = std::thread([this] { work(); });
}

EngineHelper::~EngineHelper() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
        always_.store(false, std::memory_order_relaxed);  // relaxed is enough: the mutex orders it
    }
    changed_.notify_one();
    thread_.join();
}

void EngineHelper::set_always(bool always) {
    {
        const std::lock_guard lock(mutex_);
        always_.store(always, std::memory_order_relaxed);  // relaxed is enough: the mutex orders it
    }
    changed_.notify_one();
}

void EngineHelper::work() {
    std::unique_lock lock(mutex_);
    std::uint64_t runs = engine_.runs();
    while (!stop_) {
        // relaxed is enough: the mutex orders it
        if (always_.load(std::memory_order_relaxed)) {
            run_always(lock);
            continue;
        }
        changed_.wait_for(lock, std::chrono::nanoseconds(kLookNs));
        lock.unlock();
        engine_.look_at_members();
        if (engine_.runs() == runs) engine_.run(RingEngine::Caller::helper);
        lock.lock();
        runs = engine_.runs();
    }
}

void EngineHelper::run_always(std::unique_lock<std::mutex>& lock) {
    // Each process has a thread that computes and this one.
    const bool spare = 2 * ring_.joined_ranks() <= processors_;
    lock.unlock();
    engine_.look_at_members();
    bool moved = false;
    for (int i = 0; i < kRunsPerLook; ++i) {
        engine_.run(RingEngine::Caller::helper);
        moved = moved || engine_.busy();
        if (spare) {
            cpu_relax();
        } else {
            ::sched_yield();
        }
        // relaxed is enough: a late answer costs a few runs
        if (!always_.load(std::memory_order_relaxed)) break;
    }
    lock.lock();
    if (!moved && !spare && !stop_) changed_.wait_for(lock, std::chrono::nanoseconds(kNapNs));
}

}  // namespace rmem
