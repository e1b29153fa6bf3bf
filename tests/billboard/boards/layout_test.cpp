// SPDX-License-Identifier: Apache-2.0
#include "billboard/boards/layout.hpp"

#include <gtest/gtest.h>

#include <cstddef>

namespace billboard {
namespace {

std::size_t default_data(rmem::LinkKind link, unsigned ranks) {
    rmem::RingConfig config;
    config.link = link;
    config.nodes = config.ranks = ranks;
    return Geometry(config, {}).data_bytes();
}

TEST(Layout, the_data_of_a_bank_is_divided_among_many_ranks) {
    using rmem::LinkKind;
    EXPECT_EQ(default_data(LinkKind::direct, 2), kDefaultDataBytes);
    EXPECT_EQ(default_data(LinkKind::direct, 64), kDefaultDataTotal / 64);
    EXPECT_EQ(default_data(LinkKind::ring, 2), kDefaultDataBytesReplicated);
    EXPECT_EQ(default_data(LinkKind::ring, 16), kDefaultDataBytesReplicated);
    EXPECT_EQ(default_data(LinkKind::ring, 64), kDefaultDataTotalOfBank / 64);
    EXPECT_EQ(default_data(LinkKind::ring, 256), kDefaultDataTotalOfBank / 256);
    EXPECT_EQ(default_data(LinkKind::udp, 256), kDefaultDataBytesReplicated)
        << "a host has one bank";
}

/// A program that stores past the end of its memory changes nothing here.
TEST(Layout, the_region_shares_no_page_with_the_users_memory) {
    for (const std::size_t user_bytes : {4U, 100U, 4096U, 5000U}) {
        rmem::RingConfig config;
        config.ranks = config.nodes = 2;
        config.user_bytes = user_bytes;
        const Geometry geometry(config, BoardConfig{Layout::lines, 4096});
        EXPECT_EQ(geometry.incarnation(0) % 4096, 0U);
        EXPECT_GE(geometry.incarnation(0), user_bytes);
    }
}

}  // namespace
}  // namespace billboard
