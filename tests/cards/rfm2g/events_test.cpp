// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// Events of RFM2g cards: interrupts from node to node on every link, waiting, callbacks, queues.

#include "tests/support/rfm2g_cards.hpp"

#include <pthread.h>

#include <array>
#include <atomic>
#include <csignal>
#include <future>
#include <mutex>
#include <vector>

namespace rmem::test {
namespace {

constexpr RFM2GEVENTTYPE kSent[] = {RFM2GEVENT_RESET, RFM2GEVENT_INTR1, RFM2GEVENT_INTR2,
                                    RFM2GEVENT_INTR3, RFM2GEVENT_INTR4};

class EventsOnLinks : public CardsOnLinks {
protected:
    static void expect(RFM2GHANDLE card, RFM2GEVENTTYPE event, RFM2G_NODE from, RFM2G_UINT32 data) {
        const Came came = wait(card, event);
        ASSERT_EQ(came.status, RFM2G_SUCCESS) << rmem_last_error();
        EXPECT_EQ(came.info.NodeId, from);
        EXPECT_EQ(came.info.ExtendedInfo, data);
    }
    static void expect_none(RFM2GHANDLE card, RFM2GEVENTTYPE event) {
        EXPECT_EQ(wait(card, event, RFM2G_NO_WAIT).status, RFM2G_TIMED_OUT);
    }
    static void send(RFM2GHANDLE card, RFM2G_NODE to, RFM2GEVENTTYPE event, RFM2G_UINT32 data) {
        EXPECT_EQ(RFM2gSendEvent(card, to, event, data), RFM2G_SUCCESS) << rmem_last_error();
    }
    static void enable(RFM2GHANDLE card, RFM2GEVENTTYPE event) {
        EXPECT_EQ(RFM2gEnableEvent(card, event), RFM2G_SUCCESS) << rmem_last_error();
    }
    static RFM2GQINFO statistics(RFM2GHANDLE card, RFM2GEVENTTYPE event) {
        RFM2GQINFO info{};
        info.Event = static_cast<RFM2G_UINT8>(event);
        EXPECT_EQ(RFM2gGetEventStats(card, &info), RFM2G_SUCCESS);
        return info;
    }
    /// A thread that waits, and is asleep in that.
    static std::future<Came> waiter(RFM2GHANDLE card, RFM2GEVENTTYPE event) {
        auto came = std::async(std::launch::async, [=] { return wait(card, event); });
        // A second waiter is refused once the first is there.
        EXPECT_TRUE(comes([&] {
            const auto status = wait(card, event, RFM2G_NO_WAIT).status;
            return status == RFM2G_EVENT_IN_USE;
        }));
        return came;
    }
};

struct CardEvents : EventsOnLinks {
    const Card a{0}, b{1};
};
CARDS_ON_ALL_LINKS(CardEvents);

TEST_P(CardEvents, each_that_is_sent_comes_with_its_sender_and_its_data) {
    RFM2G_UINT32 data = 100;
    for (const RFM2GEVENTTYPE event : kSent) {
        enable(a, event);
        enable(b, event);
        enable(b, event);  // no error
        send(a, 1, event, ++data);
        expect(b, event, 0, data);
        send(b, RFM2G_NODE_ALL, event, ++data);
        expect(a, event, 1, data);
        expect_none(b, event);
        EXPECT_EQ(count(b, event), 1U);
    }
}

TEST_P(CardEvents, an_interrupt_comes_after_what_was_written_before) {
    enable(b, RFM2GEVENT_INTR2);
    for (RFM2G_UINT32 i = 1; i <= 100; ++i) {
        EXPECT_EQ(RFM2gPoke32(a, 256, i), RFM2G_SUCCESS);
        send(a, 1, RFM2GEVENT_INTR2, i);
        expect(b, RFM2GEVENT_INTR2, 0, i);
        EXPECT_TRUE(has(b, 256, i));
    }
}

TEST_P(CardEvents, a_burst_of_interrupts_waits_on_the_board_up_to_127) {
    constexpr RFM2G_UINT32 kSentOnes = 140, kKept = 1 + 127;
    enable(b, RFM2GEVENT_INTR1);
    enable(b, RFM2GEVENT_INTR4);
    for (RFM2G_UINT32 i = 0; i < kSentOnes; ++i) send(a, 1, RFM2GEVENT_INTR1, i);
    send(a, 1, RFM2GEVENT_INTR4, 0);
    expect(b, RFM2GEVENT_INTR4, 0, 0);  // after them
    const RFM2GQINFO info = statistics(b, RFM2GEVENT_INTR1);
    EXPECT_EQ(info.EventCount, 1U);  // the driver takes the next when somebody waits
    EXPECT_EQ(info.EventsQueued, 1U);
    EXPECT_EQ(info.QueueSize, 1U);
    EXPECT_EQ(info.MaxQueueSize, 1U);
    EXPECT_EQ(info.QueuePeak, 1U);
    EXPECT_EQ(info.Overflowed, RFM2G_TRUE);
    for (RFM2G_UINT32 i = 0; i < kKept; ++i) expect(b, RFM2GEVENT_INTR1, 0, i);
    expect_none(b, RFM2GEVENT_INTR1);
    EXPECT_EQ(count(b, RFM2GEVENT_INTR1), kKept);
    EXPECT_EQ(RFM2gClearEventStats(b, RFM2GEVENT_INTR1), RFM2G_SUCCESS);
    EXPECT_EQ(count(b, RFM2GEVENT_INTR1), 0U);
}

TEST_P(CardEvents, a_reset_that_nobody_takes_is_one_with_the_next) {
    enable(b, RFM2GEVENT_RESET);
    for (RFM2G_UINT32 i = 0; i < 3; ++i) send(a, 1, RFM2GEVENT_RESET, i);
    EXPECT_TRUE(comes([&] { return count(b, RFM2GEVENT_RESET) == 3; }));
    EXPECT_EQ(statistics(b, RFM2GEVENT_RESET).Overflowed, RFM2G_TRUE);
    expect(b, RFM2GEVENT_RESET, 0, 2);
    expect_none(b, RFM2GEVENT_RESET);
}

TEST_P(CardEvents, what_came_before_it_was_enabled_is_there_unless_it_is_cleared) {
    enable(b, RFM2GEVENT_INTR3);
    send(a, 1, RFM2GEVENT_INTR1, 1);
    send(a, 1, RFM2GEVENT_INTR2, 2);
    send(a, 1, RFM2GEVENT_INTR3, 3);
    expect(b, RFM2GEVENT_INTR3, 0, 3);
    EXPECT_EQ(count(b, RFM2GEVENT_INTR1), 0U);
    EXPECT_EQ(RFM2gClearEvent(b, RFM2GEVENT_INTR2), RFM2G_SUCCESS);
    enable(b, RFM2GEVENT_INTR1);
    enable(b, RFM2GEVENT_INTR2);
    expect(b, RFM2GEVENT_INTR1, 0, 1);
    expect_none(b, RFM2GEVENT_INTR2);
    // All of them, and those that the driver has taken, too.
    send(a, 1, RFM2GEVENT_INTR1, 4);
    send(a, 1, RFM2GEVENT_INTR2, 5);
    EXPECT_TRUE(comes([&] { return count(b, RFM2GEVENT_INTR2) == 1; }));
    EXPECT_EQ(RFM2gFlushEventQueue(b, RFM2GEVENT_LAST), RFM2G_SUCCESS);
    expect_none(b, RFM2GEVENT_INTR1);
    expect_none(b, RFM2GEVENT_INTR2);
    EXPECT_EQ(RFM2gClearEventCount(b, RFM2GEVENT_LAST), RFM2G_SUCCESS);
    EXPECT_EQ(count(b, RFM2GEVENT_INTR2), 0U);
}

TEST_P(CardEvents, one_that_is_disabled_stays_on_the_board) {
    enable(b, RFM2GEVENT_INTR1);
    enable(b, RFM2GEVENT_INTR2);
    EXPECT_EQ(RFM2gDisableEvent(b, RFM2GEVENT_INTR1), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gDisableEvent(b, RFM2GEVENT_INTR1), RFM2G_SUCCESS);
    auto waiting = waiter(b, RFM2GEVENT_INTR1);
    send(a, 1, RFM2GEVENT_INTR1, 1);
    send(a, 1, RFM2GEVENT_INTR2, 2);
    expect(b, RFM2GEVENT_INTR2, 0, 2);
    EXPECT_EQ(count(b, RFM2GEVENT_INTR1), 0U);
    enable(b, RFM2GEVENT_INTR1);  // by another thread than the one that waits
    EXPECT_EQ(waiting.get().status, RFM2G_SUCCESS);
}

TEST_P(CardEvents, a_wait_ends_by_its_time_or_by_a_cancel) {
    enable(b, RFM2GEVENT_INTR1);
    expect_refused(wait(b, RFM2GEVENT_INTR1, 1).status, RFM2G_TIMED_OUT, "within 1 ms");
    expect_refused(RFM2gCancelWaitForEvent(b, RFM2GEVENT_INTR1), RFM2G_EVENT_NOT_IN_USE,
                   "no thread waits");
    auto waiting = waiter(b, RFM2GEVENT_INTR1);
    expect_refused(
        RFM2gEnableEventCallback(b, RFM2GEVENT_INTR1, [](RFM2GHANDLE, RFM2GEVENTINFO*) {}),
        RFM2G_EVENT_IN_USE, "thread that waits");
    EXPECT_EQ(RFM2gCancelWaitForEvent(b, RFM2GEVENT_INTR1), RFM2G_SUCCESS);
    EXPECT_EQ(waiting.get().status, RFM2G_WAIT_EVENT_CANCELED);
    expect_none(b, RFM2GEVENT_INTR1);
}

TEST_P(CardEvents, a_signal_handler_ends_a_wait) {
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int) {};
    action.sa_flags = SA_RESTART;  // as signal(3) has it
    ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
    std::atomic<pthread_t> thread{};
    auto waiting = std::async(std::launch::async, [&] {
        thread = ::pthread_self();
        return wait(b, RFM2GEVENT_INTR1, RFM2G_INFINITE_TIMEOUT);
    });
    EXPECT_TRUE(comes([&] { return thread != pthread_t{}; }));
    EXPECT_TRUE(comes([&] {  // it may not be asleep at the first
        const auto ready = waiting.wait_for(std::chrono::milliseconds(1));
        if (ready != std::future_status::ready) ::pthread_kill(thread, SIGUSR1);
        return ready == std::future_status::ready;
    }));
    EXPECT_EQ(waiting.get().status, RFM2G_SIGNALED);
    ::sigaction(SIGUSR1, &before, nullptr);
}

// ---- Callbacks. They are functions: what they note is the test's own.

struct Notes {
    std::mutex mutex;
    std::vector<RFM2GEVENTINFO> came;
    std::vector<RFM2G_STATUS> statuses;

