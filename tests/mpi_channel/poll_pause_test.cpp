// SPDX-License-Identifier: Apache-2.0

#include "mpi_channel/poll_pause.hpp"

#include <gtest/gtest.h>

namespace mpi_channel {
namespace {

constexpr unsigned kMostPauses = 100;

/// A message is sent, and its answer can be found `answer` pauses later; a poll takes `poll`.
/// Returns how long the first pause was.
unsigned exchange(PollPause& pause, unsigned answer, unsigned poll = 10) {
    pause.sent();
    const unsigned first = pause.before_poll();
    unsigned now = first;
    for (; now < answer; now += poll) {
        pause.found_nothing();
        EXPECT_EQ(pause.before_poll(), 0U) << "once after a message";
    }
    pause.found();
    return first;
}

unsigned after(unsigned exchanges, PollPause& pause, unsigned answer) {
    unsigned last = 0;
    for (unsigned i = 0; i < exchanges; ++i) last = exchange(pause, answer);
    return last;
}

TEST(PollPause, becomes_as_long_as_an_answer_takes) {
    PollPause pause(kMostPauses);
    const unsigned learned = after(1'000, pause, 40);
    EXPECT_GE(learned, 38U);
    EXPECT_LE(learned, 60U);
    const unsigned longer = after(1'000, pause, 70);
    EXPECT_GE(longer, 68U);
}

TEST(PollPause, is_never_longer_than_its_most) {
    PollPause pause(kMostPauses);
    for (unsigned i = 0; i < 1'000; ++i) EXPECT_LE(exchange(pause, 10 * kMostPauses), kMostPauses);
    EXPECT_EQ(after(1, pause, 10 * kMostPauses), kMostPauses);
}

TEST(PollPause, ends_where_messages_are_found_at_once) {
    PollPause pause(kMostPauses);
    EXPECT_EQ(after(2'000, pause, 0), 0U);
}

TEST(PollPause, ends_where_messages_are_sent_and_none_is_found_between) {
    PollPause pause(kMostPauses);
    unsigned last = kMostPauses;
    for (unsigned i = 0; i < 200; ++i) {
        pause.sent();
        last = pause.before_poll();
    }
    EXPECT_EQ(last, 0U);
    EXPECT_GE(after(1'000, pause, 40), 38U) << "and is learned again";
}

TEST(PollPause, is_for_what_was_sent_alone) {
    PollPause pause(kMostPauses);
    EXPECT_EQ(pause.before_poll(), 0U);
    pause.found_nothing();
    pause.found();
    pause.sent();
    EXPECT_EQ(pause.before_poll(), kMostPauses);
    EXPECT_EQ(pause.before_poll(), 0U);
}

}  // namespace
}  // namespace mpi_channel
