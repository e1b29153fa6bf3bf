// SPDX-License-Identifier: Apache-2.0
// ctest: marked

/// What a process leaves that is killed at a mark: as it makes, joins or leaves a ring, with an
/// interrupt, or at a rank's bell. All of it in children, since the mark to be killed at is read
/// when a process passes its first mark.

#include "rmem/node.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/waiting/waiting.hpp"
#include "tests/support/child.hpp"
#include "tests/support/marks.hpp"
#include "tests/support/test_ring.hpp"

#include <poll.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

/// The marks of these sources.
auto each_mark_of(const std::vector<std::string>& sources) {
    return ::testing::ValuesIn(marks_in(RMEM_SOURCE_DIR, sources));
}
std::string mark_of_case(const ::testing::TestParamInfo<std::string>& mark) {
    return test_name_of_mark(mark.param);
}
/// From here on: "kill:" or "stop:", and the mark.
void end_at_mark(const std::string& mark) {
    ::setenv("RMEM_AT_MARK", mark.c_str(), 1);
}

// ---- Making, joining and leaving a ring

class RingMarksTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RingMarksTest, a_process_killed_there_leaves_nothing_that_stops_the_next) {
    RingName name;
    const auto come_and_go = [&] {
        Membership(Ring::open(name.config(1), Deadline::in(30'000'000'000)), {});
    };
    Child first = staying([&](const auto& stay) {
        std::shared_ptr<Ring> ring;
        if (GetParam() == "ring.joined") ring = Ring::open(name.config(1), Deadline::never());
        stay();
    });
    Child killed([&] {
        end_at_mark("kill:" + GetParam());
        come_and_go();
    });
    EXPECT_EQ(killed.wait(), -SIGKILL) << "the mark was not reached";
    run_in_child(come_and_go);
    first.kill();
    run_in_child(come_and_go);
}

INSTANTIATE_TEST_SUITE_P(EachMark, RingMarksTest,
                         each_mark_of({"rmem/ring/ring.cpp", "rmem/ring/segment.cpp"}),
                         mark_of_case);

// ---- Interrupts

/// The marks of raising, taking and watching.
class InterruptMarks : public ::testing::Test {
protected:
    RingName name;

    std::shared_ptr<Ring> open() const { return Ring::open(name.config(3), Deadline::never()); }
    /// A process that has joined as that rank of that node and has a board does this, and is killed
    /// or stopped at the mark ("kill:" or "stop:" before it).
    Child as_rank(unsigned rank, const std::function<void(Ring&, InterruptBoard&)>& body,
                  const std::string& at_mark = "") const {
        return Child([&] {
            if (!at_mark.empty()) end_at_mark(at_mark);
            const auto ring = open();
            const Membership member(ring, {rank, rank});
            InterruptBoard board(*ring, rank, rank);
            body(*ring, board);
        });
    }
    static void write(Ring& ring, InterruptBoard& board, unsigned node, std::uint32_t value) {
        reinterpret_cast<std::atomic<std::uint32_t>*>(ring.bank(node))->store(value);
        board.written(0, kWordBytes);
    }
};

struct EachInterruptMark : InterruptMarks, ::testing::WithParamInterface<std::string> {};

TEST_P(EachInterruptMark, a_process_killed_there_costs_at_most_its_own_interrupt) {
    const bool kills_watcher = GetParam() == "interrupt.guarded";
    const bool kills_reader = GetParam() == "interrupt.reading";
    SharedValue<std::atomic<int>> stage;
    Child reader = as_rank(0, [&](Ring&, InterruptBoard& board) {
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
    const auto kill = [&](Ring& ring, InterruptBoard& board) {
        if (kills_watcher || kills_reader) board.watch(0, 4, Trigger::any_write);
        write(ring, board, 1, 11);
        if (kills_reader) {
            board.applied(2, 0, 4, false);
            board.take();
        }
    };
    Child killed = as_rank(1, kill, "kill:" + GetParam());
    EXPECT_EQ(killed.wait(), -SIGKILL) << "the mark was not reached";
    run_in_child([&] {
        const auto ring = open();
        const Membership again(ring, {1, 1});  // a claim of the killed one is not this one's
        InterruptBoard successor(*ring, 1, 1);
        successor.watch(4, 4, Trigger::any_write);
        const Membership member(ring, {2, 2});
        InterruptBoard board(*ring, 2, 2);
        write(*ring, board, 2, 22);
        *stage = 2;
    });
    EXPECT_EQ(reader.wait(), 0);
}

TEST_P(EachInterruptMark, a_queue_goes_round_and_past_the_place_of_one_killed_or_stopped_there) {
    if (GetParam() == "interrupt.guarded" || GetParam() == "interrupt.reading")
        GTEST_SKIP() << "no raiser comes there";
    constexpr std::uint32_t kLaps = 3;
    constexpr std::uint32_t kWrites = kLaps * kInterruptQueueEntries;
    for (const bool is_killed : {true, false}) {
        SharedValue<std::atomic<int>> stage;
        Child reader = as_rank(0, [&](Ring&, InterruptBoard& board) {
            board.watch(0, 4, Trigger::any_write);
            std::uint64_t told = 0;
            std::uint32_t last = 0;
            const auto take_all = [&](std::uint32_t end) {
                while (const auto interrupt = board.take()) {
                    told += 1 + interrupt->missed;
                    if (interrupt->value == 1'000'000) continue;  // the one in trouble
                    ASSERT_GT(interrupt->value, last);
                    last = interrupt->value;
                }
                EXPECT_EQ(last, end);
                EXPECT_GE(told, end);
                EXPECT_FALSE(board.pending());
            };
            *stage = 1;
            ASSERT_TRUE(eventually([&] { return *stage == 2; }));
            take_all(kWrites);
            *stage = 3;
            ASSERT_TRUE(eventually([&] { return *stage == 4; }));
            take_all(2 * kWrites);
        });
        ASSERT_TRUE(eventually([&] { return *stage == 1; }));
        Child in_trouble = as_rank(
            1, [](Ring& ring, InterruptBoard& board) { write(ring, board, 1, 1'000'000); },
            (is_killed ? "kill:" : "stop:") + GetParam());
        if (is_killed) {
            EXPECT_EQ(in_trouble.wait(), -SIGKILL) << "the mark was not reached";
        } else {
            in_trouble.await_stop();
        }
        Child survivor = as_rank(2, [&](Ring& ring, InterruptBoard& board) {
            for (std::uint32_t i = 1; i <= kWrites; ++i) write(ring, board, 2, i);
            *stage = 2;
            ASSERT_TRUE(eventually([&] { return *stage == 4; }));
        });
        ASSERT_TRUE(eventually([&] { return *stage == 3; }));
        if (!is_killed) {  // its place is filled, laps too late
            in_trouble.resume();
            EXPECT_EQ(in_trouble.wait(), 0);
        }
        Child another = as_rank(1, [&](Ring& ring, InterruptBoard& board) {
            for (std::uint32_t i = 1; i <= kWrites; ++i) write(ring, board, 1, kWrites + i);
            *stage = 4;
        });
        EXPECT_EQ(another.wait(), 0);
        EXPECT_EQ(survivor.wait(), 0);
        EXPECT_EQ(reader.wait(), 0);
    }
}

/// Word 0 has odd values and word 1 even ones; the queue goes round by one more than its length.
TEST_F(InterruptMarks, a_reader_that_is_overrun_while_it_reads_never_gets_two_in_one) {
    SharedValue<std::atomic<int>> stage;
    const auto read_slowly = [&](Ring&, InterruptBoard& board) {
        board.watch(0, 8, Trigger::any_write);
        *stage = 1;
        std::optional<Interrupt> interrupt;
        ASSERT_TRUE(eventually([&] { return (interrupt = board.take()).has_value(); }));
        EXPECT_EQ(interrupt->value % 2 == 0 ? 4U : 0U, interrupt->offset);
        EXPECT_GT(interrupt->missed, 0U);
    };
    Child reader = as_rank(0, read_slowly, "stop:interrupt.reading");
    ASSERT_TRUE(eventually([&] { return *stage == 1; }));
    Child writer = as_rank(1, [&](Ring& ring, InterruptBoard& board) {
        auto write_next = [&, i = 1U]() mutable {
            const std::size_t offset = i % 2 == 0 ? 4 : 0;
            reinterpret_cast<std::atomic<std::uint32_t>*>(ring.bank(1) + offset)->store(i++);
            board.written(offset, kWordBytes);
        };
        write_next();
        ASSERT_TRUE(eventually([&] { return *stage == 2; }));
        for (unsigned i = 0; i < kInterruptQueueEntries + 1; ++i) write_next();
        *stage = 3;
        ASSERT_TRUE(eventually([&] { return *stage == 4; }));
    });
    reader.await_stop();
    *stage = 2;
    ASSERT_TRUE(eventually([&] { return *stage == 3; }));
    reader.resume();
    EXPECT_EQ(reader.wait(), 0);
    *stage = 4;
    EXPECT_EQ(writer.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Marks, EachInterruptMark,
                         each_mark_of({"rmem/ring/interrupts.cpp",
                                       "rmem/ring/interrupt_queue.cpp"}),
                         mark_of_case);

// ---- A rank's bell

class RankBellMarksTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RankBellMarksTest, a_ringer_killed_there_leaves_a_descriptor_that_is_readable_soon) {
    const RingName name;
    const auto open = [&] { return Ring::open(name.config(), Deadline::never()); };
    SharedValue<std::atomic<int>> stage;
    Child listener([&] {
        const auto ring = open();
        Node node(ring, {0, 0});
        node.watch(64, 4, Trigger::any_write);
        const int fd = node.interrupt_fd();
        ASSERT_TRUE(
            eventually([&] { return (ring->attention()[0].load() & kAttentionInterrupts) != 0; }));
        *stage = 1;
        pollfd wanted{fd, POLLIN, 0};
        ASSERT_EQ(::poll(&wanted, 1, static_cast<int>(kPatienceNs / 1'000'000)), 1);
        EXPECT_TRUE(node.next_interrupt(Deadline::now()));
    });
    ASSERT_TRUE(eventually([&] { return *stage == 1; }));
    Child killed([&] {
        end_at_mark("kill:" + GetParam());
        Node writer(open(), {1, 1});
        static_cast<void>(writer.write_word(64, 1));
    });
    EXPECT_EQ(killed.wait(), -SIGKILL) << "the mark was not reached";
    EXPECT_EQ(listener.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(EachMark, RankBellMarksTest,
                         each_mark_of({"rmem/ring/waiting/rank_bell.cpp"}), mark_of_case);

}  // namespace
}  // namespace rmem::test
