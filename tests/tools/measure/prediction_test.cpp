// SPDX-License-Identifier: Apache-2.0
// What the cost model of Directed Point says of long messages.
#include "tools/measure/prediction.hpp"

#include <gtest/gtest.h>

namespace {

using bench::Packet;
using bench::predict;

TEST(Prediction, the_prediction_of_one_packet_is_its_one_way_time_whichever_equation_holds) {
    EXPECT_EQ(predict(Packet{900, 100, 10, 300, 200}, 1).ns, 900);
    EXPECT_EQ(predict(Packet{900, 500, 10, 300, 200}, 1).ns, 900);
}

TEST(Prediction, adds_the_larger_gap_for_each_further_packet_where_the_network_is_the_slower) {
    const auto by_sender = predict(Packet{900, 100, 10, 300, 200}, 4);
    EXPECT_EQ(by_sender.equation, 1);
    EXPECT_EQ(by_sender.ns, 900 + 3 * 300);
    EXPECT_EQ(predict(Packet{900, 100, 10, 200, 400}, 4).ns, 900 + 3 * 400);
}

TEST(Prediction, adds_what_the_receiver_does_for_each_where_that_is_the_slower) {
    const auto by_receiver = predict(Packet{900, 390, 10, 300, 200}, 4);
    EXPECT_EQ(by_receiver.equation, 2);
    EXPECT_EQ(by_receiver.ns, 900 + 3 * 400);
}

TEST(Prediction, does_not_take_a_receiver_for_slow_because_a_packet_that_comes_alone_is_expensive) {
    // One look at the network costs 5 000, and finds all packets of a run.
    const auto prediction = predict(Packet{12'000, 1'500, 20, 2'900, 2'700}, 64);
    EXPECT_EQ(prediction.equation, 1);
    EXPECT_EQ(prediction.ns, 12'000 + 63 * 2'900);
}

TEST(Fit, is_the_line_where_there_is_one_and_the_mean_where_all_sizes_are_one) {
    const bench::Line line = bench::fit({8, 64, 512}, {102, 116, 228});
    EXPECT_NEAR(line.fixed, 100, 1e-9);
    EXPECT_NEAR(line.per_byte, 0.25, 1e-9);
    EXPECT_EQ(bench::fit({8, 8}, {100, 200}).at(8), 150);
}

}  // namespace
