// SPDX-License-Identifier: Apache-2.0

/// The posting boards notice when what their headers state does not hold.

#include "tests/support/boards_model.hpp"
#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

namespace billboard {
namespace {

/// Where checks run in every build.
struct SimulatedMemory : rmem::test::PlainMemory<false> {
    using rmem::test::PlainMemory<false>::PlainMemory;
    using Simulated = void;
};

/// A rank that is alone, connected with itself.
template <class Board>
struct Alone {
    explicit Alone(Layout layout) : geometry(test::geometry_of(layout, 1)) {
        board.open_rx(0, 1);
        board.open_tx(0, 1);
    }
    const Geometry geometry;
    rmem::test::PlainBanks banks{1, geometry.region_bytes(), rmem::test::Seen::at_once};
    SimulatedMemory memory{banks, 0};
    Board board{memory, geometry, 0};
};

TEST(LineBoardDeathTest, checks_that_there_is_room_for_what_is_posted) {
    Alone<LineBoard<SimulatedMemory>> alone(Layout::lines);
    while (alone.board.tx_room(0)) alone.board.post_inline(0, Class::user, nullptr, 0);
    EXPECT_BROKEN(alone.board.post_inline(0, Class::user, nullptr, 0));
}

TEST(PaperBoardDeathTest, checks_that_what_is_taken_was_found) {
    Alone<PaperBoard<SimulatedMemory>> alone(Layout::paper);
    alone.board.post_alone(0, 0, {});
    Arrival found;
    ASSERT_TRUE(alone.board.peek(0, found));
    alone.board.take(0, found);
    EXPECT_BROKEN(alone.board.take(0, found));
}

}  // namespace
}  // namespace billboard
