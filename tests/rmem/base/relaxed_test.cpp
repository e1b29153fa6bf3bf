// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
#include "rmem/base/relaxed.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace rmem {
namespace {

TEST(Counter, is_read_by_others_while_its_writer_adds) {
    Counter<> counter;
    constexpr std::uint64_t kMany = 10'000;
    const std::jthread reader([&] {
        for (std::uint64_t last = 0; last != kMany;) {
            const std::uint64_t now = counter.get();
            EXPECT_GE(now, last);
            last = now;
        }
    });
    for (std::uint64_t i = 1; i <= kMany; ++i) EXPECT_EQ(counter.add(), i);
}

TEST(Hint, is_what_was_set_last) {
    Hint<bool> hint;
    EXPECT_FALSE(hint.get());
    hint.set(true);
    EXPECT_TRUE(hint.get());
}

}  // namespace
}  // namespace rmem
