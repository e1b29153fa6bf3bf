// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/pacing.hpp"

#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace rmem::udp {
namespace {

using Progress = Pacing::Progress;

constexpr std::int64_t kFirstNs = 1'000'000, kStepNs = 100;
constexpr std::size_t kBytes = 32;

constexpr auto kAt = [](std::int64_t now) { return [now] { return now; }; };
constexpr auto kNoClock = []() -> std::int64_t {
    ADD_FAILURE() << "a clock costs as much as the rest";
    return 0;
};
constexpr auto kNotTaken = [] { return false; };

/// A program that writes and commits, and what it tells.
struct Program {
    Pacing pacing;
    std::uint32_t arrivals = 0;

    std::optional<Leaving> commit(std::int64_t now, std::size_t bytes = kBytes) {
        pacing.on_write(now, bytes);
        const auto leaving = pacing.on_commit(arrivals);
        if (leaving) pacing.on_leave(kNever);
        return leaving;
    }
    bool sends(std::int64_t now) { return commit(now) == Leaving::all; }
    /// Waits: what is open leaves.
    bool waits(std::int64_t now) {
        pacing.on_wait();
        EXPECT_EQ(pacing.on_progress(kAt(now)), Progress::leave);
        const bool leaves = pacing.is_to_leave(kAt(now));
        if (leaves) pacing.on_leave(kNever);
        return leaves;
    }
    /// Returns the time of the commit that leaves nothing.
    std::int64_t load_up(std::int64_t now = kFirstNs) {
        while (sends(now)) now += kStepNs;
        return now;
    }
};

TEST(Pacing, coalesces_commits_under_load_and_no_longer_than_the_first_may_wait) {
    Program program;
    const std::int64_t first = program.load_up();
    EXPECT_EQ(first, kFirstNs + (kLoad - 1) * kStepNs);
    EXPECT_TRUE(program.pacing.is_loaded());
    EXPECT_EQ(program.commit(first + kLazyNs - 1), std::nullopt);
    EXPECT_EQ(program.pacing.due_ns(), first + kLazyNs);
    EXPECT_EQ(program.commit(first + kLazyNs), Leaving::what_is_due);
    EXPECT_EQ(program.pacing.due_ns(), kNever);
}

TEST(Pacing, keeps_open_no_more_than_one_call_can_send) {
    Program program;
    std::int64_t now = program.load_up();
    EXPECT_EQ(program.commit(now += kStepNs, kMaxOpenBytes - 3 * kBytes), std::nullopt);
    EXPECT_EQ(program.commit(now += kStepNs), std::nullopt);
    EXPECT_EQ(program.commit(now += kStepNs), Leaving::what_is_due);
}

TEST(Pacing, keeps_open_what_is_left_in_a_datagram_until_it_is_due) {
    Program program;
    const std::int64_t now = program.load_up();
    program.pacing.on_leave(now - kStepNs);
    EXPECT_EQ(program.pacing.due_ns(), now - kStepNs + kLazyNs);
    EXPECT_TRUE(program.waits(now));
}

TEST(Pacing, has_what_is_open_leave_when_the_program_waits) {
    Program program;
    EXPECT_FALSE(program.waits(kFirstNs)) << "nothing was written";
    const std::int64_t now = program.load_up();
    EXPECT_TRUE(program.waits(now));
    EXPECT_FALSE(program.waits(now));
}

TEST(Pacing, keeps_a_write_without_a_commit_over_a_wait_and_until_it_is_due) {
    Program program;
    program.pacing.on_write(kFirstNs, kBytes);
    EXPECT_FALSE(program.waits(kFirstNs));
    program.pacing.on_write(kFirstNs + kStepNs, kBytes);
    EXPECT_EQ(program.pacing.due_ns(), kFirstNs + kLazyNs) << "the first write decides";
    EXPECT_TRUE(program.waits(kFirstNs + kLazyNs));
}

TEST(Pacing, has_a_commit_on_wait_leave_with_the_wait_if_something_was_written) {
    Program program;
    program.pacing.on_commit_on_wait();
    EXPECT_FALSE(program.waits(kFirstNs));
    program.pacing.on_write(kFirstNs, kBytes);
    program.pacing.on_commit_on_wait();
    EXPECT_TRUE(program.waits(kFirstNs));
}

TEST(Pacing, has_nothing_leave_that_was_not_written) {
    Program program;
    EXPECT_EQ(program.pacing.on_commit(0), std::nullopt);
    EXPECT_EQ(program.pacing.on_progress(kAt(kFirstNs)), Progress::look) << "it has committed";
}

TEST(Pacing, remembers_half_of_the_load_over_a_wait_and_nothing_over_a_pause) {
    Program program;
    std::int64_t now = program.load_up();
    for (unsigned i = 0; i < 3; ++i) program.waits(now);
    unsigned commits = 1;
    for (; program.sends(now += kStepNs); ++commits) {
    }
    EXPECT_EQ(commits, kLoad / 2) << "three waits in a row are one";
    program.waits(now);
    EXPECT_TRUE(program.sends(now + kQuietNs + 1));
    EXPECT_FALSE(program.pacing.is_loaded());
}

/// Programs that answer each other, that take messages which they find at once, and that read by
/// plain loads: all of these have waited.
TEST(Pacing, never_coalesces_for_programs_that_wait) {
    Program program;
    std::int64_t now = kFirstNs;
    for (unsigned i = 0; i < 3000; ++i) {
        for (unsigned k = 0; k < 1 + i % (kLoad / 2); ++k) {
            EXPECT_TRUE(program.sends(now += kStepNs)) << i;
        }
        switch (i / 1000) {
            case 0: EXPECT_FALSE(program.waits(now)); break;
            case 1: program.pacing.on_commit_on_wait(); break;
            default: ++program.arrivals;
        }
    }
}

TEST(Pacing, lets_a_commit_leave_at_once_after_a_pause_for_which_nothing_could_have_waited) {
    Program program;
    std::int64_t now = program.load_up();
    program.pacing.on_leave(kNever);
    for (unsigned i = 0; i < 10 * kLoad; ++i) {
        EXPECT_TRUE(program.sends(now += kLazyNs + 1)) << "a rhythm is no load";
        EXPECT_FALSE(program.pacing.is_loaded());
    }
    EXPECT_FALSE(program.sends(now += kStepNs)) << "a burst goes on soon";
}

/// The node to which a word goes may take the writer's processor for longer than a word waits.
TEST(Pacing, takes_commits_for_load_whose_sending_takes_long) {
    Program program;
    std::int64_t now = kFirstNs;
    unsigned commits = 0;
    for (; commits < 10 * kLoad && program.sends(now += kStepNs); ++commits) {
        program.pacing.on_left(now += 2 * kLazyNs);
    }
    EXPECT_LE(commits, kLoad);
    EXPECT_TRUE(program.pacing.is_loaded());
}

TEST(Pacing, notices_a_write_that_is_older_than_the_one_before) {
    Pacing pacing;
    pacing.on_write(kFirstNs, kBytes);
    EXPECT_BROKEN_WHERE_CHECKED(pacing.on_write(kFirstNs - 1, kBytes));
}

TEST(Pacing, gives_words_of_a_fast_run_one_time_until_they_are_taken) {
    Program program;
    std::int64_t now = program.load_up();
    EXPECT_EQ(program.pacing.time(kNotTaken, kAt(now += kStepNs)), now);
    EXPECT_EQ(program.pacing.time(kNotTaken, kNoClock), now) << "the next words are of that time";
    const auto is_taken = [] { return true; };
    EXPECT_EQ(program.pacing.time(is_taken, kAt(now + 7)), now + 7) << "it may have paused";
    now += 1'000'000;
    while (program.pacing.time(kNotTaken, kAt(now)) != now) {
    }
    EXPECT_EQ(program.pacing.time(kNotTaken, kAt(now + 1)), now + 1) << "the run was slow";
}

TEST(Pacing, asks_for_each_words_time_without_load) {
    Pacing pacing;
    for (std::int64_t now = kFirstNs; now < kFirstNs + 100; ++now)
        EXPECT_EQ(pacing.time(kNotTaken, kAt(now)), now);
}

// ---- Looks

TEST(Pacing, looks_each_kLazyNs_while_commits_coalesce) {
    Program program;
    const std::int64_t begin = program.load_up();
    unsigned looks = 0;
    for (std::int64_t now = begin; now < begin + 10 * kLazyNs; now += kLazyNs / 10) {
        program.pacing.on_write(now, kBytes);
        static_cast<void>(program.pacing.on_commit(0));
        if (program.pacing.on_progress(kAt(now)) == Progress::look) ++looks;
    }
    EXPECT_EQ(looks, 10U);
}

TEST(Pacing, does_not_ask_for_the_time_while_nothing_is_open) {
    Program program;
    EXPECT_TRUE(program.sends(kFirstNs));
    EXPECT_EQ(program.pacing.on_progress(kNoClock), Progress::look);
    EXPECT_EQ(program.pacing.on_progress(kNoClock), Progress::leave) << "twice is to wait";
}

TEST(Pacing, makes_no_progress_before_an_answer_but_before_every_other_post) {
    Pacing pacing;
    EXPECT_TRUE(pacing.on_post());
    pacing.on_commit_on_wait();
    EXPECT_FALSE(pacing.on_post());
    EXPECT_TRUE(pacing.on_post()) << "a program that finds no room asks again";
}

}  // namespace
}  // namespace rmem::udp
