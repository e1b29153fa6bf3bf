// SPDX-License-Identifier: Apache-2.0
// ctest: marked
#include "rmem/ring/ring.hpp"

#include "tests/support/child.hpp"
#include "tests/support/marks.hpp"

#include <cstdlib>
#include <memory>
#include <string>

namespace rmem {
namespace {

using test::Child;
using test::RingName;

/// The marks of making, joining and leaving a ring.
class RingMarksTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RingMarksTest, a_process_killed_there_leaves_nothing_that_stops_the_next) {
    RingName name;
    const auto come_and_go = [&] {
        Membership(Ring::open(name.config(1), Deadline::in(30'000'000'000)), {});
    };
    // In a process of its own, since the mark to be killed at is read when the first mark is
    // passed.
    Child first = test::staying([&](const auto& stay) {
        std::shared_ptr<Ring> ring;
        if (GetParam() == "ring.joined") ring = Ring::open(name.config(1), Deadline::never());
        stay();
    });
    Child killed([&] {
        ::setenv("RMEM_AT_MARK", ("kill:" + GetParam()).c_str(), 1);
        come_and_go();
    });
    EXPECT_EQ(killed.wait(), -SIGKILL) << "the mark was not reached";
    Child next(come_and_go);
    EXPECT_EQ(next.wait(), 0);
    first.kill();
    Child last(come_and_go);
    EXPECT_EQ(last.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(EachMark, RingMarksTest,
                         ::testing::ValuesIn(test::marks_in(
                             RMEM_SOURCE_DIR, {"rmem/ring/ring.cpp", "rmem/ring/segment.cpp"})),
                         [](const auto& mark) { return test::test_name_of_mark(mark.param); });

}  // namespace
}  // namespace rmem
