// SPDX-License-Identifier: Apache-2.0
// ctest: check
// `rmem conform`: no link breaks a rule, and its reports say what was tried.
#include "tests/support/own_network.hpp"
#include "tests/support/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>

#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// Of the rules with that verdict.
std::vector<std::string> rules_with(const nlohmann::json& report, const std::string& verdict) {
    std::vector<std::string> names;
    for (const auto& rule : report.at("rules")) {
        if (rule.at("verdict") == verdict) names.push_back(rule.at("name"));
    }
    return names;
}

struct LinkCase {
    const char* name;
    std::vector<std::string> words;

    friend void PrintTo(const LinkCase& one, std::ostream* out) { *out << one.name; }
};

class Link : public ::testing::TestWithParam<LinkCase> {};
INSTANTIATE_TEST_SUITE_P(
    Of, Link,
    ::testing::Values(LinkCase{"direct", {"--link", "direct"}},
                      LinkCase{"ring", {"--link", "ring"}},
                      LinkCase{"ring_of_gt200", {"--link", "ring", "--timing", "gt200"}},
                      LinkCase{"ring_of_scramnet",
                               {"--link", "ring", "--timing", "scramnet-burst-plus"}},
                      LinkCase{"ring_by_pointer",
                               {"--link", "ring", "--timing", "gt200", "--reading", "pointer"}},
                      LinkCase{"fabric", {"--link", "fabric"}}, LinkCase{"udp", {"--link", "udp"}},
                      LinkCase{"udp_that_loses", {"--link", "udp", "--faults", "drop:share=2%"}}),
    [](const auto& one) { return std::string(one.param.name); });

/// The command, in a network of its own.
Ran run_alone(const std::vector<std::string>& words) {
    const RingName network;
    const bool is_fabric = std::count(words.begin(), words.end(), "fabric") != 0;
    std::string line = "RMEM_INTERFACE=lo RMEM_GROUP=" +
                       own_group(network.get(), is_fabric ? LinkKind::fabric : LinkKind::udp) +
                       " " RMEM_TOOL;
    for (const std::string& word : words) line += " " + word;
    return run_tool(run_script({"-n", "1", "--no-label"}, line));
}

TEST_P(Link, breaks_no_rule) {
    const Ran ran = run_alone(
        concat({"conform", "--nodes", "3", "--rounds", "200", "--json"}, GetParam().words));
    ASSERT_EQ(ran.code, 0) << ran.err << ran.out;
    const nlohmann::json report = ran.json();
    EXPECT_EQ(report.at("verdict"), "conforms");
    EXPECT_THAT(rules_with(report, "broken"), IsEmpty());
    const bool sends_words =
        std::count(GetParam().words.begin(), GetParam().words.end(), "scramnet-burst-plus") != 0;
    EXPECT_EQ(rules_with(report, "not offered"),
              sends_words ? std::vector<std::string>{"bytes-at-once"} : std::vector<std::string>{});
    // What is observed however the host divides its processors.
    EXPECT_THAT(rules_with(report, "not decided"),
                ::testing::Not(::testing::Contains(::testing::AnyOf("late-join", "own-data"))));
    for (const auto& rule : report.at("rules")) {
        ASSERT_EQ(rule.at("members").size(), 3U);
        if (rule.at("name") != "word-time") continue;
        for (const auto& member : rule.at("members")) {
            const auto& times = member.at("times");
            EXPECT_EQ(times.at("samples"), 200);
            EXPECT_LE(times.at("least_ns"), times.at("max_ns"));
            EXPECT_LE(times.at("p50_ns"), times.at("p99_ns"));
        }
    }
}

// ---- The command

TEST(ConformCommand, members_of_a_ring_that_is_there_find_each_other) {
    const RingName ring;
    const std::string member = RMEM_TOOL
        " conform --member $RMEM_RANK --members 2 --at 64K --rounds 100 --only order,late-join";
    expect_out(run_tool(run_script({"-n", "2", "--link", "ring", "--ring", ring.get()}, member)), 0,
               {"conforms: of 2 rules", "2 members", "at 0x00010000"});
}

// ---- Cards by their vendors' interfaces

struct CardCase {
    const char* name;
    const char* card;  ///< the option
    const char* link;  ///< and what goes with it
    const char* reading;
    std::vector<std::string> not_offered;

    friend void PrintTo(const CardCase& one, std::ostream* out) { *out << one.name; }
};

