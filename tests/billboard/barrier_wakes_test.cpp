// SPDX-License-Identifier: Apache-2.0
// ctest: tsan

/// The ranks that an arrival at a barrier wakes: none before the last, so that a barrier of many
/// ranks on few processors costs each of them one sleep.

#include "billboard/endpoint.hpp"
#include "billboard/errors.hpp"
#include "rmem/ring/ring.hpp"
#include "tests/support/child.hpp"
#include "tests/support/endpoint_pair.hpp"

#include <gtest/gtest.h>

#include <future>

namespace billboard {
namespace {

TEST(BarrierWakes, only_the_last_to_arrive_wakes_those_who_sleep) {
    const rmem::test::RingName name;
    auto all = test::open_ranks(name.get(), 4, 4096);
    const auto arrive = [&](unsigned r) {
        return std::async(std::launch::async,
                          [&all, r] { return all.ranks[r]->barrier(test::patience()); });
    };
    const auto sleeps = [&](unsigned r) {
        return rmem::test::eventually([&] { return all.ring->attention()[r] != 0; });
    };
    auto first = arrive(0);
    ASSERT_TRUE(sleeps(0));
    const auto wakes = [&] { return all.ring->rank(0).wake.load(); };
    const auto before = wakes();
    auto second = arrive(1);
    ASSERT_TRUE(sleeps(1));
    auto third = arrive(2);
    ASSERT_TRUE(sleeps(2));
    EXPECT_EQ(wakes(), before) << "the barrier is not complete";
    EXPECT_EQ(all.ranks[3]->barrier(test::patience()), BBP_OK) << last_error();
    EXPECT_GT(wakes(), before);
    for (auto* waiting : {&first, &second, &third}) EXPECT_EQ(waiting->get(), BBP_OK);
}

}  // namespace
}  // namespace billboard
