// SPDX-License-Identifier: Apache-2.0
//
// The rules of matching, each as a script of steps for one matcher; and what it does where its
// callers go wrong. matching_model_test.cpp compares it with these rules at random.
//
//   post a 1/7               a receive named a, of source 1 (`*`: any) and tag 7 finds no message,
//                            and waits; without a pattern: the same one again, as it is
//   post a 1/7 gets m        it takes the unexpected message m
//   come m 1/7               a message of that source and tag finds no receive, and is kept as m
//   come 1/7 to a            it goes to the receive a; `to nobody`: it is not kept
//   peek 1/7 is m, claim 1/7 is m, claim m, cancel a, hopeless 1 is a: the matcher's calls; a
//                            receive that cannot be cancelled: `cancel a fails`
//   posted 1, unexpected 0, used a 30: the counts
//
// Of a pattern: `~f` ignores these bits of the tag, `:20` is the size of the message (8) or of the
// receive's buffer (100), `+5` makes it one that takes several messages while 5 bytes are free.
// Behind `=` stands where the message was placed.
#include "mpi_channel/device/matching.hpp"

#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <sstream>
#include <string>

namespace mpi_channel {
namespace {

std::string next(std::istream& in) {
    std::string word;
    in >> word;
    return word;
}

struct Pattern {
    Pattern(const std::string& text, std::size_t usual_size)
        : wanted{text[0] == '*' ? kAnySource : static_cast<Source>(text[0] - '0'),
                 number(text, '/', 0), number(text, '~', 0)},
          size(number(text, ':', usual_size)),
          least(number(text, '+', 0)) {}

    Wanted wanted;
    std::size_t size, least;

private:
    static std::uint64_t number(const std::string& text, char before, std::uint64_t otherwise) {
        const std::size_t at = text.find(before);
        if (at == std::string::npos) return otherwise;
        const std::string digits = text.substr(at + 1);
        return digits.starts_with("all") ? ~std::uint64_t{0} : std::stoull(digits, nullptr, 0);
    }
};

class Script {
public:
    void run(const std::string& text) {
        std::istringstream steps(text);
        for (std::string step; std::getline(steps, step, ';');) {
            SCOPED_TRACE(step);
            std::istringstream in(step);
            run_step(in);
        }
    }

private:
    void run_step(std::istream& in) {
        const std::string verb = next(in), first = next(in);
        if (verb == "post") return post(first, in);
        if (verb == "come") return come(first, in);
        if (verb == "cancel") {
            const bool is_cancelled = matcher_.cancel(receives_[first]);
            EXPECT_EQ(is_cancelled, next(in) != "fails");
        } else if (verb == "peek" || (verb == "claim" && first.find('/') != std::string::npos)) {
            const Wanted wanted = Pattern(first, 0).wanted;
            const Message* found = verb == "peek" ? matcher_.peek(wanted) : matcher_.claim(wanted);
            expect_is(messages_, found, in);
        } else if (verb == "claim") {
            matcher_.claim(messages_[first]);
        } else if (verb == "hopeless") {
            expect_is(receives_, matcher_.take_hopeless(Pattern(first, 0).wanted.source), in);
        } else if (verb == "used") {
            EXPECT_EQ(std::to_string(receives_[first].used), next(in));
        } else if (verb == "posted") {
            EXPECT_EQ(std::to_string(matcher_.posted()), first);
        } else if (verb == "unexpected") {
            EXPECT_EQ(std::to_string(matcher_.unexpected()), first);
        } else {
            ADD_FAILURE() << "no step";
        }
    }
    void post(const std::string& name, std::istream& in) {
        Receive& receive = receives_[name];
        std::string word = next(in);
        if (word.find('/') != std::string::npos) {
            const Pattern pattern(word, 100);
            receive.wanted = pattern.wanted;
            receive.capacity = pattern.size;
            receive.least = pattern.least;
            receive.used = 0;
            word = next(in);
        }
        const Message* found = matcher_.post(receive, placement_);
        EXPECT_EQ(name_of(messages_, found), word == "gets" ? next(in) : "nobody");
        expect_placed(in);
    }
    void come(const std::string& first, std::istream& in) {
        const bool is_kept = first.find('/') == std::string::npos;
        const Pattern pattern(is_kept ? next(in) : first, 8);
        const Envelope envelope{pattern.wanted.source, pattern.wanted.tag, pattern.size};
        const auto match = matcher_.arrive(envelope);
        if (match) placement_ = match->placement;
        const std::string expected = next(in) == "to" ? next(in) : "nobody";
        EXPECT_EQ(name_of(receives_, match ? match->receive : nullptr), expected);
        if (is_kept && !match) {
            messages_[first].envelope = envelope;
            matcher_.keep(messages_[first]);
        }
        expect_placed(in);
    }
    /// For example "8 bytes at 0, cut, last".
    void expect_placed(std::istream& in) {
        if (next(in) != "=") return;
        std::string expected;
        std::getline(in >> std::ws, expected);
        EXPECT_EQ(std::to_string(placement_.bytes) + " bytes at " + std::to_string(placement_.at) +
                      (placement_.cut ? ", cut" : "") + (placement_.last ? ", last" : ""),
                  expected);
    }
    template <class T>
    static void expect_is(const std::map<std::string, T>& all, const T* found, std::istream& in) {
        EXPECT_EQ(next(in), "is");
        EXPECT_EQ(name_of(all, found), next(in));
    }
    template <class T>
    static std::string name_of(const std::map<std::string, T>& all, const T* found) {
        for (const auto& [name, one] : all) {
            if (&one == found) return name;
        }
        return "nobody";
    }

