// SPDX-License-Identifier: Apache-2.0

#include "billboard/core/answer_pause.hpp"
#include "billboard/core/endpoint_core.hpp"
#include "tests/support/child.hpp"
#include "tests/support/endpoint_pair.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

namespace billboard {
namespace {

using Tuning = AnswerPause::Tuning;

/// How long it pauses after one message was sent, when hops have been found to take that long.
unsigned after_hops_of(std::int64_t ns, AnswerPause& pause, unsigned times = 100) {
    for (unsigned i = 0; i < times; ++i) pause.learn(ns);
    pause.sent();
    const unsigned due = pause.due();
    pause.after_poll(0, -1);
    return due;
}

TEST(AnswerPause, is_as_long_as_a_hop) {
    AnswerPause pause;
    const unsigned most = after_hops_of(200, pause), half = after_hops_of(100, pause);
    EXPECT_GT(most, 0U);
    EXPECT_LE(half, most / 2 + 1);
    EXPECT_EQ(after_hops_of(0, pause), 0U) << "a poll is as long anyway";
}

TEST(AnswerPause, is_none_before_a_hop_is_known) {
    AnswerPause pause;
    EXPECT_EQ(after_hops_of(0, pause, 0), 0U);
}

TEST(AnswerPause, is_never_longer_than_its_most) {
    AnswerPause pause;
    const unsigned most = after_hops_of(1'000, pause);
    EXPECT_EQ(after_hops_of(1'000'000, pause), most);
}

TEST(AnswerPause, believes_what_is_longer_by_and_by_and_what_is_shorter_at_once) {
    AnswerPause pause;
    const unsigned most = after_hops_of(200, pause);
    const unsigned shorter = after_hops_of(50, pause, 1);
    EXPECT_LT(shorter, most);
    EXPECT_LE(after_hops_of(200, pause, 1), shorter + most / 4) << "it may have been interrupted";
    EXPECT_EQ(after_hops_of(200, pause), most);
}

TEST(AnswerPause, is_for_the_first_poll_after_one_message_that_was_sent) {
    AnswerPause pause;
    const unsigned most = after_hops_of(200, pause);
    EXPECT_EQ(pause.due(), 0U);
    pause.after_poll(BBP_EAGAIN, -1);
    pause.sent();
    EXPECT_EQ(pause.due(), most);
    pause.after_poll(BBP_EAGAIN, -1);
    EXPECT_EQ(pause.due(), 0U) << "once after a message";
    pause.after_poll(0, -1);
    pause.sent();
    EXPECT_EQ(pause.due(), most);
    pause.sent();
    EXPECT_EQ(pause.due(), 0U) << "who sends one after the other waits for no answer";
}

TEST(AnswerPause, measures_an_answer_now_and_then) {
    AnswerPause pause;
    unsigned measured = 0;
    for (unsigned i = 0; i < 1'000; ++i) {
        pause.sent();
        const std::int64_t began = pause.before_poll();
        measured += began != -1 ? 1U : 0U;
        pause.after_poll(0, began);
    }
    EXPECT_GE(measured, 1'000 / 65U);
    EXPECT_LE(measured, 1'000 / 64U + 1);
    EXPECT_EQ(pause.before_poll(), -1) << "nothing was sent";
}

/// Each guess at zero and at ten times, alone.
std::vector<Tuning> tunings() {
    std::vector<Tuning> all{{}};
    for (const unsigned times : {0U, 10U}) {
        for (auto guess : {&Tuning::most_ns, &Tuning::every, &Tuning::growth}) {
            all.emplace_back();
            all.back().*guess *= times;
        }
    }
    return all;
}

TEST(AnswerPause, loses_no_message_whatever_is_guessed) {
    constexpr unsigned kExchanges = 200;
    const rmem::test::RingName name;
    const auto [ring, settings, ranks] = test::open_ranks(name.get(), 2, 4096);
    for (const AnswerPause::Tuning& tuning : tunings()) {
        const auto play = [&, &ends = ranks](unsigned me) {
            Fastest& endpoint = *fastest(ends[me].get());
            AnswerPause pause(tuning);
            std::array<std::byte, kTakenBytes> small;
            for (unsigned i = 0; i < 2 * kExchanges; ++i) {
                if (i % 2 == me) {
                    ASSERT_EQ(endpoint.send(static_cast<int>(1 - me), &i, sizeof i), BBP_OK);
                    pause.sent();
                    continue;
                }
                std::size_t size = 0;
                const void* data = small.data();
                int from = endpoint.take_briefly(small, &size, Class::user, pause);
                if (from < 0) from = endpoint.take(small, &data, &size, test::patience());
                ASSERT_EQ(from, static_cast<int>(1 - me));
                ASSERT_EQ(size, sizeof i);
                ASSERT_EQ(std::memcmp(data, &i, sizeof i), 0);
            }
        };
        std::thread other([&] { play(1); });
        play(0);
        other.join();
    }
}

}  // namespace
}  // namespace billboard
