// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The thread that runs a program's engine when the program does not.
///
/// A program that computes neither retransmits nor answers, and would soon be dead to the others.
/// The helper looks each kLookNs, or up to kLateNs later, whether anybody has run the engine since;
/// if not it does, waiting for datagrams in between, until the program calls again. While the
/// program reads its bank by plain loads (`set_always(true)`) it does so all the time. While a
/// program under load leaves datagrams open for more (rmem/link/udp/outbox.hpp), it looks each
/// kActiveNs, and sends what the program has left behind for kLazyNs: what is younger the program
/// is about to send itself.
///
/// Thread safety: set_always() and attend() from any thread; the rest from the owner's.
/// Errors: std::system_error when there can be no thread.

#include "rmem/base/helper_thread.hpp"
#include "rmem/base/relaxed.hpp"
#include "rmem/link/udp/engine.hpp"

#include <atomic>

namespace rmem::udp {

class RMEM_API EngineHelper {
public:
    static constexpr std::int64_t kLookNs = HelperThread::kLookNs;
    /// So that it is done with a tick of the host's clock: a timer of its own takes a busy
    /// program's processor for 5 to 40 us.
    static constexpr std::int64_t kLateNs = 3'000'000;
    static constexpr std::int64_t kActiveNs = 250'000;

    explicit EngineHelper(Engine& engine);

    void set_always(bool always);
    /// The program runs the engine itself; called often.
    void attend() noexcept { attended_.add(); }
    /// The program has left a datagram open. After the engine's commit().
    void watch_actively() {
        // relaxed is enough: the thread that clears it looks at the engine, under its mutex,
        // afterwards
        if (!polls_actively_.load(std::memory_order_relaxed)) [[unlikely]]
            begin_watching();
    }
    /// The times that the helper began because nobody else did.
    std::uint64_t takeovers() const noexcept { return takeovers_.get(); }

private:
    bool is_attended_since(std::uint64_t count) const noexcept {
        return attended_.get() != count || engine_.sleeps();
    }
    void begin_watching();
    void poll_actively();
    std::int64_t interval_ns() const noexcept {
        // relaxed is enough: an old one costs one look
        return polls_actively_.load(std::memory_order_relaxed) ? kActiveNs : kLookNs;
    }
    void pause();
    void work();
    void run_until_attended();

    Engine& engine_;
    std::atomic<bool> always_{false};
    std::atomic<bool> polls_actively_{false};
    unsigned empty_looks_ = 0;
    Counter<> attended_;
    Counter<> takeovers_;
    HelperThread thread_;
};

}  // namespace rmem::udp
