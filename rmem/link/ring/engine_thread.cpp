// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/engine_thread.hpp"

#include "rmem/ring/waiting.hpp"

#include <sched.h>

namespace rmem {

namespace {

constexpr int kRunsPerLook = 1'000;  // between looks at what else there is to do

}  // namespace

RingEngineThread::RingEngineThread(Ring& ring, RingEngine& engine)
    : ring_(ring),
      engine_(engine),
      processors_(allowed_processors()),
      thread_("rmem-ring", [this] { work(); }) {}

void RingEngineThread::set_always(bool always) {
    always_.store(always, std::memory_order_relaxed);  // relaxed is enough: wake() orders it
    thread_.wake();
}

void RingEngineThread::work() {
    std::uint64_t runs = engine_.runs();
    while (!thread_.is_stopping()) {
        if (is_always()) {
            run_always();
            continue;
        }
        thread_.pause(HelperThread::kLookNs, [this] { return is_always(); });
        engine_.look_at_members();
        if (engine_.runs() == runs) engine_.run(RingEngine::Caller::helper);
        runs = engine_.runs();
    }
}

void RingEngineThread::run_always() {
    // Each process has a thread that computes and this one.
    const bool spare = 2 * ring_.joined_ranks() <= processors_;
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
        if (!is_always() || thread_.is_stopping()) break;
    }
    if (!moved && !spare) thread_.pause(kNapNs, [this] { return !is_always(); });
}

}  // namespace rmem
