// SPDX-License-Identifier: Apache-2.0

/// Frames of `rmem serve`: that they come out as they went in, in whatever pieces they come, and
/// that what cannot be one is refused.

#include "remote/protocol.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

namespace remote {
namespace {

using Bytes = std::vector<std::byte>;

TEST(FrameQueue, gives_each_frame_whole_in_whatever_pieces_it_comes) {
    Bytes sent;
    for (std::uint32_t i = 0; i < 5; ++i)
        FrameWriter(sent, Kind::write).put(std::uint64_t{i}).put(std::string(i * 7, 'x'));
    for (std::size_t piece = 1; piece < sent.size(); ++piece) {
        FrameQueue frames;
        std::uint32_t came = 0;
        for (std::size_t at = 0; at < sent.size(); at += piece) {
            frames.add(std::span(sent).subspan(at, std::min(piece, sent.size() - at)));
            for (; const auto frame = frames.front(); ++came) {
                FieldReader fields(frame->body);
                EXPECT_EQ(frame->kind, Kind::write);
                EXPECT_EQ(fields.take<std::uint64_t>(), came);
                EXPECT_EQ(fields.rest().size(), came * 7);
                EXPECT_TRUE(fields.is_whole());
                frames.pop();
            }
        }
        EXPECT_EQ(came, 5U) << "in pieces of " << piece;
        EXPECT_EQ(frames.bytes(), 0U);
    }
}

TEST(FrameQueue, is_broken_by_a_length_that_no_frame_has_and_by_what_is_reserved) {
    Bytes longest;
    FrameWriter(longest, Kind::data).put(std::string(kMostBodyBytes, 'x'));
    FrameQueue frames;
    frames.add(longest);
    ASSERT_TRUE(frames.front());
    EXPECT_EQ(frames.front()->body.size(), kMostBodyBytes);

    for (const auto& [at, value] : {std::pair{0, 65}, std::pair{2, 2}, std::pair{3, 1},
                                    std::pair{6, 1}, std::pair{7, 0x80}}) {
        Bytes header;
        FrameWriter(header, Kind::data).put(std::uint32_t{0});
        header[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
        FrameQueue broken(at == 0 ? 64 : kMostBodyBytes);
        broken.add(header);
        EXPECT_TRUE(broken.is_broken()) << "byte " << at;
        EXPECT_FALSE(broken.front());
    }
}

TEST(FieldReader, gives_zeros_behind_the_end_and_says_so) {
    const std::array body = {std::byte{1}, std::byte{2}, std::byte{3}};
    FieldReader fields(body);
    EXPECT_EQ(fields.take<std::uint16_t>(), 0x0201);
    EXPECT_FALSE(fields.is_whole());
    EXPECT_EQ(fields.take<std::uint32_t>(), 0U);
    EXPECT_FALSE(fields.is_whole());
    EXPECT_TRUE(fields.rest().empty());
    EXPECT_FALSE(fields.is_whole());
}

TEST(read_hello, takes_what_write_hello_wrote_and_longer_ones_of_other_versions_alone) {
    Bytes bytes;
    write_hello(bytes, {kVersion, Channel::news, 42});
    const auto with = [&](std::size_t at, int value, bool is_longer) {
        Bytes changed = bytes;
        changed[kHeaderBytes + at] = static_cast<std::byte>(value);
        if (is_longer) changed.push_back(std::byte{0});
        return read_hello({Kind::hello, std::span(changed).subspan(kHeaderBytes)});
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
    EXPECT_FALSE(read_hello({Kind::read, std::span(bytes).subspan(kHeaderBytes)}));
}

}  // namespace
}  // namespace remote
