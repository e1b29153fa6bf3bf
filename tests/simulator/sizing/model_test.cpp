// SPDX-License-Identifier: Apache-2.0
// ctest: check plain
// What a write costs in rings of any size, computed.

#include "simulator/sizing/model.hpp"
#include "simulator/sizing/core_ring.hpp"
#include "simulator/sizing/points.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace simulator::sizing {
namespace {

constexpr Load kWord = {4, 0};

double real(std::int64_t ns) {
    return static_cast<double>(ns);
}

Figures computed(unsigned nodes, Carrier carrier, Racks racks = Racks::none,
                 const Load& load = kWord) {
    return figures_of({nodes, carrier, racks, 32}, load,
                      carrier == Carrier::fabric ? fabric_costs : udp_costs);
}

/// Of 16 nodes acknowledgements take about as long as a probe's least time, so there the cores send
/// some again that nobody lacks: an eighth more than computed.
void expect_near(const Figures& model, const Figures& cores) {
    EXPECT_NEAR(real(model.p50_ns), real(cores.p50_ns), 0.02 * real(cores.p50_ns));
    EXPECT_EQ(model.sends, cores.sends);
    EXPECT_NEAR(real(model.sender_ns), real(cores.sender_ns), 0.01 * real(cores.sender_ns));
    EXPECT_NEAR(real(model.node_ns), real(cores.node_ns), 0.15 * real(cores.node_ns));
    EXPECT_NEAR(model.datagrams, cores.datagrams, 0.15 * cores.datagrams);
}

TEST(Model, agrees_with_real_cores_where_nothing_is_lost) {
    for (const Carrier carrier : {Carrier::multicast, Carrier::fan_out}) {
        for (const unsigned nodes : {8U, 16U, 32U}) {
            SCOPED_TRACE(testing::Message() << name_of(carrier) << " to " << nodes << " nodes");
            const SizedPoint cores = run({nodes, carrier}, kWord, udp_costs);
            ASSERT_TRUE(cores.was_run);
            const Figures model = computed(nodes, carrier);
            expect_near(model, cores.figures);
            EXPECT_NEAR(real(model.p99_ns), real(cores.figures.p99_ns),
                        0.02 * real(cores.figures.p99_ns));
            EXPECT_NEAR(real(model.last_ns), real(cores.figures.last_ns),
                        0.02 * real(cores.figures.last_ns));
            EXPECT_EQ(model.resent, 0);
        }
    }
}

TEST(Model, agrees_with_real_cores_on_what_losses_cost) {
    constexpr Load kLossy = {4, 10'000};
    for (const unsigned nodes : {8U, 16U, 32U}) {
        SCOPED_TRACE(nodes);
        const Figures cores = run({nodes, Carrier::multicast}, kLossy, udp_costs).figures;
        const Figures model = computed(nodes, Carrier::multicast, Racks::none, kLossy);
        expect_near(model, cores);
        EXPECT_NEAR(model.resent, cores.resent, 0.3 * cores.resent);
        EXPECT_NEAR(real(model.last_ns), real(cores.last_ns), 0.3 * real(cores.last_ns));
    }
}

TEST(Model, makes_nothing_cheaper_by_more_nodes) {
    const std::pair<Carrier, Racks> ways[] = {
        {Carrier::multicast, Racks::none},  {Carrier::fan_out, Racks::none},
        {Carrier::fabric, Racks::none},     {Carrier::multicast, Racks::tree},
        {Carrier::multicast, Racks::chain}, {Carrier::fabric, Racks::tree},
        {Carrier::fabric, Racks::chain}};
    for (const auto& [carrier, racks] : ways) {
        for (const std::uint32_t lost_ppm : {0U, 1000U}) {
            const Load load = {4, lost_ppm};
            Figures before = computed(64, carrier, racks, load);
            for (unsigned nodes = 128; nodes <= kMostSized; nodes *= 2) {
                SCOPED_TRACE(testing::Message()
                             << name_of(carrier) << ", racks " << name_of(racks) << ", " << nodes);
                const Figures now = computed(nodes, carrier, racks, load);
                EXPECT_GE(now.p50_ns, before.p50_ns);
                EXPECT_GE(now.last_ns, before.last_ns);
                EXPECT_GE(now.node_ns, before.node_ns);
                EXPECT_GT(now.datagrams, before.datagrams);
                EXPECT_GE(now.resent, before.resent);
                EXPECT_LE(now.p50_ns, now.p99_ns);
                before = now;
            }
        }
    }
}

TEST(Model, makes_longer_writes_slower_lines_and_losses_cost_more) {
    const Plan plan{64, Carrier::multicast, Racks::tree, 32};
    const Figures word = figures_of(plan, kWord, udp_costs);
    EXPECT_GT(figures_of(plan, {1024, 0}, udp_costs).p50_ns, word.p50_ns);
    Costs slow = udp_costs;
    slow.link_mbit_s /= 10;
    EXPECT_GT(figures_of(plan, kWord, slow).p50_ns, word.p50_ns);
    const Figures lossy = figures_of(plan, {4, 1000}, udp_costs);
    EXPECT_EQ(lossy.p50_ns, word.p50_ns) << "most arrive at once";
    EXPECT_GT(lossy.last_ns, word.last_ns);
    EXPECT_GT(lossy.resent, 0);
    EXPECT_GT(lossy.node_ns, word.node_ns);
}

TEST(Model, sends_what_its_carrier_says) {
    EXPECT_EQ(computed(64, Carrier::multicast).sends, 1);
    EXPECT_EQ(computed(64, Carrier::fan_out).sends, 63);
    EXPECT_EQ(computed(64, Carrier::fabric).sends, 63);
    EXPECT_EQ(computed(64, Carrier::fabric).datagrams, 63) << "a fabric acknowledges by itself";
    EXPECT_EQ(computed(64, Carrier::fabric, Racks::none, {4, 100'000}).resent, 0)
        << "and loses nothing";
}

TEST(Model, takes_three_hops_through_a_tree_and_more_through_a_chain) {
    const Figures ring = computed(32, Carrier::multicast);
    EXPECT_EQ(computed(32, Carrier::multicast, Racks::tree).last_ns, ring.last_ns)
        << "one rack is a ring";
    EXPECT_EQ(computed(4096, Carrier::multicast, Racks::tree).last_ns, 3 * ring.last_ns);
    EXPECT_EQ(computed(128, Carrier::multicast, Racks::chain).last_ns, 5 * ring.last_ns);
    EXPECT_LT(computed(4096, Carrier::fabric, Racks::tree).last_ns,
              computed(4096, Carrier::fabric).last_ns);
}

TEST(Memory, is_that_of_a_real_core_of_any_size) {
    const Memory memory(kWord.write_bytes);
    RingShape shape;
    shape.nodes = 16;
    shape.window = rmem::udp::kMostWindow;
    CoreRing ring(shape, udp_costs);
    ring.join();
    ring.write_each();
    EXPECT_EQ(memory.bytes(16), ring.figures().memory_bytes);
    const Plan tree{1024, Carrier::multicast, Racks::tree, 32};
    EXPECT_EQ(memory.bytes(tree), 2 * memory.bytes(32)) << "a forwarder is in two rings";
    EXPECT_GT(Memory(1024).bytes(16), memory.bytes(16)) << "long writes have longer histories";
}

TEST(Points, say_which_are_run_and_which_have_no_ring) {
    EXPECT_TRUE(can_run({256, Carrier::fan_out}, 256));
    EXPECT_FALSE(can_run({256, Carrier::fan_out}, kMostRun)) << "it takes minutes";
    EXPECT_FALSE(can_run({512, Carrier::multicast}, 512)) << "a ring has 256 nodes at most";
    EXPECT_FALSE(can_run({64, Carrier::multicast, Racks::tree, 32}, 256));
    EXPECT_FALSE(can_run({64, Carrier::fabric}, 256));
    Task task;
    task.most_nodes = 16;
    task.rack_nodes = 8;
    const std::vector<SizedPoint> points = measure(task);
    ASSERT_EQ(points.size(), 6U);
    for (const SizedPoint& point : points) {
        EXPECT_TRUE(point.join_ns && point.memory_bytes);
        EXPECT_EQ(point.was_run, point.plan.racks == Racks::none);
    }
    EXPECT_GT(*points[4].join_ns, *points[0].join_ns) << "a tree's racks join before it";
    task.most_run = 8;
    const std::vector<SizedPoint> fewer = measure(task);
    EXPECT_TRUE(fewer[0].was_run);
    EXPECT_FALSE(fewer[1].was_run || fewer[1].join_ns) << "16 nodes are computed then";
}

}  // namespace
}  // namespace simulator::sizing
