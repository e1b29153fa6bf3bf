// SPDX-License-Identifier: Apache-2.0

/// A waiting process is parked (rmem/sim/watch.hpp), and yet sees what it would see if each of its
/// polls were simulated.

#include "rmem/base/random.hpp"
#include "tests/rmem/sim/world_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rmem::sim {
namespace {

constexpr const char* kHost = "none,load=685ns,store=150ns,call=800ns";

/// When node 0, which polls these words in turn, by itself or parked, sees one change that node 2
/// posts at that time.
struct Seen {
    std::int64_t at_ns = 0;       ///< the process's clock, after the poll that saw it
    std::int64_t arrived_ns = 0;  ///< of the write
};
Seen change_seen(const std::vector<std::size_t>& words, std::size_t which, std::int64_t posted_ns,
                 bool parked) {
    World world(small_world(3, "scramnet-burst", kHost));
    Events events(world);
    Seen seen;
    world.start(0, [&](Process& me) {
        SimMemory memory(me);
        const auto is_changed = [&](std::size_t offset) { return memory.load(offset) != 0; };
        memory.begin_wait();
        while (std::none_of(words.begin(), words.end(), is_changed)) {
            if (parked) memory.wait(Deadline::never());
        }
        memory.end_wait();
        seen.at_ns = me.now_ns();
    });
    world.start(2, post_one(which), posted_ns);
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    seen.arrived_ns = events.of(EventKind::arrived, 0).at(0).time_ns;
    return seen;
}

TEST(Polling, polling_of_one_word_sees_it_at_the_first_poll_that_is_not_before_its_arrival) {
    for (std::int64_t posted = 5000; posted < 5000 + 2 * 685; posted += 13) {
        const Seen parked = change_seen({64}, 64, posted, true);
        EXPECT_EQ(parked.at_ns % 685, 0) << "a poll is a load, and polls stay on their grid";
        EXPECT_GE(parked.at_ns, parked.arrived_ns);
        EXPECT_LT(parked.at_ns - 685, parked.arrived_ns);
        EXPECT_EQ(parked.at_ns, change_seen({64}, 64, posted, false).at_ns);
    }
}

TEST(Polling, polling_of_several_words_sees_each_when_simulated_polls_would) {
    const std::vector<std::size_t> words = {40, 4, 400};
    for (const std::size_t which : words) {
        for (std::int64_t posted = 5000; posted < 5000 + 3 * 685; posted += 31) {
            EXPECT_EQ(change_seen(words, which, posted, true).at_ns,
                      change_seen(words, which, posted, false).at_ns)
                << which << " posted at " << posted;
        }
    }
}

TEST(Polling, sees_no_word_before_it_arrives_nor_later_than_a_poll_when_several_change) {
    Random random(3);
    for (int round = 0; round < 200; ++round) {
        World world(small_world(4, "scramnet-burst", kHost));
        Events events(world);
        const auto posted = static_cast<std::int64_t>(5000 + random.below(3000));
        const auto apart = static_cast<std::int64_t>(random.below(4000));
        std::int64_t seen_ns = 0;
        world.start(0, [&](Process& me) {
            SimMemory memory(me);
            memory.begin_wait();
            while (memory.load(0) == 0 && memory.load(4) == 0) memory.wait(Deadline::never());
            seen_ns = me.now_ns();
        });
        world.start(1, post_one(0), posted);
        world.start(3, post_one(4), posted + apart);
        ASSERT_EQ(world.run(), RunEnd::all_ended);
        const std::int64_t first = events.of(EventKind::arrived, 0).at(0).time_ns;
        EXPECT_GE(seen_ns, first);
        EXPECT_LE(seen_ns, first + 4 * 685);
    }
}

TEST(Polling, is_woken_by_what_another_process_of_the_node_stores) {
    World world(with_ranks(small_world(2, "scramnet-burst", kHost), 4));
    std::int64_t seen_ns = 0;
    world.start(0, sees(8, 5, seen_ns));
    world.start(1, post_one(8, 5), 10'000);
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_GE(seen_ns, 10'150);
    EXPECT_LT(seen_ns, 10'150 + 2 * 685) << "the own card's memory needs no wire";
}

TEST(Polling, is_not_ended_by_words_that_nobody_watches_or_that_stay_the_same) {
    World world(small_world(3, "scramnet-burst", kHost));
    int polls = 0;
    world.start(0, [&](Process& me) {
        SimMemory memory(me);
        memory.begin_wait();
        while (memory.load(100) != 1) {
            ++polls;
            memory.wait(Deadline::never());
        }
    });
    world.start(1, [](Process& me) {
        SimMemory memory(me);
        for (std::uint32_t i = 0; i < 100; ++i) {
            memory.post_word(96, i);
            memory.post_word(104, i);
            memory.post_word(100, 0);
            me.sleep(5000);
        }
        memory.post_word(100, 1);
    });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_LE(polls, 3) << "it was not parked";
}

TEST(Polling, ends_at_its_deadline_at_a_poll_or_after_one_look_where_that_has_passed) {
    for (const std::int64_t within_ns : {100'000, 0}) {
        World world(small_world(2, "scramnet-burst", kHost));
        world.start(0, [&](Process& me) {
            SimMemory memory(me);
            const Deadline deadline = Deadline::after(me.now_ns(), within_ns);
            memory.begin_wait();
            int polls = 1;
            for (; memory.load(0) == 0 && memory.wait(deadline) != Step::expired; ++polls) {
            }
            EXPECT_GE(me.now_ns(), within_ns);
            EXPECT_LE(me.now_ns(), within_ns + 2 * 685);
            EXPECT_TRUE(within_ns != 0 || polls <= 2) << polls;
        });
        EXPECT_EQ(world.run(), RunEnd::all_ended);
    }
}

TEST(Polling, polling_of_a_stopped_process_goes_on_when_it_does) {
    World world(small_world(2, "scramnet-burst", kHost));
    std::int64_t seen_ns = 0;
    world.start(0, sees(0, 1, seen_ns));
    world.at(10'000, [&] { world.stop(0); });
    world.start(1, post_one(0), 20'000);
    world.at(500'000, [&] { world.resume(0); });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_GE(seen_ns, 500'000);
    EXPECT_LT(seen_ns, 500'000 + 2 * 685);
}

TEST(Polling, looks_at_its_peers_soon_after_one_has_gone_and_each_millisecond_from_then_on) {
    World world(small_world(2, "scramnet-burst", kHost));
    std::vector<std::int64_t> checks;
    world.start(0, [&](Process& me) {
        SimMemory memory(join(me));
        memory.begin_wait();
        const Deadline deadline = Deadline::after(0, 10'000'000);
        for (Step step = Step::poll; step != Step::expired;) {
            memory.load(0);
            step = memory.wait(deadline);
            if (step == Step::check_peers) checks.push_back(me.now_ns());
        }
    });
    world.start(1, [&](Process& me) {
        join(me);
        me.sleep(5'000'000);
    });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    ASSERT_GE(checks.size(), 5U);
    EXPECT_GE(checks[0], 5'000'000);
    EXPECT_LE(checks[0], 5'002'000);
    for (std::size_t i = 1; i < checks.size(); ++i) {
        EXPECT_GE(checks[i] - checks[i - 1], 1'000'000);
        EXPECT_LE(checks[i] - checks[i - 1], 1'002'000);
    }
}

}  // namespace
}  // namespace rmem::sim
