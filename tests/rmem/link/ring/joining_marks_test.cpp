// SPDX-License-Identifier: Apache-2.0
// ctest: marked
// What a node's bank holds that is taken into the ring while another delivers: engine.cpp's mark is
// between the copy and the reading of the logs ("rmem/link/ring/engine.cpp").
#include "rmem/link/ring/memory.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_ring.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>

namespace rmem {
namespace {

using test::Child;
using test::eventually;
using test::in_bank;
using test::RingRank;
using test::SharedValue;
using test::TestRing;

constexpr std::uint32_t kWords = 10;

/// Node 1 is there; node 2 is stopped when it has seen that nobody has come, and before it stores
/// its last word; node 0 copies node 1's bank. All in children, since a mark is read when a process
/// passes its first one.
class RingJoiningMarks : public ::testing::Test {
protected:
    RingJoiningMarks() {
        EXPECT_TRUE(eventually([&] { return *there == 1; }));
        writer.await_stop();
    }

    /// A rank that comes, tells what its bank holds.
    Child comes(unsigned rank, const char* how = nullptr) {
        return Child([this, rank, how] {
            if (how != nullptr)
                ::setenv("RMEM_AT_MARK", (std::string(how) + ":join.bank-copied").c_str(), 1);
            RingRank me(ring.open(), {rank, rank}, {});
            EXPECT_EQ(me.memory.load(0), kWords);
        });
    }
    void let_write() {
        writer.resume();
        EXPECT_EQ(writer.wait(), 0);
        EXPECT_EQ(in_bank(ring, 1, 0), kWords);
    }

    TestRing ring{{.nodes = 4}};
    SharedValue<std::atomic<unsigned>> there;
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
    Child joins = comes(0, "stop");
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
    EXPECT_EQ(comes(0, "kill").wait(), -SIGKILL);
    let_write();
    *there = 0;
    EXPECT_EQ(bystander.wait(), 0);
    EXPECT_EQ(comes(3).wait(), 0);
    EXPECT_EQ(comes(0).wait(), 0);
}

}  // namespace
}  // namespace rmem
