// SPDX-License-Identifier: Apache-2.0
// ctest: check serial
//
// `rmem bench`: every figure ends on every link that it can be had on, with numbers; how large they
// are is no test's business.
#include "tests/support/tool.hpp"

#include <gtest/gtest.h>

#include <tuple>

namespace rmem::test {
namespace {

class Bench : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(Of, Bench,
                         ::testing::Combine(::testing::Values("floor", "pingpong", "rate",
                                                              "bandwidth", "mcast", "barrier",
                                                              "any"),
                                            ::testing::Values("direct", "ring", "udp")),
                         [](const auto& both) {
                             return std::string(std::get<0>(both.param)) + "_" +
                                    std::get<1>(both.param);
                         });

TEST_P(Bench, gives_numbers) {
    const std::string figure = std::get<0>(GetParam()), link = std::get<1>(GetParam());
    std::vector<std::string> words = {"bench", figure,     "--link", link,    "--samples",
                                      "10",    "--rounds", "10",     "--json"};
    if (figure == "bandwidth") words.insert(words.end(), {"--bytes", "65536"});
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

class BenchMemory : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(Of, BenchMemory,
                         ::testing::Combine(::testing::Values("store", "hop", "interrupt", "rhythm",
                                                              "words", "blocks", "reads", "flush",
                                                              "frame", "idle"),
                                            ::testing::Values("direct", "ring", "udp")),
                         [](const auto& both) {
                             return std::string(std::get<0>(both.param)) + "_" +
                                    std::get<1>(both.param);
                         });

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
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.out.find("## direct"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("| flush: after a word, the other asleep | 10 |"), std::string::npos)
        << ran.out;
}

TEST(BenchMemory, measures_beside_processes_that_compute) {
    const Ran ran = run_tool(
        {"bench", "memory", "--only", "flush", "--samples", "10", "--busy", "2", "--json"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.json().at("busy"), 2);
}

}  // namespace
}  // namespace rmem::test
