// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/device/matching.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

namespace mpi_channel {
namespace {

constexpr std::uint64_t kAllBits = ~std::uint64_t{0};
constexpr std::uint64_t kTopBit = std::uint64_t{1} << 63;

Wanted from(Source source, std::uint64_t tag = 0, std::uint64_t ignore = 0) {
    return {source, tag, ignore};
}

Wanted from_any(std::uint64_t tag = 0, std::uint64_t ignore = 0) {
    return {kAnySource, tag, ignore};
}

Receive one(const Wanted& wanted, std::size_t capacity = 100) {
    Receive receive;
    receive.wanted = wanted;
    receive.capacity = capacity;
    return receive;
}

Receive several(const Wanted& wanted, std::size_t capacity, std::size_t least) {
    Receive receive = one(wanted, capacity);
    receive.least = least;
    return receive;
}

Message message(Source source, std::uint64_t tag = 0, std::size_t size = 8) {
    Message message;
    message.envelope = {source, tag, size};
    return message;
}

/// For example "8 bytes at 0, cut, last".
std::string shown(const Placement& placement) {
    return std::to_string(placement.bytes) + " bytes at " + std::to_string(placement.at) +
           (placement.cut ? ", cut" : "") + (placement.last ? ", last" : "");
}

class MatchingTest : public ::testing::Test {
protected:
    /// Posts a receive that no unexpected message fits.
    void wait_with(Receive& receive) {
        Placement unused;
        ASSERT_EQ(matcher.post(receive, unused), nullptr);
    }

    /// Posts a receive; the message that it takes, or null.
    Message* take_with(Receive& receive) { return matcher.post(receive, placement); }

    /// The receive that gets such a message, or null.
    Receive* arrive(Source source, std::uint64_t tag = 0, std::size_t size = 8) {
        const auto match = matcher.arrive({source, tag, size});
        if (!match) return nullptr;
        placement = match->placement;
        return match->receive;
    }

    /// A message that fits nothing posted.
    void come_early(Message& early) {
        ASSERT_FALSE(matcher.arrive(early.envelope));
        matcher.keep(early);
    }

