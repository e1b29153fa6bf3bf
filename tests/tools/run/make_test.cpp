// SPDX-License-Identifier: Apache-2.0
// `rmem make`, and writes into a ring from outside.

#include "rmem/node.hpp"
#include "tests/support/refused.hpp"
#include "tests/support/test_ring.hpp"
#include "tests/support/tool.hpp"
#include "tools/watch/outside_write.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::byte> word(std::uint32_t value) {
    std::vector<std::byte> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

TEST(OutsideWrite, reaches_all_nodes_of_a_ring_whose_ranks_all_run) {
    const RingName name;
    const auto ring = open_ring(name.config(2, LinkKind::ring));
    Node a(ring, {0, 0}), b(ring, {1, 1});
    EXPECT_EQ(tools::write_from_outside(ring, std::nullopt, 0x40, word(7)), 0U);
    EXPECT_EQ(a.load(0x40), 7U);
    EXPECT_EQ(b.load(0x40), 7U);
    EXPECT_EQ(tools::write_from_outside(ring, 1, 0x44, word(8)), 1U);
    EXPECT_EQ(a.load(0x44), 8U);
}

TEST(OutsideWrite, is_one_of_the_first_live_node) {
    const RingName name;
    const auto ring = open_ring(name.config(2, LinkKind::ring));
    Node b(ring, {1, 1});
    EXPECT_EQ(tools::write_from_outside(ring, std::nullopt, 0x40, word(7)), 1U);
    EXPECT_EQ(b.load(0x40), 7U);
}

TEST(OutsideWrite, goes_into_every_bank_while_no_rank_is_alive) {
    const RingName name;
    const auto ring = open_ring(name.config(2, LinkKind::ring));
    tools::write_from_outside(ring, std::nullopt, 0x41, {std::byte{1}, std::byte{2}});
    for (unsigned n = 0; n < 2; ++n) {
        EXPECT_EQ(ring->bank(n)[0x41], std::byte{1}) << n;
        EXPECT_EQ(ring->bank(n)[0x42], std::byte{2}) << n;
    }
}

TEST(OutsideWrite, is_one_of_the_node_here_where_the_others_are_elsewhere) {
    const TestRing pair(udp_pair());
    const auto here = Ring::attach(pair.segment(1));
    EXPECT_EQ(tools::write_from_outside(here, std::nullopt, 0x40, word(7)), 1U);
    EXPECT_EQ(pair.node(0).load(0x40), 7U);
    EXPECT_EQ(pair.node(1).load(0x40), 7U);
}

TEST(Make, makes_a_ring_that_a_job_finds_and_leaves_with_what_is_in_it) {
    RingName name;
    name.may_be_left();
    const auto file = std::filesystem::temp_directory_path() / ("bank-" + name.get());
    std::ofstream(file) << "abcd";
    const Arguments make = {"make", name.get(), "-n", "2",        "--link",
                            "ring", "--size",   "4K", "--timing", "gt200"};
    const Ran made =
        run_tool(concat(make, {"--from", file.string(), "--at", "0x100", "0x40=42", "0x44=1.5:f32",
                               "0x80=up:text", "0x102=120:u8", "--json"}));
    std::filesystem::remove(file);
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(made.json()["ranks"], 2);
    {
        const auto ring = Ring::observe(name.get());
        EXPECT_TRUE(ring->stays());
        for (unsigned n = 0; n < 2; ++n) {
            const std::byte* const bank = ring->bank(n);
            std::uint32_t number = 0;
            std::memcpy(&number, bank + 0x40, sizeof number);
            EXPECT_EQ(number, 42U);
            float fraction = 0;
            std::memcpy(&fraction, bank + 0x44, sizeof fraction);
            EXPECT_EQ(fraction, 1.5F);
            EXPECT_STREQ(reinterpret_cast<const char*>(bank + 0x80), "up");
            EXPECT_EQ(std::memcmp(bank + 0x100, "abxd", 4), 0) << "values after the file";
        }
    }
    EXPECT_THAT(run_tool(make).err, HasSubstr("already"));
    EXPECT_EQ(run_tool({"poke", name.get(), "0x40", "43"}).code, 0);
    const Ran job = run_tool({"run", "-n", "1", "--ring", name.get(), "--", "sh", "-c",
                              "echo $RMEM_RANKS $RMEM_LINK $RMEM_SIZE $RMEM_TIMING"});
    EXPECT_EQ(job.code, 0) << job.err;
    EXPECT_EQ(job.out, "[0] 2 ring 4096 gt200\n");
    EXPECT_THAT(job.err, HasSubstr("rank 1 stays empty"));
    EXPECT_THAT(job.err, Not(HasSubstr("kept"))) << "that it stays is no news";
    EXPECT_THAT(run_tool({"list", "--json"}).out, HasSubstr("\"kept\""));
    EXPECT_EQ(run_tool({"peek", name.get(), "0x40", "--node", "1"}).out, "43\n");
    EXPECT_THAT(run_tool({"clean", "--dry-run"}).out, HasSubstr("kept " + name.get()));
    EXPECT_EQ(run_tool({"clean", name.get()}).code, 0);
    EXPECT_FALSE(name.exists());
}

