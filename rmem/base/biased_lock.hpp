// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A recursive lock that costs one thread, the bias owner, two plain stores; all others pay for
/// that.
///
/// The owner says that it is inside, and looks whether any thread has suspended the bias; if so it
/// competes for the holder's place, as the others do. A thread that suspends the bias says so,
/// makes a heavy fence against the owner's look, and waits until the owner is not inside.
///
///   enter, leave     any thread. The first one that is not the owner revokes the bias: from then
///                    on all compete
///   try_enter        enters where that costs next to nothing, which spares its caller the rest;
///                    else not
///   enter_as_guest   a thread of a library that comes rarely: the bias remains
///   try_as_guest     the same, for a thread that has something else to do
///   give_way         in the middle of a long hold: lets those in that wait
///
/// Invariants: a thread that is inside, and one that holds the lock after it has suspended the
/// bias, exclude each other. A grip is left by the thread that has it, the last one first.
/// Progress: blocks while another holds it. Where the kernel refuses fences there is no owner.
/// Thread safety: any, and signal handlers wherever their thread is: to take the holder's place is
/// one step, and who took it is told by its grip. adopt() while one thread knows the lock.

#include "rmem/base/check.hpp"
#include "rmem/base/fence.hpp"
#include "rmem/error.hpp"

#include <atomic>
#include <cstdint>

namespace rmem {

class RMEM_API BiasedLock {
public:
    enum class Grip {
        inside,  ///< the owner's
        locked,  ///< of the thread that has become the holder
        nested,  ///< of one that was it before
        guest,   ///< as locked, and the bias is suspended
    };

    /// The calling thread becomes the owner.
    void adopt() noexcept;

    /// Has a thread that has to wait call `knock(with)`, after `give_way` can see it: it ends what
    /// the holder may be sleeping in. Set while one thread knows the lock.
    void on_wait(void (*knock)(void* with), void* with) noexcept {
        knock_ = knock;
        knock_with_ = with;
    }

    /// Whether the calling thread is inside, or is the holder.
    [[nodiscard]] bool is_mine() const noexcept {
        // relaxed is enough, three times: words that only this thread makes true for it
        if (owner_.load(std::memory_order_relaxed) == self() &&
            inside_.load(std::memory_order_relaxed) != 0)
            return true;
        return holder_.load(std::memory_order_relaxed) == self();
    }

    [[gnu::always_inline]] Grip enter() noexcept {
        // relaxed is enough: it names this thread, or another one does not matter which
        if (owner_.load(std::memory_order_relaxed) == self()) [[likely]] {
            // relaxed is enough, twice: this thread alone writes it; the fence orders the store
            // before the next load
            const unsigned depth = inside_.load(std::memory_order_relaxed);
            inside_.store(depth + 1, std::memory_order_relaxed);
            light_fence();
            // (1) - this acquire-load synchronizes-with the release in
            // rmem/base/biased_lock.cpp (2)
            if (depth != 0 || suspended_.load(std::memory_order_acquire) == 0) [[likely]]
                return Grip::inside;
            // (3) - this release-store synchronizes-with the acquire-load in
            // rmem/base/biased_lock.cpp (4)
            inside_.store(0, std::memory_order_release);
        }
        return enter_slowly();
    }
    [[gnu::always_inline]] void leave(Grip grip) noexcept {
        if (grip != Grip::inside) [[unlikely]]
            return leave_slowly(grip);
        // relaxed is enough: this thread alone writes it
        const unsigned depth = inside_.load(std::memory_order_relaxed);
        RMEM_CHECK_IF(false, depth != 0);
        // (5) - this release-store synchronizes-with the acquire-load in
        // rmem/base/biased_lock.cpp (4)
        inside_.store(depth - 1, std::memory_order_release);
    }

    /// Whether the calling thread is inside now: it is the owner, was not inside, and the bias is
    /// not suspended.
    [[nodiscard, gnu::always_inline]] bool try_enter() noexcept {
        // relaxed is enough, three times: as in enter()
        if (owner_.load(std::memory_order_relaxed) != self() ||
            inside_.load(std::memory_order_relaxed) != 0) [[unlikely]]
            return false;
        inside_.store(1, std::memory_order_relaxed);
        light_fence();
        // (6) - this acquire-load synchronizes-with the release in
        // rmem/base/biased_lock.cpp (2)
        if (suspended_.load(std::memory_order_acquire) == 0) [[likely]]
            return true;
        leave_at_once();
        return false;
    }
    /// Out again, after a try_enter() that was true.
    [[gnu::always_inline]] void leave_at_once() noexcept {
        // (7) - this release-store synchronizes-with the acquire-load in
        // rmem/base/biased_lock.cpp (4)
        inside_.store(0, std::memory_order_release);
    }

    Grip enter_as_guest() noexcept;
    /// False: others are inside for longer than that.
    [[nodiscard]] bool try_as_guest(std::int64_t longest_ns) noexcept;

    /// Whether more than one thread enters, as far as is known.
    bool has_company() const noexcept {
        // relaxed is enough: an old one costs one hold that is too long or too short
        return owner_.load(std::memory_order_relaxed) == nullptr;
    }

    /// Whether a thread waits to come in.
    bool is_awaited() const noexcept {
        // relaxed is enough: a thread that waits is seen at the next look
        return waiting_.load(std::memory_order_relaxed) != 0;
    }

    /// Whether there was anybody.
    bool give_way(Grip& grip) noexcept { return is_awaited() && give_way_slowly(grip); }

private:
    /// The calling thread: pthread_self() is a call.
    static void* self() noexcept { return __builtin_thread_pointer(); }
    Grip enter_slowly() noexcept;
    void leave_slowly(Grip grip) noexcept;
    [[nodiscard]] bool give_way_slowly(Grip& grip) noexcept;
    [[nodiscard]] bool try_hold() noexcept;
    void hold() noexcept;
    void suspend_bias() noexcept;
    [[nodiscard]] bool try_suspend_bias(std::int64_t until_ns) noexcept;
    void begin_waiting() noexcept;

    std::atomic<void*> owner_{};          ///< null: none
    std::atomic<unsigned> inside_{0};     ///< how often the owner has entered
    std::atomic<unsigned> suspended_{0};  ///< threads that want the owner to compete
    std::atomic<unsigned> waiting_{0};    ///< threads that wait to come in
    std::atomic<void*> holder_{};         ///< the thread; null: none
    void (*knock_)(void*) = nullptr;
    void* knock_with_ = nullptr;
};

}  // namespace rmem
