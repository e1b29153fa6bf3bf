// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// A process that is killed or stopped while it waits for a word disturbs nobody: the others go on
/// writing and being woken, the rank can be started again and wait again, and nothing is left.
///
/// Rank 0 writes all the time, rank 2 waits for one of its words all the time, and rank 1, the
/// victim, for another word.

#include "rmem/node.hpp"
#include "tests/support/rank_processes.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>

namespace rmem::test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kAnswerNs = 30'000'000'000;

// Words of the ring, in one line.
constexpr std::size_t kBusy = 0x100;   ///< written all the time; nobody need wait
constexpr std::size_t kHeard = 0x104;  ///< written all the time; rank 2 waits
constexpr std::size_t kCall = 0x108;   ///< written on demand; rank 1 waits
constexpr std::uint32_t kEnd = ~0U;    ///< the last value of kHeard

// Shared words.
enum Word : std::size_t {
    joined,   ///< processes
    heard,    ///< what rank 2 has seen last
    waiting,  ///< processes of rank 1 that are about to wait
    pid,      ///< of the last of them
    call,     ///< what rank 0 is to write at kCall
    called,   ///< has written
    woken,    ///< what rank 1 has seen there
    stop,     ///< rank 0 is to end
};

void write(Node& node, std::size_t offset, std::uint32_t value) {
    await(
        [&] {
            const WriteResult result = node.write_word(offset, value);
            check(result != WriteResult::dropped, "the writer is still a member");
            if (result == WriteResult::again) node.poll();
            return result == WriteResult::ok;
        },
        "room");
}

void write_all_the_time(Rank& me) {
    Node node = Node::open();
    me.raise(joined);
    me.await_word(joined, 3);
    std::uint32_t value = 0;
    while (me.shared[stop] == 0) {
        ++value;
        write(node, kBusy, value);
        write(node, kHeard, value);
        if (me.shared[called] != me.shared[call]) {
            write(node, kCall, me.shared[call]);
            me.shared[called] = me.shared[call].load();
        }
        await([&] { return me.shared[heard] >= value; },
              fmt::format("rank 2 to be woken by {}", value));
        rest(std::chrono::microseconds(value * 37 % 1500));
    }
    write(node, kHeard, kEnd);
    check(node.flush(Deadline::in(kAnswerNs)), "all has been applied");
}

void hear_all_the_time(Rank& me) {
    Node node = Node::open();
    std::uint32_t seen = node.load(kHeard);
    me.raise(joined);  // from here on rank 0 writes, and awaits that each value is heard
    while (seen != kEnd) {
        const std::uint32_t value = node.wait_change(kHeard, seen, Deadline::in(kAnswerNs));
        check(value > seen, fmt::format("after {} a later value, not {}", seen, value));
        seen = value;
        if (seen != kEnd) me.shared[heard] = seen;
    }
}

/// Waits for a call, once.
void be_called(Rank& me) {
    Node node = Node::open();
    const std::uint32_t before = node.load(kCall);
    me.shared[pid] = static_cast<std::uint32_t>(::getpid());
    me.raise(joined);
    me.raise(waiting);
    const std::uint32_t value = node.wait_change(kCall, before, Deadline::in(kAnswerNs));
    check(value != before, "the call is heard");
    me.shared[woken] = value;
}

/// Waits for what is written all the time, until it is killed.
void be_woken_all_the_time(Rank& me) {
    Node node = Node::open();
    me.shared[pid] = static_cast<std::uint32_t>(::getpid());
    me.raise(joined);
    me.raise(waiting);
    for (std::uint32_t seen = node.load(kBusy);;) {
        const std::uint32_t value = node.wait_change(kBusy, seen, Deadline::in(kAnswerNs));
        check(value > seen, fmt::format("after {} a later value, not {}", seen, value));
        seen = value;
    }
}

class WaitingRank : public ::testing::TestWithParam<std::string> {
protected:
    /// Silence for which a node of link udp counts as dead.
    explicit WaitingRank(const std::string& dead_after = "1s")
        : ring_({.ranks = 3,
                 .link = GetParam(),
                 .extra = {{"RMEM_SIZE", "4K"}, {"RMEM_DEAD_TIMEOUT", dead_after}}}) {}

    void start_others() {
        ring_.start_bare(0, write_all_the_time);
        ring_.start_bare(2, hear_all_the_time);
    }
    void start_victim(const Body& body) {
        ring_.start_bare(1, body);
        ring_.await_word(waiting, ++started_);
    }
    /// The victim's program has been seen in the kernel again and again.
    void await_sleep() {
        const std::string file = "/proc/" + std::to_string(ring_.shared()[pid].load()) + "/stat";
        unsigned times = 0;
        await(
            [&] {
                std::ifstream in(file);
                std::string line;
                std::getline(in, line);
                const auto name_end = line.rfind(')');
                times = name_end != std::string::npos && line[name_end + 2] == 'S' ? times + 1 : 0;
                return times >= 20;
            },
            "the victim to sleep");
    }
    /// Writes and wakes go on.
    void expect_progress() { ring_.await_word(heard, ring_.shared()[heard] + 10); }
    void end_others() {
        ring_.shared()[stop] = 1;
        ring_.finish();
    }
    void call_and_hear(std::uint32_t value) {
        ring_.shared()[call] = value;
        ring_.await_word(woken, value);
        ring_.wait(1);
    }

    RankProcesses ring_;
    unsigned started_ = 0;
};

TEST_P(WaitingRank, killed_in_its_sleep_disturbs_nobody_and_can_wait_again) {
    start_others();
    for (std::uint32_t time = 1; time <= 2; ++time) {
        start_victim(be_called);
        await_sleep();
        ring_.kill(1);
        expect_progress();
        start_victim(be_called);
        await_sleep();
        call_and_hear(time);
        expect_progress();
    }
    end_others();
}

TEST_P(WaitingRank, killed_at_any_moment_of_its_waiting_disturbs_nobody) {
    start_others();
    const unsigned times = is_remote(parse_link(GetParam())) ? 2 : 12;
    for (unsigned i = 0; i < times; ++i) {
        start_victim(be_woken_all_the_time);
        ring_.let_pass(std::chrono::microseconds(i * 731 % 5000));
        ring_.kill(1);
        expect_progress();
    }
    start_victim(be_called);
    call_and_hear(1);
    end_others();
}

class StoppedRank : public WaitingRank {
protected:
    StoppedRank() : WaitingRank("60s") {}
};

TEST_P(StoppedRank, in_its_sleep_disturbs_nobody_and_wakes_when_it_goes_on) {
    start_others();
    for (std::uint32_t time = 1; time <= 3; ++time) {
        start_victim(be_called);
        if (time != 2) await_sleep();
        ring_.stop(1);
        expect_progress();
        ring_.shared()[call] = time;
        ring_.await_word(called, time);
        expect_progress();
        EXPECT_LT(ring_.shared()[woken], time) << "a stopped one has not seen anything";
        ring_.resume(1);
        ring_.await_word(woken, time);
        ring_.wait(1);
    }
    end_others();
}

INSTANTIATE_TEST_SUITE_P(EachLink, WaitingRank,
                         ::testing::Values("direct", "ring", "udp", "fabric"),
                         [](const auto& of) { return of.param; });
INSTANTIATE_TEST_SUITE_P(EachLink, StoppedRank,
                         ::testing::Values("direct", "ring", "udp", "fabric"),
                         [](const auto& of) { return of.param; });

}  // namespace
}  // namespace rmem::test