    std::size_t size() {
        const std::lock_guard lock(mutex);
        return came.size();
    }
};
Notes* notes = nullptr;

void note(RFM2GHANDLE, RFM2GEVENTINFO* info) {
    const std::lock_guard lock(notes->mutex);
    notes->came.push_back(*info);
}

class CardCallbacks : public EventsOnLinks {
protected:
    CardCallbacks() { notes = &notes_; }
    Notes notes_;
    const Card a{0}, b{1};  // closed first
};
CARDS_ON_ALL_LINKS(CardCallbacks);

TEST_P(CardCallbacks, run_once_for_each_interrupt_in_their_order) {
    constexpr unsigned kCount = 100;
    enable(b, RFM2GEVENT_INTR1);
    ASSERT_EQ(RFM2gEnableEventCallback(b, RFM2GEVENT_INTR1, note), RFM2G_SUCCESS);
    for (RFM2G_UINT32 i = 0; i < kCount; ++i) send(a, 1, RFM2GEVENT_INTR1, i);
    ASSERT_TRUE(comes([&] { return notes_.size() == kCount; }));
    for (RFM2G_UINT32 i = 0; i < kCount; ++i) {
        EXPECT_EQ(notes_.came[i].ExtendedInfo, i);
        EXPECT_EQ(notes_.came[i].NodeId, 0);
        EXPECT_EQ(notes_.came[i].Event, RFM2GEVENT_INTR1);
    }
    EXPECT_EQ(count(b, RFM2GEVENT_INTR1), kCount);
}

TEST_P(CardCallbacks, one_is_set_at_a_time_and_no_thread_waits_beside_it) {
    expect_refused(RFM2gDisableEventCallback(b, RFM2GEVENT_INTR1), RFM2G_NOT_ENABLED,
                   "no callback");
    EXPECT_EQ(RFM2gEnableEventCallback(b, RFM2GEVENT_INTR1, note), RFM2G_SUCCESS);
    expect_refused(RFM2gEnableEventCallback(b, RFM2GEVENT_INTR1, note), RFM2G_EVENT_IN_USE,
                   "callback");
    expect_refused(wait(b, RFM2GEVENT_INTR1).status, RFM2G_EVENT_IN_USE, "callback");
    EXPECT_EQ(RFM2gDisableEventCallback(b, RFM2GEVENT_INTR1), RFM2G_SUCCESS);
    enable(b, RFM2GEVENT_INTR1);
    send(a, 1, RFM2GEVENT_INTR1, 6);
    expect(b, RFM2GEVENT_INTR1, 0, 6);
    EXPECT_EQ(notes_.size(), 0U);
}

TEST_P(CardCallbacks, get_what_was_there_before_them) {
    enable(b, RFM2GEVENT_INTR1);
    for (RFM2G_UINT32 i = 0; i < 3; ++i) send(a, 1, RFM2GEVENT_INTR1, i);
    EXPECT_TRUE(comes([&] { return count(b, RFM2GEVENT_INTR1) == 1; }));
    ASSERT_EQ(RFM2gEnableEventCallback(b, RFM2GEVENT_INTR1, note), RFM2G_SUCCESS);
    EXPECT_TRUE(comes([&] { return notes_.size() == 3; }));
}

TEST_P(CardCallbacks, make_calls_but_neither_wait_nor_close) {
    enable(a, RFM2GEVENT_INTR2);
    enable(b, RFM2GEVENT_INTR1);
    ASSERT_EQ(
        RFM2gEnableEventCallback(b, RFM2GEVENT_INTR1,
                                 [](RFM2GHANDLE card, RFM2GEVENTINFO* info) {
                                     RFM2GHANDLE own = card;
                                     const std::vector<RFM2G_STATUS> statuses = {
                                         RFM2gPoke32(card, 64, info->ExtendedInfo),
                                         RFM2gSendEvent(card, info->NodeId, RFM2GEVENT_INTR2, 9),
                                         wait(card, RFM2GEVENT_INTR3, RFM2G_NO_WAIT).status,
                                         wait(card, RFM2GEVENT_INTR3).status,
                                         RFM2gClose(&own),
                                         RFM2gDisableEventCallback(card, RFM2GEVENT_INTR1)};
                                     const std::lock_guard lock(notes->mutex);
                                     notes->statuses = statuses;
                                     notes->came.push_back(*info);
                                 }),
        RFM2G_SUCCESS);
    send(a, 1, RFM2GEVENT_INTR1, 7);
    send(a, 1, RFM2GEVENT_INTR1, 8);
    expect(a, RFM2GEVENT_INTR2, 1, 9);
    EXPECT_TRUE(has(a, 64, 7));
    ASSERT_TRUE(comes([&] { return notes_.size() == 1; }));
    const std::vector<RFM2G_STATUS> expected = {RFM2G_SUCCESS,       RFM2G_SUCCESS,
                                                RFM2G_TIMED_OUT,     RFM2G_NOT_SUPPORTED,
                                                RFM2G_NOT_SUPPORTED, RFM2G_SUCCESS};
    EXPECT_EQ(notes_.statuses, expected);
    expect(b, RFM2GEVENT_INTR1, 0, 8);
    EXPECT_EQ(notes_.size(), 1U);
}

// ---- Closing

struct ClosingCards : EventsOnLinks {};
CARDS_ON_ALL_LINKS(ClosingCards);

TEST_P(ClosingCards, end_while_threads_are_in_calls_and_these_are_refused_then) {
    for (int round = 0; round < 6; ++round) {
        RFM2GHANDLE card = nullptr;
        char path[] = "/dev/rfm2g1";
        ASSERT_EQ(RFM2gOpen(path, &card), RFM2G_SUCCESS) << rmem_last_error();
        const RFM2GHANDLE copy = card;
        const auto until_closed = [](auto&& call) {
            return std::async(std::launch::async, [call] {
                RFM2G_STATUS status = RFM2G_SUCCESS;
                while (status != RFM2G_BAD_PARAMETER_1) status = call();
            });
        };
        RFM2G_UINT32 value = 0;
        const std::array callers = {
            until_closed([&] { return RFM2gPoke32(copy, 64, 1); }),
            until_closed([&] { return RFM2gPeek32(copy, 64, &value); }),
            until_closed([&] { return RFM2gEnableEvent(copy, RFM2GEVENT_BAD_DATA); }),
            until_closed([&] { return wait(copy, RFM2GEVENT_INTR2, 1).status; }), until_closed([&] {
                return RFM2gWaitForEvent(
                    copy, std::array<RFM2GEVENTINFO, 1>{{{0, RFM2GEVENT_INTR3,
                                                          RFM2G_INFINITE_TIMEOUT, 0, nullptr}}}
                              .data());
            })};
        std::this_thread::sleep_for(std::chrono::milliseconds(round));
        EXPECT_EQ(RFM2gClose(&card), RFM2G_SUCCESS) << rmem_last_error();
        for (const auto& caller : callers) caller.wait();
    }
}

TEST_P(ClosingCards, wait_for_a_callback_that_runs) {
    static std::atomic<int> step;
    step = 0;
    const Card a(0);
    {
        const Card b(1);
        enable(b, RFM2GEVENT_INTR1);
        ASSERT_EQ(
            RFM2gEnableEventCallback(b, RFM2GEVENT_INTR1,
                                     [](RFM2GHANDLE, RFM2GEVENTINFO*) {
                                         step = 1;
                                         std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                         step = 2;
                                     }),
            RFM2G_SUCCESS);
        send(a, 1, RFM2GEVENT_INTR1, 0);
        ASSERT_TRUE(comes([] { return step >= 1; }));
    }
    EXPECT_EQ(step, 2);
}

// ---- Arguments

TEST_P(CardEvents, no_event_goes_to_oneself_or_to_no_node) {
    enable(a, RFM2GEVENT_INTR1);
    expect_refused(RFM2gSendEvent(a, 0, RFM2GEVENT_INTR1, 0), RFM2G_NODE_ID_SELF, "itself");
    expect_refused(RFM2gSendEvent(a, 256, RFM2GEVENT_INTR1, 0), RFM2G_BAD_PARAMETER_2, "256");
    expect_refused(RFM2gSendEvent(a, RFM2G_NODE_UNKNOWN, RFM2GEVENT_INTR1, 0),
                   RFM2G_BAD_PARAMETER_2, "no node");
    send(a, 200, RFM2GEVENT_INTR1, 0);  // as on a ring of cards, nobody gets it
    for (int event = RFM2GEVENT_BAD_DATA; event <= RFM2GEVENT_LAST + 1; ++event) {
        expect_refused(RFM2gSendEvent(a, 1, static_cast<RFM2GEVENTTYPE>(event), 0),
                       RFM2G_BAD_PARAMETER_3, "no event");
    }
    expect_none(a, RFM2GEVENT_INTR1);
}

TEST_P(CardEvents, an_event_that_there_is_not_is_refused_by_every_call) {
    RFM2G_UINT32 found;
    RFM2GQINFO info{};
    const auto none = static_cast<RFM2GEVENTTYPE>(RFM2GEVENT_LAST + 1);
    info.Event = RFM2GEVENT_LAST;
    for (const RFM2G_STATUS status :
         {RFM2gEnableEvent(a, RFM2GEVENT_LAST), RFM2gDisableEvent(a, RFM2GEVENT_LAST),
          wait(a, RFM2GEVENT_LAST).status, RFM2gEnableEventCallback(a, RFM2GEVENT_LAST, note),
          RFM2gDisableEventCallback(a, none), RFM2gCancelWaitForEvent(a, RFM2GEVENT_LAST),
          RFM2gGetEventCount(a, RFM2GEVENT_LAST, &found), RFM2gGetEventStats(a, &info),
          RFM2gClearEvent(a, none), RFM2gFlushEventQueue(a, none), RFM2gClearEventCount(a, none),
          RFM2gClearEventStats(a, none)}) {
        expect_refused(status, RFM2G_BAD_PARAMETER_2, "no event");
    }
}

}  // namespace
}  // namespace rmem::test
