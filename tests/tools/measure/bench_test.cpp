// SPDX-License-Identifier: Apache-2.0
// ctest: serial
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

}  // namespace
}  // namespace rmem::test
