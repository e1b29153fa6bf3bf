// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/biased_lock.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/base/fence.hpp"

#include <sched.h>
#include <unistd.h>

namespace rmem {

namespace {

constexpr int kYieldsToGiveWay = 100;    ///< a woken thread needs a while to come
constexpr int kYieldsBeforeSleep = 100;  ///< for the owner to go out
constexpr unsigned kSleepUs = 50;

}  // namespace

void BiasedLock::adopt() noexcept {
    // relaxed is enough: only this thread knows the lock
    if (register_fences()) owner_.store(self(), std::memory_order_relaxed);
}

void BiasedLock::begin_waiting() noexcept {
    // relaxed is enough, here and where it is taken off: a hint for a thread that gives way
    waiting_.fetch_add(1, std::memory_order_relaxed);
    if (knock_ != nullptr) knock_(knock_with_);
}

bool BiasedLock::try_hold() noexcept {
    void* none = nullptr;
    // (8) - this acquire-CAS synchronizes-with the exchange (9); relaxed is enough where it fails
    return holder_.compare_exchange_strong(none, self(), std::memory_order_acquire,
                                           std::memory_order_relaxed);
}

void BiasedLock::hold() noexcept {
    if (try_hold()) return;
    begin_waiting();
    while (!try_hold()) {
        // relaxed is enough, twice: try_hold() decides
        void* const holder = holder_.load(std::memory_order_relaxed);
        if (holder != nullptr) holder_.wait(holder, std::memory_order_relaxed);  // enough: as above
    }
    waiting_.fetch_sub(1, std::memory_order_relaxed);  // enough: as in begin_waiting()
}

BiasedLock::Grip BiasedLock::enter_slowly() noexcept {
    void* const me = self();
    // relaxed is enough: only this thread writes its own name there
    if (holder_.load(std::memory_order_relaxed) == me) return Grip::nested;
    hold();
    // relaxed is enough, twice: the holder alone changes it, and others look for their own name.
    // The owner finds its own until it is out: it may enter once more while it is inside.
    void* const owner = owner_.load(std::memory_order_relaxed);
    if (owner != nullptr && owner != me) {
        suspend_bias();
        owner_.store(nullptr, std::memory_order_relaxed);
    }
    return Grip::locked;
}

void BiasedLock::leave_slowly(Grip grip) noexcept {
    if (grip == Grip::nested) return;
    // relaxed is enough: as in enter_slowly()
    RMEM_CHECK_IF(false, holder_.load(std::memory_order_relaxed) == self());
    // (9) - this exchange synchronizes-with the acquire-CAS (8); in the total order, so that
    // notify_one() looks for waiting threads behind it
    holder_.exchange(nullptr, std::memory_order_seq_cst);
    holder_.notify_one();
    // (2) - this release synchronizes-with the acquire-loads in rmem/base/biased_lock.hpp
    // (1) and in rmem/base/biased_lock.hpp (6)
    if (grip == Grip::guest) suspended_.fetch_sub(1, std::memory_order_release);
}

BiasedLock::Grip BiasedLock::enter_as_guest() noexcept {
    // relaxed is enough: as in enter_slowly()
    if (holder_.load(std::memory_order_relaxed) == self()) return Grip::nested;
    suspend_bias();
    hold();
    return Grip::guest;
}

bool BiasedLock::try_as_guest(std::int64_t longest_ns) noexcept {
    const std::int64_t until_ns = now_ns() + longest_ns;
    bool is_in = try_suspend_bias(until_ns);
    if (is_in && !(is_in = try_hold())) {
        begin_waiting();
        while (!is_in && now_ns() < until_ns) {
            ::sched_yield();
            is_in = try_hold();
        }
        waiting_.fetch_sub(1, std::memory_order_relaxed);  // enough: as in begin_waiting()
    }
    // relaxed is enough: this thread has changed nothing
    if (!is_in) suspended_.fetch_sub(1, std::memory_order_relaxed);
    return is_in;
}

/// Makes the owner compete, and waits until it does.
void BiasedLock::suspend_bias() noexcept {
    static_cast<void>(try_suspend_bias(kNever));
}

/// False: at that time the owner was still inside. The bias is suspended all the same.
bool BiasedLock::try_suspend_bias(std::int64_t until_ns) noexcept {
    // relaxed is enough: the fence orders it before the loads below, and against the owner's look
    suspended_.fetch_add(1, std::memory_order_relaxed);
    heavy_fence();
    int looks = 0;
    bool is_out = true;
    // (4) - this acquire-load synchronizes-with the release-stores in
    // rmem/base/biased_lock.hpp (3), in rmem/base/biased_lock.hpp (5) and in
    // rmem/base/biased_lock.hpp (7)
    while (inside_.load(std::memory_order_acquire) != 0 &&
           (is_out = until_ns == kNever || now_ns() < until_ns)) {
        if (looks == 0) begin_waiting();
        if (++looks < kYieldsBeforeSleep) {
            ::sched_yield();
        } else {
            ::usleep(kSleepUs);
        }
    }
    // relaxed is enough: as in begin_waiting()
    if (looks != 0) waiting_.fetch_sub(1, std::memory_order_relaxed);
    return is_out;
}

bool BiasedLock::give_way_slowly(Grip& grip) noexcept {
    // relaxed is enough, three times: hints, and a word that only this thread writes
    const unsigned waiting = waiting_.load(std::memory_order_relaxed);
    if (grip == Grip::inside && inside_.load(std::memory_order_relaxed) != 1) return false;
    if (grip == Grip::nested) return false;
    leave(grip);
    for (int i = 0; i < kYieldsToGiveWay && waiting_.load(std::memory_order_relaxed) >= waiting;
         ++i) {
        ::sched_yield();
    }
    grip = grip == Grip::guest ? enter_as_guest() : enter();
    return true;
}

}  // namespace rmem
