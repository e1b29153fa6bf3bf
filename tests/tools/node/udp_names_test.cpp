// SPDX-License-Identifier: Apache-2.0
// Commands that look at a ring on link udp, of which each node on this host has a segment:
// NAME@NODE.

#include "rmem/ring/node_board.hpp"
#include "tests/support/test_ring.hpp"
#include "tests/support/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(UdpNames, say_whose_bank_is_looked_at) {
    const TestRing ring(udp_pair());
    write_word(ring.node(0), 0x40, 7);
    ring.flush();
    for (const unsigned n : {0U, 1U}) {
        const auto json = run_tool({"peek", ring.segment(n), "0x40", "--json"}).json();
        EXPECT_EQ(json["values"][0], 7);
        EXPECT_EQ(json["node"], n);
        const std::string number = std::to_string(n);
        EXPECT_EQ(
            run_tool({"peek", ring.name(), "0x40", "--node", number, "--json"}).json()["node"], n);
        EXPECT_EQ(run_tool({"dump", ring.segment(n), "--to", "0x80", "--json"}).json()["node"], n);
        EXPECT_THAT(run_tool({"dump", ring.segment(n), "--to", "0x80"}).out,
                    HasSubstr("07 00 00 00"));
    }
}

TEST(UdpNames, are_asked_for_where_this_host_has_several_nodes) {
    const TestRing ring(udp_pair());
    for (const Arguments& words :
         {Arguments{"peek", ring.name(), "0"}, {"info", ring.name()}, {"dump", ring.name()}}) {
        expect_err(run_tool(words), 1, {ring.segment(0) + ", " + ring.segment(1)});
    }
}

TEST(UdpNames, need_no_node_where_this_host_has_one) {
    TestRing ring(udp_pair());
    write_word(ring.node(1), 0x40, 7);
    ring.flush();
    ring.end(0);
    EXPECT_EQ(run_tool({"peek", ring.name(), "0x40"}).out, "7\n");
    EXPECT_EQ(json_of("info", ring.name())["segment"], ring.segment(1));
    expect_err(run_tool({"peek", ring.name(), "0x40", "--node", "0"}), 1,
               {"another host", ring.segment(1)});
}

TEST(UdpNames, do_not_show_one_nodes_bank_as_anothers) {
    const TestRing ring(udp_pair());
    expect_err(run_tool({"peek", ring.segment(1), "0", "--node", "0"}), 1, {"[bad-rank]"});
    expect_err(run_tool({"peek", ring.segment(1), "0", "--node", "7"}), 1, {"has no node 7"});
}

TEST(UdpNames, lead_to_what_a_node_knows_of_the_ring) {
    const TestRing ring(udp_pair());
    write_word(ring.node(0), 0, 1);
    ring.flush();
    const auto report = json_of("info", ring.segment(1));
    EXPECT_EQ(report["engine"]["node"], 1);
    EXPECT_EQ(report["engine"]["runs"], true);
    EXPECT_EQ(report["engine"]["kind"], "program");
    EXPECT_EQ(report["engine"]["members"], (std::vector<unsigned>{0, 1}));
    EXPECT_TRUE(eventually([&] {  // it shows them now and then
        const auto again = json_of("info", ring.segment(1));
        return again["engine"]["counters"]["datagrams_taken"] != 0;
    }));
    EXPECT_NE(report["engine_counters"]["joined"]["meaning"], "");
    EXPECT_THAT(run_tool({"info", ring.segment(1)}).out, HasSubstr("members: 0-1"));
    expect_out(run_tool({"list"}), 0, {ring.segment(0), ring.segment(1)});
}

TEST(UdpNames, lead_to_what_a_node_refuses) {
    const TestRing ring(udp_pair());
    EXPECT_THAT(run_tool({"info", ring.segment(1)}).out, Not(HasSubstr("it says")));
    ring.ring(1)->board().notice.say("10.0.0.2 speaks with another key as node 0");
    EXPECT_THAT(run_tool({"info", ring.segment(1)}).out,
                HasSubstr("it says: 10.0.0.2 speaks with another key as node 0\n"));
    EXPECT_EQ(json_of("info", ring.segment(1))["engine"]["refuses"],
              "10.0.0.2 speaks with another key as node 0");
    EXPECT_THAT(run_tool({"doctor"}).out, HasSubstr("node 1 of ring '" + ring.name() +
                                                    "': 10.0.0.2 speaks with another key"));
}

TEST(UdpNames, are_watched) {
    const TestRing ring(udp_pair());
    Tool tool({"watch", ring.segment(1), "0x40", "--count", "1", "--json"});
    EXPECT_TRUE(tool.prints("\"value\":0"));
    write_word(ring.node(0), 0x40, 5);
    ring.flush();
    expect_out(tool.wait(), 0, {"\"value\":5"});
}

TEST(UdpNames, are_written_to_while_all_ranks_run) {
    const TestRing ring(udp_pair());
    const Ran ran = run_tool({"poke", ring.segment(1), "0x40", "9", "--json"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.json()["node"], 1);
    EXPECT_EQ(ring.node(0).load(0x40), 9U);
    EXPECT_EQ(ring.node(1).load(0x40), 9U);
}

}  // namespace
}  // namespace rmem::test
