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

FrameFigures frames_of(unsigned nodes, unsigned frames, std::int64_t frame_ns, bool together) {
    RingShape shape;
    shape.nodes = nodes;
    shape.window = rmem::udp::kMostWindow;
    CoreRing ring(shape, udp_costs);
    ring.join();
    return ring.write_frames(frames, frame_ns, together);
}

TEST(CoreRing, has_fewer_acknowledgements_where_all_write_at_one_instant) {
    constexpr std::int64_t kFrameNs = 1'000'000;
    const FrameFigures together = frames_of(24, 10, kFrameNs, true);
    const FrameFigures spread = frames_of(24, 10, kFrameNs, false);
    EXPECT_EQ(together.refused + together.overflowed, 0U);
    EXPECT_EQ(spread.refused + spread.overflowed, 0U);
    EXPECT_LT(together.acks, 4);
    EXPECT_GT(spread.acks, 12);
    EXPECT_LT(4 * together.busy, spread.busy);
    EXPECT_LT(spread.busy, 1);
}

TEST(CoreRing, has_a_rate_of_writes_at_which_sockets_fill) {
    EXPECT_EQ(frames_of(32, 30, 1'000'000, true).overflowed, 0U);
    const FrameFigures too_fast = frames_of(32, 30, 100'000, false);
    EXPECT_GT(too_fast.refused + too_fast.overflowed, 0U);
    EXPECT_GT(too_fast.busy, 0.5);
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
