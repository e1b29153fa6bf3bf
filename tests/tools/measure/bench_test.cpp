// SPDX-License-Identifier: Apache-2.0
// ctest: check serial
//
// `rmem bench`: every figure ends on every link that it can be had on, with numbers; how large they
// are is no test's business.
#include "tests/support/tool.hpp"
#include "tools/measure/sizes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

namespace rmem::test {
namespace {

using OnLink = std::tuple<const char*, const char*>;

std::string name_of(const ::testing::TestParamInfo<OnLink>& both) {
    return std::string(std::get<0>(both.param)) + "_" + std::get<1>(both.param);
}

class Bench : public ::testing::TestWithParam<OnLink> {};
INSTANTIATE_TEST_SUITE_P(Of, Bench,
                         ::testing::Combine(::testing::Values("floor", "pingpong", "rate",
                                                              "bandwidth", "mcast", "barrier",
                                                              "any"),
                                            ::testing::Values("direct", "ring", "udp")),
                         name_of);

TEST_P(Bench, gives_numbers) {
    const std::string figure = std::get<0>(GetParam()), link = std::get<1>(GetParam());
    Arguments words = {"bench", figure,     "--link", link,    "--samples",
                       "10",    "--rounds", "10",     "--json"};
    // More than a partition of these links has without the command's asking for a larger one.
    if (figure == "bandwidth") words = concat(words, {"--bytes", "0x48000"});
    const Ran ran = run_tool(words);
    if (figure == "any" && link == "udp") {
        EXPECT_EQ(ran.code, 2) << ran.err;
        return;
    }
    ASSERT_EQ(ran.code, 0) << ran.err;
    const auto series = ran.json().at("series");
    ASSERT_FALSE(series.empty());
    for (const auto& [name, one] : series.items()) EXPECT_GT(one.at("p50_ns"), 0) << name;
}

class BenchSizes : public ::testing::TestWithParam<OnLink> {};
INSTANTIATE_TEST_SUITE_P(Of, BenchSizes,
                         ::testing::Combine(::testing::Values("2", "3"),
                                            ::testing::Values("direct", "ring", "udp")),
                         name_of);

TEST_P(BenchSizes, gives_numbers_for_each_size_and_rhythm) {
    const std::string ranks = std::get<0>(GetParam()), link = std::get<1>(GetParam());
    const Ran ran = run_tool({"bench", "sizes", "-n", ranks, "--link", link, "--sizes", "0,8,61,2K",
                              "--rounds", "10", "--json"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    const auto sizes = ran.json().at("sizes");
    ASSERT_EQ(sizes.size(), 4U);
    std::vector<std::string> rhythms = tools::rhythms_of(ranks == "2" ? 2 : 3);
    rhythms.insert(rhythms.end(), {"hop", "memcpy"});
    for (const auto& row : sizes) {
        for (const std::string& rhythm : rhythms) {
            EXPECT_EQ(row.at(rhythm).at("samples"), 10) << row.at("bytes") << " " << rhythm;
            EXPECT_GE(row.at(rhythm).at("p50_ns"), 0) << row.at("bytes") << " " << rhythm;
        }
        EXPECT_GT(row.at("pingpong").at("p50_ns"), 0) << row.at("bytes");
    }
}

TEST(BenchSizes, shows_those_that_are_asked_for_as_a_page) {
    const Ran ran = run_tool({"bench", "sizes", "--sizes", "8,64", "--rhythms", "stream,burst-8",
                              "--rounds", "10", "--page"});
    expect_out(ran, 0, {"| bytes | memcpy | stream | ÷ | burst-8 |\n", "\n| 64 | "});
}

TEST(BenchSizes, ends_where_each_rank_sends_more_than_finds_room) {
    const Ran ran = run_tool({"bench", "sizes", "-n", "34", "--sizes", "600", "--rhythms",
                              "all-to-all", "--rounds", "10", "--deadline", "60", "--json"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_GT(ran.json().at("sizes").at(0).at("all-to-all").at("p50_ns"), 0);
}

TEST(BenchSizes, refuses_sizes_and_rhythms_that_cannot_be_measured) {
    EXPECT_EQ(run_tool({"bench", "sizes", "--sizes", "2M"}).code, 2);
    EXPECT_EQ(run_tool({"bench", "sizes", "--sizes", "many"}).code, 2);
    EXPECT_EQ(run_tool({"bench", "sizes", "--rhythms", "waltz"}).code, 2);
}

TEST(BenchSizes, are_usually_those_beside_each_step_and_the_powers_of_two) {
    const auto sizes = tools::usual_sizes(std::size_t{1} << 20);
    EXPECT_TRUE(std::is_sorted(sizes.begin(), sizes.end()));
    for (const std::size_t size :
         {0U, 1U, 27U, 28U, 29U, 55U, 56U, 57U, 60U, 61U, 63U, 64U, 65U, 1601U, 4096U, 1U << 20})
        EXPECT_TRUE(std::binary_search(sizes.begin(), sizes.end(), size)) << size;
    EXPECT_EQ(tools::usual_sizes(8), (std::vector<std::size_t>{0, 1, 2, 4, 8}));
}

class BenchMemory : public ::testing::TestWithParam<OnLink> {};
INSTANTIATE_TEST_SUITE_P(Of, BenchMemory,
                         ::testing::Combine(::testing::Values("store", "hop", "interrupt", "rhythm",
                                                              "words", "blocks", "reads", "flush",
                                                              "frame", "idle"),
                                            ::testing::Values("direct", "ring", "udp")),
                         name_of);

TEST_P(BenchMemory, gives_numbers_for_each_quantity) {
    const std::string quantity = std::get<0>(GetParam()), link = std::get<1>(GetParam());
    // Each size of a block is a ring of its own, and one over datagrams takes a second to join.
    const std::string most_block = link == "udp" ? "1K" : "16K";
    const Ran ran = run_tool({"bench", "memory", "--only", quantity, "--link", link, "--samples",
                              "10", "--most-block", most_block, "-n", "3", "--json"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    const auto series = ran.json().at("series");
    ASSERT_FALSE(series.empty());
    for (const auto& [name, one] : series.items()) {
        EXPECT_EQ(name.substr(0, name.find(':')), quantity);
        EXPECT_GT(one.at("samples"), 0) << name;
    }
}

TEST(BenchMemory, shows_a_page_of_tables_in_the_order_of_measurement) {
    const Ran ran = run_tool({"bench", "memory", "--only", "flush", "--samples", "10", "--page"});
    expect_out(ran, 0, {"## direct", "| flush: after a word, the other asleep | 10 |"});
}

TEST(BenchMemory, measures_beside_processes_that_compute) {
    const Ran ran = run_tool(
        {"bench", "memory", "--only", "flush", "--samples", "10", "--busy", "2", "--json"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.json().at("busy"), 2);
}

}  // namespace
}  // namespace rmem::test
