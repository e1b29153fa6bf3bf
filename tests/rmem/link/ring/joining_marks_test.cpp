// SPDX-License-Identifier: Apache-2.0
// ctest: marked
// The mark of "rmem/link/ring/engine.cpp": between the copy of a bank and the reading of the logs.
#include "rmem/link/ring/memory.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_ring.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>

namespace rmem {
namespace {

using test::Child;
using test::in_bank;
using test::RingRank;

constexpr std::uint32_t kWords = 10;

/// Node 2 is stopped before it stores its last word, when it has seen that nobody has come; node 0
/// copies node 1's bank.
class RingJoiningMarks : public ::testing::Test {
protected:
    RingJoiningMarks() {
        EXPECT_TRUE(test::eventually([&] { return *there == 1; }));
        writer.await_stop();
    }

    Child comes(unsigned rank, const char* at = "") {
        return Child([this, rank, at] {
            ::setenv("RMEM_AT_MARK", at, 1);
            RingRank me(ring.open(), {rank, rank}, {});
            EXPECT_EQ(me.memory.load(0), kWords);
        });
    }
    void let_write() {
        writer.resume();
        EXPECT_EQ(writer.wait(), 0);
        EXPECT_EQ(in_bank(ring, 1, 0), kWords);
    }

    test::TestRing ring{{.nodes = 4}};
    test::SharedValue<std::atomic<unsigned>> there;  // node 1 is
    Child bystander{[this] {
        RingRank me(ring.open(), {1, 1}, {});
        *there = 1;
        me.await([&] { return *there == 0; });
    }};
    Child writer{[this] {
        while (*there != 1) ::usleep(1'000);
        ::setenv("RMEM_AT_MARK", ("stop:ring.delivers:" + std::to_string(kWords)).c_str(), 1);
        RingRank me(ring.open(), {2, 2}, {});
        for (std::uint32_t i = 1; i <= kWords; ++i) me.memory.post_word(0, i);
    }};
};

TEST_F(RingJoiningMarks, a_word_that_is_delivered_behind_the_copy_is_read_from_the_log) {
    Child joins = comes(0, "stop:join.bank-copied");
    joins.await_stop();
    let_write();
    EXPECT_NE(in_bank(ring, 0, 0), kWords) << "it was copied: nothing is tested";
    EXPECT_EQ(comes(3).wait(), 0) << "from a bank that lacks it";
    joins.resume();
    EXPECT_EQ(joins.wait(), 0);
    *there = 0;
    EXPECT_EQ(bystander.wait(), 0);
}

TEST_F(RingJoiningMarks, a_bank_that_was_copied_in_part_is_nobodys_source) {
    EXPECT_EQ(comes(0, "kill:join.bank-copied").wait(), -SIGKILL);
    let_write();
    *there = 0;
    EXPECT_EQ(bystander.wait(), 0);
    EXPECT_EQ(comes(3).wait(), 0);
    EXPECT_EQ(comes(0).wait(), 0);
}

}  // namespace
}  // namespace rmem
