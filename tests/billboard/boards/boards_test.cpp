// SPDX-License-Identifier: Apache-2.0
// ctest: check optimised

/// Both posting boards alone, over plain memory, against a model: a queue per pair of ranks.
///
/// Everything runs in one thread, so that any interleaving can be told and millions of steps are
/// few seconds. The others see a rank's writes at once, or late but in its order.

#include "tests/support/boards_model.hpp"
#include "tests/support/sanitizers.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace billboard {
namespace {

using namespace test;

template <class K>
struct Boards : ::testing::Test {};

struct KindNames {
    template <class K>
    static std::string GetName(int) {
        return K::kName;
    }
};
/// What is tuned is right at any value.
constexpr lines::Tuning kNone{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
constexpr lines::Tuning kTenfold{2560, 160, 80, 30,   40,  160, 100, 50,
                                 140,  20,  40, 1600, 640, 480, 240};
template <class M>
using UntunedBoard = lines::LineBoardOf<M, false, kNone>;
template <class M>
using OvertunedBoard = lines::LineBoardOf<M, false, kTenfold>;
struct Untuned : Kind<UntunedBoard, false> {
    static constexpr const char* kName = "inline_untuned";
};
struct Overtuned : Kind<OvertunedBoard, false> {
    static constexpr const char* kName = "inline_overtuned";
};
using Kinds =
    ::testing::Types<Kind<LineBoard, false>, Untuned, Overtuned, Kind<LineBoard, true>,
                     Kind<PieceBoard, true>, Kind<PaperBoard, false>, Kind<PaperBoard, true>>;
TYPED_TEST_SUITE(Boards, Kinds, KindNames);

constexpr unsigned kSteps = rmem::test::kSanitized ? 10'000 : 400'000;

TYPED_TEST(Boards, do_what_a_queue_does) {
    for (const unsigned ranks : {2U, 3U}) {
        Walk<TypeParam>(ranks, Seen::at_once, ranks).run(kSteps, kSteps);
    }
}

TYPED_TEST(Boards, do_what_a_queue_does_when_stores_are_seen_late_but_in_order) {
    for (const unsigned ranks : {2U, 3U}) {
        Walk<TypeParam>(ranks, Seen::when_delivered, 10 + ranks).run(kSteps, kSteps);
    }
}

TYPED_TEST(Boards, begin_again_with_ranks_that_come_back) {
    for (const Seen seen : {Seen::at_once, Seen::when_delivered}) {
        for (const unsigned steps_per_incarnation : {50U, 700U, 9'000U}) {
            Walk<TypeParam>(3, seen, steps_per_incarnation).run(kSteps / 4, steps_per_incarnation);
        }
    }
}

TYPED_TEST(Boards, ring_bells_rightly_for_many_ranks) {
    for (const Seen seen : {Seen::at_once, Seen::when_delivered}) {
        Walk<TypeParam>(kBellRanks + 1, seen, 17).run(kSteps / 4, 20'000);
    }
}

TYPED_TEST(Boards, show_a_burst_of_any_length_after_silence_of_any_length) {
    Ranks<TypeParam> all(2);
    for (unsigned silence = 0; silence < 200; ++silence) {
        for (unsigned burst = 1; burst <= TypeParam::kCertain; ++burst) {
            for (unsigned i = 0; i < silence; ++i) {
                ASSERT_TRUE(all.post_inline(0, 1, 4) && all.take(1, 0));
                ASSERT_TRUE(all.post_inline(1, 0, 4) && all.take(0, 1));
                Arrival none;
                ASSERT_FALSE(all.look(1, 0, none) || all.look(0, 1, none));
            }
            for (unsigned i = 0; i < burst; ++i) ASSERT_TRUE(all.post_inline(0, 1, 8));
            if (TypeParam::kCertain == TypeParam::kSlots) {
                EXPECT_EQ(all.room(0, 1), !TypeParam::kIsInline || burst < TypeParam::kSlots);
            }
            for (unsigned i = 0; i < burst; ++i) ASSERT_TRUE(all.take(1, 0));
            ASSERT_TRUE(all.room(0, 1));
            ASSERT_TRUE(all.post_inline(1, 0, 4) && all.take(0, 1));  // tells of them all
        }
    }
}

TYPED_TEST(Boards, take_messages_of_others_while_their_own_are_left_unread) {
    // 0 is silent, or has said something that 1 does not read, while 1 sends to it.
    for (unsigned said = 0; said <= 24U; said += 1 + said / 4) {
        Ranks<TypeParam> all(2);
        for (unsigned round = 0; round < 300; ++round) {
            for (unsigned i = 0; i < said && all.post_inline(0, 1, 4); ++i) {
            }
            for (unsigned i = 0; i < 7 * round; ++i) {
                ASSERT_TRUE(all.post_inline(1, 0, 4));
                if (all.room(1, 0) && i % 3 == 0) continue;
                while (all.take(0, 1)) {
                }
            }
            while (all.take(0, 1)) {
            }
            // Now the old counts come.
            while (all.post_inline(1, 0, 4) && all.waiting(1, 0) < TypeParam::kSlots - 1) {
            }
            while (all.take(1, 0)) all.room(1, 0);
            while (all.take(0, 1)) {
            }
        }
    }
}

TYPED_TEST(Boards, have_no_room_for_a_rank_that_is_gone_but_show_what_it_sent) {
    Ranks<TypeParam> all(2);
    for (unsigned i = 0; i < 5; ++i) {
        ASSERT_TRUE(all.post_inline(0, 1, 8) && all.post_alone(0, 1, 20) && all.take(1, 0));
    }
    unsigned sent = 0;
    while (all.post_inline(1, 0, 8)) ++sent;
    ASSERT_GE(sent, TypeParam::kCertain);
    all.end(0, 1);
    EXPECT_EQ(all.board(0).busy(), 0U);
    for (unsigned i = 0; i < sent; ++i) {
        EXPECT_FALSE(all.board(0).tx_room(1));
        ASSERT_TRUE(all.take(0, 1));
    }
    EXPECT_FALSE(all.board(0).tx_room(1));
    EXPECT_FALSE(all.take(0, 1));
}

TYPED_TEST(Boards, give_room_to_a_sender_to_whom_nothing_is_said) {
    Ranks<TypeParam> all(2);
    const std::uint64_t before = all.banks().stores(1);
    constexpr unsigned kMessages = 10'000;
    for (unsigned i = 0; i < kMessages; ++i) {
        ASSERT_TRUE(all.post_inline(0, 1, 4)) << "message " << i;
        ASSERT_TRUE(all.take(1, 0));
    }
    const std::uint64_t answers = all.banks().stores(1) - before;
    if constexpr (TypeParam::kIsInline) {  // two words each: of messages, and of lines
        EXPECT_EQ(answers, 2 * (kMessages / TypeParam::Board::kTellEvery));
    } else {
        EXPECT_EQ(answers, kMessages);
    }
}

/// For the layout `inline` alone.
template <class K>
struct LineBoards : ::testing::Test {};
using LineKinds =
    ::testing::Types<Kind<LineBoard, false>, Kind<LineBoard, true>, Kind<PieceBoard, true>>;
TYPED_TEST_SUITE(LineBoards, LineKinds, KindNames);

template <class K>
std::uint32_t line_word(Ranks<K>& all, unsigned line) {
    return all.banks().load(0, all.geometry().lines(1, 0) + line * rmem::kLineBytes);
}

TYPED_TEST(LineBoards, keep_two_ranks_that_answer_each_other_in_the_slot) {
    Ranks<TypeParam> all(2);
    const std::uint64_t before = all.banks().stores(0) + all.banks().stores(1);
    constexpr unsigned kRounds = 1000;
    for (unsigned i = 0; i < kRounds; ++i) {
        ASSERT_TRUE(all.post_inline(0, 1, 4) && all.take(1, 0));
        ASSERT_EQ(all.last_place(), 0U);
        ASSERT_TRUE(all.post_inline(1, 0, 4) && all.take(0, 1));
        ASSERT_EQ(all.last_place(), 0U);
    }
    // Payload and flag, and nothing for acknowledgements.
    EXPECT_EQ(all.banks().stores(0) + all.banks().stores(1) - before, 2 * 2 * kRounds);
}

TYPED_TEST(LineBoards, begin_a_line_for_each_message_that_is_answered) {
    Ranks<TypeParam> all(2);
    for (unsigned i = 0; i < 100; ++i) {
        ASSERT_TRUE(all.post_inline(0, 1, 40) && all.take(1, 0));
        EXPECT_NE(line_word(all, i), 0U);
        EXPECT_EQ(line_word(all, i + 1), 0U);
        ASSERT_TRUE(all.post_inline(1, 0, 40) && all.take(0, 1));
    }
}

TYPED_TEST(LineBoards, write_no_line_again_before_its_reader_has_left_it) {
    for (const unsigned ranks : {64U, 100U}) {  // with few lines for each pair
        Ranks<TypeParam> all(ranks);
        const auto most = static_cast<unsigned>(all.geometry().most_line_bytes());
        ASSERT_LE(all.geometry().lines(), 16U);
        std::mt19937 rng(ranks);
        for (unsigned round = 0; round < kSteps / 100; ++round) {
            while (all.post_inline(0, 1, rng() % (most + 1)) && rng() % 16 != 0) {
            }
            for (unsigned taken = rng() % 8; taken > 0 && all.take(1, 0); --taken) {
            }
            if (rng() % 4 == 0) {
                while (all.take(1, 0)) {
                }
            }
            if (rng() % 4 == 0 && all.post_inline(1, 0, 8)) {
                ASSERT_TRUE(all.take(0, 1));
            }
        }
    }
}

TYPED_TEST(LineBoards, have_room_for_the_longest_message_whenever_all_is_taken) {
    for (const unsigned ranks : {2U, 64U, 255U}) {
        Ranks<TypeParam> all(ranks);
        const std::size_t most = all.geometry().most_line_bytes();
        for (unsigned i = 0; i < 3 * all.geometry().lines(); ++i) {
            ASSERT_TRUE(all.post_inline(0, 1, most)) << ranks << " ranks, message " << i;
            ASSERT_TRUE(all.take(1, 0));
        }
    }
}

TYPED_TEST(LineBoards, show_nothing_of_words_that_no_rank_writes_but_corrupt_messages) {
    Ranks<TypeParam> all(3);
    std::mt19937 rng(7);
    auto& victim = all.board(1);
    const std::size_t slot = all.geometry().slot(1, 0), lines = all.geometry().lines(1, 0);
    const std::size_t told = all.geometry().consumed(1, 0), left = all.geometry().position(1, 0);
    for (unsigned i = 0; i < kSteps; ++i) {
        const std::size_t line = rng() % 2 == 0 ? slot : lines + rng() % 8 * rmem::kLineBytes;
        // Half of them one bit from the present value, so that many look new.
        const std::uint32_t now = all.banks().load(0, line);
        const auto word =
            static_cast<std::uint32_t>(rng() % 2 == 0 ? rng() : now ^ 1U << rng() % 32);
        all.banks().store(0, line, word);
        for (unsigned w = 1; w < 8; ++w) {
            all.banks().store(0, line + w * 4, static_cast<std::uint32_t>(rng()) >> rng() % 32);
        }
        all.banks().store(0, told, static_cast<std::uint32_t>(rng()));
        all.banks().store(0, left, static_cast<std::uint32_t>(rng()));
        Arrival a;
        std::array<std::byte, kMaxLineBytes> copy;
        if (victim.peek(0, a)) {
            ASSERT_TRUE(a.corrupt ||
                        (a.is_inline ? a.length <= kMaxLineBytes
                                     : a.buffer < kBuffers && a.descriptor.offset + a.length <=
                                                                  all.geometry().data_bytes()));
            if (a.is_inline && !a.corrupt) std::memcpy(copy.data(), a.payload, a.length);
            victim.take(0, a);
        }
        int length = victim.receive_at_once(0, Class::user, copy.data(), copy.size());
        if (length == victim.kInLines) {
            // Its header is another one by now.
            for (unsigned w = 1; w < 16; ++w)
                all.banks().store(0, line + w * 4, static_cast<std::uint32_t>(rng()) >> rng() % 32);
            length = victim.receive_lines(0, Class::user, copy.data(), copy.size());
        }
        ASSERT_LE(length, static_cast<int>(copy.size()));
        if (victim.tx_room(0)) victim.post_inline(0, Class::user, &word, sizeof word);
        // The third rank notices nothing.
        if (i % 16 == 0) {
            ASSERT_TRUE(all.post_inline(2, 1, 40) && all.take(1, 2));
            ASSERT_TRUE(all.post_inline(1, 2, 8) && all.take(2, 1));
        }
    }
}

/// A line's word, where messages are written in pieces: how many words of it are there, and that no
/// more come.
constexpr std::uint32_t kThere = 15, kClosed = 16;

/// Where messages are written in pieces, those of a stream share lines.
template <class K>
struct PieceBoards : ::testing::Test {};
using PieceKinds = ::testing::Types<Kind<LineBoard, false>, Kind<PieceBoard, true>>;
TYPED_TEST_SUITE(PieceBoards, PieceKinds, KindNames);

TYPED_TEST(PieceBoards, put_the_messages_of_a_stream_behind_each_other) {
    Ranks<TypeParam> all(2);
    ASSERT_TRUE(all.post_inline(0, 1, 8));  // in the slot
    for (unsigned words = 3; words <= 15; words += 3) {
        ASSERT_TRUE(all.post_inline(0, 1, 8));
        EXPECT_EQ(line_word(all, 0) & kThere, words);
        EXPECT_EQ((line_word(all, 0) & kClosed) != 0, words == 15);
    }
    ASSERT_TRUE(all.post_inline(0, 1, 57));  // and over the end of a line
    ASSERT_TRUE(all.post_inline(0, 1, 0));
    EXPECT_EQ(line_word(all, 1) & kThere, 15U);
    EXPECT_EQ(line_word(all, 2) & kThere, 2U);
    all.drain();
    EXPECT_EQ(all.waiting(0, 1), 0U);
}

TYPED_TEST(PieceBoards, begin_a_line_where_one_more_message_like_the_last_would_span_two) {
    Ranks<TypeParam> all(2);
    ASSERT_TRUE(all.post_inline(0, 1, 8));  // in the slot
    for (unsigned i = 0; i < 8; ++i) {
        ASSERT_TRUE(all.post_inline(0, 1, 32));
        EXPECT_EQ(line_word(all, i) & (kThere | kClosed), 9 | kClosed) << "line " << i;
    }
    for (unsigned i = 8; i < 12; ++i) {
        ASSERT_TRUE(all.post_inline(0, 1, 24));
        ASSERT_TRUE(all.post_inline(0, 1, 24));
        EXPECT_EQ(line_word(all, i) & (kThere | kClosed), 14 | kClosed) << "line " << i;
    }
    all.drain();
    EXPECT_EQ(all.waiting(0, 1), 0U);
}

TYPED_TEST(PieceBoards, put_messages_of_several_lines_behind_each_other_in_a_stream) {
    Ranks<TypeParam> all(2);
    ASSERT_TRUE(all.post_inline(0, 1, 8));  // in the slot
    ASSERT_TRUE(all.post_inline(0, 1, 100));
    EXPECT_EQ(line_word(all, 1) & (kThere | kClosed), 11U);
    ASSERT_TRUE(all.post_inline(0, 1, 100));
    EXPECT_EQ(line_word(all, 1) & (kThere | kClosed), 15 | kClosed);
    EXPECT_EQ(line_word(all, 3) & (kThere | kClosed), 7U);
    ASSERT_TRUE(all.post_inline(0, 1, 28));  // with its header 8 words
    EXPECT_EQ(line_word(all, 3) & (kThere | kClosed), 15 | kClosed);
    all.drain();
    EXPECT_EQ(all.waiting(0, 1), 0U);
}

TEST(WholeBoard, writes_a_message_at_once_and_each_into_lines_of_its_own) {
    Ranks<Kind<LineBoard, true>> all(2);
    ASSERT_TRUE(all.post_inline(0, 1, 8));  // in the slot
    const std::uint64_t before = all.banks().stores(0);
    ASSERT_TRUE(all.post_inline(0, 1, 8));
    ASSERT_TRUE(all.post_inline(0, 1, 60));
    ASSERT_TRUE(all.post_inline(0, 1, 61));
    ASSERT_TRUE(all.post_inline(0, 1, 176));
    EXPECT_EQ(all.banks().stores(0) - before, 3U + 16 + 19 + 48) << "nothing but these words";
    constexpr std::uint32_t kDetails = 0xff, kLong = 3 << 6;  // kind and length
    EXPECT_EQ(line_word(all, 0) & kDetails, 8U);
    EXPECT_EQ(line_word(all, 1) & kDetails, 60U);
    EXPECT_EQ(line_word(all, 2) & kDetails, kLong);
    EXPECT_EQ(line_word(all, 3) & kDetails, 0U);
    EXPECT_EQ(line_word(all, 4) & kDetails, kLong);
    all.drain();
    EXPECT_EQ(all.waiting(0, 1), 0U);
}

}  // namespace
}  // namespace billboard
