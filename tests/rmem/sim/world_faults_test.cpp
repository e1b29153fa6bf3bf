// SPDX-License-Identifier: Apache-2.0

/// Faults of the writes, cards and cables of a simulated world, and of its processes, which are
/// killed at one of their accesses, too.

#include "rmem/base/random.hpp"
#include "rmem/wire/faults.hpp"
#include "tests/rmem/sim/world_fixture.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

namespace rmem::sim {
namespace {

/// Writes a word when it is destroyed.
struct LastWord {
    explicit LastWord(Process& me) : memory(me) {}
    ~LastWord() { memory.post_word(0, 99); }
    SimMemory memory;
};

TEST(WorldFaults, faults_of_a_process_leave_objects_whose_destructors_write_nothing) {
    World world(small_world(2));
    Events events(world);
    world.start(0, [](Process& me) {
        me.keep(std::make_unique<LastWord>(me));
        me.sleep(1'000'000);
    });
    world.at(1000, [&] { world.kill(0); });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    world.start(0, posts(1, 1000, 4), 2000);  // objects kept by the first incarnation are gone now
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(events.count(EventKind::stored), 1U);
    EXPECT_EQ(world.word(1, 0), 0U);
}

// ---- Writes

TEST(WorldFaults, faults_that_delay_a_write_delay_those_behind_it_and_no_others) {
    World world(small_world(3));
    Events events(world);
    world.start(0, posts(5, 1000));
    world.start(1, posts(5, 1000, 100));
    world.at(1500, [&] { world.delay_writes(0, 1, 50'000); });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(events.count(EventKind::delayed), 1U);
    std::uint64_t number = 0;
    for (const Event& event : events.of(EventKind::arrived, 2)) {
        if (event.origin != 0) {
            EXPECT_LE(event.time_ns - event.stored_ns, world.bound_ns());
            continue;
        }
        EXPECT_EQ(event.number, ++number) << "overtaken";
        if (number < 3) {
            EXPECT_LE(event.time_ns, 1000 + world.bound_ns());
        } else {
            EXPECT_GE(event.time_ns, 52'000);
        }
    }
    EXPECT_EQ(number, 5U);
    EXPECT_GT(world.counter(2, LinkCounter::bound_violations), 0U) << "late is counted";
    EXPECT_EQ(events.of(EventKind::late, 2).size(),
              world.counter(2, LinkCounter::bound_violations));
    EXPECT_EQ(world.counter(0, LinkCounter::faults_injected), 1U);
    EXPECT_TRUE(banks_are_equal(world));
}

TEST(WorldFaults, faults_that_lose_a_write_say_so_and_lose_no_other) {
    World world(small_world(3));
    Events events(world);
    world.start(1, posts(5, 1000));
    world.at(2500, [&] { world.lose_writes(1, 1); });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(world.lost(), 1U);
    EXPECT_EQ(events.count(EventKind::lost), 1U);
    EXPECT_EQ(world.counter(1, LinkCounter::lost_on_wire), 1U);
    for (const unsigned other : {0U, 2U}) {
        for (std::uint32_t i = 0; i < 5; ++i) {
            EXPECT_EQ(world.word(other, 4 * i), i == 3 ? 0 : i + 1);
        }
    }
    EXPECT_EQ(world.word(1, 12), 4U) << "the own card has it";
}

TEST(WorldFaults, faults_that_repeat_a_write_change_no_bank_twice) {
    World world(small_world(4));
    Events events(world);
    world.start(0, ticks(20, 300));
    world.repeat_writes(0, 20);
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(world.arrivals(), 60U);
    EXPECT_EQ(events.count(EventKind::repeated), 60U);
    EXPECT_TRUE(banks_are_equal(world));
    EXPECT_EQ(world.word(3, 0), 20U);
}

TEST(WorldFaults, faults_of_a_plan_hit_the_writes_and_the_wire_that_it_names) {
    WorldConfig config = small_world(4);
    config.faults = FaultPlan::parse(
        "lose:node=1,after=2,count=1;delay:node=2,by=30us,count=1;cut:cable=0,at=500us,until=2ms",
        4, LinkKind::sim);
    World world(config);
    Events events(world);
    for (unsigned r = 0; r < 4; ++r) world.start(r, posts(4, 1000, 64 * r));
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(world.lost(), 1U);
    EXPECT_EQ(world.word(0, 64 + 8), 0U);
    EXPECT_EQ(events.count(EventKind::delayed), 1U);
    EXPECT_EQ(events.of(EventKind::cable_cut, 0).at(0).time_ns, 500'000);
    EXPECT_EQ(events.of(EventKind::cable_mended, 0).at(0).time_ns, 2'000'000);
}

TEST(WorldFaults, faults_on_a_cable_of_one_of_the_two_rings_lose_nothing_on_the_other) {
    World world(small_world(3));
    world.start(0, posts(10, 10'000));
    world.at(45'000, [&] { world.set_cable(0, 1, false); });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(world.lost(), 0U);
    EXPECT_TRUE(banks_are_equal(world));
    EXPECT_GT(world.wire_totals().switch_overs, 0U);
}

TEST(WorldFaults, faults_on_both_cables_lose_what_must_pass_them_and_say_so) {
    World world(small_world(3));
    const auto set_both = [&](bool up) {
        for (const std::uint32_t ring : {0U, 1U}) world.set_cable(ring, 1, up);
    };
    world.start(0, posts(10, 10'000));
    world.at(45'000, [&] { set_both(false); });
    world.at(75'000, [&] { set_both(true); });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(world.lost(), 3U) << "those of 50, 60 and 70 us";
    for (std::uint32_t i = 0; i < 10; ++i) {
        EXPECT_EQ(world.word(1, 4 * i), i + 1) << "node 1 lies before the cut";
        EXPECT_EQ(world.word(2, 4 * i), i >= 5 && i <= 7 ? 0 : i + 1);
    }
}

// ---- Cards

TEST(WorldFaults, faults_that_take_a_card_out_kill_its_processes_and_nobody_elses) {
    World world(with_ranks(small_world(3), 6));
    for (unsigned r = 0; r < 6; ++r) world.start(r, posts(100, 1000, 512 * r));
    world.at(50'500, [&] {
        world.fail_node(1);
        EXPECT_FALSE(world.is_node_alive(1));
        for (unsigned r = 0; r < 6; ++r) EXPECT_EQ(world.has_ended(r), r == 2 || r == 3);
    });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(world.word(0, 512 * 5 + 4 * 99), 100U) << "the ring goes on without it";
    EXPECT_EQ(world.word(1, 512 * 5 + 4 * 99), 0U);
}

TEST(WorldFaults, faults_that_end_give_a_card_the_others_memory_whatever_is_on_the_wire) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        Random random(seed);
        World world(small_world(5, seed % 2 == 0 ? "scramnet-burst" : "scramnet-burst-plus-1k"));
        Events events(world);
        for (unsigned r = 0; r < 5; ++r) {
            world.start(r, [seed, r](Process& me) {
                SimMemory memory(me);
                Random own(seed * 10 + r);
                for (std::uint32_t i = 1; i <= 300; ++i) {
                    memory.post_word(512 * r + 4 * own.below(100), i);
                    me.sleep(static_cast<std::int64_t>(1 + own.below(1500)));
                }
            });
        }
        const auto failed = static_cast<unsigned>(random.below(5));
        const auto at = static_cast<std::int64_t>(20'000 + random.below(50'000));
        const auto joins = at + static_cast<std::int64_t>(1 + random.below(60'000));
        int joined = 0;
        world.at(at, [&] { world.fail_node(failed); });
        world.at(joins, [&] {
            world.join_node(failed, [&] {
                ++joined;
                world.start(failed, posts(20, 700, 512 * failed + 400));
            });
        });
        ASSERT_EQ(world.run(), RunEnd::all_ended);
        ASSERT_EQ(joined, 1);
        ASSERT_EQ(events.of(EventKind::node_failed, failed).size(), 1U);
        ASSERT_EQ(events.of(EventKind::node_joined, failed).size(), 1U);
        ASSERT_EQ(world.word((failed + 1) % 5, 512 * failed + 400 + 4 * 19), 20U);
        ASSERT_TRUE(world.lost() != 0 || banks_are_equal(world)) << "seed " << seed;
    }
}

TEST(WorldFaults,
     faults_that_take_with_a_card_what_only_one_other_had_do_not_keep_that_one_from_joining) {
    World world(small_world(4));
    int joined = 0;
    world.start(1, posts(10, 0, 256));
    world.delay_writes(1, 10, 100'000);
    world.at(1000, [&] { world.fail_node(2); });
    // Its memory is node 1's, with writes that have not left node 1's card, and never will.
    world.at(2000, [&] { world.join_node(2, [&] { ++joined; }); });
    world.at(60'000, [&] { world.fail_node(1); });
    world.at(61'000, [&] { world.fail_node(2); });
    world.at(62'000, [&] { world.join_node(2, [&] { ++joined; }); });
    EXPECT_EQ(world.run(10'000'000), RunEnd::all_ended);
    EXPECT_EQ(joined, 2);
    EXPECT_EQ(world.word(2, 256), world.word(3, 256));
}

TEST(WorldFaults, faults_that_come_again_before_a_card_has_joined_void_the_join) {
    World world(small_world(3));
    int first = 0, second = 0;
    world.start(0, posts(100, 1000));
    world.at(10'000, [&] { world.fail_node(1); });
    world.at(20'000, [&] {
        world.join_node(1, [&] { ++first; });
        world.fail_node(1);
    });
    world.at(60'000, [&] { world.join_node(1, [&] { ++second; }); });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(first, 0);
    EXPECT_EQ(second, 1);
    EXPECT_TRUE(banks_are_equal(world));
}

// ---- Who is alive

TEST(WorldFaults, faults_that_kill_a_rank_are_not_known_before_its_last_write_has_come_round) {
    World world(small_world(4));
    Events events(world);
    world.start(1, [&](Process& me) {
        join(me);
        posts(20, 1)(me);
        world.kill(1);
        me.sleep(1);
    });
    std::int64_t dead_ns = 0;
    world.start(3, [&](Process& me) {
        SimMemory memory(join(me));
        me.sleep(100);
        while (memory.is_alive(1)) me.sleep(1);
        dead_ns = me.now_ns();
        EXPECT_EQ(memory.load(4 * 19), 20U) << "all that it wrote is here";
        EXPECT_TRUE(memory.is_alive(3));
    });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    const std::int64_t last = events.of(EventKind::returned, 1).back().time_ns;
    EXPECT_GE(dead_ns, last);
    EXPECT_LE(dead_ns, last + 5);
}

TEST(WorldFaults, faults_that_take_a_card_out_are_known_once_nothing_of_it_can_come_any_more) {
    World world(small_world(4));
    Events events(world);
    world.start(1, [](Process& me) {
        join(me);
        posts(1000, 100)(me);
    });
    std::int64_t dead_ns = 0;
    world.start(3, [&](Process& me) {
        SimMemory memory(join(me));
        me.sleep(100);
        while (memory.is_alive(1)) me.sleep(10);
        dead_ns = me.now_ns();
    });
    world.at(30'000, [&] { world.fail_node(1); });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_GT(dead_ns, 30'000);
    for (const Event& event : events.all) {
        if (event.kind == EventKind::arrived && event.origin == 1) {
            EXPECT_LT(event.time_ns, dead_ns);
        }
    }
}

TEST(WorldFaults, give_a_rank_that_comes_back_a_new_incarnation) {
    World world(small_world(2));
    std::vector<std::uint32_t> incarnations;
    const Program program = [&](Process& me) {
        incarnations.push_back(join(me).incarnation());
        EXPECT_THROW(Membership(std::make_shared<Ring>(me.world()), Member{0, 0}), Error)
            << "it is taken";
        me.sleep(1000);
    };
    world.start(0, program);
    world.at(500, [&] {
        world.kill(0);
        world.start(0, program);
    });
    world.run();
    world.start(0, program);
    world.run();
    EXPECT_EQ(incarnations, (std::vector<std::uint32_t>{1, 2, 3}));
}

TEST(WorldFaults, leave_a_killed_process_no_hand_in_the_world) {
    World world(small_world(2));
    bool held = true;
    struct Probe {
        ~Probe() { held = member->held(); }
        Membership* member = nullptr;
        bool& held;
    };
    world.start(0, [&](Process& me) {
        Membership& member = join(me);
        me.keep(std::unique_ptr<Probe>(new Probe{&member, held}));
        me.sleep(1000);
    });
    world.at(100, [&] { world.kill(0); });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_FALSE(held);
}

// ---- At an access of a process

TEST(WorldAccesses, are_places_to_kill_a_process_at_and_what_it_had_stored_arrives_in_order) {
    constexpr std::uint32_t kWords = 25;
    std::set<std::uint32_t> prefixes;
    bool ended = false;
    for (std::uint64_t access = 1; !ended; ++access) {
        ASSERT_LT(access, 1000U);
        World world(small_world(3));
        world.start(0, [&](Process& me) {
            SimMemory memory(me);
            for (std::uint32_t i = 0; i < kWords; ++i) {
                memory.post_word(4 * i, i + 1);
                if (i % 3 == 0) memory.load(4 * i);
                if (i % 5 == 0) memory.progress();
            }
            ended = true;
        });
        world.at_access(0, access, [&] { world.kill(0); });
        EXPECT_EQ(world.run(), RunEnd::all_ended);
        EXPECT_TRUE(world.has_ended(0));
        EXPECT_TRUE(banks_are_equal(world));
        std::uint32_t stored = 0;
        while (stored < kWords && world.word(2, 4 * stored) == stored + 1) ++stored;
        for (std::uint32_t i = stored; i < kWords; ++i) EXPECT_EQ(world.word(2, 4 * i), 0U);
        EXPECT_EQ(world.writes(), stored);
        prefixes.insert(stored);
    }
    EXPECT_EQ(prefixes.size(), kWords + 1) << "it died before each store once, and after the last";
}

TEST(WorldAccesses, accesses_that_were_named_are_called_at_in_their_order) {
    World world(small_world(2));
    std::vector<std::uint32_t> seen;
    world.start(0, [&](Process& process) {
        SimMemory memory(process);
        for (std::uint32_t i = 0; i < 8; ++i) memory.post_word(0, i + 1);
    });
    for (const std::uint64_t access : {6U, 2U, 2U, 4U}) {
        world.at_access(0, access, [&] { seen.push_back(world.word(0, 0)); });
    }
    world.at_access(0, 100, [&] { seen.push_back(100); });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(seen, (std::vector<std::uint32_t>{1, 1, 3, 5}));
}

TEST(WorldAccesses, call_nothing_more_once_the_process_was_killed_at_them) {
    World world(small_world(2));
    unsigned calls = 0;
    world.start(0, [&](Process& process) { SimMemory(process).post_word(0, 1); });
    world.at_access(0, 1, [&] { world.kill(0); });
    world.at_access(0, 1, [&] { ++calls; });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(calls, 0U);
}

TEST(WorldAccesses, may_be_where_a_process_kills_itself) {
    World world(small_world(2));
    bool went_on = false;
    world.start(0, [&](Process& me) {
        world.kill(0);
        me.sleep(10);
        went_on = true;
    });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_TRUE(world.has_ended(0));
    EXPECT_FALSE(went_on);
}

}  // namespace
}  // namespace rmem::sim
