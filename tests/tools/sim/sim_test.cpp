// SPDX-License-Identifier: Apache-2.0
// ctest: check plain
// `rmem sim`.

#include "tests/support/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Sim, explains_each_of_its_commands) {
    for (const std::string name : {"paper", "scale"}) {
        expect_out(run_tool({"sim", name, "--help"}), 0,
                   {"Examples:\n  rmem sim " + name, "Exit codes:"});
    }
}

TEST(Sim, wants_to_know_what_to_simulate) {
    EXPECT_EQ(run_tool({"sim"}).code, 2);
    EXPECT_EQ(run_tool({"sim", "bogus"}).code, 2);
}

TEST(SimPaper, shows_the_papers_numbers_beside_its_own) {
    expect_out(run_tool({"sim", "paper"}), 0,
               {"B1 ", "B21 ", "fitted", "predicted", "not modelled"});
}

TEST(SimPaper, tells_programs_the_same) {
    const auto rows = run_tool({"sim", "paper", "--json"}).json();
    bool found = false;
    for (const auto& row : rows) {
        if (row["id"] != "B1") continue;
        found = true;
        EXPECT_EQ(row["paper_value"], 7.8);
        EXPECT_NEAR(row["simulated"].get<double>(), 7.8, 0.078);
        EXPECT_TRUE(row["here"].is_null());
        EXPECT_EQ(row["standing"], "fitted");
    }
    EXPECT_TRUE(found);
}

TEST(SimPaper, gives_a_figure_as_a_table_as_data_and_as_json) {
    EXPECT_THAT(run_tool({"sim", "paper", "--figure", "4"}).out, HasSubstr("to the last of three"));
    std::istringstream data(run_tool({"sim", "paper", "--figure", "4", "--data"}).out);
    std::string line;
    std::getline(data, line);
    EXPECT_THAT(line, StartsWith("# "));
    std::getline(data, line);
    EXPECT_THAT(line, StartsWith("# bytes |"));
    double bytes = -1, one = 0, all = 0;
    data >> bytes >> one >> all;
    EXPECT_EQ(bytes, 0);
    EXPECT_NEAR(one, 6.5, 0.07);
    EXPECT_GT(all, one);
    const auto json = run_tool({"sim", "paper", "--figure", "4", "--json"}).json();
    EXPECT_EQ(json["rows_ps"][0][0], 0);
}

TEST(SimPaper, refuses_what_it_cannot_draw) {
    expect_err(run_tool({"sim", "paper", "--figure", "7"}), 2, {"--figure"});
    EXPECT_EQ(run_tool({"sim", "paper", "--data"}).code, 2);
}

TEST(SimScale, shows_more_and_more_nodes) {
    const auto points = run_tool({"sim", "scale", "--most", "8", "--json"}).json();
    ASSERT_EQ(points.size(), 3U);
    EXPECT_EQ(points[2]["nodes"], 8);
    EXPECT_GT(points[2]["barrier_ps"], points[1]["barrier_ps"]);
    EXPECT_THAT(run_tool({"sim", "scale", "--most", "4"}).out, HasSubstr("word barrier"));
    EXPECT_THAT(run_tool({"sim", "scale", "--most", "4", "--data"}).out,
                StartsWith("# nodes | rings"));
}

TEST(SimScale, refuses_more_nodes_than_it_can_place) {
    EXPECT_EQ(run_tool({"sim", "scale", "--most", "5000"}).code, 2);
}

}  // namespace
}  // namespace rmem::test
