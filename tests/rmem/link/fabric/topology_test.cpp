// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/fabric/topology.hpp"

#include "tests/support/refused.hpp"

#include <gmock/gmock.h>

#include <deque>
#include <vector>

namespace rmem::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Stop = Topology::Stop;

bool all(unsigned) {
    return true;
}

/// How often each node gets what `from` sends; and, as the first one, how often `from` calls.
std::vector<unsigned> deliveries(const Topology& topology, unsigned nodes, unsigned from,
                                 const Topology::Reaches& reaches) {
    std::vector<unsigned> got(nodes, 0);
    std::deque<Stop> under_way;
    for (const Stop& stop : topology.plan(from, reaches)) under_way.push_back(stop);
    for (unsigned steps = 0; !under_way.empty() && steps < 100'000; ++steps) {
        const Stop stop = under_way.front();
        under_way.pop_front();
        ++got[stop.node];
        if (stop.racks == 0) continue;
        for (const Stop& next : topology.pass_on(stop.node, stop.racks, reaches))
            under_way.push_back(next);
    }
    return got;
}

TEST(Topology, sends_to_each_node_where_there_is_one_rack) {
    EXPECT_THAT(Topology(4).plan(2, all), ElementsAre(Stop{3, 0}, Stop{0, 0}, Stop{1, 0}));
}

TEST(Topology, reaches_each_node_once_by_tree_and_chain) {
    constexpr unsigned kNodes = 13;
    for (const char* way : {"tree", "chain"}) {
        const Topology topology = Topology::parse(
            std::string("rack 0-3\nrack 4 9 # far\nrack 5-8\nfan-out ") + way + "\n", "f", kNodes);
        EXPECT_EQ(topology.racks(), 6U) << "those of no rack are racks by themselves";
        for (unsigned from = 0; from < kNodes; ++from) {
            std::vector<unsigned> once(kNodes, 1);
            once[from] = 0;
            EXPECT_EQ(deliveries(topology, kNodes, from, all), once) << way << " from " << from;
        }
    }
}

TEST(Topology, costs_the_sender_its_rack_and_a_call_a_rack_or_one_for_all) {
    std::string racks;
    for (unsigned n = 0; n < 64; n += 8)
        racks += "rack " + std::to_string(n) + "-" + std::to_string(n + 7) + "\n";
    EXPECT_EQ(Topology::parse(racks, "f", 64).plan(9, all).size(), 7U + 7U);
    EXPECT_EQ(Topology::parse(racks + "fan-out chain", "f", 64).plan(9, all).size(), 7U + 1U);
}

TEST(Topology, passes_over_heads_out_of_reach_and_tries_all_of_a_rack_without_one) {
    for (const char* way : {"tree", "chain"}) {
        const Topology topology =
            Topology::parse(std::string("rack 0-2\nrack 3-5\nrack 6-8\nfan-out ") + way, "f", 9);
        const auto without_3 = [](unsigned n) { return n != 3; };
        EXPECT_EQ(deliveries(topology, 9, 0, without_3),
                  std::vector<unsigned>({0, 1, 1, 1, 1, 1, 1, 1, 1}))
            << way << ": the second one is the head, and tries the first as well";
        const auto none_of_3_to_5 = [](unsigned n) { return n < 3 || n > 5; };
        EXPECT_EQ(deliveries(topology, 9, 0, none_of_3_to_5),
                  std::vector<unsigned>({0, 1, 1, 1, 1, 1, 1, 1, 1}))
            << way;
    }
}

TEST(Topology, bounds_what_a_mark_asks_for) {
    const Topology topology = Topology::parse("rack 0-1\nrack 2-3\nfan-out chain", "f", 4);
    EXPECT_LE(topology.pass_on(0, ~0U, all).size(), 2U);
    EXPECT_THAT(topology.pass_on(0, 1, all), ElementsAre(Stop{1, 0}));
    EXPECT_LE(Topology::parse("rack 0-1\nrack 2-3", "f", 4).pass_on(0, 1000, all).size(), 2U);
}

TEST(Topology, refuses_what_is_no_list_of_racks) {
    const auto parse = [](const std::string& text) { return Topology::parse(text, "racks", 8); };
    const auto refusal = [&](const std::string& text) {
        return test::refused(Errc::bad_environment, [&] { parse(text); });
    };
    EXPECT_NO_THROW(parse("\n# nothing\n  rack 1-2 7 # three\n"));
    EXPECT_THAT(refusal("rack 0-1\nrack 1"), HasSubstr("line 2 of 'racks': node 1 is in a rack"));
    EXPECT_THAT(refusal("rack 8"), HasSubstr("there is no node 8, the ring has 8"));
    EXPECT_THAT(refusal("rack 3-1"), HasSubstr("ends before it begins"));
    EXPECT_THAT(refusal("rack"), HasSubstr("no nodes"));
    EXPECT_THAT(refusal("rack 1x"), HasSubstr("'1x' is no number"));
    EXPECT_THAT(refusal("rank 1"), HasSubstr("'rank' is neither"));
    EXPECT_THAT(refusal("fan-out star"), HasSubstr("no fan-out 'star'"));
    EXPECT_THAT(refusal("fan-out tree now"), HasSubstr("'now' is too much"));
}

}  // namespace
}  // namespace rmem::fabric
