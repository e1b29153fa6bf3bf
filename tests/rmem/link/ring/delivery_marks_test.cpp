// SPDX-License-Identifier: Apache-2.0
// ctest: marked
#include "rmem/link/ring/memory.hpp"
#include "tests/support/child.hpp"
#include "tests/support/marks.hpp"
#include "tests/support/test_ring.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>

namespace rmem {
namespace {

using test::Child;
using test::eventually;
using test::in_bank;
using test::RingRank;
using test::SharedValue;
using test::TestRing;

constexpr std::uint32_t kBefore = 10;
constexpr std::size_t kBlock = 256;
constexpr std::uint32_t kBlockWord = 0x55555555;

/// Rank 0 writes words, then a block, and is killed or stopped; the other two only wait. All of it
/// in children, since the mark is read when a process passes its first one.
class RingDeliveryMarks : public ::testing::TestWithParam<test::Death> {
protected:
    /// A writer that waits until its write is due.
    static bool waits() { return GetParam().mark == "ring.stored-when-due"; }

    TestRing ring{{.nodes = 3, .timing = waits() ? "scramnet-burst" : "none"}};
    SharedValue<std::atomic<unsigned>> stage;

    Child bystander(
        unsigned rank, const std::function<void(RingRank&)>& work = [](RingRank&) {}) {
        return Child([&] {
            RingRank me(ring.open(), {rank, rank}, {});
            if (waits()) me.memory.keep_applying(true);
            stage->fetch_add(1);
            work(me);
            me.await([&] { return *stage == 5; });  // runs what falls to it
        });
    }
    /// `how`: kill or stop.
    Child writer(const char* how) {
        return Child([this, how] {
            const std::string at = fmt::format("{}:{}:{}", how, GetParam().mark, GetParam().pass);
            ::setenv("RMEM_AT_MARK", at.c_str(), 1);
            RingRank me(ring.open(), {0, 0}, {});
            for (std::uint32_t i = 1; i <= kBefore; ++i) {
                ::usleep(waits() ? 1'000 : 0);  // time that it may wait for
                me.memory.post_word(0, i);
            }
            const std::vector<std::uint32_t> block(kBlock / kWordBytes, kBlockWord);
            me.memory.write(kBlock, block.data(), kBlock);
            me.memory.post_word(4, 1);
        });
    }
    void let_end(Child& b, Child& c) {
        *stage = 5;
        EXPECT_EQ(b.wait(), 0);
        EXPECT_EQ(c.wait(), 0);
    }
    void write_and_die() {
        Child killed = writer("kill");
        EXPECT_EQ(killed.wait(), -SIGKILL) << "the mark was not reached";
    }
    bool are_equal() const {
        for (const unsigned node : {1U, 2U}) {
            if (in_bank(ring, node, 0) != in_bank(ring, 0, 0)) return false;
            if (in_bank(ring, node, 4) != in_bank(ring, 0, 4)) return false;
            for (std::size_t at = kBlock; at < 2 * kBlock; at += kWordBytes) {
                if (in_bank(ring, node, at) != in_bank(ring, 0, at)) return false;
            }
        }
        return true;
    }
};

TEST_P(RingDeliveryMarks, what_a_killed_rank_has_appended_is_finished_in_all_banks) {
    Child b = bystander(1), c = bystander(2);
    ASSERT_TRUE(eventually([&] { return *stage == 2; }));
    write_and_die();
    EXPECT_TRUE(eventually([&] { return are_equal(); }));
    let_end(b, c);
}

TEST_P(RingDeliveryMarks, its_next_incarnation_writes_behind_it) {
    Child b = bystander(1), c = bystander(2);
    ASSERT_TRUE(eventually([&] { return *stage == 2; }));
    write_and_die();
    Child again([this] {
        RingRank me(ring.open(), {0, 0}, {});
        for (std::uint32_t i = 101; i <= 200; ++i) me.memory.post_word(0, i);
        me.memory.post_word(4, 2);
        me.flush();
    });
    EXPECT_EQ(again.wait(), 0);
    for (const unsigned node : {0U, 1U, 2U}) {
        EXPECT_EQ(in_bank(ring, node, 0), 200U);
        EXPECT_EQ(in_bank(ring, node, 4), 2U);
    }
    EXPECT_TRUE(are_equal());
    let_end(b, c);
}

TEST_P(RingDeliveryMarks, a_stopped_rank_keeps_nobody_from_writing_and_loses_nothing) {
    constexpr std::size_t kOther = 1024;
    Child b = bystander(1, [&](RingRank& me) {
        me.await([&] { return *stage == 3; });
        for (std::uint32_t i = 1; i <= 100; ++i) {
            me.wait_for_room(kWordBytes);
            me.memory.post_word(kOther, i);
        }
    });
    Child c = bystander(2);
    ASSERT_TRUE(eventually([&] { return *stage == 2; }));
    Child stopped = writer("stop");
    stopped.await_stop();
    *stage = 3;
    EXPECT_TRUE(eventually([&] { return in_bank(ring, 2, kOther) == 100; }));
    stopped.resume();
    EXPECT_EQ(stopped.wait(), 0);
    for (const unsigned node : {1U, 2U}) {
        EXPECT_TRUE(eventually([&] { return in_bank(ring, node, 4) == 1; }));
        EXPECT_EQ(in_bank(ring, node, 0), kBefore);
        EXPECT_EQ(in_bank(ring, node, 2 * kBlock - kWordBytes), kBlockWord);
    }
    EXPECT_TRUE(are_equal());
    let_end(b, c);
}

// The passes are those of words, then of the block.
INSTANTIATE_TEST_SUITE_P(EachMark, RingDeliveryMarks,
                         ::testing::ValuesIn(test::deaths_at_marks(
                             RMEM_SOURCE_DIR,
                             {"rmem/link/ring/delivery.hpp", "rmem/link/ring/engine_outward.cpp"},
                             {1, 5, 11})),
                         test::name_of_death);

}  // namespace
}  // namespace rmem
