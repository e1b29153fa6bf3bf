// SPDX-License-Identifier: Apache-2.0

/// A card's events, its queue of interrupts and the calls of its handles, without a card: how they
/// end, and their invariants, each broken once.

#include "cards/common/handle_table.hpp"
#include "cards/rfm2g/events.hpp"
#include "cards/scgt/interrupt_queue.hpp"
#include "tests/support/broken.hpp"

#include <memory>

namespace cards {

/// Reaches the counts of calls, which are the table's alone.
struct Plant;
template <>
class HandleTable<Plant> {
public:
    static void open(Calls& calls) { calls.open(); }
    static void leave(Calls& calls) { calls.leave(); }
    static bool close(Calls& calls) { return calls.close(); }
};

namespace {

using Handle = HandleTable<Plant>;

// ---- Handles

TEST(Calls, leave_only_when_they_have_entered) {
    Calls calls;
    EXPECT_BROKEN(Handle::leave(calls));
}

TEST(Calls, open_only_when_they_were_closed) {
    Calls calls;
    Handle::open(calls);
    EXPECT_BROKEN(Handle::open(calls));
}

// ---- Events of RFM2g

struct NoSource final : rfm2g::EventSource {
    void bring() override {}
    RFM2G_STATUS descriptor(int& descriptor) override {
        descriptor = -1;
        return RFM2G_SUCCESS;
    }
    RFM2G_STATUS start_thread() override { return RFM2G_SUCCESS; }
    void look_for_faults() override {}
};

struct EventsOfNoCard : ::testing::Test {
    NoSource source;
    std::optional<rfm2g::Events> events{std::in_place, source};
    Calls calls;

    RFM2G_STATUS set(RFM2G_EVENT_FUNCPTR function) {
        return events->set_callback(RFM2GEVENT_INTR1, function, nullptr, calls);
    }
};

TEST_F(EventsOfNoCard, are_those_that_there_are) {
    EXPECT_BROKEN(events->arrive(RFM2GEVENT_LAST, {}));
}

TEST_F(EventsOfNoCard, have_a_callback_that_can_be_called) {
    Handle::open(calls);
    EXPECT_BROKEN(static_cast<void>(set(nullptr)));
}

TEST_F(EventsOfNoCard, end_when_their_handle_closes) {
    Handle::open(calls);
    EXPECT_BROKEN(events->end(calls));
}

TEST_F(EventsOfNoCard, have_no_callback_at_the_end) {
    Handle::open(calls);
    EXPECT_EQ(set([](RFM2GHANDLE, RFM2GEVENTINFO*) {}), RFM2G_SUCCESS);
    EXPECT_BROKEN(events.reset());
    EXPECT_EQ(events->clear_callback(RFM2GEVENT_INTR1), RFM2G_SUCCESS);
}

TEST_F(EventsOfNoCard, end_for_the_handle_that_closes_and_no_other) {
    Calls others;
    const RFM2G_EVENT_FUNCPTR none = [](RFM2GHANDLE, RFM2GEVENTINFO*) {};
    Handle::open(calls);
    Handle::open(others);
    EXPECT_EQ(set(none), RFM2G_SUCCESS);
    EXPECT_EQ(events->set_callback(RFM2GEVENT_INTR2, none, nullptr, others), RFM2G_SUCCESS);
    EXPECT_TRUE(Handle::close(calls));
    events->end(calls);
    EXPECT_EQ(events->clear_callback(RFM2GEVENT_INTR1), RFM2G_NOT_ENABLED);
    EXPECT_EQ(events->clear_callback(RFM2GEVENT_INTR2), RFM2G_SUCCESS);
}

TEST_F(EventsOfNoCard, end_a_wait_that_begins_when_its_handle_is_closing) {
    rfm2g::Events::Received what;
    EXPECT_EQ(events->wait(RFM2GEVENT_INTR1, RFM2G_INFINITE_TIMEOUT, what, calls),
              RFM2G_WAIT_EVENT_CANCELED);
}

// ---- Interrupts of SCRAMNet GT

TEST(InterruptQueue, waits_for_no_number_that_a_reader_has_not_taken) {
    const auto queue = std::make_unique<scgt::InterruptQueue>();
    EXPECT_BROKEN(static_cast<void>(queue->has(scgt::InterruptQueue::kFromNowOn)));
}

}  // namespace
}  // namespace cards
