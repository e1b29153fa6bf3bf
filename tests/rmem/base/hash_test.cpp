// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/hash.hpp"

#include "rmem/base/random.hpp"

#include <gtest/gtest.h>

#include <array>

namespace rmem {
namespace {

TEST(Hash, is_fnv_1a_so_that_all_builds_agree) {
    EXPECT_EQ(Fnv1a().value(), 0xcbf29ce484222325U);
    EXPECT_EQ(Fnv1a().add("a").value(), 0xaf63dc4c8601ec8cU);
    EXPECT_EQ(Fnv1a().add("foobar").value(), 0x85944171f73967e8U);
}

TEST(Hash, takes_the_lowest_byte_of_a_word_first) {
    EXPECT_EQ(Fnv1a().add_word(0x0807060504030201).value(),
              Fnv1a().add("\1\2\3\4\5\6\7\10").value());
    constexpr std::array kBytes{std::byte{'o'}, std::byte{0xff}};
    EXPECT_EQ(Fnv1a().add(kBytes).value(), Fnv1a().add("o\xff").value());
}

TEST(Random, is_splitmix64) {
    std::uint64_t state = 1234567;
    EXPECT_EQ(next_random(state), 6457827717110365317U);
    EXPECT_EQ(next_random(state), 3203168211198807973U);
}

}  // namespace
}  // namespace rmem
