// SPDX-License-Identifier: Apache-2.0
// ctest: check plain
// Rings of many real cores in virtual time.

#include "simulator/sizing/core_ring.hpp"

#include "rmem/error.hpp"

#include <gtest/gtest.h>

namespace simulator::sizing {
namespace {

RingFigures figures_with(const RingShape& shape, unsigned writes) {
    CoreRing ring(shape, udp_costs);
    ring.join();
    ring.write_alone(writes);
    EXPECT_TRUE(ring.banks_are_equal());
    return ring.figures();
}

TEST(CoreRing, ends_with_equal_banks_also_where_much_is_lost) {
    for (const bool fan_out : {false, true}) {
        RingShape shape;
        shape.nodes = 12;
        shape.fan_out = fan_out;
        const RingFigures whole = figures_with(shape, 20);
        EXPECT_EQ(whole.overflowed, 0U);
        EXPECT_LE(whole.p50_ns, whole.p99_ns);
        shape.lost_ppm = 50'000;
        const RingFigures lossy = figures_with(shape, 20);
        EXPECT_GT(lossy.resent, whole.resent);
        EXPECT_GT(lossy.last_ns, whole.last_ns);
    }
}

TEST(CoreRing, gives_equal_figures_each_time) {
    RingShape shape;
    shape.nodes = 8;
    shape.lost_ppm = 20'000;
    const RingFigures one = figures_with(shape, 50), other = figures_with(shape, 50);
    EXPECT_EQ(one.join_ns, other.join_ns);
    EXPECT_EQ(one.last_ns, other.last_ns);
    EXPECT_EQ(one.datagrams, other.datagrams);
    shape.seed = 2;
    EXPECT_NE(figures_with(shape, 50).last_ns, one.last_ns) << "other datagrams are lost";
}

TEST(CoreRing, takes_the_times_that_hosts_and_lines_take) {
    RingShape shape;
    shape.nodes = 2;
    const auto with = [&](const Costs& costs) {
        CoreRing ring(shape, costs);
        ring.join();
        ring.write_alone(5);
        return ring.figures();
    };
    const RingFigures before = with(udp_costs);
    Costs slow = udp_costs;
    slow.call_ns += 1000;
    slow.switch_ns += 500;
    slow.receive_ns += 100;
    const RingFigures after = with(slow);
    EXPECT_EQ(after.p50_ns - before.p50_ns, 1600);
    EXPECT_EQ(after.sender_ns - before.sender_ns, 1000);
    EXPECT_EQ(before.sends, 1);
}

TEST(CoreRing, lets_64_nodes_join_without_filling_a_socket) {
    RingShape shape;
    shape.nodes = 64;
    CoreRing ring(shape, udp_costs);
    ring.join();
    EXPECT_EQ(ring.figures().overflowed, 0U);
    EXPECT_GE(ring.figures().join_ns, 63 * shape.start_ns);
}

TEST(CoreRing, says_so_when_nodes_do_not_join) {
    RingShape shape;
    shape.nodes = 3;
    shape.socket_datagrams = 0;
    CoreRing ring(shape, udp_costs);
    EXPECT_THROW(ring.join(), rmem::Error);
}

}  // namespace
}  // namespace simulator::sizing