const std::vector<std::string> kNoCardHas = {"late-join"};
const std::vector<std::string> kNoRfm2gHas = {"late-join", "write-me-last", "outstanding"};
const std::vector<std::string> kNoScramnetHas = {"late-join", "bytes-at-once", "without-a-program",
                                                 "sent-or-taken-back"};

class VendorCard : public ::testing::TestWithParam<CardCase> {};
INSTANTIATE_TEST_SUITE_P(
    Of, VendorCard,
    ::testing::Values(
        CardCase{"rfm2g_on_direct", "--rfm2g /dev/rfm2g0", "--link direct", "call", kNoRfm2gHas},
        CardCase{"rfm2g_on_ring", "--rfm2g /dev/rfm2g0", "--link ring", "pointer", kNoRfm2gHas},
        CardCase{"scgt_on_direct", "--scgt 0", "--link direct", "pointer", kNoCardHas},
        CardCase{"scgt_on_ring", "--scgt 0", "--link ring --timing gt200", "call", kNoCardHas},
        CardCase{"scgt_on_udp_that_loses", "--scgt 0", "--link udp --faults drop:share=2%", "call",
                 kNoCardHas},
        CardCase{"scramnet_on_direct", "--scramnet 0", "--link direct", "call", kNoScramnetHas},
        CardCase{"scramnet_on_ring", "--scramnet 0", "--link ring --timing scramnet-burst-plus",
                 "pointer", kNoScramnetHas},
        CardCase{"scramnet_on_udp_that_loses", "--scramnet 0", "--link udp --faults drop:share=2%",
                 "call", kNoScramnetHas}),
    [](const auto& one) { return std::string(one.param.name); });

TEST_P(VendorCard, breaks_no_rule) {
    const CardCase& one = GetParam();
    const std::string option = std::string(one.card).substr(0, std::string(one.card).find(' '));
    if (!run_tool({"conform", "--help"}).says(option)) GTEST_SKIP() << "built without " << option;
    const RingName ring;
    const std::string member = std::string(RMEM_TOOL " conform --member $RMEM_RANK --members 3 ") +
                               one.card + " --reading " + one.reading +
                               " --rounds 100 --patience 180s --json";
    std::istringstream words(one.link);
    const Arguments link(std::istream_iterator<std::string>(words), {});
    const Arguments run = concat({"-n", "3", "--no-label", "--ring", ring.get()}, link);
    // Each member prints the same report; one of them is enough.
    const Ran ran =
        run_tool(run_script(run,
                            "test $RMEM_RANK = 0 || exec > /dev/null; export RMEM_INTERFACE=lo "
                            "RMEM_GROUP=" +
                                own_group(ring.get()) + "; exec " + member));
    ASSERT_EQ(ran.code, 0) << ran.err << ran.out;
    const nlohmann::json report = ran.json();
    EXPECT_EQ(report.at("verdict"), "conforms");
    EXPECT_THAT(report.at("card").get<std::string>(), HasSubstr("read by"));
    EXPECT_EQ(rules_with(report, "not offered"), one.not_offered);
}

TEST(ConformCommand, a_broken_rule_is_its_exit_code_and_first_line) {
    const Ran ran = run_tool(
        {"conform", "--link", "ring", "--rounds", "64", "--only", "word-time", "--floor", "1s"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, StartsWith("broken: of 1 rules 0 hold; broken: word-time\n"));
    EXPECT_THAT(ran.out, HasSubstr("where 1000000000 ns are the least"));
}

TEST(ConformCommand, a_range_that_is_too_short_or_outside_is_refused) {
    expect_err(run_tool({"conform", "--bytes", "1K"}), 1,
               {"3 members need 14720 bytes, and 1024 may be used"});
    expect_err(run_tool({"conform", "--at", "1G"}), 1, {"are not in a memory of"});
}

TEST(ConformCommand, a_wrong_line_is_refused_with_what_to_do) {
    EXPECT_EQ(run_tool({"conform", "--member", "0"}).code, 2);
    EXPECT_EQ(run_tool({"conform", "--member", "2", "--members", "2"}).code, 2);
    EXPECT_EQ(run_tool({"conform", "--member", "0", "--members", "2", "--link", "ring"}).code, 2);
    expect_err(run_tool({"conform", "--only", "odrer"}), 2, {"there is no rule 'odrer'"});
    EXPECT_TRUE(run_tool({"conform", "--list"}).says("no-way-back"));
}

}  // namespace
}  // namespace rmem::test
