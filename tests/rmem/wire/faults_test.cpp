// SPDX-License-Identifier: Apache-2.0
#include "rmem/wire/faults.hpp"

#include "tests/support/refused.hpp"

#include <gmock/gmock.h>

#include <string>

namespace rmem {
namespace {

using ::testing::HasSubstr;

constexpr auto kRing = LinkKind::ring;
constexpr auto kUdp = LinkKind::udp;

std::string refused(const std::string& spec, LinkKind link = kRing) {
    return test::refused(Errc::bad_fault, [&] { FaultPlan::parse(spec, 4, link); });
}

TEST(FaultPlan, nothing_is_no_fault) {
    EXPECT_TRUE(FaultPlan::parse("", 4, kRing).empty());
    EXPECT_TRUE(FaultPlan::parse(" ; ;", 4, kRing).empty());
}

TEST(FaultPlan, reads_everything_that_it_documents) {
    const FaultPlan plan = FaultPlan::parse(
        "seed=7; delay:node=1,by=200us,count=5,after=10 ;lose:share=25%;"
        "cut:cable=1,ring=0,at=5ms,until=20ms; bypass:node=3,at=1ms",
        4, kRing);
    EXPECT_EQ(plan.seed, 7U);
    ASSERT_EQ(plan.writes.size(), 2U);
    EXPECT_FALSE(plan.writes[0].lose);
    EXPECT_EQ(plan.writes[0].node, 1U);
    EXPECT_EQ(plan.writes[0].delay_ns, 200'000U);
    EXPECT_EQ(plan.writes[0].count, 5U);
    EXPECT_EQ(plan.writes[0].after, 10U);
    EXPECT_TRUE(plan.writes[1].lose);
    EXPECT_EQ(plan.writes[1].node, WriteFault::kAllNodes);
    EXPECT_EQ(plan.writes[1].share >> 62U, 1U) << "a quarter of 2^64";
    ASSERT_EQ(plan.wire.size(), 3U);
    EXPECT_EQ(plan.wire[0].kind, WireFault::Kind::node) << "in the order of their times";
    EXPECT_EQ(plan.wire[0].place, 3U);
    EXPECT_EQ(plan.wire[1].at_ns, 5'000'000);
    EXPECT_FALSE(plan.wire[1].up);
    EXPECT_EQ(plan.wire[2].at_ns, 20'000'000);
    EXPECT_TRUE(plan.wire[2].up);
}

TEST(FaultPlan, both_rings_of_a_cable_are_two_faults) {
    const FaultPlan plan = FaultPlan::parse("cut:cable=2,ring=both", 4, kRing);
    ASSERT_EQ(plan.wire.size(), 2U);
    EXPECT_EQ(plan.wire[0].ring, 0U);
    EXPECT_EQ(plan.wire[1].ring, 1U);
}

TEST(FaultPlan, what_cannot_be_meant_is_refused_by_name) {
    EXPECT_THAT(refused("explode:node=1"), HasSubstr("there is no fault 'explode'"));
    EXPECT_THAT(refused("delay:node=1"), HasSubstr("'by' is missing"));
    EXPECT_THAT(refused("delay:by=5s"), HasSubstr("longest delay"));
    EXPECT_THAT(refused("delay:by=fast"), HasSubstr("give a time"));
    EXPECT_THAT(refused("delay:by=1us,node=4"), HasSubstr("from 0 to 3"));
    EXPECT_THAT(refused("delay:by=1us,colour=red"), HasSubstr("no setting 'colour'"));
    EXPECT_THAT(refused("delay:by=1us,by=2us"), HasSubstr("twice"));
    EXPECT_THAT(refused("delay:by"), HasSubstr("is not a setting"));
    EXPECT_THAT(refused("lose:share=0%"), HasSubstr("more than 0%"));
    EXPECT_THAT(refused("lose:share=101%"), HasSubstr("up to 100%"));
    EXPECT_THAT(refused("lose:share=nan%"), HasSubstr("more than 0%"));
    EXPECT_THAT(refused("lose:share=5"), HasSubstr("share is '5'"));
    EXPECT_THAT(refused("cut:ring=1"), HasSubstr("'cable' is missing"));
    EXPECT_THAT(refused("cut:cable=1,ring=2"), HasSubstr("from 0 to 1"));
    EXPECT_THAT(refused("cut:cable=1,at=5ms,until=5ms"), HasSubstr("not after"));
    EXPECT_THAT(refused("seed=-1"), HasSubstr("whole number"));
}

DatagramFault only(const FaultPlan& plan) {
    EXPECT_EQ(plan.datagrams.size(), 1U);
    return plan.datagrams.empty() ? DatagramFault{} : plan.datagrams.front();
}

std::string nodes_of(const udp::NodeSet& set) {
    std::string text;
    set.for_each([&](unsigned node) {
        if (node < 4) text += std::to_string(node);
    });
    return text;
}

TEST(FaultPlan, reads_all_settings_of_a_datagram_fault) {
    const DatagramFault hold = only(FaultPlan::parse(
        "hold:by=200us,share=50%,from=0-1+3,to=2,after=4,count=9,at=1s,until=3s", 4, kUdp));
    EXPECT_EQ(hold.kind, DatagramFault::Kind::hold);
    EXPECT_EQ(hold.by_ns, 200'000);
    EXPECT_EQ(hold.share >> 63U, 1U);
    EXPECT_EQ(nodes_of(hold.from), "013");
    EXPECT_EQ(nodes_of(hold.to), "2");
    EXPECT_EQ(hold.after, 4U);
    EXPECT_EQ(hold.count, 9U);
    EXPECT_EQ(hold.at_ns, 1'000'000'000);
    EXPECT_EQ(hold.until_ns, 3'000'000'000);
}

TEST(FaultPlan, a_datagram_fault_that_names_nothing_is_for_all_nodes_and_times) {
    const DatagramFault drop = only(FaultPlan::parse("drop:", 4, kUdp));
    EXPECT_EQ(drop.kind, DatagramFault::Kind::drop);
    EXPECT_EQ(nodes_of(drop.from), "0123");
    EXPECT_EQ(nodes_of(drop.to), "0123");
    EXPECT_EQ(drop.at_ns, 0);
    EXPECT_EQ(drop.until_ns, kNever);
    EXPECT_EQ(only(FaultPlan::parse("duplicate:by=1ms", 4, kUdp)).by_ns, 1'000'000);
    EXPECT_EQ(only(FaultPlan::parse("corrupt", 4, kUdp)).kind, DatagramFault::Kind::corrupt);
}

TEST(FaultPlan, a_part_lets_nothing_pass_either_way) {
    const FaultPlan plan = FaultPlan::parse("part:nodes=0+2,at=5ms,until=20ms", 4, kUdp);
    ASSERT_EQ(plan.datagrams.size(), 2U);
    for (const DatagramFault& fault : plan.datagrams) {
        EXPECT_EQ(fault.kind, DatagramFault::Kind::part);
        EXPECT_EQ(fault.at_ns, 5'000'000);
        EXPECT_EQ(fault.until_ns, 20'000'000);
    }
    EXPECT_EQ(nodes_of(plan.datagrams[0].from), "02");
    EXPECT_EQ(nodes_of(plan.datagrams[0].to), "13");
    EXPECT_EQ(nodes_of(plan.datagrams[1].from), "13");
    EXPECT_EQ(nodes_of(plan.datagrams[1].to), "02");
}

TEST(FaultPlan, refuses_datagram_faults_that_cannot_be_meant) {
    EXPECT_THAT(refused("hold:share=1%", kUdp), HasSubstr("'by' is missing"));
    EXPECT_THAT(refused("drop:by=1ms", kUdp), HasSubstr("no setting 'by'"));
    EXPECT_THAT(refused("drop:from=4", kUdp), HasSubstr("from 0 to 3"));
    EXPECT_THAT(refused("drop:from=2-1", kUdp), HasSubstr("lower node first"));
    EXPECT_THAT(refused("drop:to=1-", kUdp), HasSubstr("to is ''"));
    EXPECT_THAT(refused("drop:at=2s,until=1s", kUdp), HasSubstr("the node's start"));
    EXPECT_THAT(refused("part:nodes=0-3", kUdp), HasSubstr("these are all 4 nodes"));
    EXPECT_THAT(refused("part:at=1s", kUdp), HasSubstr("'nodes' is missing"));
}

TEST(FaultPlan, refuses_by_name_what_a_link_cannot_do) {
    EXPECT_THAT(refused("drop:share=1%"), HasSubstr("link ring cannot drop"));
    EXPECT_THAT(refused("part:nodes=1", LinkKind::sim), HasSubstr("link sim cannot part"));
    EXPECT_THAT(refused("cut:cable=1", kUdp), HasSubstr("link udp cannot cut; there are seed=<n>, "
                                                        "delay:, drop:, duplicate:, hold:"));
    EXPECT_THAT(refused("lose:", kUdp), HasSubstr("link udp cannot lose"));
    EXPECT_THAT(refused("delay:by=1us", LinkKind::direct), HasSubstr("without a wire"));
    EXPECT_EQ(FaultPlan::parse("delay:by=1us", 4, kUdp).writes.size(), 1U);
}

TEST(WriteFaults, hit_the_writes_that_they_name) {
    const FaultPlan plan = FaultPlan::parse("delay:node=1,by=200us,count=2,after=3", 4, kRing);
    WriteFaults other(plan, 0, 0);
    EXPECT_TRUE(other.empty());
    WriteFaults faults(plan, 1, 1);
    std::string hits;
    for (int i = 0; i < 8; ++i) hits += faults.next().delay_ns == 200'000 ? 'x' : '-';
    EXPECT_EQ(hits, "---xx---");
}

TEST(WriteFaults, faults_that_meet_in_one_write_add_up) {
    WriteFaults faults(FaultPlan::parse("delay:by=1us;delay:by=2us;lose:after=1", 4, kRing), 0, 0);
    const auto first = faults.next();
    EXPECT_EQ(first.delay_ns, 3000U);
    EXPECT_EQ(first.injected, 2U);
    EXPECT_FALSE(first.lose);
    const auto second = faults.next();
    EXPECT_TRUE(second.lose);
    EXPECT_EQ(second.injected, 3U);
}

TEST(WriteFaults, faults_of_one_seed_are_the_same_each_time_and_differ_between_ranks) {
    const auto pattern = [](const std::string& seed, std::uint32_t rank) {
        WriteFaults faults(FaultPlan::parse("seed=" + seed + ";lose:share=50%", 4, kRing), 0, rank);
        std::string hits;
        for (int i = 0; i < 64; ++i) hits += faults.next().lose ? 'x' : '-';
        return hits;
    };
    EXPECT_EQ(pattern("5", 1), pattern("5", 1));
    EXPECT_NE(pattern("5", 1), pattern("6", 1));
    EXPECT_NE(pattern("5", 1), pattern("5", 2));
}

}  // namespace
}  // namespace rmem
