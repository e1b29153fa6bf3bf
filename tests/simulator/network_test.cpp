// SPDX-License-Identifier: Apache-2.0
#include "simulator/udp_hunt/network.hpp"

#include <gtest/gtest.h>

namespace simulator {
namespace {

constexpr std::int64_t kDelayNs = 1000;

std::vector<std::byte> datagram(unsigned value) {
    return std::vector<std::byte>(100, static_cast<std::byte>(value));
}

/// The copies that come until then.
std::vector<Network::Arrival> all_of(Network& network, std::int64_t until) {
    std::vector<Network::Arrival> all;
    while (auto arrival = network.take(until)) all.push_back(std::move(*arrival));
    return all;
}

TEST(Networks, bring_each_datagram_to_every_other_node_in_order) {
    Network network(3, 1, {.delay_ns = kDelayNs});
    for (unsigned i = 0; i < 10; ++i) network.post(1, datagram(i), i);
    EXPECT_EQ(network.due_ns(), kDelayNs);
    EXPECT_FALSE(network.take(kDelayNs - 1));
    const auto all = all_of(network, 2 * kDelayNs);
    ASSERT_EQ(all.size(), 20U);
    for (unsigned i = 0; i < 20; ++i) {
        EXPECT_EQ(all[i].from, 1U);
        EXPECT_EQ(all[i].to, i % 2 == 0 ? 0U : 2U);
        EXPECT_EQ(all[i].bytes, datagram(i / 2));
    }
    EXPECT_EQ(network.due_ns(), rmem::kNever);
    EXPECT_EQ(network.counts().overtaken, 0U);
}

TEST(Networks, lose_double_damage_and_hold_up_as_many_as_told) {
    Network network(2, 7, {.chances = {100, 200, 0, 50}, .jitter_ns = 50'000, .late_ns = 100});
    for (unsigned i = 0; i < 10'000; ++i) network.post(0, datagram(1), i);
    const auto all = all_of(network, 1'000'000'000);
    const Network::Counts& counts = network.counts();
    EXPECT_EQ(counts.posted, 10'000U);
    EXPECT_NEAR(static_cast<double>(counts.lost), 1000, 150);
    EXPECT_NEAR(static_cast<double>(counts.doubled), 1800, 250);
    EXPECT_EQ(all.size(), counts.posted - counts.lost + counts.doubled);
    EXPECT_GT(counts.overtaken, 1000U);
    std::uint64_t damaged = 0;
    for (const Network::Arrival& arrival : all) damaged += arrival.bytes != datagram(1) ? 1U : 0U;
    EXPECT_EQ(damaged, counts.corrupted);
    EXPECT_NEAR(static_cast<double>(damaged), 540, 120);
}

TEST(Networks, let_nothing_through_a_link_that_is_cut_in_that_direction) {
    Network network(3, 1, {});
    network.cut(0, 1);
    network.cut(0, 1);
    network.mend(0, 1);
    EXPECT_TRUE(network.is_cut(0, 1));
    network.post(0, datagram(1), 0);
    network.post(1, datagram(2), 0);
    EXPECT_EQ(all_of(network, 1'000'000).size(), 3U);
    network.mend(0, 1);
    network.post(0, datagram(1), 0);
    EXPECT_EQ(all_of(network, 1'000'000).size(), 2U);
}

TEST(Networks, bring_what_a_clogged_link_has_kept_all_at_once_and_in_order) {
    Network network(2, 1, {.delay_ns = kDelayNs});
    network.clog(0, 1, 1'000'000);
    for (unsigned i = 0; i < 5; ++i) network.post(0, datagram(i), i);
    EXPECT_EQ(network.due_ns(), 1'000'000);
    const auto all = all_of(network, 1'000'000);
    ASSERT_EQ(all.size(), 5U);
    for (unsigned i = 0; i < 5; ++i) EXPECT_EQ(all[i].bytes, datagram(i));
}

TEST(Networks, lose_on_a_fabric_only_what_a_broken_connection_took_along) {
    const Weather weather = {
        .chances = {5, 300, 0, 300}, .delay_ns = kDelayNs, .jitter_ns = 50'000};
    Network network(3, 1, weather, Network::Kind::fabric);
    constexpr unsigned kMany = 20'000;
    for (unsigned i = 0; i < kMany; ++i) network.post(0, datagram(i), i * 1'000);
    const auto all = all_of(network, 1'000'000'000);
    const Network::Counts& counts = network.counts();
    EXPECT_EQ(counts.overtaken + counts.doubled + counts.corrupted, 0U);
    EXPECT_EQ(all.size(), counts.posted - counts.lost);
    EXPECT_GT(counts.lost, 20U * 1000) << "a break lasts for as long as a thousand are sent";
    EXPECT_GT(all.size(), 100U);
}

}  // namespace
}  // namespace simulator
