// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The thread that runs a program's engine when the program does not.
///
/// A program that computes neither retransmits nor answers, and would soon be dead to the others.
///
/// Three states:
///   standing in   blocks in the engine (Engine::stand_in): a datagram or the next timer wakes it,
///                 and nothing else. Always, while the program reads its bank by plain loads
///                 (`set_always(true)`).
///   looking       the program has run the engine since the last look. Looks again after kLookNs,
///                 and stands in if the program has not.
///   parked        the program sleeps in a call of its own, and is woken by what comes. Until its
///                 wait ends (take_back).
/// While a program under load leaves writes in its log (rmem/link/udp/pacing.hpp), it looks again
/// and again, and sends what the program has left behind for kLazyNs: what is younger the program
/// is about to send itself. These looks take a twentieth of a processor, and come each
/// kLeastActiveNs to kMaxActiveNs: a wake-up costs a host 2 us, and one that is a virtual machine
/// 30 to 60, which the node that takes the stream may have to wait for. While it stands in, nobody
/// calls who could send it: it looks after kLazyNs first, and then after twice as long each. So the
/// end of a burst leaves soon after it, and a long stream is not disturbed.
///
/// It runs on the processor of the node of this host from which its datagrams come, if that is
/// always the same: there they are handled. A thread of another processor has to be called from
/// there, which takes 16 to 30 us where the host is a virtual machine.
///
/// It asks for real-time priority (HelperThread::ask_for_real_time): NodeBoard::real_time says
/// whether it has got it.
///
/// Thread safety: set_always(), attend() and take_back() from any thread; the rest from the
/// owner's. Errors: std::system_error when there can be no thread.

#include "rmem/base/helper_thread.hpp"
#include "rmem/base/relaxed.hpp"
#include "rmem/link/udp/engine.hpp"
#include "rmem/link/udp/neighbours.hpp"
#include "rmem/link/udp/pacing.hpp"
#include "rmem/ring/interrupt_helper.hpp"

#include <atomic>

namespace rmem::udp {

class RMEM_API EngineHelper final : public InterruptSource {
public:
    static constexpr std::int64_t kLookNs = Engine::kTailNs;
    static constexpr std::int64_t kLeastActiveNs = 50'000;
    static constexpr std::int64_t kMaxActiveNs = 500'000;

    explicit EngineHelper(Engine& engine);

    void set_always(bool always);
    /// The program runs the engine itself; called often.
    void attend() noexcept { attended_.add(); }

    // ---- For descriptors and callbacks: these, too, are attendance
    int descriptor() const noexcept override { return engine_.work().carrier().handle(); }
    bool is_busy() const noexcept override { return engine_.work().defers(); }
    void serve() override {
        served_.add();
        engine_.run();
    }

    /// The program's wait is over, in which it may have slept.
    void take_back() {
        if (engine_.take_slept()) [[unlikely]]
            thread_.wake();
    }
    /// The program leaves writes in its log: after a light_fence().
    void watch_actively() {
        // relaxed is enough: the thread that clears it looks at the engine, under its mutex and
        // behind a fence, afterwards
        if (!polls_actively_.load(std::memory_order_relaxed)) [[unlikely]]
            begin_watching();
    }
    /// The times that the helper began because no other thread did.
    std::uint64_t takeovers() const noexcept { return takeovers_.get(); }

private:
    bool is_attended_since(std::uint64_t count) const noexcept {
        return attendance() != count || engine_.sleeps();
    }
    // relaxed is enough: a hint, and the setter wakes the thread
    bool is_always() const noexcept { return always_.load(std::memory_order_relaxed); }
    std::uint64_t attendance() const noexcept { return attended_.get() + served_.get(); }
    bool is_active() const noexcept { return polls_actively_.load(std::memory_order_relaxed); }
    void begin_watching();
    void follow_datagrams() noexcept;
    void poll_actively();
    void pace_looks() noexcept;
    void pause();
    void work();
    void stand_in();

    Engine& engine_;
    std::atomic<bool> always_{false};
    std::atomic<bool> polls_actively_{false};
    unsigned empty_looks_ = 0;
    std::int64_t look_ns_ = kLazyNs;  ///< until the next look at what the program leaves open
    std::int64_t active_ns_ = kLeastActiveNs;  ///< the same, while the program sends itself
    std::int64_t spent_ns_ = 0;                ///< of a processor, until the last look
    Neighbours neighbours_;
    int processor_ = -1;  ///< to which it keeps; -1: to none
    int next_ = -1;       ///< on which the last datagrams came in
    unsigned times_ = 0;  ///< in a row
    Counter<> attended_;  ///< by the program's thread
    Counter<> served_;    ///< by the thread behind a callback
    Counter<> takeovers_;
    HelperThread thread_;
};

}  // namespace rmem::udp
