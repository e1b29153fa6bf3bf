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

}  // namespace
}  // namespace billboard
