// SPDX-License-Identifier: Apache-2.0

/// Frames: that they come out as they went in, in whatever pieces they come, and that what cannot
/// be one is refused.

#include "rmem/base/frames.hpp"

#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace rmem {
namespace {

using Bytes = std::vector<std::byte>;

enum class Kind : std::uint16_t { two = 2 };

constexpr std::size_t kMaxBytes = 65536 + 64;

TEST(FrameQueue, gives_each_frame_whole_in_whatever_pieces_it_comes) {
    Bytes sent;
    for (std::uint32_t i = 0; i < 5; ++i)
        FrameWriter(sent, Kind::two).put(std::uint64_t{i}).put(std::string(i * 7, 'x'));
    for (std::size_t piece = 1; piece < sent.size(); ++piece) {
        FrameQueue frames(kMaxBytes);
        std::uint32_t came = 0;
        for (std::size_t at = 0; at < sent.size(); at += piece) {
            frames.add(std::span(sent).subspan(at, std::min(piece, sent.size() - at)));
            for (; const auto frame = frames.front(); ++came) {
                FieldReader fields(frame->body);
                EXPECT_EQ(frame->kind, 2);
                EXPECT_EQ(fields.take<std::uint64_t>(), came);
                EXPECT_EQ(fields.rest().size(), came * 7);
                EXPECT_TRUE(fields.is_whole());
                frames.pop();
            }
        }
        EXPECT_EQ(came, 5U) << "in pieces of " << piece;
        EXPECT_EQ(frames.rest().size(), 0U);
    }
}

TEST(FrameQueue, is_broken_by_a_length_that_no_frame_has_and_by_what_is_reserved) {
    Bytes longest;
    FrameWriter(longest, Kind::two).put(std::string(kMaxBytes, 'x'));
    FrameQueue frames(kMaxBytes);
    frames.add(longest);
    ASSERT_TRUE(frames.front());
    EXPECT_EQ(frames.front()->body.size(), kMaxBytes);

    for (const auto& [at, value] : {std::pair{0, 65}, std::pair{2, 2}, std::pair{3, 1},
                                    std::pair{6, 1}, std::pair{7, 0x80}}) {
        Bytes header;
        FrameWriter(header, Kind::two).put(std::uint32_t{0});
        header[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
        FrameQueue broken(at == 0 ? 64 : kMaxBytes);
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

TEST(ByteQueue, gives_what_was_appended_once_and_forgets_what_is_gone) {
    ByteQueue queue;
    EXPECT_TRUE(queue.empty());
    const std::size_t all = 300'000;
    for (std::size_t i = 0; i < all; ++i) queue.bytes().push_back(static_cast<std::byte>(i % 251));
    for (std::size_t gone = 0; gone < all; gone += 100'000) {
        ASSERT_EQ(queue.left().size(), all - gone);
        EXPECT_EQ(queue.left().front(), static_cast<std::byte>(gone % 251));
        queue.sent(100'000);
    }
    EXPECT_TRUE(queue.empty());
    EXPECT_TRUE(queue.bytes().empty());
}

TEST(FrameInvariants, nothing_leaves_that_is_not_there) {
    ByteQueue queue;
    queue.bytes().resize(3);
    EXPECT_BROKEN(queue.sent(4));
    FrameQueue frames(kMaxBytes);
    frames.add(std::array<std::byte, 7>{});
    EXPECT_BROKEN(frames.pop());
}

}  // namespace
}  // namespace rmem