    Matcher matcher_{6};
    std::map<std::string, Receive> receives_;
    std::map<std::string, Message> messages_;
    Placement placement_;  ///< of the last message that found its receive
};

struct Rule {
    const char *name, *script;
};
void PrintTo(const Rule& rule, std::ostream* out) {
    *out << rule.script;
}

const Rule kRules[] = {
    // ---- Which receive a message gets
    {"a_message_that_nobody_waits_for_finds_nothing", "come 1/0 to nobody; posted 0; unexpected 0"},
    {"a_message_goes_to_the_receive_that_waits_for_it_which_takes_one",
     "post a 1/7; posted 1; come 1/7:8 to a = 8 bytes at 0, last; used a 8; posted 0;"
     "come 1/7 to nobody"},
    {"messages_go_to_the_receives_that_they_fit_in_the_order_of_their_posting",
     "post a 2/0; post b 2/0; post c 2/0; come 2/0 to a; come 2/0 to b; come 2/0 to c;"
     "come 2/0 to nobody"},
    {"a_message_passes_by_receives_of_other_tags_and_sources_which_wait_on",
     "post a 1/5; post b 2/6; post c */5; post d 1/6; come 1/6 to d; posted 3; come 3/5 to c;"
     "come 2/6 to b; come 1/5 to a"},
    {"the_receive_that_was_posted_first_wins_directed_or_from_any_source",
     "post a */1; post b 1/1; post c 2/2; post d */2; come 1/1 to a; come 1/1 to b; come 2/2 to c;"
     "come 2/2 to d"},
    {"directed_receives_and_others_posted_in_turns_are_served_in_turns",
     "post a 1/0; post b */0; post c 1/0; post d */0; post e 1/0; come 1/0 to a; come 1/0 to b;"
     "come 1/0 to c; come 1/0 to d; come 1/0 to e"},
    {"an_earlier_receive_that_does_not_fit_lets_a_later_one_win",
     "post a */1; post b 1/2; post c */2; come 1/2 to b; come 1/2 to c; come 1/1 to a"},
    {"every_source_from_the_first_to_the_last_has_receives_of_its_own",
     "post a 0/0; post b 1/0; post c 2/0; post d 3/0; post e 4/0; post f 5/0; come 5/0 to f;"
     "come 4/0 to e; come 3/0 to d; come 2/0 to c; come 1/0 to b; come 0/0 to a"},

    // ---- Which message a receive gets
    {"an_unexpected_message_waits_for_its_receive_which_is_over_then",
     "come m 3/4:20; unexpected 1; post a 3/4 gets m = 20 bytes at 0, last; used a 20;"
     "unexpected 0; posted 0"},
    {"unexpected_messages_of_one_source_are_received_in_order",
     "come m 1/0; come n 1/0; come o 1/0; post a 1/0 gets m; post b 1/0 gets n; post c 1/0 gets o"},
    {"a_receive_from_any_source_takes_the_message_that_came_first_of_all_sources",
     "come m 4/0; come n 1/0; come o 5/0; come p 1/0; come q 0/0; post a */0 gets m;"
     "post b */0 gets n; post c */0 gets o; post d */0 gets p; post e */0 gets q"},
    {"a_directed_receive_passes_by_earlier_messages_of_other_sources_and_tags",
     "come m 2/1; come n 1/2; come o 1/1; come p 1/1; post a 1/1 gets o; post b */1 gets m;"
     "post c 1/1 gets p; unexpected 1"},
    {"a_receive_that_no_unexpected_message_fits_waits_beside_them",
     "come m 1/1; post a 1/2; posted 1; come 1/2 to a; unexpected 1"},

    // ---- Ignored bits
    {"all_64_bits_of_a_tag_count",
     "post a 1/0x8000000000000001; come 1/0 to nobody; come 1/1 to nobody;"
     "come 1/0x8000000000000000 to nobody; come 1/0x8000000000000003 to nobody;"
     "come 1/0x8000000000000001 to a"},
    {"ignored_bits_of_a_tag_do_not_count_and_all_others_do",
     "post a 1/0x50~0xf; come 1/0x60 to nobody; come 1/0x8000000000000050 to nobody;"
     "come 1/0x5a to a"},
    {"bits_set_in_both_the_tag_asked_for_and_what_it_ignores_do_not_count",
     "post a 1/0x5f~0xf; come 1/0x50 to a"},
    {"a_receive_that_ignores_all_bits_takes_any_tag_of_its_source",
     "post a 1/7~all; come 2/7 to nobody; come 1/0x8000000000000000 to a"},
    {"an_earlier_receive_of_any_tag_wins_over_a_later_exact_one",
     "post a 1/0~all; post b 1/3; come 1/3 to a; come 1/3 to b"},
    {"a_receive_of_any_tag_takes_the_unexpected_message_that_came_first",
     "come m 1/9; come n 1/3; post a 1/3~all gets m"},

    // ---- Several messages into one buffer
    {"several_messages_lie_one_behind_the_other_until_less_than_the_least_is_free",
     "post a */0:100+20; come 1/0:30 to a = 30 bytes at 0; come 2/0:50 to a = 50 bytes at 30;"
     "posted 1; come 1/0:1 to a = 1 bytes at 80, last; used a 81; posted 0; come 1/0:1 to nobody"},
    {"a_buffer_that_one_message_fills_exactly_is_over_and_nothing_is_cut",
     "post a 1/0:16+1; come 1/0:15 to a = 15 bytes at 0; come 1/0:1 to a = 1 bytes at 15, last"},
    {"a_receive_of_several_keeps_its_place_before_those_posted_later",
     "post a 1/0:100+50; post b 1/0; come 1/0:30 to a; come 1/0:10 to a;"
     "come 1/0:30 to a = 30 bytes at 40, last; come 1/0 to b"},
    {"messages_of_zero_bytes_do_not_end_a_receive_of_several",
     "post a 1/0:10+10; come 1/0:0 to a = 0 bytes at 0; come 1/0:0 to a = 0 bytes at 0;"
     "come 1/0:0 to a = 0 bytes at 0; come 1/0:1 to a = 1 bytes at 0, last"},
    {"a_least_larger_than_the_buffer_leaves_room_for_one_message",
     "post a 1/0:10+11; come 1/0:0 to a = 0 bytes at 0, last;"
     "post b 1/0:10+all; come 1/0:4 to b = 4 bytes at 0, last"},
    {"a_receive_of_several_takes_the_unexpected_ones_first_and_then_waits",
     "come m 1/0:10; come n 2/0:20; come o 1/0:30; post a 1/0:100+20 gets m = 10 bytes at 0;"
     "post a gets o = 30 bytes at 10; posted 0; post a; posted 1;"
     "come 1/0:50 to a = 50 bytes at 40, last; unexpected 1"},
    {"a_receive_of_several_that_unexpected_messages_fill_is_never_posted",
     "come m 1/0:6; come n 1/0:6; come o 1/0:6; post a 1/0:12+4 gets m = 6 bytes at 0;"
     "post a gets n = 6 bytes at 6, last; posted 0; unexpected 1; cancel a fails"},

    // ---- Cutting
    {"a_message_as_long_as_the_buffer_is_not_cut_and_a_longer_one_is",
     "post a 1/0:8; post b 1/0:8; come 1/0:8 to a = 8 bytes at 0, last;"
     "come 1/0:9 to b = 8 bytes at 0, cut, last; used b 8"},
    {"an_unexpected_message_that_is_too_long_is_cut_and_its_rest_is_lost",
     "come m 1/0:50; post a 1/0:20 gets m = 20 bytes at 0, cut, last; unexpected 0"},
    {"an_empty_buffer_takes_a_message_of_zero_bytes_whole_and_cuts_any_other",
     "post a 1/0:0; post b 1/0:0; come 1/0:0 to a = 0 bytes at 0, last;"
     "come 1/0:1 to b = 0 bytes at 0, cut, last"},
    {"what_is_too_long_for_the_rest_of_a_receive_of_several_is_cut_and_ends_it",
     "post a 1/0:100+10; post b 1/0; come 1/0:70 to a;"
     "come 1/0:31 to a = 30 bytes at 70, cut, last; used a 100; come 1/0:1 to b"},
    {"an_unexpected_message_too_long_for_the_rest_is_cut_likewise",
     "come m 1/0:7; come n 1/0:7; post a 1/0:10+1 gets m;"
     "post a gets n = 3 bytes at 7, cut, last"},
    {"an_empty_buffer_for_several_is_over_after_one",
     "post a 1/0:0+1; come 1/0:5 to a = 0 bytes at 0, cut, last; posted 0"},
    {"sizes_near_the_largest_number_are_cut_like_others",
     "post a 1/0:100+1; come 1/0:60 to a;"
     "come 1/0:18446744073709551605 to a = 40 bytes at 60, cut, last"},

    // ---- Cancelling
    {"a_cancelled_receive_gets_nothing_and_the_next_one_does",
     "post a 1/0; post b 1/0; post c */0; post d 1/0; cancel b; cancel c; posted 2;"
     "come 1/0 to a; come 1/0 to d"},
    {"what_was_never_posted_or_is_cancelled_already_cannot_be_cancelled",
     "cancel a fails; post a 1/0; cancel a; cancel a fails; posted 0"},
    {"a_receive_that_is_over_cannot_be_cancelled",
     "post a 1/0; come 1/0 to a; cancel a fails; come m 1/0; post b 1/0 gets m; cancel b fails"},
    {"a_receive_of_several_can_be_cancelled_while_it_is_open_and_keeps_what_it_has",
     "post a */0:100+1; come 1/0:40 to a; cancel a; used a 40; come 1/0:1 to nobody"},
    {"a_receive_posted_again_after_it_was_over_or_cancelled_is_the_last",
     "post a 1/0:10; post b 1/0:10; come 1/0:10 to a; post a 1/0:10; come 1/0 to b; cancel a;"
     "post a */5:10; come 1/0 to nobody; come 2/5:10 to a = 10 bytes at 0, last"},

    // ---- Peek, claim
    {"peek_shows_what_a_receive_would_get_and_leaves_it",
     "come m 1/1; come n 2/2; come o 2/1; come p 1/2; peek 2/1 is o; peek */2 is n;"
     "peek */0~all is m; peek 1/0~2 is p; peek 3/0~all is nobody; peek 1/3 is nobody;"
     "unexpected 4; post a 2/1 gets o"},
    {"a_claimed_message_fits_nothing_any_more",
     "come m 1/0; come n 1/0; claim 1/0 is m; unexpected 1; peek 1/0 is n; post a 1/0 gets n;"
     "peek */0~all is nobody; claim */0~all is nobody"},
    {"claim_from_any_source_takes_the_message_that_came_first",
     "come m 3/0; come n 1/0; come o 2/0; claim */0 is m; claim */0 is n; claim */0 is o;"
     "unexpected 0"},
    {"what_peek_has_given_can_be_claimed_later_behind_others_and_before_them",
     "come m 1/0; come n 2/0; come o 1/0; peek 2/0 is n; claim n; unexpected 2;"
     "peek 2/0 is nobody; post a */0 gets m; post b */0 gets o"},
    {"a_message_that_was_taken_out_can_be_kept_again_as_another_and_is_the_last",
     "come m 1/0; come n 1/0; claim 1/0 is m; come m 2/9:3; claim */0~all is n;"
     "peek 1/0~all is nobody; claim 2/9 is m"},

    // ---- When a source is gone
    {"the_receives_of_a_source_that_is_gone_come_out_in_order_and_others_stay",
     "post a 1/5; post b */0; post c 2/0; post d 1/4:100+10; post e 1/0~all; hopeless 1 is a;"
     "hopeless 1 is d; hopeless 1 is e; hopeless 1 is nobody; posted 2; cancel a fails;"
     "come 2/0 to b; come 2/0 to c"},
    {"what_a_source_has_sent_before_it_was_gone_can_still_be_received",
     "come m 1/3; hopeless 1 is nobody; unexpected 1; post a 1/3 gets m"},
    {"receives_of_any_source_are_taken_in_their_order_when_nobody_is_left",
     "post a */0; post b 1/0; post c */0; hopeless * is a; hopeless * is c; hopeless * is nobody;"
     "posted 1; hopeless 1 is b"},
};

class Matching : public ::testing::TestWithParam<Rule> {};

TEST_P(Matching, goes_by_the_rule) {
    Script().run(GetParam().script);
}

INSTANTIATE_TEST_SUITE_P(That, Matching, ::testing::ValuesIn(kRules),
                         [](const auto& rule) { return std::string(rule.param.name); });

// ---- Memory

TEST(MatchingEnds, a_discarded_message_is_gone_and_its_memory_free_for_another) {
    Matcher matcher{3};
    auto early = std::make_unique<Message>();
    early->envelope = {1, 0, 8};
    matcher.keep(*early);
    EXPECT_EQ(matcher.claim({1, 0, 0}), early.get());
    early = nullptr;
    Receive receive;
    receive.wanted.source = 1;
    Placement placement;
    EXPECT_EQ(matcher.post(receive, placement), nullptr);
    ASSERT_TRUE(matcher.arrive({1, 0, 8}));
}

TEST(MatchingEnds, matching_ends_before_or_after_the_receives_and_messages_in_it) {
    for (const bool is_before : {true, false}) {
        auto matcher = std::make_unique<Matcher>(3U);
        auto directed = std::make_unique<Receive>(), any = std::make_unique<Receive>();
        auto early = std::make_unique<Message>();
        directed->wanted = {1, 0, 0};
        any->wanted = {kAnySource, 9, 0};
        early->envelope = {2, 0, 8};
        Placement unused;
        EXPECT_EQ(matcher->post(*directed, unused), nullptr);
        EXPECT_EQ(matcher->post(*any, unused), nullptr);
        matcher->keep(*early);
        if (is_before) matcher.reset();
        directed.reset();
        any.reset();
        early.reset();
    }
}

// ---- Where callers go wrong

TEST(MatchingEdges, a_receive_whose_used_is_not_reset_writes_nothing_outside_of_its_buffer) {
    Matcher matcher(2);
    Placement placement;
    Receive receive;
    receive.wanted = {1, 0, 0};
    receive.capacity = 20;
    receive.used = 50;
    EXPECT_EQ(matcher.post(receive, placement), nullptr);
    const auto match = matcher.arrive({1, 0, 1000});
    ASSERT_TRUE(match);
    EXPECT_EQ(match->placement.bytes, 0U);
    EXPECT_TRUE(match->placement.cut);
    EXPECT_TRUE(match->placement.last);
}

TEST(MatchingEdges, a_message_claimed_is_placed_as_any) {
    Receive receive;
    receive.capacity = 10;
    const Placement placement = Matcher::place(receive, 25);
    EXPECT_EQ(placement.bytes, 10U);
    EXPECT_TRUE(placement.cut);
    EXPECT_TRUE(placement.last);
}

TEST(MatcherDeathTest, checks_that_nothing_is_in_it_twice) {
    Matcher matcher(2);
    Message first;
    first.envelope = {1, 0, 8};
    matcher.keep(first);
    EXPECT_BROKEN(matcher.keep(first));
    Message unknown;
    unknown.envelope = {2, 0, 8};
    EXPECT_BROKEN(matcher.keep(unknown));
    matcher.claim(first);
    EXPECT_BROKEN(matcher.claim(first));
    EXPECT_BROKEN(static_cast<void>(matcher.peek({.source = 2})));
    Receive receive;
    Placement placement;
    ASSERT_EQ(matcher.post(receive, placement), nullptr);
    EXPECT_BROKEN(static_cast<void>(matcher.post(receive, placement)));
}

}  // namespace
}  // namespace mpi_channel
