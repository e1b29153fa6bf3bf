// SPDX-License-Identifier: Apache-2.0
#include "ports/dp/frame.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace ports::dp {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<std::uint64_t> words) {
    std::vector<std::byte> bytes(words.size() * 8);
    std::memcpy(bytes.data(), words.begin(), bytes.size());
    return bytes;
}

TEST(Frame, holds_destination_length_and_container_as_in_the_paper) {
    const auto bytes = bytes_of({Header{3, 77, 5, Kind::plain}.word(), 0x1122334455});
    Frame frame{};
    ASSERT_TRUE(parse(bytes.data(), bytes.size(), frame));
    EXPECT_EQ(frame.header.nid, 3U);
    EXPECT_EQ(frame.header.dpid, 77U);
    EXPECT_EQ(frame.header.length, 5U);
    EXPECT_EQ(frame.container, bytes.data() + 8);
}

TEST(Frame, a_frame_of_eight_bytes_lies_within_half_a_line) {
    EXPECT_LE(kHeaderBytes + 8, 28U);
    EXPECT_LE(kHeaderBytes + kLabelBytes + 8, 28U);
}

TEST(Frame, is_refused_when_it_holds_less_than_it_says) {
    const auto bytes = bytes_of({Header{0, 0, 8, Kind::plain}.word(), 0});
    Frame frame{};
    for (std::size_t size = 0; size < 16; ++size) {
        EXPECT_FALSE(parse(bytes.data(), size, frame)) << size;
    }
    EXPECT_TRUE(parse(bytes.data(), 16, frame));
    const auto labelled = bytes_of({Header{0, 0, 1, Kind::reliable}.word(), 0});
    EXPECT_FALSE(parse(labelled.data(), labelled.size(), frame));
    const auto listed = bytes_of({Header{0, 3, 0, Kind::listed}.word(), 0});
    EXPECT_FALSE(parse(listed.data(), listed.size(), frame));
}

TEST(Frame, a_frame_of_an_unknown_kind_is_refused) {
    for (unsigned kind = 0; kind < 256; ++kind) {
        const bool known = kind >= 0xd1 && kind <= 0xd4;
        const auto bytes = bytes_of({static_cast<std::uint64_t>(kind) << 56, 0, 0});
        Frame frame{};
        EXPECT_EQ(parse(bytes.data(), bytes.size(), frame), known) << kind;
    }
}

TEST(Frame, never_reaches_beyond_its_bytes_whatever_they_are) {
    std::mt19937_64 random(1);
    unsigned taken = 0;
    for (unsigned i = 0; i < 200'000; ++i) {
        std::vector<std::byte> bytes(random() % 80);
        for (std::byte& b : bytes) b = static_cast<std::byte>(random());
        if (bytes.size() >= 8) {
            if (i % 2 == 0) bytes[7] = static_cast<std::byte>(0xd1 + random() % 4);
            if (i % 4 < 2) bytes[5] = bytes[6] = std::byte{0};
            if (i % 8 < 4) bytes[3] = std::byte{0};
        }
        Frame frame{};
        if (!parse(bytes.data(), bytes.size(), frame)) continue;
        ++taken;
        const std::byte* end = bytes.data() + bytes.size();
        ASSERT_LE(frame.container + frame.header.length, end);
        if (frame.header.kind == Kind::listed) {
            ASSERT_LE(frame.entries + frame.header.dpid * kEntryBytes, frame.container);
        }
    }
    EXPECT_GT(taken, 1000U);
}

}  // namespace
}  // namespace ports::dp
