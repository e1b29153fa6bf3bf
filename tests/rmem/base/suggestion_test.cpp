// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/suggestion.hpp"

#include <gtest/gtest.h>

namespace rmem {
namespace {

TEST(Suggestion, counts_the_edits_that_people_make) {
    EXPECT_EQ(edits_between("link", "link"), 0U);
    EXPECT_EQ(edits_between("lnik", "link"), 1U) << "neighbours swapped";
    EXPECT_EQ(edits_between("lnk", "link"), 1U);
    EXPECT_EQ(edits_between("linkk", "link"), 1U);
    EXPECT_EQ(edits_between("lank", "link"), 1U);
    EXPECT_EQ(edits_between("", "link"), 4U);
}

TEST(Suggestion, is_the_nearest_name) {
    const std::vector<std::string> names = {"run", "record", "replay", "peek", "poke"};
    EXPECT_EQ(nearest_name("runn", names), "run");
    EXPECT_EQ(nearest_name("recrod", names), "record");
    EXPECT_EQ(nearest_name("peke", names), "peek");
    EXPECT_EQ(did_you_mean("peke", names), " (did you mean 'peek'?)");
}

TEST(Suggestion, is_none_where_no_name_is_near) {
    const std::vector<std::string> names = {"run", "record"};
    EXPECT_EQ(nearest_name("bogus", names), "");
    EXPECT_EQ(nearest_name("ru", {"on"}), "") << "half of it is another";
    EXPECT_EQ(did_you_mean("bogus", names), "");
    EXPECT_EQ(nearest_name("recrodd", names, 1), "");
}

}  // namespace
}  // namespace rmem
