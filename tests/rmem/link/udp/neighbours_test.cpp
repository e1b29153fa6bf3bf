// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/neighbours.hpp"

#include "rmem/ring/node_board.hpp"
#include "tests/support/child.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace rmem::udp {
namespace {

/// Nodes 0 and 1 of three have segments on this host.
class NeighboursTest : public ::testing::Test {
protected:
    NeighboursTest() {
        for (unsigned n = 0; n < 2; ++n)
            rings_[n] = Ring::open(name_.config(3, LinkKind::udp), Deadline::in(10'000'000'000), n);
    }
    /// As often as it takes to look for it.
    static int processor_of(unsigned node, Neighbours& neighbours) {
        for (unsigned i = 1; i < Neighbours::kAskedToLook; ++i)
            EXPECT_EQ(neighbours.processor_of(node), -1);
        return neighbours.processor_of(node);
    }
    /// Node 0 has met that incarnation of a node.
    void meet(unsigned node, std::uint64_t incarnation) {
        rings_[0]->board().nodes[node].incarnation = incarnation;
    }

    test::RingName name_;
    std::array<std::shared_ptr<Ring>, 2> rings_;
};

TEST_F(NeighboursTest, tell_where_a_node_of_this_host_has_sent_last) {
    Neighbours neighbours(*rings_[0]);
    NodeBoard& board = rings_[1]->board();
    board.incarnation = 7;
    meet(1, 7);
    EXPECT_EQ(processor_of(1, neighbours), -1) << "it has sent nothing";
    board.processor.set(3);
    EXPECT_EQ(neighbours.processor_of(1), 2);
    board.processor.set(1);
    EXPECT_EQ(neighbours.processor_of(1), 0) << "it has moved";
}

TEST_F(NeighboursTest, know_nothing_of_a_node_that_was_not_met_or_is_not_here) {
    Neighbours neighbours(*rings_[0]);
    rings_[1]->board().processor.set(3);
    rings_[1]->board().incarnation = 7;
    EXPECT_EQ(processor_of(1, neighbours), -1);
    meet(2, 9);
    EXPECT_EQ(processor_of(2, neighbours), -1);
    EXPECT_EQ(neighbours.processor_of(3), -1) << "there is no such node";
}

/// As where another host's node has the same number, and what is here was left behind.
TEST_F(NeighboursTest, take_a_segment_of_another_incarnation_for_nobodys) {
    Neighbours neighbours(*rings_[0]);
    NodeBoard& board = rings_[1]->board();
    board.processor.set(3);
    board.incarnation = 6;
    meet(1, 7);
    EXPECT_EQ(processor_of(1, neighbours), -1);
    board.incarnation = 8;
    meet(1, 8);
    EXPECT_EQ(processor_of(1, neighbours), 2) << "each incarnation is looked for";
}

}  // namespace
}  // namespace rmem::udp
