// SPDX-License-Identifier: Apache-2.0

/// Programs with the billboard in a simulated world; all that they can expect of it as elsewhere is
/// in the conformance suites, which run on `sim`, too.

#include "billboard/simulation.hpp"

#include "billboard/bbp.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace billboard {
namespace {

using rmem::sim::Process;
using rmem::sim::Program;
using rmem::sim::RunEnd;
using rmem::sim::TraceHash;
using rmem::sim::World;
using rmem::sim::WorldConfig;

WorldConfig world_of(unsigned ranks, const Settings& settings = paper_settings()) {
    WorldConfig config;
    config.ring.name = "simulated";
    config.ring.nodes = config.ring.ranks = ranks;
    config.ring.user_bytes = 4096;
    config.ring.timing = rmem::parse_timing("scramnet-burst");
    config.host = rmem::sim::parse_host("pentium-ii");
    return simulated(config, settings);
}

Settings inline_settings() {
    return {{Layout::lines, 8192}, BarrierKind::arrival};
}

/// Runs a body in each rank, between bbp_init and bbp_finalize, until all have ended.
void run_all(World& world, const Program& body) {
    for (unsigned r = 0; r < world.ranks(); ++r) {
        world.start(r, [&body](Process& me) {
            ASSERT_EQ(bbp_init(nullptr, nullptr), BBP_OK) << bbp_last_error();
            body(me);
            EXPECT_EQ(bbp_barrier(), BBP_OK);
            EXPECT_EQ(bbp_finalize(), BBP_OK);
        });
    }
    EXPECT_EQ(world.run(), RunEnd::all_ended);
}

/// Sends messages round the ring of ranks, and meets the others in barriers.
void talk(Process& me) {
    const int rank = static_cast<int>(me.rank());
    const int ranks = static_cast<int>(me.world().ranks());
    for (std::size_t size = 0; size < 400; size += 37) {
        std::vector<std::uint8_t> bytes(size, static_cast<std::uint8_t>(size));
        ASSERT_EQ(bbp_send((rank + 1) % ranks, bytes.data(), size), BBP_OK);
        std::vector<std::uint8_t> found(size + 1);
        std::size_t length = 0;
        const int from = (rank + ranks - 1) % ranks;
        ASSERT_EQ(bbp_recv(from, found.data(), found.size(), &length), from);
        ASSERT_EQ(length, size);
        found.resize(size);
        ASSERT_EQ(found, bytes);
        ASSERT_EQ(bbp_barrier(), BBP_OK);
    }
}

TEST(Simulation, gives_equal_events_in_100_runs) {
    for (const Settings& settings : {paper_settings(), inline_settings()}) {
        std::uint64_t first = 0;
        for (int i = 0; i < 100; ++i) {
            World world(world_of(3, settings));
            TraceHash hash;
            world.observe(&hash);
            run_all(world, talk);
            EXPECT_GT(world.arrivals(), 0U);
            if (i == 0) first = hash.value();
            ASSERT_EQ(hash.value(), first);
        }
    }
}

TEST(Simulation, gives_each_process_an_endpoint_and_a_last_error_of_its_own) {
    World world(world_of(2));
    run_all(world, [](Process& me) {
        const int wrong = 40 + static_cast<int>(me.rank());
        EXPECT_EQ(bbp_send(wrong, "", 0), BBP_ERANK);
        me.sleep(10'000);
        EXPECT_NE(std::string(bbp_last_error()).find(std::to_string(wrong)), std::string::npos)
            << bbp_last_error();
    });
    EXPECT_EQ(bbp_send(0, "", 0), BBP_EINVAL) << "the test itself is in no ring";
}

TEST(Simulation, waits_in_virtual_time) {
    World world(world_of(2));
    run_all(world, [](Process& me) {
        const std::int64_t before = me.now_ns();
        constexpr std::int64_t kHour = 3'600'000'000'000;
        EXPECT_EQ(bbp_recv_for(1, nullptr, 0, nullptr, kHour), BBP_ETIMEDOUT);
        EXPECT_GE(me.now_ns() - before, kHour);
        EXPECT_LT(me.now_ns() - before, kHour + 1'000'000);
    });
}

TEST(Simulation, tells_of_a_rank_that_was_killed_and_lets_it_come_back) {
    for (const Settings& settings : {paper_settings(), inline_settings()}) {
        World world(world_of(2, settings));
        bool heard = false;
        world.start(0, [&](Process&) {
            ASSERT_EQ(bbp_init(nullptr, nullptr), BBP_OK);
            char text[8] = {};
            EXPECT_EQ(bbp_recv(1, text, sizeof text, nullptr), BBP_EPEER);
            int code = BBP_EPEER;
            while (code == BBP_EPEER) code = bbp_recv_for(1, text, sizeof text, nullptr, 1'000'000);
            heard = code == 1 && std::strcmp(text, "again") == 0;
        });
        world.start(1, [](Process& me) {
            ASSERT_EQ(bbp_init(nullptr, nullptr), BBP_OK);
            me.sleep(1'000'000'000);
        });
        // At once: the word of its return must not hide its death.
        world.at(5'000'000, [&] {
            world.kill(1);
            world.start(1, [](Process&) {
                ASSERT_EQ(bbp_init(nullptr, nullptr), BBP_OK);
                while (bbp_send(0, "again", 6) == BBP_EPEER) {
                }
                EXPECT_EQ(bbp_recv(0, nullptr, 0, nullptr), BBP_EPEER) << "rank 0 leaves";
            });
        });
        EXPECT_EQ(world.run(), RunEnd::all_ended);
        EXPECT_TRUE(heard);
    }
}

TEST(Simulation, ends_a_program_that_did_not_finalize_as_if_it_had) {
    World world(world_of(2));
    world.start(0, [](Process&) { ASSERT_EQ(bbp_init(nullptr, nullptr), BBP_OK); });
    world.start(1, [](Process&) {
        ASSERT_EQ(bbp_init(nullptr, nullptr), BBP_OK);
        EXPECT_EQ(bbp_recv(0, nullptr, 0, nullptr), BBP_EPEER);
        EXPECT_NE(std::string(bbp_last_error()).find("left"), std::string::npos)
            << bbp_last_error();
    });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
}

TEST(Simulation, puts_the_boards_settings_into_its_environment) {
    const WorldConfig paper = world_of(2);
    EXPECT_EQ(paper.environment.at("RMEM_LAYOUT"), "paper");
    EXPECT_EQ(paper.environment.at("RMEM_BARRIER"), "paper");
    const WorldConfig other = world_of(2, inline_settings());
    EXPECT_EQ(other.environment.at("RMEM_LAYOUT"), "inline");
    EXPECT_EQ(other.environment.at("RMEM_BARRIER"), "arrival");
    EXPECT_EQ(other.environment.at("RMEM_PARTITION"), "8192");
}

TEST(Simulation, refuses_programs_in_a_world_without_a_billboard) {
    WorldConfig config;
    config.ring.nodes = config.ring.ranks = 1;
    World world(config);
    world.start(0, [](Process&) { EXPECT_EQ(bbp_init(nullptr, nullptr), BBP_EVERSION); });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
}

TEST(Simulation, is_no_link_for_a_process_of_the_system) {
    ::setenv("RMEM_LINK", "sim", 1);
    ::setenv("RMEM_RING", "no-such-simulation", 1);
    ::setenv("RMEM_RANK", "0", 1);
    ::setenv("RMEM_RANKS", "1", 1);
    EXPECT_EQ(bbp_init(nullptr, nullptr), BBP_EINVAL);
    const std::string said = bbp_last_error();
    EXPECT_NE(said.find("RMEM_LINK"), std::string::npos) << said;
    EXPECT_NE(said.find("rmem sim"), std::string::npos) << said;
    EXPECT_NE(said.find("direct, ring, udp or fabric"), std::string::npos) << said;
    for (const char* name : {"RMEM_LINK", "RMEM_RING", "RMEM_RANK", "RMEM_RANKS"}) ::unsetenv(name);
}

}  // namespace
}  // namespace billboard
