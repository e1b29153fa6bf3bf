// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The one endpoint of this process, which bbp_init, the ports and their progress thread have in
/// common.
///
///     auto process = billboard::ProcessEndpoint::open();   // joins the ring, or shares what is
///     open
///     const auto held = process->hold();                   // for as long as the endpoint is used
///     process->endpoint().send(1, "hello", 6);
///
/// A rank has one part of the memory and one incarnation, so several libraries of one program speak
/// by one endpoint, each in its own class. The rank leaves the ring when the last of them lets go.
///
/// Several threads: an endpoint is one thread's at a time. As long as the program has one thread,
/// holding costs a branch; from `share` on it takes a lock, and bbp_ calls take it too
/// (billboard/process/shared_endpoint.hpp). The lock costs the thread that called `share` next to
/// nothing, until another thread of the program holds the endpoint
/// (rmem/base/biased_lock.hpp); threads of libraries enter as guests. It is recursive: a
/// handler that runs while it is held may send. A thread that waits for others does so in slices,
/// and gives way between them.
///
/// Attendants: a library that must take messages in when they come, even while the program
/// computes, registers here. A progress thread then calls it
/// (billboard/process/progress_thread.hpp), whenever the program has not polled for it by itself
/// for a while.
///
/// Thread safety: open(), share(), attend() and dismiss() from one thread at a time; hold() from
/// any.
/// Errors: open() throws `rmem::Error`; attend() that, where the process's node would meet the
///   thread (rmem/link/seat.hpp), and std::system_error when there can be none.
/// Simulated processes have an endpoint each, and no threads: they attend only by
/// polling.

#include "billboard/endpoint.hpp"
#include "rmem/base/biased_lock.hpp"
#include "rmem/base/relaxed.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace billboard {

class ProcessEndpoint;
class ProgressThread;
class SharedEndpoint;

/// Takes messages in when they come.
class RMEM_API Attendant {
public:
    /// Takes in all that has come; the endpoint is held. Whether there was something.
    virtual bool attend() noexcept = 0;

    /// The program itself has just done so, from within a call: the progress thread may rest.
    inline void polled() noexcept;
    std::uint32_t polls() const noexcept { return polls_.get(); }
    /// From here on, for long perhaps, the program waits for what it takes in by itself; or no
    /// longer.
    void polls_on(bool does) noexcept { polls_on_.set(does); }
    bool polls_on() const noexcept { return polls_on_.get(); }

    /// For the process endpoint: that it calls it, or no longer (null).
    void is_called_by(ProcessEndpoint* process) noexcept { process_ = process; }

protected:
    ~Attendant() = default;

private:
    rmem::Counter<std::uint32_t> polls_;  ///< by the holder of the endpoint
    rmem::Hint<bool> polls_on_;
    ProcessEndpoint* process_ = nullptr;  ///< while attended
};

class RMEM_API ProcessEndpoint {
public:
    class Held {
    public:
        /// For callers whose thread holds it already: nothing more is held.
        Held() noexcept : lock_(nullptr) {}
        explicit Held(ProcessEndpoint& process)
            : lock_(process.shared_ ? &process.lock_ : nullptr) {
            if (lock_ != nullptr) grip_ = lock_->enter();
        }
        Held(rmem::BiasedLock& lock, rmem::BiasedLock::Grip grip) : lock_(&lock), grip_(grip) {}
        ~Held() {
            if (lock_ != nullptr) lock_->leave(grip_);
        }
        Held(const Held&) = delete;
        Held& operator=(const Held&) = delete;

        /// Between two slices of a wait: lets a thread in that waits for the endpoint. Whether
        /// there was one.
        bool give_way() { return lock_ != nullptr && lock_->give_way(grip_); }

        /// Whether other threads of the program hold it, too, now and then.
        bool has_company() const noexcept { return lock_ != nullptr && lock_->has_company(); }

    private:
        rmem::BiasedLock* lock_;
        rmem::BiasedLock::Grip grip_ = rmem::BiasedLock::Grip::inside;
    };

    /// Holds it if that costs next to nothing, for calls that are short then, and else take the
    /// longer way and hold it there.
    class Passing {
    public:
        explicit Passing(ProcessEndpoint& process)
            : lock_(process.lock_), holds_(process.shared_ && lock_.try_enter()) {}
        ~Passing() {
            if (holds_) lock_.leave_at_once();
        }
        Passing(const Passing&) = delete;
        Passing& operator=(const Passing&) = delete;
        explicit operator bool() const noexcept { return holds_; }

    private:
        rmem::BiasedLock& lock_;
        const bool holds_;
    };

