// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The events of a card: what waits on the board, what the driver has taken, who gets it.
///
/// As with the card, an event passes two places. On the board each interrupt has a FIFO (127), and
/// every other event a latch. While the event is raised (its bit of the register LIER) the driver
/// takes what is there, counts it, and keeps one. Taking an interrupt, BAD_DATA or SYNC_LOSS clears
/// the bit. Of an interrupt it is set again when the waiter or the callback is ready for the next
/// one, so that none of them is lost; of the other two by RFM2gEnableEvent. What the driver keeps
/// goes to the one waiter or callback of the event.
///
/// A callback runs in the thread of the node that brings its event; where the event was there
/// before, and for faults, in a thread of this object. Without callbacks the calls bring the
/// events, and a wait sleeps on what tells of them: one thread is woken by an event, not two.
/// Invariants, executed: events and callbacks are such, which calls check; a thread that waits,
/// or a callback that is set, has a handle that is open, or is told to end; at the end nobody waits
/// and no callback runs.
/// Thread safety: any thread. Callbacks run without a lock.
/// Errors: RFM2G_STATUS; std::system_error where there can be no thread.
/// Source: the Linux driver R09.00 (queues of one), and the hardware manual (FIFOs of 127).

#include "cards/common/handle_table.hpp"
#include "cards/rfm2g/host.hpp"
#include "cards/rfm2g/rfm2g_api.h"
#include "rmem/base/helper_thread.hpp"

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

namespace cards::rfm2g {

/// Where events come from. Thread safety: any.
class EventSource {
public:
    /// Reports what has come by Events::come, unless a thread of the node does.
    virtual void bring() = 0;
    /// Readable when there is something to bring; -1: a thread of the node does that.
    [[nodiscard]] virtual RFM2G_STATUS descriptor(int& descriptor) = 0;
    /// From now on a thread of the node reports, by Events::arrive. RFM2G_SUCCESS, or why not.
    [[nodiscard]] virtual RFM2G_STATUS start_thread() = 0;
    /// Reports faults of the network by Events::arrive. Called by one thread.
    virtual void look_for_faults() = 0;

protected:
    ~EventSource() = default;
};

class Events {
public:
    struct Received {
        RFM2G_NODE from = 0;
        std::uint32_t data = 0;
    };
    static constexpr std::size_t kFifoDepth = 127;
    /// Between looks for faults, while one is enabled.
    static constexpr std::int64_t kLookNs = 10'000'000;

    explicit Events(EventSource& source) : source_(source) {}
    ~Events();
    Events(const Events&) = delete;
    Events& operator=(const Events&) = delete;

    [[nodiscard]] static bool is_event(RFM2GEVENTTYPE event);
    /// One that a node sends.
    static bool is_sent(RFM2GEVENTTYPE event) { return event <= RFM2GEVENT_INTR4; }

    /// The board gets one, from a thread of the library: a callback runs in it.
    void arrive(RFM2GEVENTTYPE event, Received what);
    /// The same from a call of the program.
    void come(RFM2GEVENTTYPE event, Received what);

    void enable(RFM2GEVENTTYPE event);
    void disable(RFM2GEVENTTYPE event);
    /// For a handle whose calls are `calls`.
    [[nodiscard]] RFM2G_STATUS wait(RFM2GEVENTTYPE event, std::uint32_t timeout_ms, Received& what,
                                    const Calls& calls);
    [[nodiscard]] RFM2G_STATUS cancel(RFM2GEVENTTYPE event);
    [[nodiscard]] RFM2G_STATUS set_callback(RFM2GEVENTTYPE event, RFM2G_EVENT_FUNCPTR function,
                                            RFM2GHANDLE handle, const Calls& calls);
    [[nodiscard]] RFM2G_STATUS clear_callback(RFM2GEVENTTYPE event);
    void clear(RFM2GEVENTTYPE event);
    void clear_count(RFM2GEVENTTYPE event);
    [[nodiscard]] RFM2GQINFO statistics(RFM2GEVENTTYPE event);
    /// Whether the calling thread is in a callback, of whichever card.
    [[nodiscard]] static bool is_in_callback() noexcept;
    /// Ends the waits of a handle that is being closed, and returns when no callback of it runs.
    void end(const Calls& calls);
    /// No more looks for faults.
    void stop() { thread_.reset(); }

    // ---- As registers
    [[nodiscard]] std::uint32_t lisr();     ///< what waits on the board
    void keep_of_lisr(std::uint32_t bits);  ///< forgets the latches of the others
    [[nodiscard]] std::uint32_t lier();
    void set_lier(std::uint32_t bits);
    /// The oldest of an interrupt on the board; nothing: none waits.
    [[nodiscard]] std::optional<Received> oldest(RFM2GEVENTTYPE event, bool takes);

private:
    struct Event {
        std::deque<Received> board;
        bool is_raised = false;   ///< its bit of LIER
        bool is_enabled = false;  ///< the driver's: an interrupt may be raised again
        std::optional<Received> taken;
        bool has_overflowed = false;
        std::uint8_t peak = 0;
        std::uint32_t count = 0;
        RFM2G_EVENT_FUNCPTR callback = nullptr;
        RFM2GHANDLE handle = nullptr;    ///< that the callback gets
        const Calls* user = nullptr;     ///< of the handle that has the callback or waits
        const Calls* running = nullptr;  ///< of the handle whose callback runs; null: none does
        bool is_awaited = false;
        bool is_canceled = false;
        bool is_asleep = false;      ///< its waiter
        std::unique_ptr<Bell> bell;  ///< wakes it; null: nobody has slept yet
    };
    using Lock = std::unique_lock<std::mutex>;

    Event& at(RFM2GEVENTTYPE event) {
        RMEM_CHECK(is_event(event));
        return events_[event];
    }
    static void put(RFM2GEVENTTYPE type, Event& event, Received what);
    static void take(RFM2GEVENTTYPE type, Event& event);
    static void raise_again(RFM2GEVENTTYPE type, Event& event);
    static void wake_waiter(Event& event);
    void run_callback(Lock& lock, RFM2GEVENTTYPE type, Event& event);
    [[nodiscard]] RFM2G_STATUS sleep(Lock& lock, Event& event, std::uint32_t timeout_ms,
                                     const Calls& calls);
    void hand_over(Lock lock, RFM2GEVENTTYPE type, Event& event);
    [[nodiscard]] bool watches_faults() const;
    template <class Is>
    [[nodiscard]] std::uint32_t bits_where(Is&& is);
    void serve();
    void start_thread();

    EventSource& source_;
    std::mutex mutex_;
    std::condition_variable idle_;  ///< a wait or a callback has ended
    std::array<Event, RFM2GEVENT_LAST> events_;
    bool has_work_ = false;  ///< for the thread
    std::optional<rmem::HelperThread> thread_;
};

}  // namespace cards::rfm2g
