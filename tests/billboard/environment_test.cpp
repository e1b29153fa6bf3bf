// SPDX-License-Identifier: Apache-2.0
#include "billboard/environment.hpp"

#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace billboard {
namespace {

using rmem::LinkKind;
using ::testing::HasSubstr;
using ::testing::Not;

rmem::RingConfig ring_of(LinkKind link, unsigned ranks, const BoardConfig& board) {
    rmem::RingConfig config;
    config.name = "rig";
    config.link = link;
    config.nodes = config.ranks = ranks;
    const Geometry geometry(config, board);
    config.system_bytes = geometry.region_bytes();
    config.system_hash = geometry.hash();
    return config;
}

TEST(BillboardEnvironment, finds_layout_and_partition_of_a_ring_again) {
    for (const LinkKind link : {LinkKind::direct, LinkKind::ring, LinkKind::udp}) {
        for (const unsigned ranks : {1U, 2U, 3U, 17U, 256U}) {
            for (const Layout layout : {Layout::lines, Layout::paper}) {
                for (const std::size_t bytes : {std::size_t{1024}, std::size_t{1028},
                                                std::size_t{65536}, std::size_t{1'000'000}}) {
                    const auto found = board_of(ring_of(link, ranks, {layout, bytes}));
                    ASSERT_TRUE(found.has_value())
                        << name_of(layout) << ' ' << ranks << ' ' << bytes;
                    EXPECT_EQ(found->layout, layout);
                    EXPECT_EQ(found->data_bytes, bytes);
                }
            }
        }
    }
}

TEST(BillboardEnvironment, finds_none_in_a_ring_that_has_none_or_one_of_another_version) {
    rmem::RingConfig config;
    EXPECT_FALSE(board_of(config).has_value());
    config = ring_of(LinkKind::direct, 2, {});
    ++config.system_hash;
    EXPECT_FALSE(board_of(config).has_value());
    config.system_bytes = rmem::kMaxSystemBytes;
    EXPECT_FALSE(board_of(config).has_value());
}

TEST(BillboardEnvironment, takes_from_a_ring_that_is_there_what_is_not_given) {
    ::unsetenv("RMEM_LAYOUT");
    ::unsetenv("RMEM_PARTITION");
    const BoardConfig board{Layout::paper, 8192};
    const auto there = ring_of(LinkKind::direct, 2, board);
    const Settings settings = completed(Settings::read(), there);
    EXPECT_EQ(settings.board.layout, Layout::paper);
    EXPECT_EQ(settings.board.data_bytes, 8192U);
}

TEST(BillboardEnvironment, says_whether_others_are_awaited) {
    EXPECT_TRUE(Settings::read().awaits_others);
    const auto read = [](const char* value) {
        ::setenv("RMEM_AWAIT", value, 1);
        const bool awaits = Settings::read().awaits_others;
        ::unsetenv("RMEM_AWAIT");
        return awaits;
    };
    EXPECT_TRUE(read("all"));
    EXPECT_FALSE(read("none"));
    EXPECT_THROW(read("some"), rmem::Error);
    ::unsetenv("RMEM_AWAIT");
}

TEST(BillboardEnvironment, names_the_layout_or_partition_that_differs_with_both_values) {
    const auto there = ring_of(LinkKind::direct, 2, {Layout::paper, 8192});
    const auto sentence = [&](const char* variable, const char* value) {
        ::setenv(variable, value, 1);
        const Settings settings = Settings::read();
        ::unsetenv(variable);
        return rmem::test::refused(rmem::Errc::version_mismatch,
                                   [&] { completed(settings, there); });
    };
    const std::string layout = sentence("RMEM_LAYOUT", "inline");
    EXPECT_THAT(layout, HasSubstr("RMEM_LAYOUT is paper there and inline here"));
    EXPECT_THAT(layout, Not(HasSubstr("RMEM_PARTITION is")));
    const std::string partition = sentence("RMEM_PARTITION", "64k");
    EXPECT_THAT(partition, HasSubstr("RMEM_PARTITION is 8K (8192 bytes) there and 64K"));
    EXPECT_THAT(partition, Not(HasSubstr("RMEM_LAYOUT is")));
}

TEST(BillboardEnvironment, refuses_the_layout_of_simulations_elsewhere) {
    rmem::Environment environment;
    environment.ring = "rig";
    environment.ranks = 2;
    Settings settings;
    settings.board.layout = Layout::pieces;
    EXPECT_THROW(ring_config(environment, settings), rmem::Error);
    environment.link = LinkKind::sim;
    EXPECT_EQ(ring_config(environment, settings).ranks, 2U);
}

}  // namespace
}  // namespace billboard