    /// With the environment's settings, if this process has not opened it yet.
    static std::shared_ptr<ProcessEndpoint> open();
    static std::shared_ptr<ProcessEndpoint> open(const Settings& settings);

    explicit ProcessEndpoint(std::unique_ptr<Endpoint> endpoint);
    ~ProcessEndpoint();
    ProcessEndpoint(const ProcessEndpoint&) = delete;
    ProcessEndpoint& operator=(const ProcessEndpoint&) = delete;

    Held hold() { return Held(*this); }
    /// The same for a thread of a library, once it is shared.
    Held enter_as_guest() { return {lock_, lock_.enter_as_guest()}; }
    Endpoint& endpoint() noexcept { return *endpoint_; }
    /// For callers without a hold: each call takes the lock (if any) itself.
    Endpoint& guarded() noexcept;

    bool is_shared() const noexcept { return shared_; }
    /// From now on several threads may use it. Called while no other thread does.
    void share();

    /// Shares it, and has `attendant` called until it is dismissed. No thread where ranks are
    /// simulated.
    void attend(Attendant& attendant);
    void dismiss(Attendant& attendant);

private:
    friend class Attendant;
    friend class ProgressThread;

    void send_to_rest() noexcept;
    void sleeps_on_duty(bool does) noexcept { may_send_to_rest_.set(does && is_alone_.get()); }
    [[nodiscard]] bool attend_all();     ///< while it is held
    [[nodiscard]] bool has_new_polls();  ///< at any time

    std::unique_ptr<Endpoint> endpoint_;
    std::unique_ptr<SharedEndpoint> guarded_;  ///< once it is shared
    bool shared_ = false;
    rmem::BiasedLock lock_;
    struct Attended {
        Attendant* attendant;
        std::uint32_t polls_seen;
    };
    std::vector<Attended>
        attended_;  ///< changed by a thread that has both the endpoint and the mutex
    std::mutex attended_mutex_;
    std::unique_ptr<ProgressThread> progress_;
    rmem::Hint<bool> is_alone_;          ///< there is one attendant
    rmem::Hint<bool> may_send_to_rest_;  ///< the progress thread sleeps on duty, for one attendant
};

inline void Attendant::polled() noexcept {
    polls_.add();
    if (process_ != nullptr && process_->may_send_to_rest_.get()) [[unlikely]]
        process_->send_to_rest();
}

/// In bbp.cpp: calls of this process that went by `plain` go by `guarded` from now on.
void bbp_goes_by(Endpoint& plain, Endpoint& guarded) noexcept;

/// How long the slices of a wait are: the next one is twice as long, unless something moved.
struct SliceLengths {
    std::int64_t shortest_ns = 50'000;
    std::int64_t longest_ns = 12'800'000;
    std::int64_t longest_in_company_ns = 800'000;  ///< of a thread that others wait for
};

/// The slices of a wait for others, by the thread that holds the endpoint: short at first, since
/// another thread may come at any moment, and longer where none does, so that the waiter comes to
/// sleep.
///
///     for (Slices slices(held, endpoint, deadline);; slices.pass()) {
///         const int result = endpoint.recv(…, slices.deadline());
///         if (result != BBP_ETIMEDOUT || slices.is_last()) return result;
///     }
class Slices {
public:
    static constexpr std::int64_t kShortestNs = SliceLengths{}.shortest_ns;

    Slices(ProcessEndpoint::Held& held, const Endpoint& endpoint, Deadline whole,
           const SliceLengths& lengths = {})
        : held_(held), endpoint_(endpoint), whole_(whole), lengths_(lengths) {
        begin();
    }
    Deadline deadline() const noexcept { return is_last_ ? whole_ : slice_; }
    bool is_last() const noexcept { return is_last_; }
    /// The next one. `may_give_way`: other threads may come in; `moved`: something came.
    void pass(bool may_give_way = true, bool moved = false) {
        const bool gave_way = may_give_way && held_.give_way();
        const std::int64_t longest =
            held_.has_company() ? lengths_.longest_in_company_ns : lengths_.longest_ns;
        ns_ = moved || gave_way ? lengths_.shortest_ns : std::min(ns_ * 2, longest);
        begin();
    }

private:
    void begin() {
        slice_ = endpoint_.deadline_in(ns_);
        is_last_ = whole_.at_ns <= slice_.at_ns;
    }

    ProcessEndpoint::Held& held_;
    const Endpoint& endpoint_;
    Deadline whole_, slice_;
    const SliceLengths lengths_;
    std::int64_t ns_ = lengths_.shortest_ns;
    bool is_last_ = false;
};

}  // namespace billboard
