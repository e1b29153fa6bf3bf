// SPDX-License-Identifier: Apache-2.0

#include "mpi_channel/run_of_reads.hpp"

#include <gtest/gtest.h>

namespace mpi_channel {
namespace {

TEST(RunOfReads, looks_on_after_two_messages_without_a_pause) {
    RunOfReads run;
    EXPECT_FALSE(run.found(false));
    EXPECT_TRUE(run.found(true));
}

TEST(RunOfReads, does_not_look_on_where_each_message_is_waited_for) {
    RunOfReads run;
    for (int i = 0; i < 1000; ++i) EXPECT_FALSE(run.found(false));
}

TEST(RunOfReads, seldom_looks_on_for_nothing_and_soon_again_in_a_run) {
    RunOfReads run;
    int looked = 0;
    for (int i = 0; i < 10'000; ++i) {
        if (!run.found(true)) continue;
        ++looked;
        run.went_on(false);
    }
    EXPECT_LE(looked, 10'000 / 64 + 10);
    int before = 1;
    for (; !run.found(true); ++before) {
    }
    EXPECT_LE(before, 64);
    run.went_on(true);
    EXPECT_TRUE(run.found(true));
}

}  // namespace
}  // namespace mpi_channel
