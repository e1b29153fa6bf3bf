// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Who runs a node's engine: one thread of one process at a time.
///
/// The lock is a word in the node's slot that holds the rank and its incarnation. Nobody waits for
/// it: a thread that does not get it has nothing to do, because the holder is doing it. A holder
/// that was killed is taken over once it has been seen there for kHeldLongNs and its rank is dead
/// (or has come back as another incarnation); the engine's steps can be repeated, so nothing is
/// lost by that.
///
/// Thread safety: any thread of the rank's process.
/// Progress: lock-free; a system call per kHeldLongNs of seeing the same holder. A stopped holder
///   (SIGSTOP) is alive: the node's bank does not change until it goes on.

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/relaxed.hpp"
#include "rmem/ring/ring.hpp"

#include <atomic>
#include <cstdint>

namespace rmem {

class RMEM_API EngineLock {
public:
    static constexpr std::int64_t kHeldLongNs = 1'000'000;

    /// For a rank that has joined (rmem::Membership).
    EngineLock(Ring& ring, unsigned node, unsigned rank, std::uint32_t incarnation);

    [[nodiscard]] bool try_lock() noexcept {
        std::uint32_t holder = 0;
        // (1) - this acquire-exchange synchronizes-with the release-store (2) of the last holder,
        // and with the acq_rel add engine_outward.cpp (10); relaxed is enough where it fails
        if (word_.compare_exchange_strong(holder, mine_, std::memory_order_acquire,
                                          std::memory_order_relaxed)) {
            return true;
        }
        return holder != mine_ && try_take_over(holder);
    }
    void unlock() noexcept {
        // relaxed is enough: no other holder takes it over while this one is alive
        RMEM_CHECK_IF(false, word_.load(std::memory_order_relaxed) == mine_);
        // (2) - this release-store synchronizes-with the acquire-exchanges (1) and
        // engine_lock.cpp (3), and with the acq_rel add engine_outward.cpp (10)
        word_.store(0, std::memory_order_release);
    }

    /// Waits for it, for joining and leaving. False when the deadline passed: its holder is
    /// stopped.
    [[nodiscard]] bool lock(Deadline deadline) noexcept;

private:
    [[nodiscard]] bool try_take_over(std::uint32_t holder) noexcept;
    bool is_dead(std::uint32_t holder) const noexcept;

    Ring& ring_;
    std::atomic<std::uint32_t>& word_;
    std::uint32_t mine_;
    Hint<std::uint32_t> seen_holder_;  ///< by this process
    Hint<std::int64_t> seen_since_ns_;
};

}  // namespace rmem
