// SPDX-License-Identifier: Apache-2.0
// ctest: check
#include "rmem/link/udp/engine.hpp"

#include "rmem/base/fence.hpp"
#include "rmem/link/udp/engine_helper.hpp"
#include "rmem/ring/segment.hpp"
#include "tests/rmem/link/udp/engine_program.hpp"
#include "tests/support/test_ring.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace rmem::udp {
namespace {

using test::in_bank;

constexpr std::int64_t kArrivalNs = 30'000'000'000;

/// Engines of a ring of two nodes with two ranks each.
class EngineTest : public ::testing::Test {
protected:
    std::unique_ptr<Engine> start(unsigned node, std::optional<unsigned> rank) {
        const auto kind = rank ? EngineKind::program : EngineKind::daemon;
        auto engine = std::make_unique<Engine>(*ring.ring(node),
                                               EngineSettings::read(ring.config()), kind, rank);
        engine->join(Deadline::in(kArrivalNs));
        return engine;
    }
    /// As rank 0; its heartbeats come each minute.
    std::unique_ptr<Engine> start_patiently() {
        ::setenv("RMEM_DEAD_TIMEOUT", "1000s", 1);
        auto engine = start(0, 0);
        ::unsetenv("RMEM_DEAD_TIMEOUT");
        return engine;
    }
    /// While another runs that it has to meet.
    std::unique_ptr<Engine> start_beside(Engine& other, unsigned node, unsigned rank) {
        EngineHelper helper(other);
        helper.set_always(true);
        return start(node, rank);
    }
    std::unique_ptr<EngineProgram> open(unsigned node, unsigned rank, Engine& engine) {
        return std::make_unique<EngineProgram>(ring.ring(node), node, rank, engine);
    }
    /// Meanwhile this thread calls `uses` each millisecond. Soon: before the timers that come less
    /// and less often have ended each wait of it.
    static bool ends_by_itself(
        Engine& engine, const std::function<void()>& work,
        const std::function<void()>& uses = [] {}) {
        std::atomic<bool> is_over{false};
        std::thread other([&] {
            work();
            is_over = true;
        });
        const Deadline soon = Deadline::in(10'000'000'000);
        while (!is_over && !soon.passed(now_ns())) {
            uses();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        const bool is_soon = is_over;
        for (; !is_over; engine.interrupt()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        other.join();
        return is_soon;
    }
    RosterEntry entry(unsigned at, unsigned rank) const {
        return Roster(*ring.ring(at), at).entry(rank);
    }
    RankState state(unsigned at, unsigned rank) const {
        return static_cast<RankState>(ring.ring(at)->rank(rank).state.load());
    }
    static bool eventually(Engine& runs, const std::function<bool()>& holds) {
        const Deadline deadline = Deadline::in(kArrivalNs);
        while (!holds()) {
            if (deadline.passed(now_ns())) return false;
            runs.run();
            runs.rest(1'000'000);
        }
        return true;
    }

    const test::TestRing ring{{.link = LinkKind::udp, .ranks = 4}};
};

/// Node 0's engine, which rank 0 runs.
struct EngineWithProgram : EngineTest {
    const std::unique_ptr<Engine> engine = start(0, 0);
    const std::unique_ptr<EngineProgram> program = open(0, 0, *engine);
};

// ---- The roster

TEST_F(EngineTest, takes_ranks_of_its_nodes_former_incarnation_off_the_roster) {
    const auto first = start(0, 0);
    EngineHelper helper(*first);
    helper.set_always(true);
    auto former = start(1, 2);
    auto program = open(1, 2, *former);
    const std::uint32_t incarnation = program->incarnation();
    ASSERT_TRUE(eventually(*former, [&] { return state(0, 2) == RankState::elsewhere; }));
    former.reset();  // without a word of its rank: so ends who is killed
    ASSERT_TRUE(test::eventually([&] { return state(0, 2) == RankState::lost; }));
    EXPECT_TRUE(entry(0, 2).joined) << "its word stands in all banks";

    const auto next = start(1, 3);
    EXPECT_TRUE(eventually(*next, [&] { return !entry(0, 2).joined; }));
    EXPECT_EQ(entry(0, 2).incarnation, incarnation) << "the next one comes after it";
    EXPECT_TRUE(test::eventually([&] { return state(0, 2) == RankState::left; }));
}

TEST_F(EngineTest, says_at_once_who_has_come_and_who_has_gone) {
    const auto first = start(0, 0);
    EngineHelper helper(*first);
    helper.set_always(true);
    const auto second = start(1, 2);
    const auto program = open(1, 2, *second);
    EXPECT_TRUE(eventually(*second, [&] { return state(0, 2) == RankState::elsewhere; }));
    program->leave();
    EXPECT_TRUE(eventually(*second, [&] { return state(0, 2) == RankState::left; }));
    EXPECT_FALSE(entry(0, 2).joined);
}

// ---- Writes

TEST_F(EngineWithProgram, keeps_a_datagram_open_that_is_neither_full_nor_due_if_it_may) {
    const auto sent = [&] { return engine->work().carrier().counters().sent; };
    const std::uint64_t before = sent();
    constexpr std::uint32_t kCommits = 50;
    for (std::uint32_t i = 0; i < kCommits; ++i) {
        program->append(i, 0, now_ns() + kArrivalNs);
        EXPECT_FALSE(program->commit(Leaving::what_is_due));
        EXPECT_TRUE(program->is_consumed());
    }
    EXPECT_EQ(sent(), before);
    engine->run();
    EXPECT_NE(engine->open_since_ns(), kNever) << "a run leaves it to the program";
    EXPECT_FALSE(program->is_completed());
    EXPECT_TRUE(program->commit());
    EXPECT_EQ(sent(), before + 1);
    program->append(0, 0, now_ns() - kLazyNs);
    EXPECT_TRUE(program->commit(Leaving::what_is_due)) << "it is due";
    EXPECT_TRUE(eventually(*engine, [&] { return program->is_completed(); }));
}

/// As of a program whose last words must leave though it calls no more.
TEST_F(EngineWithProgram, sends_what_a_program_has_left_in_its_log) {
    EXPECT_EQ(engine->open_since_ns(), kNever);
    program->append(5);
    EXPECT_NE(engine->open_since_ns(), kNever);
    engine->run();
    EXPECT_FALSE(program->is_consumed()) << "it was not committed";
    engine->take_all();
    EXPECT_TRUE(program->is_consumed());
    EXPECT_EQ(engine->open_since_ns(), kNever);
}

TEST_F(EngineTest, takes_later_what_there_was_no_room_for) {
    ::setenv("RMEM_DEAD_TIMEOUT", "60s", 1);
    const auto engine = start(0, 0);
    const auto program = open(0, 0, *engine);
    const auto silent = start_beside(*engine, 1, 2);  // from now on: nothing is acknowledged
    ::unsetenv("RMEM_DEAD_TIMEOUT");
    std::uint32_t posted = 0;
    for (; program->is_consumed(); program->post(posted, 4096)) {
        ASSERT_LT(++posted, 10'000'000U) << "nobody has anything of it";
    }
    EXPECT_TRUE(eventually(*silent, [&] {
        engine->run();
        return program->is_completed();
    }));
    EXPECT_EQ(in_bank(ring, 1, 4096), posted);
}

// ---- The bank

TEST_F(EngineTest,
       clears_what_a_bank_held_before_it_forms_a_ring_and_gives_none_of_the_rest_memory) {
    auto* const last = reinterpret_cast<std::atomic<std::uint32_t>*>(
        ring.ring(0)->bank(0) + ring.config().user_bytes - kWordBytes);
    last->store(7);
    const auto first_touched = [&](unsigned node) {
        const Segment& segment = ring.ring(node)->segment();
        const auto at = static_cast<std::size_t>(ring.ring(node)->bank(node) - segment.data());
        return segment.next_touched(at) - at;
    };
    const std::size_t before = first_touched(0);
    EXPECT_GT(before, 0U) << "the word is in the last of the pages";
    const auto one = start(0, 0);
    EXPECT_EQ(last->load(), 0U);
    EXPECT_EQ(first_touched(0), before);
    // Nor does a bank that is given.
    const auto other = std::async(std::launch::async, [&] { return start(1, 2); });
    ASSERT_TRUE(eventually(*one, [&] {
        return other.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    }));
    EXPECT_GE(first_touched(1), before);
}

TEST_F(EngineTest, sends_at_once_what_it_answers_in_a_run_that_only_brings_writes) {
    const auto engine = start(0, 0);
    const auto other = start_beside(*engine, 1, 2);
    const auto program = open(0, 0, *engine), others = open(1, 2, *other);
    for (std::uint32_t round = 1; round <= 20; ++round) {
        for (unsigned i = 0; i < 10; ++i) program->post(round);
        ASSERT_TRUE(eventually(*engine, [&] {
            other->run();
            return program->is_completed() && others->is_completed();
        }));
        others->append(round, 4096, now_ns() - kLazyNs);  // due, and leaves with the question
        others->commit_and_ask();
        ASSERT_TRUE(eventually(*other, [&] {
            engine->run();
            return in_bank(ring, 0, 4096) == round;
        }));
        // From now on the engine does nothing more.
        ASSERT_TRUE(eventually(*other, [&] { return others->is_completed(); }));
    }
}

/// A program may have waited for what it reads by plain loads, and not for word of room.
TEST_F(EngineTest, counts_what_others_write_to_the_users_memory_alone) {
    const auto engine = start(0, 0);
    const auto other = start_beside(*engine, 1, 2);
    const auto others = open(1, 2, *other);
    for (const std::size_t offset : {std::size_t{4096}, ring.config().user_bytes}) {
        const std::uint32_t before = ring.ring(0)->board().arrivals;
        others->post(7, offset);
        ASSERT_TRUE(eventually(*engine, [&] {
            other->run();
            return in_bank(ring, 0, offset) == 7;
        }));
        EXPECT_EQ(ring.ring(0)->board().arrivals - before, offset == 4096 ? 1U : 0U);
    }
}

// ---- Who stands by

/// A heartbeat comes each minute: nothing else but a bell ends it.
TEST_F(EngineTest, wakes_who_stands_by_when_others_use_it) {
    const auto engine = start_patiently();
    const std::function<void()> uses[] = {[&] { engine->run(); },
                                          [&] { engine->take(Leaving::all, now_ns()); },
                                          [&] { engine->leave_some(); }};
    for (const auto& use : uses) {
        const bool is_woken = ends_by_itself(
            *engine,
            [&] {
                for (int round = 0; round < 10; ++round) {
                    engine->stand_in(0);
                    engine->run();
                    engine->stand_in(0);  // the first may have been short
                }
            },
            use);
        EXPECT_TRUE(is_woken) << "use " << &use - uses;
    }
}

/// As the helper does that looks at what a program writes without a call.
TEST_F(EngineTest, lets_who_looks_at_what_is_open_stand_by_no_longer_than_it_wants) {
    const auto engine = start_patiently();
    EXPECT_TRUE(ends_by_itself(*engine, [&] {
        for (int round = 0; round < 100; ++round) {
            engine->stand_in(EngineHelper::kMaxActiveNs);
            engine->run();
        }
    }));
}

/// No bell is rung for what follows while it looks.
TEST_F(EngineTest, is_looked_at_by_a_helper_that_stands_in_while_a_program_writes_by_its_log) {
    const auto engine = start_patiently();
    const auto program = open(0, 0, *engine);
    EngineHelper helper(*engine);
    helper.set_always(true);
    EXPECT_TRUE(ends_by_itself(*engine, [&] {
        for (int round = 0; round < 30; ++round) {
            program->append(5);
            light_fence();
            helper.watch_actively();
            while (engine->open_since_ns() != kNever) std::this_thread::yield();
            std::this_thread::sleep_for(std::chrono::milliseconds(round % 10));
        }
    }));
}

/// How often the thread of that name of this process was switched in.
std::uint64_t switches_of(const std::string& name) {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream status(task.path() / "status");
        std::string line;
        std::getline(status, line);
        if (line != "Name:\t" + name) continue;
        const std::string key = "voluntary_ctxt_switches:";
        while (std::getline(status, line)) {
            if (line.starts_with(key)) return std::stoull(line.substr(key.size()));
        }
    }
    ADD_FAILURE() << "there is no thread " << name;
    return 0;
}

TEST_F(EngineTest, is_left_alone_by_its_helper_while_nothing_happens) {
    const auto engine = start(0, 0);
    EngineHelper helper(*engine);
    ASSERT_TRUE(test::eventually([&] { return helper.takeovers() > 0; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const std::uint64_t before = switches_of("rmem-udp");
    std::this_thread::sleep_for(std::chrono::seconds(1));
    // A look each millisecond would be a thousand.
    EXPECT_LE(switches_of("rmem-udp") - before, 40U);
}

TEST_F(EngineWithProgram, rings_no_bell_for_a_program_that_writes_again_and_again) {
    EngineHelper helper(*engine);
    helper.set_always(true);
    program->post(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::uint64_t before = switches_of("rmem-udp");
    const std::int64_t start_ns = now_ns();
    constexpr unsigned kPosts = 400;
    for (std::uint32_t i = 0; i < kPosts; ++i) {
        program->post(i);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    const auto timers = static_cast<std::uint64_t>((now_ns() - start_ns) / Engine::kTailNs);
    EXPECT_LE(switches_of("rmem-udp") - before, kPosts / 4 + 2 * timers);
}

/// Who waits for an interrupt is woken when one is raised.
TEST_F(EngineTest, wakes_for_a_write_who_waits_for_posts_and_nobody_else) {
    const auto from = start(0, 0), to = start(1, std::nullopt);
    const auto program = open(0, 0, *from);
    ask_attention(*ring.ring(1), 2, kAttentionSleeping);
    ask_attention(*ring.ring(1), 3, kAttentionInterrupts);
    const std::uint32_t woken = wake_count(*ring.ring(1), 3);
    const auto asks = [&](unsigned rank) { return ring.ring(1)->attention()[rank].load(); };
    EXPECT_TRUE(eventually(*to, [&] {
        from->run();
        program->post(1);
        return (asks(2) & kAttentionSleeping) == 0;
    }));
    EXPECT_EQ(wake_count(*ring.ring(1), 3), woken);
}

/// What its own last run before a sleep has brought makes no datagram wake it.
TEST_F(EngineTest, has_the_program_that_runs_it_look_once_more_before_it_sleeps) {
    const auto from = start(0, 0), to = start(1, 2);
    const auto program = open(0, 0, *from);
    const auto sleep_ns = [&] {
        const std::int64_t begin = now_ns();
        to->sleep(kArrivalNs);
        return now_ns() - begin;
    };
    constexpr int kTries = 20;
    int at_once = 0;
    for (int i = 0; i < kTries; ++i) {
        program->post(static_cast<std::uint32_t>(i));
        from->run();
        for (const Deadline end = Deadline::in(2'000'000); !end.passed(now_ns());) to->run();
        const std::int64_t first_ns = sleep_ns(), next_ns = sleep_ns();  // the latter by a timer
        at_once += first_ns * 4 < next_ns ? 1 : 0;
    }
    EXPECT_GE(at_once, kTries / 2);
    // And wakes it when a helper has taken what would have.
    std::atomic<bool> is_over{false};
    std::thread sleeper([&] {
        to->sleep(kArrivalNs);
        is_over = true;
    });
    const Deadline deadline = Deadline::in(kArrivalNs / 2);
    while (!is_over && !deadline.passed(now_ns())) {
        if (to->sleeps()) {
            program->post(2);
            from->run();
            to->run();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(is_over);
    sleeper.join();
}

/// Restores the processors of the calling thread, which an engine counts when it is made.
class OnOneProcessor {
public:
    OnOneProcessor() {
        ::sched_getaffinity(0, sizeof all_, &all_);
        cpu_set_t one;
        CPU_ZERO(&one);
        for (std::size_t p = 0; CPU_COUNT(&one) == 0; ++p) {
            if (CPU_ISSET(p, &all_)) CPU_SET(p, &one);
        }
        ::sched_setaffinity(0, sizeof one, &one);
    }
    ~OnOneProcessor() { ::sched_setaffinity(0, sizeof all_, &all_); }

private:
    cpu_set_t all_;
};

/// Each of a crowd would be woken by each datagram, which is mostly for another.
TEST_F(EngineTest, lets_a_rank_nap_where_nodes_outnumber_processors_until_its_wait_is_over) {
    std::optional<OnOneProcessor> crowd(std::in_place);
    const auto from = start(0, 0), to = start(1, 2);
    const auto program = open(0, 0, *from);
    crowd.reset();
    const auto naps_after_a_wake = [&] {
        to->sleep(1'000'000);
        program->post(1);
        from->run();
        to->run();
        to->sleep(1'000'000);
        return to->naps();
    };
    EXPECT_TRUE(eventually(*to, naps_after_a_wake));
    EXPECT_TRUE(eventually(*to, [&] {
        if (!naps_after_a_wake()) return false;
        EXPECT_TRUE(to->take_slept());
        return !to->naps();
    }));
}

TEST_F(EngineWithProgram, shows_on_which_processor_it_has_sent) {
    program->post(1);
    const std::uint32_t shown = ring.ring(0)->board().processor.get();
    EXPECT_GE(shown, 1U);
    EXPECT_LE(shown, static_cast<std::uint32_t>(std::thread::hardware_concurrency()));
}

/// A program that has slept in a call of its own, and then computes, is not there to wake it.
TEST_F(EngineTest, is_run_by_its_helper_again_when_a_sleep_of_the_program_is_over) {
    const auto engine = start(0, 0);
    EngineHelper helper(*engine);
    // A heartbeat at the latest shows the helper that the program is there.
    for (const Deadline end = Deadline::in(1'000'000'000); !end.passed(now_ns());) {
        helper.attend();
        engine->sleep(100'000'000);
    }
    const std::uint64_t before = helper.takeovers();
    helper.take_back();
    EXPECT_TRUE(test::eventually([&] { return helper.takeovers() > before; }));
}

/// The program is not away, so the helper takes nothing over; but it may compute before it calls
/// again.
TEST_F(EngineWithProgram, is_polled_actively_by_its_helper_while_something_is_open) {
    EngineHelper helper(*engine);
    unsigned rounds_without_takeover = 0;
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 10; ++i) {
            helper.attend();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        const std::uint64_t before = helper.takeovers();
        program->append(5);
        light_fence();
        helper.watch_actively();
        const Deadline deadline = Deadline::in(kArrivalNs);
        while (engine->open_since_ns() != kNever) {
            helper.attend();
            ASSERT_FALSE(deadline.passed(now_ns())) << "nobody has sent it";
            std::this_thread::yield();
        }
        if (helper.takeovers() == before) ++rounds_without_takeover;
    }
    EXPECT_GT(rounds_without_takeover, 0U) << "more are none when the test is itself kept waiting";
}

}  // namespace
}  // namespace rmem::udp
