// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The thread behind a node's interrupt descriptor and callback.
///
/// It sleeps on the rank's wake word (rmem/ring/waiting/waiting.hpp), so an idle node costs nothing
/// but a look each kLongestSleepNs. Those that raise make the descriptor readable themselves where
/// they can (rmem/ring/waiting/rank_bell.hpp). Readability is a level: after `take` has returned,
/// it is readable while interrupts wait, or once more where one was taken before its raiser had
/// rung.
///
/// Where others' writes are brought by an engine of this process (an InterruptSource), the
/// descriptor is readable when that has something to do, too, and while a callback is set this
/// thread runs it: so an interrupt wakes one thread, and not a second one by the first.
/// Thread safety: `fd`, `on_interrupt` and `take` from the node's thread. The callback runs on this
///   object's thread, and must not destroy the node; the one that was replaced may still be running
///   when on_interrupt returns.
/// Errors: Error(system) when there can be no pipe; std::system_error when there can be no
/// thread.

#include "rmem/base/helper_thread.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/waiting/rank_bell.hpp"

#include <functional>
#include <mutex>
#include <optional>

namespace rmem {

/// What brings interrupts to the node in this process. Thread safety: any.
class InterruptSource {
public:
    /// Readable when there is something to do.
    [[nodiscard]] virtual int descriptor() const noexcept = 0;
    /// Something is about to be due for which the descriptor will not be readable.
    [[nodiscard]] virtual bool is_busy() const noexcept = 0;
    /// Does what there is to do.
    virtual void serve() = 0;

protected:
    ~InterruptSource() = default;
};

class InterruptHelper {
public:
    using Callback = std::function<void(const Interrupt&)>;
    static constexpr std::int64_t kLongestSleepNs = 100'000'000;
    /// Where wake-ups may be lost. Rarer than a Waiter's: it sleeps while the program computes.
    static constexpr std::int64_t kBlindLookNs = 1'000'000;

    /// `source` may be null; it outlives this.
    InterruptHelper(Ring& ring, unsigned rank, InterruptBoard& board, InterruptSource* source);

    int fd() const noexcept { return bell_.handle(); }
    void on_interrupt(Callback callback);
    /// The oldest interrupt; none while a callback gets them.
    [[nodiscard]] std::optional<Interrupt> take();

private:
    void work();
    void look();
    void wake();
    [[nodiscard]] bool serves();
    void clear_bell();
    void serve(std::int64_t longest_ns);

    Ring& ring_;
    const unsigned rank_;
    InterruptBoard& board_;
    InterruptSource* const source_;
    RankBell bell_;
    std::mutex mutex_;  ///< the callback, the taker, and the descriptor's level
    Callback callback_;
    HelperThread thread_;
};

}  // namespace rmem
