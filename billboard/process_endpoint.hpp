// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The one endpoint of this process, which bbp_init, the ports and their progress thread have in common.
///
///     auto process = billboard::ProcessEndpoint::open();   // joins the ring, or shares what is open
///     const auto held = process->hold();                   // for as long as the endpoint is used
///     process->endpoint().send(1, "hello", 6);
///
/// A rank has one part of the memory and one life, so several libraries of one program speak by one endpoint, each in its
/// own class. The rank leaves the ring when the last of them lets go.
///
/// Several threads: an endpoint is one thread's at a time. As long as the program has one thread, holding costs a branch;
/// from `share` on it takes a lock, and bbp_ calls take it too (billboard/shared_endpoint.hpp). The lock is
/// recursive: a handler that runs while it is held may send. Who waits for others does so in slices, and gives way between
/// them.
///
/// Attendants: what has to be taken in when it comes, even while the program computes, registers here. A progress thread then
/// calls it (billboard/progress_thread.hpp), whenever the program has not polled for it by itself for a while.
///
/// Thread safety: open(), share(), attend() and dismiss() from one thread at a time; hold() from any.
/// Errors: open() throws `rmem::Error`; attend() std::system_error when there can be no thread.
/// Simulated processes have an endpoint each, and no threads: nobody attends there but who polls.

#include "billboard/endpoint.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace billboard {

class ProgressThread;
class SharedEndpoint;

/// What takes messages in when they come.
class RMEM_API Attendant {
public:
    /// Takes in all that has come; the endpoint is held. Whether there was something.
    virtual bool attend() noexcept = 0;

    /// The program itself has just done so, from within a call: the progress thread may rest.
    void polled() noexcept {
        // relaxed is enough, twice: a hint; the endpoint is held, so nobody else writes
        polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    std::uint32_t polls() const noexcept {
        // relaxed is enough: a hint
        return polls_.load(std::memory_order_relaxed);
    }

protected:
    ~Attendant() = default;

private:
    std::atomic<std::uint32_t> polls_{0};
};

class RMEM_API ProcessEndpoint {
public:
    class Held {
    public:
        /// For who knows that the calling thread holds it already: nothing more is held.
        Held() noexcept : process_(nullptr) {}
        explicit Held(ProcessEndpoint& process) : process_(process.shared_ ? &process : nullptr) {
            if (process_ != nullptr) process_->lock();
        }
        ~Held() {
            if (process_ != nullptr) process_->unlock();
        }
        Held(const Held&) = delete;
        Held& operator=(const Held&) = delete;

        /// Between two slices of a wait: lets a thread in that waits for the endpoint. Whether there was one.
        bool give_way() { return process_ != nullptr && process_->give_way(); }

    private:
        ProcessEndpoint* process_;
    };

    /// With the environment's settings, if nobody of this process has opened it yet.
    static std::shared_ptr<ProcessEndpoint> open();

    explicit ProcessEndpoint(std::unique_ptr<Endpoint> endpoint);
    ~ProcessEndpoint();
    ProcessEndpoint(const ProcessEndpoint&) = delete;
    ProcessEndpoint& operator=(const ProcessEndpoint&) = delete;

    Held hold() { return Held(*this); }
    Endpoint& endpoint() noexcept { return *endpoint_; }
    /// For who holds nothing: each call takes the lock for itself, if there is one to take.
    Endpoint& guarded() noexcept;

    bool is_shared() const noexcept { return shared_; }
    /// From now on several threads may use it. Called while no other thread does.
    void share();

    /// Shares it, and has `attendant` called until it is dismissed. No thread where ranks are simulated.
    void attend(Attendant& attendant);
    void dismiss(Attendant& attendant);

private:
    friend class ProgressThread;

    void lock();
    void unlock() { mutex_.unlock(); }
    bool give_way();
    bool attend_all();  ///< while it is held
    bool has_new_polls();

    std::unique_ptr<Endpoint> endpoint_;
    std::unique_ptr<SharedEndpoint> guarded_;  ///< once it is shared
    bool shared_ = false;
    std::recursive_mutex mutex_;
    std::atomic<unsigned> waiting_{0};  ///< threads at the mutex
    struct Attended {
        Attendant* attendant;
        std::uint32_t polls_seen;
    };
    std::vector<Attended> attended_;
    std::unique_ptr<ProgressThread> progress_;
};

/// The slices of a wait for others, by whoever holds the endpoint: short at first, since another thread may come at any moment,
/// and longer where none does, so that the waiter comes to sleep.
///
///     for (Slices slices(held, endpoint, deadline);; slices.pass()) {
///         const int result = endpoint.recv(…, slices.deadline());
///         if (result != BBP_ETIMEDOUT || slices.is_last()) return result;
///     }
class Slices {
public:
    static constexpr std::int64_t kShortestNs = 50'000;
    static constexpr std::int64_t kLongestNs = 12'800'000;

    Slices(ProcessEndpoint::Held& held, const Endpoint& endpoint, Deadline whole)
        : held_(held), endpoint_(endpoint), whole_(whole) {
        begin();
    }
    Deadline deadline() const noexcept { return is_last_ ? whole_ : slice_; }
    bool is_last() const noexcept { return is_last_; }
    void pass() {
        ns_ = held_.give_way() ? kShortestNs : std::min(ns_ * 2, kLongestNs);
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
    std::int64_t ns_ = kShortestNs;
    bool is_last_ = false;
};

}  // namespace billboard
