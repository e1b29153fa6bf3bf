// SPDX-License-Identifier: Apache-2.0
// ctest: marked
#include "rmem/node.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/waiting/waiting.hpp"
#include "tests/support/child.hpp"
#include "tests/support/marks.hpp"
#include "tests/support/test_ring.hpp"

#include <poll.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

namespace rmem {
namespace {

using test::Child;
using test::eventually;
using test::kPatienceNs;
using test::RingName;
using test::SharedValue;

/// Everything runs in children, since the mark to be killed at is read when a process passes its
/// first mark.
class RankBellMarksTest : public ::testing::TestWithParam<std::string> {
protected:
    RingName name;

    std::shared_ptr<Ring> open() const { return Ring::open(name.config(), Deadline::never()); }
};

TEST_P(RankBellMarksTest, a_ringer_killed_there_leaves_a_descriptor_that_is_readable_soon) {
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
        ::setenv("RMEM_AT_MARK", ("kill:" + GetParam()).c_str(), 1);
        Node writer(open(), {1, 1});
        static_cast<void>(writer.write_word(64, 1));
    });
    EXPECT_EQ(killed.wait(), -SIGKILL) << "the mark was not reached";
    EXPECT_EQ(listener.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(EachMark, RankBellMarksTest,
                         ::testing::ValuesIn(test::marks_in(RMEM_SOURCE_DIR,
                                                            {"rmem/ring/waiting/rank_bell.cpp"})),
                         [](const auto& mark) { return test::test_name_of_mark(mark.param); });

}  // namespace
}  // namespace rmem