TEST(Make, makes_a_ring_that_watchers_and_recorders_stay_with_though_nobody_is_in_it) {
    RingName name;
    name.may_be_left();
    ASSERT_EQ(run_tool({"make", name.get(), "--size", "4K", "0x40=1"}).code, 0);
    const auto file = std::filesystem::temp_directory_path() / ("kept-" + name.get());
    Tool watch({"watch", name.get(), "0x40"});
    Tool record({"record", name.get(), "--sample", "1ms", "-o", file.string()});
    ASSERT_TRUE(watch.prints("0x00000040  1\n"));
    ASSERT_TRUE(record.prints("to '"));
    // Longer than between two looks for members.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ASSERT_EQ(run_tool({"poke", name.get(), "0x40", "2"}).code, 0);
    EXPECT_TRUE(watch.prints("1 -> 2")) << watch.err();
    EXPECT_EQ(run_tool({"clean", name.get()}).code, 0);
    EXPECT_EQ(watch.wait().code, 0);
    EXPECT_THAT(record.wait().err, HasSubstr("rmem record: 1 changes"));
    std::filesystem::remove(file);
}

TEST(Make, makes_a_ring_of_any_layout_that_a_job_finds_by_its_name) {
    RingName name;
    name.may_be_left();
    ASSERT_EQ(
        run_tool({"make", name.get(), "-n", "2", "--layout", "paper", "--partition", "64K"}).code,
        0);
    EXPECT_EQ(run_tool({"run", "-n", "2", "--ring", name.get(), "--", "true"}).err, "");
    expect_err(
        run_tool({"run", "-n", "2", "--ring", name.get(), "--layout", "inline", "--", "true"}), 125,
        {"RMEM_LAYOUT is paper there and inline here"});
    EXPECT_EQ(run_tool({"clean", name.get()}).code, 0);
}

TEST(Wait, ends_when_the_ring_and_the_ranks_are_there_and_says_what_is_missing) {
    const RingName name;
    Tool wait({"wait", name.get(), "--ranks", "all"});
    const auto ring = open_ring(name.config(2, LinkKind::direct));
    const Node a(ring, {0, 0});
    EXPECT_EQ(run_tool({"wait", name.get()}).code, 0);
    expect_err(run_tool({"wait", "--ring", name.get(), "--ranks", "2", "--for", "1ms"}), 1,
               {"has 1 of its 2 ranks, after 1ms; start what is missing"});
    EXPECT_EQ(run_tool({"wait", name.get(), "--ranks", "3"}).code, 1);
    const Node b(ring, {1, 1});
    EXPECT_EQ(wait.wait().code, 0);
}

TEST(Make, leaves_nothing_of_what_it_refuses) {
    const RingName name;
    struct Case {
        Arguments more;
        int code;
        const char* says;
    };
    for (const Case& c : {Case{{"0x40"}, 2, "'0x40' sets nothing"},
                          {{"0x40=x"}, 2, "[invalid-argument]"},
                          {{"4K=1"}, 1, "outside the user's memory"},
                          {{"--link", "udp"}, 1, "`rmem node` runs it"},
                          {{"--from", "/no/such/file"}, 1, "cannot be read"},
                          {{"-n", "2", "--nodes", "3"}, 1, "[bad-node-count]"}}) {
        expect_err(run_tool(concat({"make", name.get(), "--size", "4K"}, c.more)), c.code,
                   {c.says});
        EXPECT_FALSE(name.exists()) << c.more[0];
    }
}

}  // namespace
}  // namespace rmem::test
