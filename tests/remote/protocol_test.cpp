// SPDX-License-Identifier: Apache-2.0

/// The first frames of `rmem serve` and its clients, and what cannot be one.

#include "remote/protocol.hpp"

#include <gtest/gtest.h>

#include <span>
#include <vector>

namespace remote {
namespace {

using Bytes = std::vector<std::byte>;

TEST(read_hello, takes_what_write_hello_wrote_and_longer_ones_of_other_versions_alone) {
    Bytes bytes;
    write_hello(bytes, {kVersion, Channel::news, 42});
    constexpr std::size_t kHeaderBytes = FrameWriter::kHeaderBytes;
    const auto frame_of = [](Kind kind, std::span<const std::byte> frame) {
        return Frame{static_cast<std::uint16_t>(kind), frame.subspan(kHeaderBytes)};
    };
    const auto with = [&](std::size_t at, int value, bool is_longer) {
        Bytes changed = bytes;
        changed[kHeaderBytes + at] = static_cast<std::byte>(value);
        if (is_longer) changed.push_back(std::byte{0});
        return read_hello(frame_of(Kind::hello, changed));
    };
    const auto same = with(0, 'R', false);
    ASSERT_TRUE(same);
    EXPECT_EQ(same->session, 42U);
    EXPECT_EQ(same->channel, Channel::news);
    EXPECT_FALSE(with(0, 'X', false)) << "no magic";
    EXPECT_FALSE(with(6, 2, false)) << "no such channel";
    EXPECT_FALSE(with(0, 'R', true)) << "longer";
    ASSERT_TRUE(with(4, kVersion + 1, true));
    EXPECT_EQ(with(4, kVersion + 1, true)->version, kVersion + 1);
    EXPECT_FALSE(read_hello(frame_of(Kind::read, bytes)));
}

}  // namespace
}  // namespace remote
