// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/engine_lock.hpp"

#include "rmem/ring/node_slot.hpp"

#include <sched.h>

namespace rmem {

namespace {

constexpr unsigned kIncarnationShift = 16;
constexpr std::uint32_t kHalfMask = 0xffff;

}  // namespace

EngineLock::EngineLock(Ring& ring, unsigned node, unsigned rank, std::uint32_t incarnation)
    : ring_(ring),
      word_(ring.node(node).engine_holder),
      mine_((incarnation & kHalfMask) << kIncarnationShift | (rank + 1)) {}

bool EngineLock::lock(Deadline deadline) noexcept {
    while (!try_lock()) {
        if (deadline.passed(now_ns())) return false;
        ::sched_yield();
    }
    return true;
}

bool EngineLock::is_dead(std::uint32_t holder) const noexcept {
    const std::uint32_t rank = (holder & kHalfMask) - 1;
    if (rank >= ring_.seats()) return true;  // nothing that we write
    // relaxed is enough: an old value only postpones the verdict
    const auto incarnation = ring_.rank(rank).incarnation.load(std::memory_order_relaxed);
    if ((incarnation & kHalfMask) != holder >> kIncarnationShift) return true;
    return !ring_.is_alive(rank);
}

bool EngineLock::try_take_over(std::uint32_t holder) noexcept {
    if (holder == 0) return false;
    const std::int64_t now = now_ns();
    if (seen_holder_.get() != holder) {
        seen_holder_.set(holder);
        seen_since_ns_.set(now);
        return false;
    }
    if (now - seen_since_ns_.get() < kHeldLongNs) return false;
    seen_since_ns_.set(now);
    if (!is_dead(holder)) return false;
    // (3) - this acquire-exchange synchronizes-with the release-store engine_lock.hpp (2), if the
    // holder was not dead but had just left; relaxed is enough where it fails
    return word_.compare_exchange_strong(holder, mine_, std::memory_order_acquire,
                                         std::memory_order_relaxed);
}

}  // namespace rmem
