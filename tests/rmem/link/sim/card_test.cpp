// SPDX-License-Identifier: Apache-2.0

/// rmem::Node in a simulated world, beyond the suite of all links (tests/support/
/// link_conformance.hpp): its costs in virtual time, callbacks, options, and how it ends.

#include "rmem/node.hpp"
#include "tests/rmem/sim/world_fixture.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace rmem::sim {
namespace {

constexpr std::int64_t kPatienceNs = 10'000'000;

Deadline soon() {
    return Deadline::in(kPatienceNs);
}

using Body = std::function<void(Node& node, Process& me)>;

/// Rank 0 of a small world opens a card and does this; the others have none.
void with_card(World& world, const Body& body) {
    world.start(0, [&](Process& me) {
        Node node = Node::open();
        body(node, me);
    });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
}
void with_card(unsigned nodes, const Body& body) {
    World world(small_world(nodes));
    with_card(world, body);
}

// ---- Joining

TEST(SimCard, opens_the_ring_of_its_world_as_its_own_rank) {
    World world(with_ranks(small_world(2), 4));
    for (unsigned r = 0; r < 4; ++r) {
        world.start(r, [r](Process& me) {
            Node node = Node::open();
            EXPECT_EQ(node.rank(), r);
            EXPECT_EQ(node.id(), r / 2);
            EXPECT_EQ(node.size(), 4096U);
            EXPECT_EQ(node.config().name, "small");
            EXPECT_EQ(node.config().link, LinkKind::sim);
            EXPECT_EQ(node.bound_ns(), me.world().bound_ns());
            EXPECT_TRUE(node.is_alive(r));
            test::refused(Errc::unknown_link, [&] { static_cast<void>(node.ring()); });
        });
    }
    EXPECT_EQ(world.run(), RunEnd::all_ended);
}

TEST(SimCard, is_one_per_process_at_a_time) {
    World world(small_world(1));
    world.start(0, [](Process&) {
        {
            const Node node = Node::open();
            test::refused(Errc::rank_taken, [] { Node::open(); });
        }
        EXPECT_EQ(Node::open().write_word(0, 1), WriteResult::ok);
    });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
}

TEST(SimCard, the_card_of_a_node_is_shared_by_its_ranks) {
    World world(with_ranks(small_world(1), 2));
    world.start(0, [](Process&) {
        Node node = Node::open();
        EXPECT_EQ(node.write_word(0, 1), WriteResult::ok);
        EXPECT_EQ(node.wait_change(4, 0, soon()), 2U);
        EXPECT_EQ(node.counter(LinkCounter::writes_sent), 1U) << "its own, not its neighbour's";
    });
    world.start(1, [](Process&) {
        Node node = Node::open();
        EXPECT_EQ(node.wait_change(0, 0, soon()), 1U);
        EXPECT_EQ(node.write_word(4, 2), WriteResult::ok);
    });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    EXPECT_EQ(world.counter(0, LinkCounter::writes_sent), 2U);
}

// ---- Time

TEST(SimCard, takes_the_time_of_its_host_for_each_word) {
    World world(small_world(2, "scramnet-burst", "pentium-ii"));
    const HostProfile host = world.host();
    with_card(world, [&](Node& node, Process& me) {
        const auto cost = [&](auto call) {
            const std::int64_t begin = me.now_ns();
            call();
            return me.now_ns() - begin;
        };
        std::byte data[10] = {};
        EXPECT_EQ(cost([&] { EXPECT_EQ(node.write_word(0, 1), WriteResult::ok); }), host.store_ns);
        EXPECT_EQ(cost([&] { EXPECT_EQ(node.write(0, data, 8), WriteResult::ok); }),
                  2 * host.store_ns);
        EXPECT_EQ(cost([&] { node.load(0); }), host.load_ns);
        EXPECT_EQ(cost([&] { node.read(2, data, 10); }), 3 * host.load_ns);
        EXPECT_EQ(cost([&] { node.poll(); }), host.call_ns);
        EXPECT_EQ(cost([&] { static_cast<void>(node.bank()[8]); }), 0);
    });
}

TEST(SimCard, counts_deadlines_in_virtual_time) {
    with_card(2, [](Node& node, Process& me) {
        me.sleep(3'000'000);
        EXPECT_EQ(node.wait_change(0, 0, Deadline::in(5'000'000)), 0U);
        EXPECT_NEAR(static_cast<double>(me.now_ns()), 8e6, 1e3);
        EXPECT_FALSE(node.next_interrupt(Deadline::in(2'000'000)));
        EXPECT_NEAR(static_cast<double>(me.now_ns()), 10e6, 1e3);
        EXPECT_EQ(program_now_ns(), me.now_ns());
    });
}

TEST(SimCard, flushes_when_its_writes_have_come_round_and_not_before) {
    with_card(4, [](Node& node, Process& me) {
        EXPECT_EQ(node.write_word(0, 7), WriteResult::ok);
        EXPECT_FALSE(node.flush(Deadline::in(100)));
        EXPECT_NE(me.world().word(3, 0), 7U);
        EXPECT_TRUE(node.flush(soon()));
        EXPECT_EQ(me.world().word(3, 0), 7U);
        EXPECT_EQ(node.counter(LinkCounter::flushes), 1U);
    });
}

TEST(SimCard, lets_time_pass_for_a_program_that_tries_to_write_again_and_again) {
    World world(small_world(2));
    with_card(world, [](Node& node, Process&) {
        std::uint32_t refused = 0;
        for (std::uint32_t i = 0; i < 1100; ++i) {
            while (node.write_word(0, i) == WriteResult::again) ++refused;
        }
        EXPECT_GT(refused, 0U);
        EXPECT_EQ(node.counter(LinkCounter::back_pressure), refused);
    });
    EXPECT_EQ(world.word(1, 0), 1099U);
}

TEST(SimCard, is_late_by_a_fault_and_says_so_to_the_reader) {
    World world(small_world(2));
    std::vector<BoundViolation> seen;
    world.start(1, [&](Process& me) {
        Node node = Node::open();
        node.on_bound_violation([&](const BoundViolation& violation) {
            EXPECT_EQ(current_process(), nullptr);
            EXPECT_EQ(node.load(8), 5U) << "a callback may load";
            seen.push_back(violation);
        });
        me.sleep(1'000'000);
        EXPECT_EQ(node.counter(LinkCounter::bound_violations), 1U);
        EXPECT_EQ(node.propagation().count(), 2U);
    });
    world.start(0, [&](Process& me) {
        Node node = Node::open();
        EXPECT_EQ(node.write_word(4, 1), WriteResult::ok);
        me.sleep(10'000);
        world.delay_writes(0, 1, world.bound_ns() + 50'000);
        EXPECT_EQ(node.write_word(8, 5), WriteResult::ok);
    });
    EXPECT_EQ(world.run(), RunEnd::all_ended);
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].origin, 0U);
    EXPECT_EQ(seen[0].offset, 8U);
    EXPECT_EQ(seen[0].written_ns, 10'000);
    EXPECT_GT(seen[0].propagation_ns, world.bound_ns());
    EXPECT_FALSE(seen[0].by_host);
}

// ---- Options

TEST(SimCard, shows_an_own_write_at_once_or_when_it_has_come_round) {
    with_card(3, [](Node& node, Process& me) {
        EXPECT_EQ(node.write_word(0, 1), WriteResult::ok);
        EXPECT_EQ(node.load(0), 1U);
        EXPECT_TRUE(node.flush(soon()));
        node.set_write_me_last(true);
        EXPECT_EQ(node.write_word(0, 2), WriteResult::ok);
        EXPECT_EQ(node.load(0), 1U);
        const std::int64_t begin = me.now_ns();
        EXPECT_EQ(node.wait_change(0, 1, soon()), 2U);
        EXPECT_GT(me.now_ns(), begin + 500) << "a round takes that";
        EXPECT_EQ(me.world().word(2, 0), 2U) << "who writes sees it last";
        node.set_write_me_last(false);
        EXPECT_EQ(node.write_word(0, 3), WriteResult::ok);
        EXPECT_EQ(node.load(0), 3U);
    });
}

// ---- Interrupts

/// Rank 0 writes `count` words, a microsecond apart.
Program writer(std::uint32_t count) {
    return [count](Process& me) {
        Node node = Node::open();
        for (std::uint32_t i = 1; i <= count; ++i) {
            me.sleep(1000);
            EXPECT_EQ(node.write_word(0, i), WriteResult::ok);
        }
    };
}

/// A world of two nodes.
struct SimCardWatching : ::testing::Test {
    /// Rank 0 writes words, and rank 1 watches that word and does this, until both have ended.
    void run(std::uint32_t writes, const Body& body) {
        world.start(0, writer(writes));
        world.start(1, [&](Process& me) {
            Node& node = me.keep(std::make_unique<Node>(Node::open()));
            node.watch(0, 4);
            body(node, me);
        });
        EXPECT_EQ(world.run(), RunEnd::all_ended);
    }
    World world{small_world(2)};
};

TEST_F(SimCardWatching, wakes_a_program_that_waits_for_an_interrupt_when_the_word_arrives) {
    Events events(world);
    std::int64_t woken = 0;
    run(1, [&](Node& node, Process& me) {
        const auto interrupt = node.next_interrupt(Deadline::never());
        woken = me.now_ns();
        ASSERT_TRUE(interrupt);
        EXPECT_EQ(interrupt->value, 1U);
    });
    const auto arrivals = events.of(EventKind::arrived, 1);
    ASSERT_EQ(arrivals.size(), 1U);
    EXPECT_EQ(woken, arrivals[0].time_ns);
}

TEST_F(SimCardWatching, calls_back_at_each_interrupt_in_order_while_its_process_sleeps) {
    std::vector<std::uint32_t> values;
    std::vector<std::int64_t> times;
    run(5, [&](Node& node, Process& me) {
        node.on_interrupt([&](const Interrupt& interrupt) {
            values.push_back(interrupt.value);
            times.push_back(world.now_ns());
            EXPECT_EQ(node.load(0), interrupt.value);
        });
        me.sleep(100'000);
        EXPECT_FALSE(node.next_interrupt(Deadline::now())) << "the callback has had them";
        EXPECT_FALSE(node.next_interrupt(Deadline::in(1000)));
    });
    EXPECT_THAT(values, ::testing::ElementsAre(1, 2, 3, 4, 5));
    for (std::size_t i = 1; i < times.size(); ++i) EXPECT_EQ(times[i] - times[i - 1], 1000);
}

TEST_F(SimCardWatching,
       hands_a_callback_what_was_raised_before_it_came_and_ends_that_when_it_goes) {
    std::vector<std::uint32_t> values;
    run(6, [&](Node& node, Process& me) {
        while (node.load(0) != 2) me.sleep(100);
        node.on_interrupt([&](const Interrupt& interrupt) { values.push_back(interrupt.value); });
        while (node.load(0) != 4) me.sleep(100);
        node.on_interrupt(nullptr);
        for (const std::uint32_t value : {5U, 6U}) {
            const auto interrupt = node.next_interrupt(soon());
            ASSERT_TRUE(interrupt);
            EXPECT_EQ(interrupt->value, value);
        }
    });
    EXPECT_THAT(values, ::testing::ElementsAre(1, 2, 3, 4));
}

TEST_F(SimCardWatching, calls_a_stopped_process_back_when_it_goes_on) {
    std::vector<std::int64_t> times;
    world.at(500, [&] { world.stop(1); });
    world.at(50'000, [&] { world.resume(1); });
    run(3, [&](Node& node, Process& me) {
        node.on_interrupt([&](const Interrupt&) { times.push_back(world.now_ns()); });
        me.sleep(200'000);
    });
    EXPECT_THAT(times, ::testing::ElementsAre(50'000, 50'000, 50'000));
}

TEST_F(SimCardWatching, lets_a_callback_kill_its_own_process) {
    int calls = 0;
    run(3, [&](Node& node, Process& me) {
        node.on_interrupt([&](const Interrupt&) {
            ++calls;
            world.kill(1);
        });
        me.sleep(200'000);
    });
    EXPECT_EQ(calls, 1);
}

TEST_F(SimCardWatching, forgets_the_marks_of_the_dead_when_a_rank_joins_again) {
    world.at(5'500, [&] {
        world.kill(1);
        world.start(1, [&](Process& me) {
            Node node = Node::open();
            me.sleep(100'000);
            EXPECT_FALSE(node.next_interrupt(Deadline::now()));
        });
    });
    run(10, [](Node&, Process& me) { me.sleep(1'000'000); });
    const auto raised = world.counter(1, LinkCounter::interrupts_raised);
    EXPECT_GE(raised, 3U);
    EXPECT_LE(raised, 5U);
}

TEST(SimCard, has_no_descriptor_and_says_so) {
    with_card(1, [](Node& node, Process&) {
        test::refused(Errc::unknown_link, [&] { node.interrupt_fd(); });
    });
}

// ---- Equal runs

TEST(SimCard, gives_equal_events_for_equal_programs) {
    const auto hash_of_a_run = [] {
        World world(small_world(4, "scramnet-burst-plus", "pentium-ii"));
        TraceHash hash;
        world.observe(&hash);
        for (unsigned r = 0; r < 4; ++r) {
            world.start(r, [r](Process& me) {
                Node node = Node::open();
                node.watch(64 * ((r + 1) % 4), 4);
                if (r == 2) node.set_write_me_last(true);
                for (std::uint32_t i = 1; i <= 50; ++i) {
                    std::uint32_t data[8];
                    for (std::uint32_t& word : data) word = i;
                    while (node.write(1024 * (r % 3) + 256, data, 29) != WriteResult::ok)
                        node.poll();
                    EXPECT_EQ(node.write_word(64 * r, i), WriteResult::ok);
                    const auto interrupt = node.next_interrupt(soon());
                    me.sleep(interrupt ? interrupt->value : 1);
                }
            });
        }
        EXPECT_EQ(world.run(), RunEnd::all_ended);
        return hash.value();
    };
    const std::uint64_t first = hash_of_a_run();
    for (int i = 0; i < 20; ++i) ASSERT_EQ(hash_of_a_run(), first);
}

}  // namespace
}  // namespace rmem::sim
