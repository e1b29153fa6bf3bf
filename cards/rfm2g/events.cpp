// SPDX-License-Identifier: Apache-2.0
#include "cards/rfm2g/events.hpp"

#include "cards/rfm2g/rfm2g_regs.h"
#include "cards/rfm2g/status.hpp"
#include "rmem/base/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

namespace cards::rfm2g {

namespace {

/// By their events; the bits of LISR and of LIER are the same.
constexpr std::array<std::uint32_t, RFM2GEVENT_LAST> kBits = {
    RFM2G_LISR_RSTREQ,  RFM2G_LISR_INT1,    RFM2G_LISR_INT2,   RFM2G_LISR_INT3,
    RFM2G_LISR_INITINT, RFM2G_LISR_BADDATA, RFM2G_LISR_RXFULL, RFM2G_LISR_ROGUE_PKT,
    RFM2G_LISR_RXAFULL, RFM2G_LISR_SNCLOST, RFM2G_LISR_WRINIB, RFM2G_LISR_PTYERR};

using rmem::kNsPerMs;
constexpr std::int64_t kLongestNs = std::numeric_limits<std::int64_t>::max() / 4;

constinit thread_local bool in_callback = false;

constexpr RFM2GEVENTTYPE event_of(std::size_t index) {
    return static_cast<RFM2GEVENTTYPE>(index);
}

constexpr bool is_interrupt(RFM2GEVENTTYPE event) {
    return event >= RFM2GEVENT_INTR1 && event <= RFM2GEVENT_INTR4;
}

/// Those that are raised once, so that they do not flood the driver.
constexpr bool is_raised_once(RFM2GEVENTTYPE event) {
    return is_interrupt(event) || event == RFM2GEVENT_BAD_DATA || event == RFM2GEVENT_SYNC_LOSS;
}

RFM2G_STATUS in_use(RFM2GEVENTTYPE event, bool has_callback) {
    return refuse(RFM2G_EVENT_IN_USE,
                  fmt::format("event {} has {} already; {}", static_cast<int>(event),
                              has_callback ? "a callback" : "a thread that waits for it",
                              has_callback ? "disable it first"
                                           : "cancel that wait first, or wait in one thread"));
}

RFM2G_STATUS timed_out(std::uint32_t timeout_ms) {
    return refuse(RFM2G_TIMED_OUT,
                  fmt::format("the event did not come within {} ms; allow more time, or look "
                              "whether it is enabled here and sent to this node",
                              timeout_ms));
}

}  // namespace

bool Events::is_event(RFM2GEVENTTYPE event) {
    return static_cast<unsigned>(event) < RFM2GEVENT_LAST;
}

bool Events::is_in_callback() noexcept {
    return in_callback;
}

Events::~Events() {
    for (const Event& event : events_)
        RMEM_CHECK(!event.is_awaited && event.running == nullptr && event.callback == nullptr);
}

// ---- From the board to the driver

void Events::take(RFM2GEVENTTYPE type, Event& event) {
    while (event.is_raised && !event.board.empty()) {
        event.has_overflowed |= event.taken.has_value();
        event.taken = event.board.front();
        event.board.pop_front();
        event.peak = 1;
        ++event.count;
        if (is_raised_once(type)) event.is_raised = false;
    }
}

/// The waiter or the callback is ready for the next one.
void Events::raise_again(RFM2GEVENTTYPE type, Event& event) {
    if (event.taken) return;
    event.is_raised |= event.is_enabled && is_interrupt(type);
    take(type, event);
}

void Events::put(RFM2GEVENTTYPE type, Event& event, Received what) {
    if (event.board.size() < (is_interrupt(type) ? kFifoDepth : 1)) {
        event.board.push_back(what);
    } else {
        event.has_overflowed |= is_interrupt(type);  // a latch is set, and no more than that
    }
    take(type, event);
}

void Events::arrive(RFM2GEVENTTYPE type, Received what) {
    Lock lock(mutex_);
    Event& event = at(type);
    put(type, event, what);
    event.callback != nullptr ? run_callback(lock, type, event) : wake_waiter(event);
}

void Events::come(RFM2GEVENTTYPE type, Received what) {
    Lock lock(mutex_);
    put(type, at(type), what);
    hand_over(std::move(lock), type, at(type));
}

// ---- From the driver to the program

void Events::wake_waiter(Event& event) {
    if (!event.is_asleep || (!event.taken && !event.is_canceled)) return;
    event.is_asleep = false;
    event.bell->ring();
}

/// Until nothing is left for it.
void Events::run_callback(Lock& lock, RFM2GEVENTTYPE type, Event& event) {
    if (event.running != nullptr) return;  // by another thread, which looks again
    const bool was_in_callback = std::exchange(in_callback, true);
    while (event.callback != nullptr && event.taken) {
        RFM2GEVENTINFO info{event.taken->data, type, RFM2G_INFINITE_TIMEOUT, event.taken->from,
                            nullptr};
        event.taken.reset();
        const RFM2G_EVENT_FUNCPTR callback = event.callback;
        const RFM2GHANDLE handle = event.handle;
        event.running = event.user;
        lock.unlock();
        callback(handle, &info);
        lock.lock();
        event.running = nullptr;
        idle_.notify_all();
        raise_again(type, event);
    }
    in_callback = was_in_callback;
}

/// What a call of the program has let through: a callback is the thread's, as faults are.
void Events::hand_over(Lock lock, RFM2GEVENTTYPE type, Event& event) {
    take(type, event);
    wake_waiter(event);
    has_work_ |= !is_sent(type) || (event.callback != nullptr && event.taken);
    if (!has_work_) return;
    start_thread();
    lock.unlock();
    thread_->wake();
}

// ---- The calls

void Events::enable(RFM2GEVENTTYPE type) {
    Lock lock(mutex_);
    Event& event = at(type);
    event.is_enabled = event.is_raised = true;
    hand_over(std::move(lock), type, event);
}

void Events::disable(RFM2GEVENTTYPE type) {
    const Lock lock(mutex_);
    at(type).is_enabled = at(type).is_raised = false;
}

RFM2G_STATUS Events::wait(RFM2GEVENTTYPE type, std::uint32_t timeout_ms, Received& what,
                          const Calls& calls) {
    Lock lock(mutex_);
    Event& event = at(type);
    if (event.is_awaited || event.callback != nullptr)
        return in_use(type, event.callback != nullptr);
    raise_again(type, event);
    if (!event.taken) {
        if (timeout_ms == RFM2G_NO_WAIT) return timed_out(timeout_ms);
        if (is_in_callback()) {
            return refuse(RFM2G_NOT_SUPPORTED,
                          "a callback cannot wait for an event, which the same thread would have "
                          "to bring; wait in another thread, or with RFM2G_NO_WAIT");
        }
        const RFM2G_STATUS status = sleep(lock, event, timeout_ms, calls);
        if (status != RFM2G_SUCCESS) return status;
    }
    what = *event.taken;
    event.taken.reset();
    return RFM2G_SUCCESS;
}

RFM2G_STATUS Events::sleep(Lock& lock, Event& event, std::uint32_t timeout_ms, const Calls& calls) {
    if (event.bell == nullptr) event.bell = Bell::make();
    if (event.bell == nullptr) {
        return refuse(RFM2G_OS_ERROR,
                      fmt::format("there is no descriptor to wait by: {}", std::strerror(errno)));
    }
    const std::int64_t until_ns =
        rmem::now_ns() +
        (timeout_ms == RFM2G_INFINITE_TIMEOUT ? kLongestNs : timeout_ms * kNsPerMs);
    event.is_awaited = true;
    event.user = &calls;
    event.is_canceled = calls.is_closing();  // end() may have been here already
    RFM2G_STATUS status = RFM2G_SUCCESS;
    while (!event.taken && !event.is_canceled && status == RFM2G_SUCCESS) {
        event.is_asleep = true;
        lock.unlock();
        int source = -1;
        status = source_.descriptor(source);
        if (status == RFM2G_SUCCESS) status = event.bell->sleep(until_ns, source);
        source_.bring();
        lock.lock();
        event.is_asleep = false;
    }
    event.is_awaited = false;
    if (event.is_canceled) {
        return refuse(RFM2G_WAIT_EVENT_CANCELED,
                      "another thread has ended this wait, by RFM2gCancelWaitForEvent or "
                      "RFM2gClose");
    }
    if (event.taken) return RFM2G_SUCCESS;
    if (status == RFM2G_TIMED_OUT) return timed_out(timeout_ms);
    if (status != RFM2G_SIGNALED) return status;
    return refuse(status, "a signal handler ran during the wait; wait again");
}

RFM2G_STATUS Events::cancel(RFM2GEVENTTYPE type) {
    const Lock lock(mutex_);
    Event& event = at(type);
    if (!event.is_awaited) {
        return refuse(RFM2G_EVENT_NOT_IN_USE,
                      fmt::format("no thread waits for event {}", static_cast<int>(type)));
    }
    event.is_canceled = true;
    wake_waiter(event);
    return RFM2G_SUCCESS;
}

RFM2G_STATUS Events::set_callback(RFM2GEVENTTYPE type, RFM2G_EVENT_FUNCPTR function,
                                  RFM2GHANDLE handle, const Calls& calls) {
    if (const auto status = source_.start_thread(); status != RFM2G_SUCCESS) return status;
    Lock lock(mutex_);
    Event& event = at(type);
    if (event.is_awaited || event.callback != nullptr)
        return in_use(type, event.callback != nullptr);
    if (calls.is_closing())
        return refuse(RFM2G_BAD_PARAMETER_1, "another thread is closing the handle");
    RMEM_CHECK(function != nullptr);
    event.callback = function;
    event.handle = handle;
    event.user = &calls;
    raise_again(type, event);
    hand_over(std::move(lock), type, event);
    return RFM2G_SUCCESS;
}

RFM2G_STATUS Events::clear_callback(RFM2GEVENTTYPE type) {
    const Lock lock(mutex_);
    if (at(type).callback == nullptr) {
        return refuse(RFM2G_NOT_ENABLED,
                      fmt::format("event {} has no callback", static_cast<int>(type)));
    }
    at(type).callback = nullptr;
    return RFM2G_SUCCESS;
}

void Events::clear(RFM2GEVENTTYPE type) {
    const Lock lock(mutex_);
    Event& event = at(type);
    event.board.clear();
    event.taken.reset();
    event.has_overflowed = false;
    event.peak = 0;
}

void Events::clear_count(RFM2GEVENTTYPE type) {
    const Lock lock(mutex_);
    at(type).count = 0;
    at(type).peak = at(type).taken ? 1 : 0;
}

RFM2GQINFO Events::statistics(RFM2GEVENTTYPE type) {
    const Lock lock(mutex_);
    const Event& event = at(type);
    RFM2GQINFO info{};
    info.Event = static_cast<RFM2G_UINT8>(type);
    info.Overflowed = event.has_overflowed ? RFM2G_TRUE : RFM2G_FALSE;
    info.QueuePeak = event.peak;
    info.EventCount = event.count;
    info.EventsQueued = event.taken ? 1 : 0;
    info.QueueSize = info.MaxQueueSize = 1;
    return info;
}

void Events::end(const Calls& calls) {
    RMEM_CHECK(calls.is_closing());
    Lock lock(mutex_);
    for (Event& event : events_) {
        if (event.user != &calls) continue;
        event.callback = nullptr;
        event.is_canceled = true;
        wake_waiter(event);
    }
    idle_.wait(lock, [&] {
        return std::none_of(events_.begin(), events_.end(),
                            [&](const Event& event) { return event.running == &calls; });
    });
}

// ---- The thread

void Events::start_thread() {
    if (!thread_) thread_.emplace("rfm2g-events", [this] { serve(); });
}

bool Events::watches_faults() const {
    return std::any_of(events_.begin() + RFM2GEVENT_BAD_DATA, events_.end(),
                       [](const Event& event) { return event.is_raised; });
}

void Events::serve() {
    bool looks = false;
    do {
        {
            Lock lock(mutex_);
            has_work_ = false;
            for (std::size_t i = 0; i < events_.size(); ++i) {
                if (events_[i].callback != nullptr) run_callback(lock, event_of(i), events_[i]);
            }
            looks = watches_faults();
        }
        if (looks) source_.look_for_faults();
    } while (thread_->pause(looks ? kLookNs : kLongestNs, [this] {
        const Lock lock(mutex_);
        return has_work_;
    }));
}

// ---- As registers

template <class Is>
std::uint32_t Events::bits_where(Is&& is) {
    const Lock lock(mutex_);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < events_.size(); ++i) {
        if (is(events_[i])) bits |= kBits[i];
    }
    return bits;
}

std::uint32_t Events::lisr() {
    return RFM2G_LISR_GBLINT | bits_where([](const Event& event) { return !event.board.empty(); });
}

std::uint32_t Events::lier() {
    return bits_where([](const Event& event) { return event.is_raised; });
}

void Events::keep_of_lisr(std::uint32_t bits) {
    const Lock lock(mutex_);
    for (std::size_t i = 0; i < events_.size(); ++i) {
        if ((bits & kBits[i]) == 0 && !is_interrupt(event_of(i))) events_[i].board.clear();
    }
}

void Events::set_lier(std::uint32_t bits) {
    for (std::size_t i = 0; i < events_.size(); ++i) {
        Lock lock(mutex_);
        Event& event = events_[i];
        const bool was_raised = std::exchange(event.is_raised, (bits & kBits[i]) != 0);
        if (!was_raised && event.is_raised) hand_over(std::move(lock), event_of(i), event);
    }
}

std::optional<Events::Received> Events::oldest(RFM2GEVENTTYPE type, bool takes) {
    const Lock lock(mutex_);
    auto& board = at(type).board;
    if (board.empty()) return std::nullopt;
    const Received found = board.front();
    if (takes) board.pop_front();
    return found;
}

}  // namespace cards::rfm2g
