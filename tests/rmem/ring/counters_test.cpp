// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
#include "rmem/ring/counters.hpp"

#include "tests/rmem/threads.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

namespace rmem {
namespace {

TEST(CountersTest, a_counter_grows_and_the_others_do_not) {
    Counters counters{};
    counters.add(LinkCounter::writes_sent);
    counters.add(LinkCounter::writes_sent, 2);
    EXPECT_EQ(counters.get(LinkCounter::writes_sent), 3U);
    EXPECT_EQ(counters.get(LinkCounter::bytes_sent), 0U);
}

TEST(CountersTest, a_maximum_only_rises) {
    Counters counters{};
    counters.raise_to(LinkCounter::late_max_ns, 7);
    counters.raise_to(LinkCounter::late_max_ns, 3);
    EXPECT_EQ(counters.get(LinkCounter::late_max_ns), 7U);
}

TEST(CountersTest, what_several_count_at_once_is_all_counted) {
    Counters counters{};
    test::Threads(4, [&](unsigned) {
        for (int i = 0; i < 100'000; ++i) counters.add_shared(LinkCounter::interrupts_raised);
    }).join();
    EXPECT_EQ(counters.get(LinkCounter::interrupts_raised), 400'000U);
}

TEST(CountersTest, every_counter_has_a_name_of_its_own_a_unit_and_a_meaning) {
    std::set<std::string> names;
    for (const auto& counter : kLinkCounterNames) {
        EXPECT_TRUE(names.insert(counter.name).second) << counter.name;
        EXPECT_GT(std::strlen(counter.unit), 0U) << counter.name;
        EXPECT_GT(std::strlen(counter.meaning), 0U) << counter.name;
    }
}

TEST(CountersTest, a_block_shares_no_cache_line) {
    EXPECT_EQ(alignof(Counters), 64U);
    EXPECT_EQ(sizeof(Counters) % 64, 0U);
}

}  // namespace
}  // namespace rmem
