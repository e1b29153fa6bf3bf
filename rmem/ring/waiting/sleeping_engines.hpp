// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The engine threads of a ring on link `ring`, asleep until a rank writes.
///
/// Where each node's engine applies what others write, a thread of a process that computes has to
/// be told of the first write after it lay down:
///
///     thread                                   writer
///     engines.lie_down(rank, asleep);          append to the log
///     if (nothing in the logs) sleep(rank, …);  engines.wake_others(own);
///
/// `lie_down` ends with the heavy fence (rmem/base/fence.hpp); a writer looks at one count, which
/// is zero while writes go on, and a writer that wakes a thread takes it off. A thread that rests,
/// because it will look again soon, is left alone by writers, but not by those that need its node
/// to be up to date at once.
///
/// The count is never too small. One that a kill has left too high costs each writer a look through
/// the ranks.
/// Thread safety: any process; `lie_down`, `sleep` and `rise` of a rank by its thread alone.
/// Progress: wait-free, but sleep().

#include "rmem/base/fence.hpp"
#include "rmem/ring/delivery_board.hpp"
#include "rmem/ring/ring.hpp"

#include <atomic>
#include <cstdint>

namespace rmem {

class RMEM_API SleepingEngines {
public:
    /// Of a rank's thread, as in RankSlot::engine.
    enum class State : std::uint32_t { awake = 0, resting = 1, asleep = 2 };

    explicit SleepingEngines(const Ring& ring) noexcept
        : ring_(ring), count_(ring.delivery().engines_asleep) {}

    /// After a write of this rank: wakes the others' that are asleep.
    void wake_others(unsigned rank) const noexcept {
        light_fence();
        // relaxed is enough, for both: the fence orders them after the append
        const std::uint32_t own = ring_.rank(rank).engine.load(std::memory_order_relaxed);
        const std::uint32_t all = count_.load(std::memory_order_relaxed);  // enough: as above
        if (all != (own == static_cast<std::uint32_t>(State::asleep) ? 1 : 0)) [[unlikely]]
            wake_all_but(rank);
    }
    /// Also one that rests.
    void wake(unsigned rank) const noexcept;

    void lie_down(unsigned rank, State state) const noexcept;
    /// Until it is woken, or for `longest_ns`.
    void sleep(unsigned rank, State state, std::int64_t longest_ns) const noexcept;
    /// False: it was woken, by a writer.
    bool rise(unsigned rank) const noexcept;

private:
    void wake_all_but(unsigned rank) const noexcept;
    [[nodiscard]] bool take_out(unsigned rank, State state) const noexcept;

    const Ring& ring_;
    std::atomic<std::uint32_t>& count_;
};

}  // namespace rmem
