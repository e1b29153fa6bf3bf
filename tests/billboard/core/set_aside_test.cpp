// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/set_aside.hpp"

#include <gtest/gtest.h>

#include <array>

namespace billboard {
namespace {

const std::array<std::byte, 100> kMessage{};

TEST(SetAside, has_all_its_room_again_when_messages_have_left) {
    SetAside aside;
    EXPECT_TRUE(aside.has_room(kSetAsideBytes));
    aside.push(Class::user, 1, kMessage);
    EXPECT_FALSE(aside.has_room(kSetAsideBytes));
    aside.push(Class::user, 2, {});
    aside.pop(aside.find(Class::user, 1));
    EXPECT_FALSE(aside.has_room(kSetAsideBytes)) << "an empty message takes memory, too";
    aside.pop(aside.find(Class::user, 2));
    EXPECT_TRUE(aside.has_room(kSetAsideBytes));
}

TEST(SetAside, keeps_of_two_ends_the_later_one) {
    SetAside aside;
    aside.push_end(1);
    EXPECT_TRUE(aside.ends_next(Class::user, 1));
    aside.push(Class::user, 1, kMessage);
    aside.push_end(1);
    EXPECT_FALSE(aside.ends_next(Class::user, 1)) << "the message comes first";
    aside.pop(aside.find(Class::user, 1));
    EXPECT_TRUE(aside.ends_next(Class::user, 1));
    aside.erase_end(1);
    EXPECT_FALSE(aside.has_end(1));
    EXPECT_TRUE(aside.empty());
}

}  // namespace
}  // namespace billboard
