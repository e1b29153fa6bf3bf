// SPDX-License-Identifier: Apache-2.0

/// Kills and stops of a process at one of its accesses.

#include "tests/rmem/sim/world_fixture.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace rmem::sim {
namespace {

TEST(WorldAccesses, are_places_to_kill_a_process_at_and_what_it_had_stored_arrives_in_order) {
    constexpr std::uint32_t kWords = 25;
    std::set<std::uint32_t> prefixes;
    bool ended = false;
    for (std::uint64_t access = 1; !ended; ++access) {
        ASSERT_LT(access, 1000U);
        World world(small_world(3));
        world.start(0, [&](Process& me) {
            SimMemory memory(me);
            for (std::uint32_t i = 0; i < kWords; ++i) {
                memory.post_word(4 * i, i + 1);
                if (i % 3 == 0) memory.load(4 * i);
                if (i % 5 == 0) memory.progress();
            }
            ended = true;
        });
        world.at_access(0, access, [&] { world.kill(0); });
        EXPECT_EQ(world.run(), RunEnd::all_ended);
        EXPECT_TRUE(world.has_ended(0));
        EXPECT_TRUE(banks_are_equal(world));
        std::uint32_t stored = 0;
        while (stored < kWords && world.word(2, 4 * stored) == stored + 1) ++stored;
        for (std::uint32_t i = stored; i < kWords; ++i) EXPECT_EQ(world.word(2, 4 * i), 0U);
        EXPECT_EQ(world.writes(), stored);
        prefixes.insert(stored);
    }
    EXPECT_EQ(prefixes.size(), kWords + 1) << "it died before each store once, and after the last";
}

TEST(WorldAccesses, accesses_that_were_named_are_called_at_in_their_order) {
    World world(small_world(2));
    std::vector<std::uint32_t> seen;
    world.start(0, [&](Process& process) {
        SimMemory memory(process);
        for (std::uint32_t i = 0; i < 8; ++i) memory.post_word(0, i + 1);
    });
    for (const std::uint64_t access : {6U, 2U, 2U, 4U}) {
        world.at_access(0, access, [&] { seen.push_back(world.word(0, 0)); });
    }
    world.at_access(0, 100, [&] { seen.push_back(100); });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(seen, (std::vector<std::uint32_t>{1, 1, 3, 5}));
}

TEST(WorldAccesses, call_nothing_more_once_the_process_was_killed_at_them) {
    World world(small_world(2));
    unsigned calls = 0;
    world.start(0, [&](Process& process) { SimMemory(process).post_word(0, 1); });
    world.at_access(0, 1, [&] { world.kill(0); });
    world.at_access(0, 1, [&] { ++calls; });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(calls, 0U);
}

TEST(WorldAccesses, may_be_where_a_process_kills_itself) {
    World world(small_world(2));
    bool went_on = false;
    world.start(0, [&](Process& me) {
        world.kill(0);
        me.sleep(10);
        went_on = true;
    });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_TRUE(world.has_ended(0));
    EXPECT_FALSE(went_on);
}

}  // namespace
}  // namespace rmem::sim
