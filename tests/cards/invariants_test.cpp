// SPDX-License-Identifier: Apache-2.0

/// Invariants of a card's events, its queue of interrupts and its handles, each broken once.

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

// ---- Interrupts of SCRAMNet GT

TEST(InterruptQueue, waits_for_no_number_that_a_reader_has_not_taken) {
    const auto queue = std::make_unique<scgt::InterruptQueue>();
    EXPECT_BROKEN(static_cast<void>(queue->has(scgt::InterruptQueue::kFromNowOn)));
}

}  // namespace
}  // namespace cards
