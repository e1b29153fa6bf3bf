// SPDX-License-Identifier: Apache-2.0
// ctest: full plain
// Multicast and barrier on more and more nodes.

#include "simulator/paper/scale.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace simulator {
namespace {

TEST(Scale, goes_from_two_nodes_to_4096) {
    const std::vector<Place> places = places_to_measure(4096);
    EXPECT_EQ(places.front().nodes(), 2U);
    EXPECT_EQ(places.back().nodes(), 4096U);
    for (const Place& place : places) {
        EXPECT_LE(place.nodes_per_ring, rmem::kMaxNodes);
        EXPECT_LE(place.ranks, rmem::kMaxRanks);
        EXPECT_LE(place.ranks, place.nodes());
    }
    for (const Place& place : places_to_measure(64)) EXPECT_LE(place.nodes(), 64U);
}

TEST(Scale, costs_a_ring_a_hop_and_a_flag_word_for_each_further_node) {
    const ScalePoint at_8 = measure({1, 8, 8});
    const ScalePoint at_16 = measure({1, 16, 16});
    EXPECT_NEAR(static_cast<double>(at_16.word_ps - at_8.word_ps) / 8e3, 247, 25);
    EXPECT_GT(at_16.multicast_ps - at_8.multicast_ps, 8 * (615 + 247) * 1000);
    EXPECT_GT(at_16.barrier_ps, at_8.barrier_ps);
    EXPECT_GT(at_16.word_barrier_ps, at_8.word_barrier_ps);
}

TEST(Scale, makes_a_word_quicker_on_rings_of_rings) {
    const ScalePoint one = measure({1, 64, 16});
    const ScalePoint many = measure({8, 8, 16});
    EXPECT_LT(many.word_ps, one.word_ps);
    EXPECT_GT(many.word_ps, measure({1, 8, 8}).word_ps);
}

TEST(Scale, ends_where_the_control_partitions_fill_the_card) {
    constexpr std::size_t kCard = std::size_t{8} << 20;
    EXPECT_GT(most_ranks(kCard, 1024), rmem::kMaxRanks);
    EXPECT_LT(most_ranks(kCard, 1024), 1024U) << "they grow with the square of the ranks";
    EXPECT_LT(most_ranks(kCard, 32768), rmem::kMaxRanks);
}

}  // namespace
}  // namespace simulator
