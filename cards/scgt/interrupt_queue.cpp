// SPDX-License-Identifier: Apache-2.0
#include "cards/scgt/interrupt_queue.hpp"

#include "cards/scgt/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace cards::scgt {

void InterruptQueue::put(scgtInterrupt interrupt) {
    const std::lock_guard lock(mutex_);
    // relaxed is enough: changed under the lock
    const std::uint32_t number = next_.load(std::memory_order_relaxed);
    interrupt.seqNum = number;
    entries_[number % kEntries] = interrupt;
    kept_ = std::min(kept_ + 1, kEntries);
    // relaxed is enough: who sees it takes the lock before the entry
    next_.store((number + 1) & kLastNumber, std::memory_order_relaxed);
    news_.notify_all();
}

uint32 InterruptQueue::take(scgtIntrHandle& next, scgtInterrupt* to, uint32 room, uint32& taken,
                            const Calls& calls) {
    taken = 0;
    const std::lock_guard lock(mutex_);
    if (calls.is_closing())
        return refuse(SCGT_BAD_PARAMETER, "another thread has closed the handle");
    // relaxed is enough: changed under the lock
    const std::uint32_t end = next_.load(std::memory_order_relaxed);
    if (next == kFromNowOn) next = end;
    if (next > kLastNumber) {
        return refuse(SCGT_BAD_PARAMETER,
                      fmt::format("{:#x} is no reader of interrupts; begin with (uint32)-1, and "
                                  "give back what the last call has stored",
                                  next));
    }
    std::uint32_t ready = (end - next) & kLastNumber;
    const bool has_missed = ready > kept_;
    if (has_missed) {
        ready = kept_;
        next = (end - kept_) & kLastNumber;
    }
    for (; taken < std::min(ready, room); ++taken) {
        to[taken] = entries_[next % kEntries];
        next = (next + 1) & kLastNumber;
    }
    if (has_missed) {
        return refuse(SCGT_MISSED_INTERRUPTS,
                      fmt::format("the reader was more than the {} interrupts behind that are "
                                  "kept; it goes on at the oldest of them",
                                  kEntries));
    }
    return ready == 0 ? SCGT_TIMEOUT : SCGT_SUCCESS;
}

bool InterruptQueue::has(scgtIntrHandle next) const noexcept {
    RMEM_CHECK(next <= kLastNumber);
    // relaxed is enough: take() looks again, under the lock
    return next_.load(std::memory_order_relaxed) != next;
}

void InterruptQueue::wait(scgtIntrHandle next, std::int64_t until_ns, const Calls& calls) {
    const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(until_ns)};
    std::unique_lock lock(mutex_);
    ++waiting_;
    news_.wait_until(lock, until, [&] { return calls.is_closing() || has(next); });
    --waiting_;
}

void InterruptQueue::wake() {
    const std::lock_guard lock(mutex_);
    news_.notify_all();
}

std::uint32_t InterruptQueue::waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_;
}

}  // namespace cards::scgt
