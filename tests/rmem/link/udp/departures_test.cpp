// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/departures.hpp"

#include "tests/rmem/link/udp/fake_carrier.hpp"
#include "tests/rmem/link/udp/outbox_fixture.hpp"
#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rmem::udp {
namespace {

class DeparturesTest : public OutboxTest {
protected:
    DeparturesTest() {
        core.outgoing().drain([](const OutgoingDatagram&) {});
    }

    FakeCarrier carrier;
    Departures departures{core, outbox, carrier, ring->board()};
};

TEST_F(DeparturesTest, leave_when_they_are_to_and_not_before_they_are_due) {
    append({1});
    commit_log();
    EXPECT_EQ(departures.open_since_ns(), now);
    EXPECT_TRUE(departures.take(Outbox::Take::committed, Leaving::what_is_due, now));
    EXPECT_EQ(carrier.all.sent, 0U);
    EXPECT_EQ(departures.open_since_ns(), now) << "it is in a datagram";
    EXPECT_FALSE(departures.take(Outbox::Take::committed, Leaving::what_is_due, now));
    EXPECT_TRUE(departures.take(Outbox::Take::committed, Leaving::what_is_due, now + kLazyNs));
    EXPECT_EQ(carrier.all.sent, 1U);
    EXPECT_EQ(departures.open_since_ns(), kNever);
    EXPECT_EQ(departures.written_ns(), now + kLazyNs);
    append({2});
    EXPECT_TRUE(departures.take(Outbox::Take::all, Leaving::all, now));
    EXPECT_EQ(carrier.all.sent, 2U);
}

TEST_F(DeparturesTest, leave_many_with_one_call) {
    const std::vector<std::uint32_t> words(kMaxRecordWords);
    for (int i = 0; i < 100; ++i) append(words);
    EXPECT_TRUE(departures.take(Outbox::Take::all, Leaving::all, now));
    EXPECT_GT(carrier.all.sent, 4U * carrier.calls);
    EXPECT_FALSE(departures.lacks_room());
}

TEST_F(DeparturesTest, end_where_the_program_has_closed_the_descriptors) {
    departures.close();
    append({1});
    departures.take(Outbox::Take::all, Leaving::all, now);
    EXPECT_EQ(carrier.calls, 0U);
}

/// As if what leaves made more.
TEST_F(DeparturesTest, check_that_nothing_stays_behind_that_is_to_leave) {
    carrier.on_flush = [this] {
        const std::uint32_t word = 1;
        core.write(0, 1, &word, now);
        core.commit(now);
    };
    append({1});
    EXPECT_BROKEN_WHERE_CHECKED(departures.take(Outbox::Take::all, Leaving::all, now));
}

}  // namespace
}  // namespace rmem::udp
