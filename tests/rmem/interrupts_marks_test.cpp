// SPDX-License-Identifier: Apache-2.0
// ctest: marked
#include "rmem/interrupts.hpp"

#include "rmem/ring.hpp"
#include "tests/support/child.hpp"
#include "tests/support/marks.hpp"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

namespace rmem {
namespace {

using test::Child;
using test::eventually;
using test::RingName;
using test::SharedValue;

/// The marks of raising, taking and watching. Everything runs in children, since the mark to be
/// killed at is read when a process passes its first mark.
class InterruptMarksTest : public ::testing::TestWithParam<std::string> {
protected:
    RingName name;

    std::shared_ptr<Ring> open() const {
        RingConfig config;
        config.name = name.get();
        config.nodes = config.ranks = 3;
        config.user_bytes = 4096;
        return Ring::open(config, Deadline::never());
    }
    static void write(Ring& ring, InterruptBoard& board, unsigned node, std::uint32_t value) {
        reinterpret_cast<std::atomic<std::uint32_t>*>(ring.bank(node))->store(value);
        board.written(0, kWordBytes);
    }
};

TEST_P(InterruptMarksTest, a_process_killed_there_costs_at_most_its_own_interrupt) {
    const bool kills_reader = GetParam() == "interrupt.freed";
    const bool kills_watcher = GetParam() == "interrupt.guarded";
    SharedValue<std::atomic<int>> stage;
    Child reader([&] {
        const auto ring = open();
        const Membership member(ring, {0, 0});
        InterruptBoard board(*ring, 0, 0);
        board.watch(0, 4, Trigger::any_write);
        *stage = 1;
        ASSERT_TRUE(eventually([&] { return *stage == 2; }));
        // The killed one's interrupt may be there; the survivor's must be.
        ASSERT_TRUE(eventually([&] {
            const auto interrupt = board.take();
            return interrupt && interrupt->value == 22;
        }));
        EXPECT_FALSE(board.take());
        EXPECT_FALSE(board.pending());
    });
    ASSERT_TRUE(eventually([&] { return *stage == 1; }));
    Child killed([&] {
        ::setenv("RMEM_KILL_AT", GetParam().c_str(), 1);
        const auto ring = open();
        const Membership member(ring, {1, 1});
        InterruptBoard board(*ring, 1, 1);
        if (kills_watcher) board.watch(0, 4, Trigger::any_write);
        write(*ring, board, kills_reader ? 0 : 1, 11);
        if (kills_reader) {
            InterruptBoard::in_the_name_of(*ring, 0, 1).take();
        }
    });
    EXPECT_EQ(killed.wait(), -SIGKILL) << "the mark was not reached";
    Child survivor([&] {
        const auto ring = open();
        const Membership again(ring, {1, 1});  // a claim of the killed one is not this one's
        InterruptBoard successor(*ring, 1, 1);
        successor.watch(4, 4, Trigger::any_write);
        const Membership member(ring, {2, 2});
        InterruptBoard board(*ring, 2, 2);
        write(*ring, board, 2, 22);
        *stage = 2;
    });
    EXPECT_EQ(survivor.wait(), 0);
    EXPECT_EQ(reader.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(EachMark, InterruptMarksTest,
                         ::testing::ValuesIn(test::marks_in(RMEM_SOURCE_DIR,
                                                            {"rmem/interrupts.cpp"})),
                         [](const auto& mark) { return test::test_name_of_mark(mark.param); });

}  // namespace
}  // namespace rmem
