// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/coalescer.hpp"

#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

namespace rmem::udp {
namespace {

using Progress = ProgressPacer::Progress;

constexpr std::int64_t kFirstNs = 1'000'000, kStepNs = 100;

/// A write and its commit; whether it leaves now.
bool send(Coalescer& coalescer, std::int64_t now) {
    coalescer.on_write(now);
    const bool leaves = coalescer.on_commit(now);
    if (leaves) coalescer.on_sent();
    return leaves;
}

/// Returns the time of the commit that coalesces.
std::int64_t load_up(Coalescer& coalescer, std::int64_t now) {
    while (send(coalescer, now)) now += kStepNs;
    return now;
}

TEST(Coalescer, lets_a_commit_leave_at_once_without_load) {
    Coalescer coalescer;
    for (unsigned i = 1; i < kLoad; ++i) EXPECT_TRUE(send(coalescer, kFirstNs + i * kStepNs));
    EXPECT_EQ(coalescer.due_ns(), kNever);
    EXPECT_FALSE(coalescer.coalesces());
    EXPECT_FALSE(coalescer.is_loaded());
}

/// A program under load_up tells of many at a time.
TEST(Coalescer, counts_what_was_streamed_as_load) {
    Coalescer coalescer;
    std::int64_t now = load_up(coalescer, kFirstNs);
    for (int round = 0; round < 10; ++round) {
        coalescer.on_streamed(20, now);
        EXPECT_EQ(coalescer.due_ns(), now + kLazyNs);
        EXPECT_TRUE(coalescer.coalesces());
        EXPECT_TRUE(coalescer.on_wait());
        coalescer.on_sent();
        now += kStepNs;
        ASSERT_FALSE(send(coalescer, now)) << round;
    }
}

TEST(Coalescer, lets_commits_wait_for_more_under_load_and_no_longer_than_the_first_may) {
    Coalescer coalescer;
    const std::int64_t first = load_up(coalescer, kFirstNs);
    EXPECT_EQ(first, kFirstNs + (kLoad - 1) * kStepNs);
    EXPECT_TRUE(coalescer.is_loaded());
    EXPECT_TRUE(coalescer.coalesces());
    EXPECT_FALSE(send(coalescer, first + kLazyNs - 1));
    EXPECT_EQ(coalescer.due_ns(), first + kLazyNs);
    EXPECT_TRUE(send(coalescer, first + kLazyNs));
    EXPECT_EQ(coalescer.due_ns(), kNever);
}

TEST(Coalescer, lets_what_coalesces_leave_when_the_program_waits) {
    Coalescer coalescer;
    EXPECT_FALSE(coalescer.on_wait()) << "nothing was committed";
    load_up(coalescer, kFirstNs);
    EXPECT_TRUE(coalescer.on_wait());
    coalescer.on_sent();
    EXPECT_FALSE(coalescer.on_wait());
}

TEST(Coalescer, keeps_a_write_without_a_commit_over_a_wait_and_until_it_is_due) {
    Coalescer coalescer;
    coalescer.on_write(kFirstNs);
    EXPECT_FALSE(coalescer.on_wait());
    EXPECT_EQ(coalescer.due_ns(), kFirstNs + kLazyNs);
    coalescer.on_write(kFirstNs + kStepNs);
    EXPECT_EQ(coalescer.due_ns(), kFirstNs + kLazyNs) << "the first write decides";
}

TEST(Coalescer, lets_a_commit_on_wait_leave_with_the_wait_if_something_was_written) {
    Coalescer coalescer;
    coalescer.on_commit_on_wait();
    EXPECT_FALSE(coalescer.coalesces());
    coalescer.on_write(kFirstNs);
    coalescer.on_commit_on_wait();
    EXPECT_TRUE(coalescer.coalesces());
    EXPECT_TRUE(coalescer.on_wait());
}

TEST(Coalescer, remembers_half_of_the_load_over_a_wait_and_nothing_over_a_pause) {
    Coalescer coalescer;
    std::int64_t now = load_up(coalescer, kFirstNs);
    for (unsigned i = 0; i < 3; ++i) static_cast<void>(coalescer.on_wait());
    coalescer.on_sent();
    unsigned commits = 1;
    for (; send(coalescer, now += kStepNs); ++commits) {
    }
    EXPECT_EQ(commits, kLoad / 2) << "three waits in a row are one";
    now += kQuietNs + 1;
    coalescer.on_sent();
    EXPECT_TRUE(send(coalescer, now));
    EXPECT_FALSE(coalescer.is_loaded());
}

TEST(Coalescer, never_coalesces_for_programs_that_answer_each_other) {
    Coalescer coalescer;
    std::int64_t now = kFirstNs;
    for (unsigned i = 0; i < 1000; ++i) {
        for (unsigned k = 0; k < 1 + i % (kLoad / 2); ++k) {
            EXPECT_TRUE(send(coalescer, now += kStepNs)) << i;
        }
        EXPECT_FALSE(coalescer.on_wait());
    }
}

/// A program that takes a message has waited for it, though it may have found it at once.
TEST(Coalescer, takes_a_message_taken_for_a_wait) {
    Coalescer coalescer;
    std::int64_t now = kFirstNs;
    for (unsigned i = 0; i < 10 * kLoad; ++i) {
        EXPECT_TRUE(send(coalescer, now += kStepNs)) << i;
        coalescer.on_commit_on_wait();
    }
}

/// A program that reads by plain loads waits without a call.
TEST(Coalescer, takes_what_others_write_for_a_wait) {
    Coalescer coalescer;
    std::int64_t now = kFirstNs;
    for (unsigned i = 0; i < 10 * kLoad; ++i) {
        EXPECT_TRUE(send(coalescer, now += kStepNs)) << i;
        coalescer.on_arrival();
    }
}

TEST(Coalescer, lets_a_commit_leave_at_once_after_a_pause_for_which_nothing_could_have_waited) {
    Coalescer coalescer;
    std::int64_t now = load_up(coalescer, kFirstNs);
    coalescer.on_sent();
    for (unsigned i = 0; i < 10 * kLoad; ++i) {
        EXPECT_TRUE(send(coalescer, now += kLazyNs + 1)) << "a rhythm is no load_up";
        EXPECT_FALSE(coalescer.is_loaded());
    }
    EXPECT_FALSE(send(coalescer, now += kStepNs)) << "a burst goes on soon";
}

/// The node to which a word goes may take the writer's processor for longer than a word waits.
TEST(Coalescer, takes_commits_for_load_whose_sending_takes_long) {
    Coalescer coalescer;
    std::int64_t now = kFirstNs;
    unsigned commits = 0;
    for (; commits < 10 * kLoad && send(coalescer, now += kStepNs); ++commits) {
        coalescer.on_sent();
        coalescer.on_left(now += 2 * kLazyNs);
    }
    EXPECT_LE(commits, kLoad);
    EXPECT_TRUE(coalescer.is_loaded());
}

TEST(Coalescer, notices_a_commit_that_is_older_than_the_one_before) {
    Coalescer coalescer;
    EXPECT_TRUE(coalescer.on_commit(kFirstNs));
    EXPECT_BROKEN_WHERE_CHECKED(static_cast<void>(coalescer.on_commit(kFirstNs - 1)));
}

// ---- The program's calls

constexpr auto kAt = [](std::int64_t now) { return [now] { return now; }; };

TEST(ProgressPacer, sends_all_when_the_program_makes_progress_twice_or_waits) {
    ProgressPacer pacer;
    EXPECT_EQ(pacer.on_progress(kAt(kFirstNs)), Progress::all);
    static_cast<void>(pacer.on_commit());
    pacer.on_committed(false);
    EXPECT_EQ(pacer.on_progress(kAt(kFirstNs)), Progress::what_is_due);
    EXPECT_EQ(pacer.on_progress(kAt(kFirstNs)), Progress::all);
    static_cast<void>(pacer.on_commit());
    pacer.on_wait();
    EXPECT_EQ(pacer.on_progress(kAt(kFirstNs)), Progress::all);
}

TEST(ProgressPacer, looks_each_kLazyNs_only_while_commits_coalesce) {
    ProgressPacer pacer;
    unsigned looks = 0;
    for (std::int64_t now = kFirstNs; now < kFirstNs + 10 * kLazyNs; now += kLazyNs / 10) {
        static_cast<void>(pacer.on_commit());
        pacer.on_committed(true);
        if (pacer.on_progress(kAt(now)) == Progress::what_is_due) ++looks;
    }
    EXPECT_EQ(looks, 10U);
}

TEST(ProgressPacer, does_not_ask_for_the_time_while_nothing_coalesces) {
    ProgressPacer pacer;
    static_cast<void>(pacer.on_commit());
    pacer.on_committed(false);
    const auto none = []() -> std::int64_t {
        ADD_FAILURE() << "a clock costs as much as the rest";
        return 0;
    };
    EXPECT_EQ(pacer.on_progress(none), Progress::what_is_due);
}

TEST(ProgressPacer, makes_no_progress_before_an_answer_but_before_every_other_post) {
    ProgressPacer pacer;
    EXPECT_TRUE(pacer.on_post());
    pacer.on_commit_on_wait();
    EXPECT_FALSE(pacer.on_post());
    EXPECT_TRUE(pacer.on_post()) << "a program that finds no room asks again";
}

TEST(ProgressPacer, takes_the_newest_write_for_the_time_of_the_commit) {
    ProgressPacer pacer;
    EXPECT_EQ(pacer.on_commit(), 0);
    pacer.on_write(kFirstNs);
    pacer.on_write(kFirstNs + kStepNs);
    EXPECT_EQ(pacer.on_commit(), kFirstNs + kStepNs);
    EXPECT_EQ(pacer.on_commit(), 0);
}

}  // namespace
}  // namespace rmem::udp
