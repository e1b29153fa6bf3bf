// SPDX-License-Identifier: Apache-2.0

/// The parts of a world notice when what their headers state does not hold.

#include "rmem/sim/watch.hpp"
#include "tests/rmem/sim/world_fixture.hpp"
#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

namespace rmem::sim {

struct PlantedBug {
    static void let_time_pass(Wire& wire) { wire.now_ns_ = 1'000'000'000; }
    static void store_later(World& world) { world.flight_[0].stored_ns = 1'000'000'000; }
};

namespace {

TEST(WatchDeathTest, checks_that_a_load_belongs_to_a_poll) {
    Watch watch;
    EXPECT_BROKEN(watch.loaded(0, 0, 0));
    watch.begin(10);
    EXPECT_BROKEN(watch.loaded(0, 0, 9));
    watch.end();
    EXPECT_BROKEN(watch.park(10));
}

TEST(WritesInFlightDeathTest, check_that_what_comes_round_is_in_flight) {
    WritesInFlight flight(1);
    const std::uint32_t index = flight.add(0);
    flight.forget_through(index);
    EXPECT_BROKEN(flight.forget_through(index));
}

TEST(WritesInFlight, of_one_origin_are_forgotten_up_to_the_one_that_has_come_round) {
    WritesInFlight flight(2);
    const std::uint32_t first = flight.add(0), other = flight.add(1), second = flight.add(0);
    flight[first].stored_ns = flight[second].stored_ns = flight[other].stored_ns = 5;
    flight.forget_through(first);
    EXPECT_EQ(flight[second].number, 2U);
    EXPECT_EQ(flight.add(1), first) << "its place is free, and no other's";
    flight.forget_through(second);
    flight.forget_through(other);
}

TEST(World, brings_all_that_is_stored_at_one_instant) {
    constexpr unsigned kRanks = 8;
    for (const char* timing : {"scramnet-burst", "none"}) {
        World world(with_ranks(small_world(2, timing), kRanks));
        for (unsigned r = 0; r < kRanks; ++r) {
            world.start(r, [r](Process& me) { SimMemory(me).post_word(4 * r, r + 1); });
        }
        EXPECT_EQ(world.run(), RunEnd::all_ended);
        EXPECT_EQ(world.writes(), kRanks);
        EXPECT_EQ(world.arrivals(), kRanks);
        for (unsigned r = 0; r < kRanks; ++r) EXPECT_EQ(world.word(1, 4 * r), r + 1);
        EXPECT_TRUE(banks_are_equal(world));
    }
}

TEST(WireDeathTest, checks_that_outcomes_come_in_the_order_of_time) {
    Wire wire(parse_timing("scramnet-burst"), {2, 2, kDefaultBridgeNs});
    EXPECT_EQ(wire.submit({}), WireSubmit::accepted);
    EXPECT_BROKEN(PlantedBug::let_time_pass(wire);
                  wire.advance(1'000'000'000, [](const WireOutcome&) {}));
}

TEST(WorldDeathTest, checks_that_nothing_is_early) {
    World world(small_world(2));
    world.start(0, post_one(0));
    while (world.writes() == 0) ASSERT_TRUE(world.step());
    EXPECT_BROKEN(PlantedBug::store_later(world); world.run());
}

}  // namespace
}  // namespace rmem::sim
