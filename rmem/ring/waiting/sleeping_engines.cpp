// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/waiting/sleeping_engines.hpp"

#include "rmem/ring/waiting/waiting.hpp"

namespace rmem {

void SleepingEngines::lie_down(unsigned rank, State state) const noexcept {
    // relaxed is enough, for both: the fence orders them before the look at the logs that follows,
    // and against a writer's look
    ring_.rank(rank).engine.store(static_cast<std::uint32_t>(state), std::memory_order_relaxed);
    if (state == State::asleep) count_.fetch_add(1, std::memory_order_relaxed);  // enough: as above
    heavy_fence();
}

void SleepingEngines::sleep(unsigned rank, State state, std::int64_t longest_ns) const noexcept {
    sleep_on(ring_.rank(rank).engine, static_cast<std::uint32_t>(state), longest_ns);
}

bool SleepingEngines::rise(unsigned rank) const noexcept {
    return take_out(rank, State::asleep) || take_out(rank, State::resting);
}

bool SleepingEngines::take_out(unsigned rank, State state) const noexcept {
    auto found = static_cast<std::uint32_t>(state);
    // relaxed is enough, for both: the wake that follows orders them for the thread
    if (!ring_.rank(rank).engine.compare_exchange_strong(found, 0, std::memory_order_relaxed))
        return false;
    if (state == State::asleep) count_.fetch_sub(1, std::memory_order_relaxed);  // enough: as above
    return true;
}

void SleepingEngines::wake(unsigned rank) const noexcept {
    light_fence();
    // relaxed is enough: the fence orders it after what the thread is woken for
    if (ring_.rank(rank).engine.load(std::memory_order_relaxed) == 0) return;
    if (take_out(rank, State::asleep) || take_out(rank, State::resting))
        wake_sleepers(ring_.rank(rank).engine);
}

void SleepingEngines::wake_all_but(unsigned own) const noexcept {
    for (unsigned rank = 0; rank < ring_.seats(); ++rank) {
        if (rank == own) continue;
        // relaxed is enough: the caller's fence orders it after the write
        const auto state = ring_.rank(rank).engine.load(std::memory_order_relaxed);
        if (state == static_cast<std::uint32_t>(State::asleep)) wake(rank);
    }
}

}  // namespace rmem
