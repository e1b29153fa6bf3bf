// SPDX-License-Identifier: Apache-2.0

/// Sentences about strangers, of which a journal keeps few.

#include "tools/sparingly.hpp"

#include <gtest/gtest.h>

namespace tools {
namespace {

TEST(Sparingly, passes_some_a_second_and_says_how_many_were_left_out) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    Sparingly sparingly;
    for (unsigned i = 0; i < Sparingly::kMaxInASecond; ++i)
        EXPECT_EQ(sparingly.pass("one came", i), "one came");
    for (int i = 0; i < 70; ++i) EXPECT_EQ(sparingly.pass("one came", kSecond - 1), "");
    EXPECT_EQ(sparingly.pass("one came", kSecond),
              "one came (70 more such were left out before it)");
    EXPECT_EQ(sparingly.pass("another", kSecond), "another");
}

}  // namespace
}  // namespace tools
