// SPDX-License-Identifier: Apache-2.0

/// Time and processes of a simulated world (rmem/sim/world.hpp); polls: polling_test.cpp; faults:
/// world_faults_test.cpp; programs with the billboard: tests/billboard/simulation_test.cpp.

#include "rmem/base/environment_variable.hpp"
#include "rmem/base/random.hpp"
#include "rmem/sim/event.hpp"
#include "tests/rmem/sim/world_fixture.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rmem::sim {
namespace {

// ---- Clocks

TEST(World, begins_at_time_zero_and_stays_there_without_programs) {
    World world(small_world(3));
    EXPECT_EQ(world.now_ns(), 0);
    EXPECT_EQ(world.next_ns(), kNever);
    EXPECT_FALSE(world.step());
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(world.now_ns(), 0);
}

TEST(World, charges_accesses_by_the_host_profile) {
    World world(small_world(2, "scramnet-burst", "none,store=150ns,load=685ns,call=800ns"));
    world.start(0, [](Process& me) {
        SimMemory memory(me);
        EXPECT_EQ(me.now_ns(), 0);
        memory.load(0);
        EXPECT_EQ(me.now_ns(), 685);
        memory.post_word(0, 1);
        EXPECT_EQ(me.now_ns(), 835);
        memory.progress();
        EXPECT_EQ(me.now_ns(), 1635);
        const std::uint32_t words[3] = {1, 2, 3};
        memory.write(16, words, sizeof words);
        EXPECT_EQ(me.now_ns(), 2085) << "three stores";
        memory.data(16, 10);
        EXPECT_EQ(me.now_ns(), 4140) << "three loads";
        me.sleep(1000);
        EXPECT_EQ(me.now_ns(), 5140);
        EXPECT_EQ(memory.now_ns(), 5140);
    });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
}

TEST(World, gives_each_process_a_clock_of_its_own) {
    World world(small_world(3));
    std::vector<std::int64_t> ends(3);
    for (unsigned r = 0; r < 3; ++r) {
        const auto sleep = [&ends, r](Process& me) {
            for (int i = 0; i < 10; ++i) me.sleep(100 * (r + 1));
            ends[r] = me.now_ns();
        };
        world.start(r, sleep, 1000 * r);
    }
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(ends, (std::vector<std::int64_t>{1000, 3000, 5000}));
}

TEST(World, lets_what_is_due_first_happen_first) {
    World world(small_world(2));
    std::vector<std::int64_t> times;
    const auto note = [&] { times.push_back(world.now_ns()); };
    for (unsigned r = 0; r < 2; ++r) {
        world.start(r, [&, r](Process& me) {
            for (int i = 0; i < 20; ++i) {
                me.sleep(r == 0 ? 70 : 110);
                note();
            }
        });
    }
    for (const std::int64_t time : {500, 100, 300, 2000}) world.at(time, note);
    world.run();
    EXPECT_EQ(times.size(), 44U);
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
}

TEST(World, runs_timers_before_processes_that_are_due_at_the_same_time) {
    World world(small_world(1));
    std::string order;
    world.start(0, [&](Process& me) {
        me.sleep(100);
        order += 'p';
    });
    world.at(100, [&] { order += 't'; });
    world.at(100, [&] { order += 'u'; });
    world.run();
    EXPECT_EQ(order, "tup");
}

TEST(World, calls_at_once_what_is_due_in_the_past) {
    World world(small_world(1));
    std::int64_t called_at = -1;
    world.start(0, [&](Process& me) {
        me.sleep(1000);
        world.at(10, [&] { called_at = world.now_ns(); });
        me.sleep(1);
        EXPECT_EQ(called_at, 1000);
    });
    world.run();
}

TEST(World, goes_on_where_it_ran_out_of_time) {
    World world(small_world(1));
    int rounds = 0;
    world.start(0, [&](Process& me) {
        for (; rounds < 10; ++rounds) me.sleep(100);
    });
    EXPECT_EQ(world.run(450), RunEnd::out_of_time);
    EXPECT_EQ(rounds, 4);
    EXPECT_EQ(world.next_ns(), 500);
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(rounds, 10);
}

TEST(World, never_brings_a_write_early_and_keeps_the_bound_on_an_idle_ring) {
    World world(small_world(5));
    Events events(world);
    world.start(2, posts(20, 1'000'000));
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(events.count(EventKind::arrived), 80U);
    EXPECT_EQ(events.count(EventKind::returned), 20U);
    EXPECT_EQ(events.count(EventKind::late), 0U);
    for (const Event& event : events.all) {
        if (event.kind != EventKind::arrived) continue;
        EXPECT_GT(event.time_ns, event.stored_ns);
        EXPECT_LE(event.time_ns - event.stored_ns, world.bound_ns());
    }
    EXPECT_EQ(world.writes(), 20U);
    EXPECT_EQ(world.arrivals(), 80U);
    EXPECT_TRUE(world.is_quiet());
    EXPECT_TRUE(banks_are_equal(world));
    EXPECT_EQ(world.word(4, 76), 20U);
    EXPECT_EQ(world.counter(2, LinkCounter::writes_sent), 20U);
    EXPECT_EQ(world.counter(3, LinkCounter::writes_applied), 20U);
}

TEST(World, stalls_a_store_into_a_full_fifo_and_loses_nothing) {
    World world(small_world(3));
    const auto depth = world.ring().timing.fifo_words;
    ASSERT_GT(depth, 0U);
    std::int64_t first_stall = 0;
    world.start(0, [&](Process& me) {
        SimMemory memory(me);
        for (std::uint32_t i = 0; i < 3 * depth; ++i) {
            memory.post_word(4 * (i % 1000), i + 1);
            if (first_stall == 0 && me.now_ns() > 0) first_stall = i;
        }
        EXPECT_FALSE(memory.room(64));
        EXPECT_TRUE(memory.flush(Deadline::never()));
        EXPECT_TRUE(memory.room(64));
    });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(world.lost(), 0U);
    EXPECT_GE(first_stall, depth - 2) << "stores take no time while there is room";
    EXPECT_LE(first_stall, depth + 2);
    EXPECT_TRUE(banks_are_equal(world));
}

// ---- Processes

TEST(World, starts_a_rank_again_when_it_has_ended) {
    World world(small_world(2));
    std::vector<unsigned> incarnations;
    const Program program = [&](Process& me) {
        incarnations.push_back(me.incarnation());
        me.sleep(10);
    };
    for (int i = 0; i < 3; ++i) {
        world.start(1, program);
        EXPECT_THROW(world.start(1, program), Error);
        EXPECT_TRUE(world.runs(1));
        world.run();
        EXPECT_TRUE(world.has_ended(1));
    }
    EXPECT_EQ(incarnations, (std::vector<unsigned>{1, 2, 3}));
}

TEST(World, refuses_ranks_and_nodes_that_do_not_exist) {
    World world(small_world(2));
    const auto refused = [](auto&& call, const char* word) {
        EXPECT_THAT(test::refused(Errc::bad_rank, call), ::testing::HasSubstr(word));
    };
    refused([&] { world.start(2, [](Process&) {}); }, "rank 2");
    refused([&] { world.kill(7); }, "rank 7");
    refused([&] { world.stop(2); }, "rank 2");
    refused([&] { world.at_access(2, 1, [] {}); }, "rank 2");
    refused([&] { world.fail_node(2); }, "node 2");
    refused([&] { world.join_node(9, [] {}); }, "node 9");
    refused([&] { world.delay_writes(2, 1, 1); }, "node 2");
}

TEST(World, is_the_current_one_only_inside_of_its_processes) {
    World world(small_world(2));
    EXPECT_EQ(current_process(), nullptr);
    for (unsigned r = 0; r < 2; ++r) {
        world.start(r, [&world, r](Process& me) {
            for (int i = 0; i < 5; ++i) {
                EXPECT_EQ(current_process(), &me);
                EXPECT_EQ(me.rank(), r);
                EXPECT_EQ(&me.world(), &world);
                me.sleep(10);
            }
        });
    }
    world.at(25, [] { EXPECT_EQ(current_process(), nullptr); });
    world.run();
    EXPECT_EQ(current_process(), nullptr);
}

TEST(World, puts_ranks_onto_nodes_in_order) {
    World world(with_ranks(small_world(2), 5));
    std::vector<unsigned> nodes;
    for (unsigned r = 0; r < 5; ++r) nodes.push_back(world.node_of(r));
    EXPECT_EQ(nodes, (std::vector<unsigned>{0, 0, 0, 1, 1}));
}

TEST(World, lets_an_exception_of_a_program_leave_run_and_goes_on_without_it) {
    World world(small_world(2));
    bool other_ended = false;
    world.start(0, [](Process& me) {
        me.sleep(50);
        throw std::runtime_error("of the program");
    });
    world.start(1, [&](Process& me) {
        me.sleep(100);
        other_ended = true;
    });
    EXPECT_THAT([&] { world.run(); },
                ::testing::ThrowsMessage<std::runtime_error>("of the program"));
    EXPECT_EQ(current_process(), nullptr);
    EXPECT_TRUE(world.has_ended(0));
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_TRUE(other_ended);
}

TEST(World, gives_processes_variables_of_their_own_and_of_the_world) {
    WorldConfig config = small_world(3);
    config.environment = {{"SHARED", "yes"}, {"RMEM_RANK", "overridden"}};
    World world(config);
    const auto variable = [](const char* name) {
        const char* text = environment_variable(name);
        return text == nullptr ? std::string("(none)") : std::string(text);
    };
    for (unsigned r = 0; r < 3; ++r) {
        world.start(r, [&variable, r](Process& me) {
            EXPECT_EQ(variable("RMEM_RANK"), std::to_string(r));
            EXPECT_EQ(variable("RMEM_RANKS"), "3");
            EXPECT_EQ(variable("RMEM_NODE"), std::to_string(r));
            EXPECT_EQ(variable("RMEM_NODES"), "3");
            EXPECT_EQ(variable("RMEM_LINK"), "sim");
            EXPECT_EQ(variable("RMEM_RING"), "small");
            EXPECT_EQ(variable("SHARED"), "yes");
            EXPECT_EQ(variable("PATH"), "(none)") << "the host's are not the world's";
            if (r == 1) me.set_variable("SHARED", "mine");
            if (r == 2) me.set_variable("SHARED", std::nullopt);
            me.sleep(100);
            EXPECT_EQ(variable("SHARED"), r == 0 ? "yes" : r == 1 ? "mine" : "(none)");
        });
    }
    world.run();
    EXPECT_NE(environment_variable("PATH"), nullptr);
    EXPECT_EQ(environment_variable("SHARED"), nullptr);
}

/// Says when it goes.
struct Letter {
    Letter(std::string& text, char letter) : text_(text), letter_(letter) {}
    ~Letter() { text_ += letter_; }
    Letter(const Letter&) = delete;
    Letter& operator=(const Letter&) = delete;
    std::string& text_;
    char letter_;
};

TEST(World, keeps_what_a_process_asks_it_to_keep_until_it_ends_or_is_killed) {
    World world(small_world(2));
    std::string ended, killed;
    world.start(0, [&](Process& me) {
        me.keep(std::make_unique<Letter>(ended, 'x'));
        me.sleep(10);
        EXPECT_EQ(ended, "");
    });
    world.start(1, [&](Process& me) {
        me.keep(std::make_unique<Letter>(killed, 'x'));
        const Letter lost(killed, 'x');
        me.sleep(1000);
    });
    world.at(100, [&] {
        EXPECT_EQ(ended, "x");
        EXPECT_EQ(killed, "");
        world.kill(1);
        EXPECT_EQ(killed, "x") << "what the process kept, not what was in its frames";
    });
    world.run();
}

TEST(World, lets_go_first_of_what_a_process_kept_last) {
    for (const bool is_killed : {false, true}) {
        World world(small_world(1));
        std::string text;
        world.start(0, [&](Process& me) {
            for (const char letter : {'a', 'b', 'c'})
                me.keep(std::make_unique<Letter>(text, letter));
            me.sleep(1000);
        });
        if (is_killed) world.at(500, [&] { world.kill(0); });
        world.run();
        EXPECT_EQ(text, "cba");
    }
}

// ---- Stopped, killed, stuck

TEST(World, stops_a_process_and_lets_it_go_on_from_then) {
    World world(small_world(2));
    world.start(0, ticks(100));
    std::uint32_t at_stop = 0;
    world.at(2050, [&] {
        world.stop(0);
        at_stop = world.word(0, 0);
        EXPECT_EQ(at_stop, 21U);
    });
    world.at(50'000, [&] {
        EXPECT_EQ(world.word(0, 0), at_stop);
        EXPECT_TRUE(world.runs(0));
        world.resume(0);
    });
    world.at(50'350, [&] { EXPECT_GT(world.word(0, 0), at_stop); });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(world.word(1, 0), 100U);
    EXPECT_GE(world.now_ns(), 50'000 + 79 * 100);
}

TEST(World, stalls_a_process_for_as_long_as_told) {
    World world(small_world(2));
    std::int64_t end = 0;
    world.start(0, [&](Process& me) {
        for (int i = 0; i < 10; ++i) me.sleep(100);
        end = me.now_ns();
    });
    world.at(450, [&] { world.stall(0, 5000); });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(end, 5450 + 5 * 100);
}

TEST(World, lets_one_process_kill_stop_and_start_others) {
    World world(small_world(3));
    int incarnations = 0;
    const Program sleeper = [&](Process& me) {
        ++incarnations;
        me.sleep(1'000'000);
    };
    world.start(1, sleeper);
    world.start(2, ticks(50));
    world.start(0, [&](Process& me) {
        me.sleep(1000);
        world.kill(1);
        EXPECT_TRUE(world.has_ended(1));
        world.start(1, sleeper);
        world.stop(2);
        me.sleep(1000);
        const std::uint32_t at_stop = world.word(2, 0);
        me.sleep(10'000);
        EXPECT_EQ(world.word(2, 0), at_stop);
        world.resume(2);
    });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(incarnations, 2);
    EXPECT_EQ(world.word(0, 0), 50U);
}

TEST(World, says_when_its_processes_wait_for_each_other_forever) {
    World world(small_world(2));
    for (unsigned r = 0; r < 2; ++r) {
        world.start(r, [r](Process& me) {
            SimMemory memory(me);
            await_word(memory, 4 * (1 - r), 1);
            memory.post_word(4 * r, 1);
        });
    }
    EXPECT_EQ(world.run(), RunEnd::stuck);
    EXPECT_FALSE(world.step());
    EXPECT_EQ(world.next_ns(), kNever);
    world.at(world.now_ns() + 1000, [&] { world.kill(0); });
    EXPECT_EQ(world.run(), RunEnd::stuck) << "the other one still waits";
    world.kill(1);
    EXPECT_EQ(world.run(), RunEnd::all_ended);
}

TEST(World, is_stuck_while_a_process_is_stopped_for_good) {
    World world(small_world(1));
    world.start(0, ticks(10));
    world.at(250, [&] { world.stop(0); });
    EXPECT_EQ(world.run(), RunEnd::stuck);
    world.resume(0);
    EXPECT_EQ(world.run(), RunEnd::all_ended);
}

// ---- Equal runs

WorldConfig hierarchy(WorldConfig config, const Topology& topology) {
    config.topology = topology;
    config.ring.ranks = topology.nodes();
    return config;
}

/// The events of a world with all kinds of things going on.
std::uint64_t hash_of_a_run(std::uint64_t seed, const Topology& topology) {
    WorldConfig config = small_world(4, "scramnet-burst", "pentium-ii");
    World world(topology.rings > 1 ? hierarchy(config, topology) : config);
    TraceHash hash;
    world.observe(&hash);
    const unsigned ranks = world.ranks();
    for (unsigned r = 0; r < ranks; ++r) {
        world.start(r, [seed, r, ranks](Process& me) {
            SimMemory memory(me);
            Random random(seed * 100 + r);
            for (std::uint32_t i = 1; i <= 30; ++i) {
                memory.post_word(4 * r, i);
                if (random.below(3) == 0) await_word(memory, 4 * ((r + 1) % ranks), i);
                me.sleep(static_cast<std::int64_t>(random.below(2000)));
                if (random.below(40) == 0) return;
            }
        });
    }
    world.at(30'000, [&] { world.kill(1); });
    world.at(40'000, [&] { world.stop(2); });
    world.at(60'000, [&] { world.resume(2); });
    if (topology.rings == 1) {
        world.at(70'000, [&] { world.fail_node(3); });
        world.at(150'000, [&] { world.join_node(3, [] {}); });
    }
    world.run(10'000'000);
    return hash.value();
}

TEST(World, gives_equal_events_for_equal_inputs_in_100_runs_and_in_a_hierarchy) {
    for (const auto& [topology, runs] :
         {std::pair{Topology{1, 0, 0}, 100}, {Topology{3, 5, kDefaultBridgeNs}, 10}}) {
        const std::uint64_t first = hash_of_a_run(1, topology);
        for (int i = 1; i < runs; ++i) ASSERT_EQ(hash_of_a_run(1, topology), first);
        EXPECT_NE(hash_of_a_run(2, topology), first);
    }
}

// ---- A hierarchy of rings

TEST(World, the_world_of_a_hierarchy_keeps_the_order_of_each_node_and_its_bound) {
    World world(hierarchy(small_world(4), {3, 5, kDefaultBridgeNs}));
    ASSERT_EQ(world.nodes(), 15U);
    Events events(world);
    for (unsigned r = 0; r < 15; ++r) {
        // One at a time: an idle ring for each word.
        world.start(r, posts(3, 20'000, 4 * r, 0), 1 + 200'000 * r);
    }
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(events.count(EventKind::arrived), 15U * 3 * 14);
    EXPECT_EQ(events.count(EventKind::returned), 15U * 3);
    EXPECT_EQ(events.count(EventKind::late), 0U);
    std::vector<std::vector<std::uint64_t>> latest(15, std::vector<std::uint64_t>(15));
    for (const Event& event : events.all) {
        if (event.kind != EventKind::arrived) continue;
        EXPECT_EQ(event.number, ++latest[event.node][event.origin]);
        EXPECT_LE(event.time_ns - event.stored_ns, world.bound_ns());
    }
    EXPECT_TRUE(banks_are_equal(world));
    EXPECT_THROW(world.fail_node(3), Error) << "nodes of a hierarchy cannot fail";
}

TEST(World, the_world_of_a_hierarchy_may_have_more_nodes_than_a_ring) {
    World world(hierarchy(small_world(4), {8, 64, kDefaultBridgeNs}));
    ASSERT_EQ(world.nodes(), 512U);
    world.start(511, post_one(8, 77));
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_TRUE(banks_are_equal(world));
    EXPECT_EQ(world.word(0, 8), 77U);
}

}  // namespace
}  // namespace rmem::sim
