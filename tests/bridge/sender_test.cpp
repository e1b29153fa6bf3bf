// SPDX-License-Identifier: Apache-2.0

/// What of the source's writes reaches the target, in which order, and what is conflated.

#include "bridge/sender.hpp"

#include "tests/support/bridge_ends.hpp"
#include "tests/support/broken.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>

namespace bridge {
namespace {

using rmem::test::BridgeEnds;
using rmem::test::MadeWrite;
using ::testing::ElementsAre;

constexpr std::int64_t kOneSecondNs = 1'000'000'000;

/// One region of 1 KiB at 0, which appears at 4096; its last word is a flag.
SentRegion region() {
    return {"rig", 0, 1024, {{1020, 4}}, 0, 0};
}
const ReceivedRegion kReceived = {"rig", 4096, 1024};

struct Sending : ::testing::Test {
    Sending() : ends({region()}, {kReceived}) {
        ends.connect();
        ends.made.clear();
    }
    /// So much that the other end takes nothing of, that the window is full.
    void fill_window() {
        for (std::size_t i = 0; i <= Sender::kWindowBytes / kFrameHeaderBytes; ++i)
            ends.write(7, 0, static_cast<std::uint32_t>(i));
        ASSERT_TRUE(ends.source.sender().is_behind(0));
    }
    BridgeEnds ends;
};

TEST_F(Sending, keeps_the_order_of_writes_and_makes_one_frame_of_a_commit) {
    ends.write(1, 0, 10);
    ends.write(1, 4, 11, false, true);
    ends.write(2, 100, 99);  // another origin's comes in between
    ends.write(1, 8, 12, true, true);
    ends.write(1, 1024, 13);  // outside, and the commit's last
    ends.write(1, 0, 14);
    ends.exchange();
    const std::uint64_t first = ends.made.front().frame;
    EXPECT_THAT(ends.made,
                ElementsAre(MadeWrite{first, 4096, 10}, MadeWrite{first + 1, 4196, 99},
                            MadeWrite{first + 2, 4100, 11}, MadeWrite{first + 2, 4104, 12, true},
                            MadeWrite{first + 3, 4096, 14}));
}

TEST_F(Sending, cuts_a_write_at_the_regions_edges_and_a_long_one_into_frames) {
    std::vector<std::uint32_t> words(300, 5);
    ends.source.sender().take({1, 0, 900, std::as_bytes(std::span(words)), false, false},
                              ends.now_ns);
    ends.exchange();
    EXPECT_EQ(ends.word(4096 + 896), 0U);
    EXPECT_EQ(ends.word(4096 + 900), 5U);
    EXPECT_EQ(ends.word(4096 + 1020), 5U);
    EXPECT_EQ(ends.word(4096 + 1024), 0U);

    BridgeEnds large({{"large", 0, 48 << 10, {}, 0, 0}}, {{"large", 0, 48 << 10}});
    large.connect();
    words.assign(12 << 10, 6);
    large.source.sender().take({1, 0, 0, std::as_bytes(std::span(words)), false, false},
                               large.now_ns);
    large.exchange();
    EXPECT_TRUE(std::all_of(large.memory.begin(), large.memory.begin() + (12 << 10),
                            [](std::uint32_t word) { return word == 6; }));
    EXPECT_EQ(large.source.sender().counts().conflated, 0U);
}

TEST_F(Sending, completes_bytes_of_a_word_to_the_word_as_the_source_has_it) {
    ends.write(1, 4, 0x04030201);
    const std::uint32_t bytes = 0x99999999;
    ends.source.sender().take({1, 0, 4, std::as_bytes(std::span(&bytes, 1)), false, false, 0b0110},
                              ends.now_ns);
    ends.exchange();
    EXPECT_EQ(ends.word(4100), 0x04999901U);
}

TEST_F(Sending, makes_no_frame_of_more_pieces_than_a_group_of_writes_has) {
    constexpr std::uint32_t kWrites = kMaxPieces + 8;
    for (std::uint32_t i = 0; i < kWrites; ++i) ends.write(1, i * 8, i + 1, false, i + 1 < kWrites);
    ends.exchange();
    ASSERT_EQ(ends.made.size(), kWrites) << ends.target.problem();
    EXPECT_EQ(ends.made[kMaxPieces - 1].frame, ends.made[0].frame);
    EXPECT_EQ(ends.made[kMaxPieces].frame, ends.made[0].frame + 1);
}

TEST_F(Sending, sends_a_commit_without_an_end_after_a_while) {
    ends.write(1, 4, 11, false, true);
    ends.exchange();
    EXPECT_EQ(ends.word(4100), 0U);
    ends.now_ns = ends.source.sender().due_ns(ends.now_ns);
    ends.exchange();
    EXPECT_EQ(ends.word(4100), 11U);
}

TEST_F(Sending, conflates_what_finds_the_window_full_and_shows_flags_last) {
    fill_window();
    const std::uint64_t before = ends.source.sender().counts().conflated;
    ends.write(1, 1020, 1);        // a flag, at first down
    ends.write(1, 200, 70);        // its data
    ends.write(1, 204, 71, true);  // marked
    ends.write(1, 1020, 2);
    ends.write(1, 200, 80);
    EXPECT_EQ(ends.source.sender().counts().conflated, before + 5);
    ends.now_ns += kOneSecondNs;
    EXPECT_GE(ends.source.sender().lag_ns(ends.now_ns), kOneSecondNs);
    ends.exchange();
    EXPECT_FALSE(ends.source.sender().is_behind(0));
    EXPECT_EQ(ends.source.sender().lag_ns(ends.now_ns), 0);
    const auto last = ends.made.back().frame;
    std::erase_if(ends.made, [&](const MadeWrite& made) { return made.frame != last; });
    ASSERT_GE(ends.made.size(), 3U);
    EXPECT_THAT(std::span(ends.made).last(3),
                ElementsAre(MadeWrite{last, 4296, 80}, MadeWrite{last, 4300, 71, true},
                            MadeWrite{last, 5116, 2}));
}

TEST_F(Sending, keeps_no_more_than_a_window_and_a_copy_however_slow_the_other_end_is) {
    fill_window();
    const std::size_t full = ends.source.out().left().size();
    for (std::uint32_t i = 0; i < 100'000; ++i) {
        ends.write(1, i % 256 * 4, i);
        ends.source.sender().pump(ends.now_ns);
    }
    EXPECT_EQ(ends.source.out().left().size(), full);
    ends.exchange();
    EXPECT_EQ(ends.word(4096 + 99'999 % 256 * 4), 99'999U);
}

TEST(Limits, are_asked_once_for_a_commit_which_leaves_whole) {
    BridgeEnds ends({{"slow", 0, 64, {}, 0, 10}}, {{"slow", 0, 64}});
    ends.connect();
    ends.now_ns += 10 * kOneSecondNs;
    ends.made.clear();
    for (std::uint32_t i = 0; i < 3; ++i) ends.write(1, i * 4, i + 1, false, i < 2);
    ends.exchange();
    ASSERT_EQ(ends.made.size(), 3U);
    EXPECT_EQ(ends.made[2].frame, ends.made[0].frame);
    EXPECT_EQ(ends.source.sender().counts().conflated, 0U);
}

TEST(Limits, conflate_and_let_the_latest_through_in_their_time) {
    BridgeEnds ends({{"slow", 0, 64, {}, 0, 10}, {"fast", 64, 64, {}, 0, 0}},
                    {{"slow", 0, 64}, {"fast", 64, 64}});
    ends.connect();
    ends.now_ns += 10 * kOneSecondNs;
    ends.made.clear();
    for (std::uint32_t i = 1; i <= 100; ++i) {  // 10 ms each: a second
        ends.write(1, 0, i);
        ends.write(1, 64, i);
        ends.exchange();
        ends.now_ns += kOneSecondNs / 100;
    }
    const auto slow = std::count_if(ends.made.begin(), ends.made.end(),
                                    [](const MadeWrite& made) { return made.offset == 0; });
    EXPECT_GE(slow, 10);
    EXPECT_LE(slow, 12);
    EXPECT_EQ(ends.word(64), 100U);
    ends.now_ns += kOneSecondNs;
    ends.exchange();
    EXPECT_EQ(ends.word(0), 100U);
}

TEST_F(Sending, heals_a_lost_line_by_a_fresh_copy_of_all_words) {
    ends.write(1, 0, 10);
    ends.write(1, 1020, 20);
    ends.exchange();
    ends.write(1, 4, 11);  // lost on its way
    ends.source.run(ends.now_ns);
    ends.disconnect();
    ends.write(1, 8, 12);
    std::fill(ends.memory.begin(), ends.memory.end(), 77);
    ends.connect();
    EXPECT_THAT(std::span(ends.memory).subspan(1024, 4), ElementsAre(10, 11, 12, 0));
    EXPECT_EQ(ends.word(5116), 20U);
    EXPECT_EQ(ends.word(4092), 77U);
    EXPECT_EQ(ends.word(5120), 77U);
    EXPECT_EQ(ends.source.counts().lines_lost, 1U);
}

TEST_F(Sending, copies_the_memory_once_more_where_writes_were_missed) {
    ends.write(1, 0, 10);
    ends.write(1, 4, 11);
    ends.exchange();
    Sender& sender = ends.source.sender();
    sender.begin_anew(ends.now_ns);
    const std::uint32_t value = 12;
    sender.take_seen({1, 0, 4, std::as_bytes(std::span(&value, 1)), false, false}, ends.now_ns);
    ends.exchange();
    EXPECT_EQ(ends.word(4096), 0U);
    EXPECT_EQ(ends.word(4100), 12U);
}

TEST(SenderInvariants, only_open_regions_leave_and_times_never_go_back) {
    Sender sender({region()});
    const std::uint32_t value = 1;
    const SourceWrite write{1, 0, 0, std::as_bytes(std::span(&value, 1)), false, true};
    sender.open(0, 5);
    sender.pump(5);
    ASSERT_TRUE(sender.acknowledge(1, 5));
    sender.take(write, 6);
    EXPECT_BROKEN(sender.pump(5));
    EXPECT_BROKEN(sender.take(write, 5));
    EXPECT_BROKEN(static_cast<void>(sender.acknowledge(1, 5)));
}

TEST(ImageInvariants, words_are_the_regions) {
    Image image(4);
    const std::array<std::byte, 8> words{};
    image.put(2, words, true, true);
    EXPECT_BROKEN(image.put(3, words, false, true));
    EXPECT_BROKEN(image.put(SIZE_MAX, words, false, true));
    EXPECT_BROKEN(image.put(0, std::span(words).first(6), false, true));
}

TEST(ImageInvariants, a_mark_is_of_a_word_of_the_region) {
    Image image(4);
    image.mark(3);
    EXPECT_BROKEN_WHERE_CHECKED(image.mark(4));
}

}  // namespace
}  // namespace bridge
