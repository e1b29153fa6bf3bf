// SPDX-License-Identifier: Apache-2.0

/// What another site can make a target ring's end write: the declared regions, and nothing else.

#include "bridge/receiver.hpp"

#include "tests/support/broken.hpp"

#include <gmock/gmock.h>

namespace bridge {
namespace {

using Bytes = std::vector<std::byte>;

Bytes body_of(std::uint64_t number, std::initializer_list<Piece> pieces) {
    Bytes encoded, message;
    for (const Piece& piece : pieces) append_piece(encoded, piece);
    write_frame(message, {number, 0, 0}, encoded);
    message.erase(message.begin(), message.begin() + rmem::FrameWriter::kHeaderBytes);
    return message;
}

const Bytes kTwoWords(8, std::byte{1});

struct Receiving : ::testing::Test {
    Receiving() : receiver({{"first", 1024, 64}, {"second", 4096, 8}}) {
        receiver.begin();
        receiver.call(0, 1);
        receiver.call(1, 0);
        receiver.admit(0, true);
        receiver.admit(1, true);
    }
    Receiver receiver;
};

TEST_F(Receiving, puts_each_piece_where_its_region_lies) {
    ASSERT_TRUE(receiver.take(body_of(1, {{0, 0, 0, kTwoWords}, {1, 1, 14, kTwoWords}})));
    const Delivery& delivery = *receiver.delivery();
    ASSERT_EQ(delivery.writes.size(), 2U);
    EXPECT_EQ(delivery.writes[0].offset, 4096U);
    EXPECT_EQ(delivery.writes[1].offset, 1024U + 56);
    EXPECT_TRUE(delivery.writes[1].is_interrupt);
    receiver.delivered();
    EXPECT_EQ(receiver.taken(), 1U);
}

TEST_F(Receiving, refuses_a_frame_of_which_any_word_lies_outside) {
    for (const Piece& piece : {Piece{0, 0, 1, kTwoWords}, Piece{0, 0, 2, kTwoWords},
                               Piece{1, 0, 15, kTwoWords}, Piece{1, 0, UINT32_MAX, kTwoWords},
                               Piece{2, 0, 0, kTwoWords}, Piece{UINT16_MAX, 0, 0, kTwoWords}}) {
        EXPECT_FALSE(receiver.take(body_of(1, {{1, 0, 0, kTwoWords}, piece})));
        EXPECT_EQ(receiver.delivery(), nullptr);
    }
}

TEST_F(Receiving, refuses_a_frame_out_of_its_turn_cut_or_too_long) {
    EXPECT_FALSE(receiver.take(body_of(2, {{1, 0, 0, kTwoWords}})));
    const Bytes whole = body_of(1, {{1, 0, 0, kTwoWords}});
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
        EXPECT_FALSE(receiver.take(std::span(whole).first(bytes))) << bytes;
    Bytes many;
    for (std::size_t i = 0; i <= kMaxPieces; ++i) append_piece(many, {1, 0, 0, kTwoWords});
    Bytes message;
    write_frame(message, {1, 0, 0}, many);
    EXPECT_FALSE(receiver.take(std::span(message).subspan(rmem::FrameWriter::kHeaderBytes)));
    EXPECT_TRUE(receiver.take(whole));
    receiver.delivered();
    EXPECT_FALSE(receiver.take(whole));
}

TEST_F(Receiving, leaves_out_what_is_for_a_region_that_is_not_admitted) {
    receiver.admit(0, false);
    ASSERT_TRUE(receiver.take(body_of(1, {{0, 0, 0, kTwoWords}, {1, 0, 0, kTwoWords}})));
    ASSERT_EQ(receiver.delivery()->writes.size(), 1U);
    EXPECT_EQ(receiver.delivery()->writes[0].region, 1U);
    receiver.delivered();
    EXPECT_TRUE(receiver.take(body_of(2, {{1, 0, 0, kTwoWords}})));
    EXPECT_EQ(receiver.delivery(), nullptr);
    EXPECT_EQ(receiver.taken(), 2U);
}

TEST(ReceiverInvariants, a_frame_is_taken_when_the_last_was_delivered_and_delivered_once) {
    Receiver receiver({{"first", 1024, 64}});
    EXPECT_BROKEN(receiver.delivered());
    receiver.begin();
    receiver.call(0, 0);
    receiver.admit(0, true);
    ASSERT_TRUE(receiver.take(body_of(1, {{0, 0, 0, kTwoWords}})));
    EXPECT_BROKEN(static_cast<void>(receiver.take(body_of(2, {{0, 0, 0, kTwoWords}}))));
}

}  // namespace
}  // namespace bridge
