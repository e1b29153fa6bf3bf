// SPDX-License-Identifier: Apache-2.0

/// The wire model notices when what its headers state does not hold.

#include "rmem/wire/state.hpp"
#include "tests/rmem/wire/model_fixture.hpp"
#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

namespace rmem {

struct PlantedBug {
    static void let_time_pass(WireModel& model) { model.state_->now_ = 1'000'000'000; }
    static void store_later(WireModel& model) {
        model.state_->nodes_[0].records.front().stored = 1'000'000'000;
    }
    static void end_a_packet(WireModel& model) { model.state_->packets_.at(0).events = 0; }
};

namespace {

/// A word that is on its way.
class WireModelDeathTest : public ::testing::Test {
protected:
    WireModelDeathTest() {
        bench_.write(0, 0);
        bench_.advance(100);
    }
    Bench bench_{"scramnet-burst", 3};
};

TEST_F(WireModelDeathTest, checks_that_outcomes_come_in_the_order_of_time) {
    EXPECT_BROKEN_WHERE_CHECKED(PlantedBug::let_time_pass(bench_.model);
                                bench_.advance(1'000'000'000));
}

TEST_F(WireModelDeathTest, checks_that_nothing_is_early) {
    EXPECT_BROKEN_WHERE_CHECKED(PlantedBug::store_later(bench_.model); bench_.drain());
}

TEST_F(WireModelDeathTest, checks_that_a_packet_ends_with_its_last_event) {
    EXPECT_BROKEN_WHERE_CHECKED(PlantedBug::end_a_packet(bench_.model); bench_.drain());
}

}  // namespace
}  // namespace rmem