    Matcher matcher{6};
    Placement placement;  ///< of the last message that found its receive
};

// ---- Which receive a message gets

TEST_F(MatchingTest, a_message_that_nobody_waits_for_finds_nothing) {
    EXPECT_EQ(arrive(1), nullptr);
    EXPECT_EQ(matcher.posted(), 0U);
    EXPECT_EQ(matcher.unexpected(), 0U) << "the caller has not kept it";
}

TEST_F(MatchingTest, a_message_goes_to_the_receive_that_waits_for_it) {
    Receive receive = one(from(1, 7));
    wait_with(receive);
    EXPECT_EQ(matcher.posted(), 1U);
    EXPECT_EQ(arrive(1, 7, 8), &receive);
    EXPECT_EQ(shown(placement), "8 bytes at 0, last");
    EXPECT_EQ(receive.used, 8U);
    EXPECT_EQ(matcher.posted(), 0U);
    EXPECT_EQ(arrive(1, 7), nullptr) << "it takes one message";
}

TEST_F(MatchingTest, messages_go_to_the_receives_that_they_fit_in_the_order_of_their_posting) {
    std::array receives{one(from(2)), one(from(2)), one(from(2))};
    for (Receive& receive : receives) wait_with(receive);
    for (Receive& receive : receives) EXPECT_EQ(arrive(2), &receive);
    EXPECT_EQ(arrive(2), nullptr);
}

TEST_F(MatchingTest, a_message_passes_by_receives_of_other_tags_and_sources) {
    Receive other_tag = one(from(1, 5));
    Receive other_source = one(from(2, 6));
    Receive any_other_tag = one(from_any(5));
    Receive fitting = one(from(1, 6));
    for (Receive* receive : {&other_tag, &other_source, &any_other_tag, &fitting})
        wait_with(*receive);
    EXPECT_EQ(arrive(1, 6), &fitting);
    EXPECT_EQ(matcher.posted(), 3U);
    EXPECT_EQ(arrive(3, 5), &any_other_tag) << "those passed by wait on";
    EXPECT_EQ(arrive(2, 6), &other_source);
    EXPECT_EQ(arrive(1, 5), &other_tag);
}

TEST_F(MatchingTest, the_receive_that_was_posted_first_wins_directed_or_from_any_source) {
    Receive any = one(from_any(1));
    Receive directed = one(from(1, 1));
    Receive directed_first = one(from(2, 2));
    Receive any_later = one(from_any(2));
    for (Receive* receive : {&any, &directed, &directed_first, &any_later}) wait_with(*receive);
    EXPECT_EQ(arrive(1, 1), &any);
    EXPECT_EQ(arrive(1, 1), &directed);
    EXPECT_EQ(arrive(2, 2), &directed_first);
    EXPECT_EQ(arrive(2, 2), &any_later);
}

TEST_F(MatchingTest, directed_receives_and_others_posted_in_turns_are_served_in_turns) {
    std::array receives{one(from(1)), one(from_any()), one(from(1)), one(from_any()), one(from(1))};
    for (Receive& receive : receives) wait_with(receive);
    for (Receive& receive : receives) EXPECT_EQ(arrive(1), &receive);
}

TEST_F(MatchingTest, an_earlier_receive_that_does_not_fit_lets_a_later_one_win) {
    Receive any_of_other_tag = one(from_any(1));
    Receive directed = one(from(1, 2));
    Receive any = one(from_any(2));
    for (Receive* receive : {&any_of_other_tag, &directed, &any}) wait_with(*receive);
    EXPECT_EQ(arrive(1, 2), &directed);
    EXPECT_EQ(arrive(1, 2), &any);
    EXPECT_EQ(arrive(1, 1), &any_of_other_tag);
}

TEST_F(MatchingTest, every_source_from_the_first_to_the_last_has_receives_of_its_own) {
    std::array<Receive, 6> receives;
    for (Source source = 0; source < 6; ++source) {
        receives[source] = one(from(source));
        wait_with(receives[source]);
    }
    for (Source source = 6; source-- > 0;) EXPECT_EQ(arrive(source), &receives[source]);
}

// ---- Which message a receive gets

TEST_F(MatchingTest, an_unexpected_message_waits_for_its_receive) {
    Message early = message(3, 4, 20);
    come_early(early);
    EXPECT_EQ(matcher.unexpected(), 1U);
    Receive receive = one(from(3, 4));
    EXPECT_EQ(take_with(receive), &early);
    EXPECT_EQ(shown(placement), "20 bytes at 0, last");
    EXPECT_EQ(receive.used, 20U);
    EXPECT_EQ(matcher.unexpected(), 0U);
    EXPECT_EQ(matcher.posted(), 0U) << "it is over and waits no more";
}

TEST_F(MatchingTest, unexpected_messages_of_one_source_are_received_in_order) {
    std::array early{message(1), message(1), message(1)};
    for (Message& each : early) come_early(each);
    for (Message& each : early) {
        Receive receive = one(from(1));
        EXPECT_EQ(take_with(receive), &each);
    }
}

TEST_F(MatchingTest, a_receive_from_any_source_takes_the_message_that_came_first_of_all_sources) {
    std::array early{message(4), message(1), message(5), message(1), message(0)};
    for (Message& each : early) come_early(each);
    for (Message& each : early) {
        Receive receive = one(from_any());
        EXPECT_EQ(take_with(receive), &each);
    }
}

TEST_F(MatchingTest, a_directed_receive_passes_by_earlier_messages_of_other_sources_and_tags) {
    std::array early{message(2, 1), message(1, 2), message(1, 1), message(1, 1)};
    for (Message& each : early) come_early(each);
    Receive directed = one(from(1, 1));
    Receive any = one(from_any(1));
    Receive second = one(from(1, 1));
    EXPECT_EQ(take_with(directed), &early[2]);
    EXPECT_EQ(take_with(any), &early[0]) << "those passed by keep their places";
    EXPECT_EQ(take_with(second), &early[3]);
    EXPECT_EQ(matcher.unexpected(), 1U);
}

TEST_F(MatchingTest, a_receive_that_no_unexpected_message_fits_waits_beside_them) {
    Message early = message(1, 1);
    come_early(early);
    Receive receive = one(from(1, 2));
    wait_with(receive);
    EXPECT_EQ(matcher.posted(), 1U);
    EXPECT_EQ(arrive(1, 2), &receive);
    EXPECT_EQ(matcher.unexpected(), 1U);
}

// ---- Ignored bits

TEST_F(MatchingTest, all_64_bits_of_a_tag_count) {
    Receive receive = one(from(1, kTopBit | 1));
    wait_with(receive);
    for (const std::uint64_t tag : {std::uint64_t{0}, std::uint64_t{1}, kTopBit, kTopBit | 3})
        EXPECT_EQ(arrive(1, tag), nullptr);
    EXPECT_EQ(arrive(1, kTopBit | 1), &receive);
}

TEST_F(MatchingTest, ignored_bits_of_a_tag_do_not_count_and_all_others_do) {
    Receive receive = one(from(1, 0x50, 0x0f));
    wait_with(receive);
    EXPECT_EQ(arrive(1, 0x60), nullptr);
    EXPECT_EQ(arrive(1, kTopBit | 0x50), nullptr);
    EXPECT_EQ(arrive(1, 0x5a), &receive);
}

TEST_F(MatchingTest, bits_set_in_both_the_tag_asked_for_and_what_it_ignores_do_not_count) {
    Receive receive = one(from(1, 0x5f, 0x0f));
    wait_with(receive);
    EXPECT_EQ(arrive(1, 0x50), &receive);
}

TEST_F(MatchingTest, a_receive_that_ignores_all_bits_takes_any_tag_of_its_source) {
    Receive receive = one(from(1, 7, kAllBits));
    wait_with(receive);
    EXPECT_EQ(arrive(2, 7), nullptr);
    EXPECT_EQ(arrive(1, kTopBit), &receive);
}

TEST_F(MatchingTest, an_earlier_receive_of_any_tag_wins_over_a_later_exact_one) {
    Receive loose = one(from(1, 0, kAllBits));
    Receive exact = one(from(1, 3));
    wait_with(loose);
    wait_with(exact);
    EXPECT_EQ(arrive(1, 3), &loose);
    EXPECT_EQ(arrive(1, 3), &exact);
}

TEST_F(MatchingTest, a_receive_of_any_tag_takes_the_unexpected_message_that_came_first) {
    std::array early{message(1, 9), message(1, 3)};
    for (Message& each : early) come_early(each);
    Receive loose = one(from(1, 3, kAllBits));
    EXPECT_EQ(take_with(loose), &early[0]);
}

// ---- Several messages into one buffer

TEST_F(MatchingTest, several_messages_lie_one_behind_the_other_until_less_than_the_least_is_free) {
    Receive receive = several(from_any(), 100, 20);
    wait_with(receive);
    EXPECT_EQ(arrive(1, 0, 30), &receive);
    EXPECT_EQ(shown(placement), "30 bytes at 0");
    EXPECT_EQ(arrive(2, 0, 50), &receive);
    EXPECT_EQ(shown(placement), "50 bytes at 30") << "20 bytes are free: not fewer than the least";
    EXPECT_EQ(matcher.posted(), 1U);
    EXPECT_EQ(arrive(1, 0, 1), &receive);
    EXPECT_EQ(shown(placement), "1 bytes at 80, last");
    EXPECT_EQ(receive.used, 81U);
    EXPECT_EQ(matcher.posted(), 0U);
    EXPECT_EQ(arrive(1, 0, 1), nullptr);
}

TEST_F(MatchingTest, a_buffer_that_one_message_fills_exactly_is_over_and_nothing_is_cut) {
    Receive receive = several(from(1), 16, 1);
    wait_with(receive);
    EXPECT_EQ(arrive(1, 0, 15), &receive);
    EXPECT_EQ(shown(placement), "15 bytes at 0");
    EXPECT_EQ(arrive(1, 0, 1), &receive);
    EXPECT_EQ(shown(placement), "1 bytes at 15, last");
}

TEST_F(MatchingTest, a_receive_of_several_keeps_its_place_before_those_posted_later) {
    Receive many = several(from(1), 100, 50);
    Receive later = one(from(1));
    wait_with(many);
    wait_with(later);
    EXPECT_EQ(arrive(1, 0, 30), &many);
    EXPECT_EQ(arrive(1, 0, 10), &many);
    EXPECT_EQ(arrive(1, 0, 30), &many);
    EXPECT_TRUE(placement.last);
    EXPECT_EQ(arrive(1), &later);
}

TEST_F(MatchingTest, messages_of_zero_bytes_do_not_end_a_receive_of_several) {
    Receive receive = several(from(1), 10, 10);
    wait_with(receive);
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(arrive(1, 0, 0), &receive);
        EXPECT_EQ(shown(placement), "0 bytes at 0");
    }
    EXPECT_EQ(arrive(1, 0, 1), &receive);
    EXPECT_EQ(shown(placement), "1 bytes at 0, last");
}

TEST_F(MatchingTest, a_least_larger_than_the_buffer_leaves_room_for_one_message) {
    Receive receive = several(from(1), 10, 11);
    wait_with(receive);
    EXPECT_EQ(arrive(1, 0, 0), &receive);
    EXPECT_EQ(shown(placement), "0 bytes at 0, last");
    Receive largest = several(from(1), 10, ~std::size_t{0});
    wait_with(largest);
    EXPECT_EQ(arrive(1, 0, 4), &largest);
    EXPECT_EQ(shown(placement), "4 bytes at 0, last");
}

TEST_F(MatchingTest, a_receive_of_several_takes_the_unexpected_ones_first_and_then_waits) {
    std::array early{message(1, 0, 10), message(2, 0, 20), message(1, 0, 30)};
    for (Message& each : early) come_early(each);
    Receive receive = several(from(1), 100, 20);
    EXPECT_EQ(take_with(receive), &early[0]);
    EXPECT_EQ(shown(placement), "10 bytes at 0");
    EXPECT_EQ(take_with(receive), &early[2]);
    EXPECT_EQ(shown(placement), "30 bytes at 10");
    EXPECT_EQ(matcher.posted(), 0U) << "not before it has asked without success";
    wait_with(receive);
    EXPECT_EQ(matcher.posted(), 1U);
    EXPECT_EQ(arrive(1, 0, 50), &receive);
    EXPECT_EQ(shown(placement), "50 bytes at 40, last");
    EXPECT_EQ(matcher.unexpected(), 1U);
}

TEST_F(MatchingTest, a_receive_of_several_that_unexpected_messages_fill_is_never_posted) {
    std::array early{message(1, 0, 6), message(1, 0, 6), message(1, 0, 6)};
    for (Message& each : early) come_early(each);
    Receive receive = several(from(1), 12, 4);
    EXPECT_EQ(take_with(receive), &early[0]);
    EXPECT_FALSE(placement.last);
    EXPECT_EQ(take_with(receive), &early[1]);
    EXPECT_EQ(shown(placement), "6 bytes at 6, last");
    EXPECT_EQ(matcher.posted(), 0U);
    EXPECT_EQ(matcher.unexpected(), 1U) << "the third is the next receive's";
    EXPECT_FALSE(matcher.cancel(receive));
}

// ---- Cutting

TEST_F(MatchingTest, a_message_as_long_as_the_buffer_is_not_cut_and_a_longer_one_is) {
    Receive fits = one(from(1), 8);
    Receive short_by_one = one(from(1), 8);
    wait_with(fits);
    wait_with(short_by_one);
    EXPECT_EQ(arrive(1, 0, 8), &fits);
    EXPECT_EQ(shown(placement), "8 bytes at 0, last");
    EXPECT_EQ(arrive(1, 0, 9), &short_by_one);
    EXPECT_EQ(shown(placement), "8 bytes at 0, cut, last");
    EXPECT_EQ(short_by_one.used, 8U);
}

TEST_F(MatchingTest, an_unexpected_message_that_is_too_long_is_cut_and_its_rest_is_lost) {
    Message early = message(1, 0, 50);
    come_early(early);
    Receive receive = one(from(1), 20);
    EXPECT_EQ(take_with(receive), &early);
    EXPECT_EQ(shown(placement), "20 bytes at 0, cut, last");
    EXPECT_EQ(early.envelope.size, 50U) << "the receiver can tell how long it was";
    EXPECT_EQ(matcher.unexpected(), 0U);
}

TEST_F(MatchingTest, an_empty_buffer_takes_a_message_of_zero_bytes_whole_and_cuts_any_other) {
    Receive whole = one(from(1), 0);
    Receive cut = one(from(1), 0);
    wait_with(whole);
    wait_with(cut);
    EXPECT_EQ(arrive(1, 0, 0), &whole);
    EXPECT_EQ(shown(placement), "0 bytes at 0, last");
    EXPECT_EQ(arrive(1, 0, 1), &cut);
    EXPECT_EQ(shown(placement), "0 bytes at 0, cut, last");
}

TEST_F(MatchingTest, what_is_too_long_for_the_rest_of_a_receive_of_several_is_cut_and_ends_it) {
    Receive receive = several(from(1), 100, 10);
    Receive next = one(from(1));
    wait_with(receive);
    wait_with(next);
    EXPECT_EQ(arrive(1, 0, 70), &receive);
    EXPECT_EQ(arrive(1, 0, 31), &receive) << "30 are free";
    EXPECT_EQ(shown(placement), "30 bytes at 70, cut, last");
    EXPECT_EQ(receive.used, 100U);
    EXPECT_EQ(arrive(1, 0, 1), &next);
}

TEST_F(MatchingTest, an_unexpected_message_too_long_for_the_rest_is_cut_likewise) {
    std::array early{message(1, 0, 7), message(1, 0, 7)};
    for (Message& each : early) come_early(each);
    Receive receive = several(from(1), 10, 1);
    EXPECT_EQ(take_with(receive), &early[0]);
    EXPECT_EQ(take_with(receive), &early[1]);
    EXPECT_EQ(shown(placement), "3 bytes at 7, cut, last");
}

TEST_F(MatchingTest, an_empty_buffer_for_several_is_over_after_one) {
    Receive receive = several(from(1), 0, 1);
    wait_with(receive);
    EXPECT_EQ(arrive(1, 0, 5), &receive);
    EXPECT_EQ(shown(placement), "0 bytes at 0, cut, last");
    EXPECT_EQ(matcher.posted(), 0U);
}

TEST_F(MatchingTest, sizes_near_the_largest_number_are_cut_like_others) {
    Receive receive = several(from(1), 100, 1);
    wait_with(receive);
    EXPECT_EQ(arrive(1, 0, 60), &receive);
    EXPECT_EQ(arrive(1, 0, ~std::size_t{0} - 10), &receive);
    EXPECT_EQ(shown(placement), "40 bytes at 60, cut, last");
}

// ---- Cancelling

TEST_F(MatchingTest, a_cancelled_receive_gets_nothing_and_the_next_one_does) {
    std::array receives{one(from(1)), one(from(1)), one(from_any()), one(from(1))};
    for (Receive& receive : receives) wait_with(receive);
    EXPECT_TRUE(matcher.cancel(receives[1]));
    EXPECT_TRUE(matcher.cancel(receives[2]));
    EXPECT_EQ(matcher.posted(), 2U);
    EXPECT_EQ(arrive(1), &receives[0]);
    EXPECT_EQ(arrive(1), &receives[3]);
}

TEST_F(MatchingTest, what_was_never_posted_or_is_cancelled_already_cannot_be_cancelled) {
    Receive receive = one(from(1));
    EXPECT_FALSE(matcher.cancel(receive));
    wait_with(receive);
    EXPECT_TRUE(matcher.cancel(receive));
    EXPECT_FALSE(matcher.cancel(receive));
    EXPECT_EQ(matcher.posted(), 0U);
}

TEST_F(MatchingTest, a_receive_that_is_over_cannot_be_cancelled) {
    Receive waited = one(from(1));
    wait_with(waited);
    EXPECT_EQ(arrive(1), &waited);
    EXPECT_FALSE(matcher.cancel(waited));

    Message early = message(1);
    come_early(early);
    Receive at_once = one(from(1));
    EXPECT_EQ(take_with(at_once), &early);
    EXPECT_FALSE(matcher.cancel(at_once));
}

TEST_F(MatchingTest, a_receive_of_several_can_be_cancelled_while_it_is_open) {
    Receive receive = several(from_any(), 100, 1);
    wait_with(receive);
    EXPECT_EQ(arrive(1, 0, 40), &receive);
    EXPECT_TRUE(matcher.cancel(receive));
    EXPECT_EQ(receive.used, 40U) << "what it has taken stays";
    EXPECT_EQ(arrive(1, 0, 1), nullptr);
}

TEST_F(MatchingTest, a_receive_posted_again_after_it_was_over_or_cancelled_is_the_last) {
    Receive again = one(from(1), 10);
    Receive other = one(from(1), 10);
    wait_with(again);
    wait_with(other);
    EXPECT_EQ(arrive(1, 0, 10), &again);
    again.used = 0;
    wait_with(again);
    EXPECT_EQ(arrive(1), &other) << "posted before it";
    EXPECT_TRUE(matcher.cancel(again));
    again.wanted = from_any(5);
    wait_with(again);
    EXPECT_EQ(arrive(1), nullptr);
    EXPECT_EQ(arrive(2, 5, 10), &again);
    EXPECT_EQ(shown(placement), "10 bytes at 0, last");
}

// ---- Peek, claim, discard

TEST_F(MatchingTest, peek_shows_what_a_receive_would_get_and_leaves_it) {
    std::array early{message(1, 1, 5), message(2, 2, 6), message(2, 1, 7), message(1, 2, 8)};
    for (Message& each : early) come_early(each);
    EXPECT_EQ(matcher.peek(from(2, 1)), &early[2]);
    EXPECT_EQ(matcher.peek(from_any(2)), &early[1]);
    EXPECT_EQ(matcher.peek(from_any(0, kAllBits)), &early[0]);
    EXPECT_EQ(matcher.peek(from(1, 0, 2)), &early[3]) << "tag 2, of which it ignores that bit";
    EXPECT_EQ(matcher.peek(from(3, 0, kAllBits)), nullptr);
    EXPECT_EQ(matcher.peek(from(1, 3)), nullptr);
    EXPECT_EQ(matcher.unexpected(), 4U);
    Receive receive = one(from(2, 1));
    EXPECT_EQ(take_with(receive), &early[2]);
}

TEST_F(MatchingTest, a_claimed_message_fits_nothing_any_more) {
    std::array early{message(1), message(1)};
    for (Message& each : early) come_early(each);
    EXPECT_EQ(matcher.claim(from(1)), &early[0]);
    EXPECT_EQ(matcher.unexpected(), 1U);
    EXPECT_EQ(matcher.peek(from(1)), &early[1]);
    Receive receive = one(from(1));
    EXPECT_EQ(take_with(receive), &early[1]);
    EXPECT_EQ(matcher.peek(from_any(0, kAllBits)), nullptr);
    EXPECT_EQ(matcher.claim(from_any(0, kAllBits)), nullptr);
}

TEST_F(MatchingTest, claim_from_any_source_takes_the_message_that_came_first) {
    std::array early{message(3), message(1), message(2)};
    for (Message& each : early) come_early(each);
    for (Message& each : early) EXPECT_EQ(matcher.claim(from_any()), &each);
    EXPECT_EQ(matcher.unexpected(), 0U);
}

TEST_F(MatchingTest, what_peek_has_given_can_be_claimed_later_behind_others_and_before_them) {
    std::array early{message(1), message(2), message(1)};
    for (Message& each : early) come_early(each);
    Message* const shown = matcher.peek(from(2));
    ASSERT_EQ(shown, &early[1]);
    matcher.claim(*shown);
    EXPECT_EQ(matcher.unexpected(), 2U);
    EXPECT_EQ(matcher.peek(from(2)), nullptr);
    Receive first = one(from_any());
    Receive second = one(from_any());
    EXPECT_EQ(take_with(first), &early[0]);
    EXPECT_EQ(take_with(second), &early[2]);
}

TEST_F(MatchingTest, a_discarded_message_is_gone_and_its_memory_free_for_another) {
    auto early = std::make_unique<Message>(message(1));
    come_early(*early);
    EXPECT_EQ(matcher.claim(from(1)), early.get());
    early = nullptr;
    Receive receive = one(from(1));
    wait_with(receive);
    EXPECT_EQ(arrive(1), &receive);
}

TEST_F(MatchingTest, a_message_that_was_taken_out_can_be_kept_again_as_another) {
    std::array early{message(1), message(1)};
    for (Message& each : early) come_early(each);
    EXPECT_EQ(matcher.claim(from(1)), &early[0]);
    early[0].envelope = {2, 9, 3};
    come_early(early[0]);
    EXPECT_EQ(matcher.claim(from_any(0, kAllBits)), &early[1]) << "it is the last now";
    EXPECT_EQ(matcher.peek(from(1, 0, kAllBits)), nullptr);
    EXPECT_EQ(matcher.claim(from(2, 9)), &early[0]);
}

// ---- When a source is gone

TEST_F(MatchingTest, the_receives_of_a_source_that_is_gone_come_out_in_order) {
    Receive first = one(from(1, 5));
    Receive any = one(from_any());
    Receive other = one(from(2));
    Receive second = several(from(1, 4), 100, 10);
    Receive third = one(from(1, 0, kAllBits));
    for (Receive* receive : {&first, &any, &other, &second, &third}) wait_with(*receive);
    EXPECT_EQ(matcher.take_hopeless(1), &first);
    EXPECT_EQ(matcher.take_hopeless(1), &second);
    EXPECT_EQ(matcher.take_hopeless(1), &third);
    EXPECT_EQ(matcher.take_hopeless(1), nullptr);
    EXPECT_EQ(matcher.posted(), 2U) << "those of any source and of others stay";
    EXPECT_FALSE(matcher.cancel(first)) << "no longer posted";
    EXPECT_EQ(arrive(2), &any);
    EXPECT_EQ(arrive(2), &other);
}

TEST_F(MatchingTest, what_a_source_has_sent_before_it_was_gone_can_still_be_received) {
    Message early = message(1, 3);
    come_early(early);
    EXPECT_EQ(matcher.take_hopeless(1), nullptr);
    EXPECT_EQ(matcher.unexpected(), 1U);
    Receive receive = one(from(1, 3));
    EXPECT_EQ(take_with(receive), &early);
}

// ---- The end

TEST(MatchingEnds, matching_ends_before_the_receives_and_messages_in_it) {
    Receive directed = one(from(1));
    Receive any = one(from_any(9));
    Message early = message(2);
    Matcher matcher{3};
    Placement unused;
    EXPECT_EQ(matcher.post(directed, unused), nullptr);
    EXPECT_EQ(matcher.post(any, unused), nullptr);
    matcher.keep(early);
}

TEST(MatchingEnds, matching_ends_after_the_receives_and_messages_in_it) {
    Matcher matcher{3};
    Placement unused;
    const auto directed = std::make_unique<Receive>(one(from(1)));
    const auto any = std::make_unique<Receive>(one(from_any(9)));
    const auto early = std::make_unique<Message>(message(2));
    EXPECT_EQ(matcher.post(*directed, unused), nullptr);
    EXPECT_EQ(matcher.post(*any, unused), nullptr);
    matcher.keep(*early);
}

}  // namespace
}  // namespace mpi_channel
