// SPDX-License-Identifier: Apache-2.0
#include "rmem/sim/wire.hpp"

#include "rmem/base/random.hpp"
#include "tests/rmem/wire/model_fixture.hpp"
#include "tests/support/refused.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace rmem::sim {
namespace {

/// Some writes of random nodes, in the order of their times. Tags count from 1.
struct Load {
    std::uint64_t writes = 300;
    std::uint64_t mean_gap_ns = 1000;
    std::uint64_t seed = 1;
    std::uint32_t most_bytes = 200;
};

std::vector<WireWrite> writes_of(const Load& load, std::uint32_t nodes) {
    Random random(load.seed);
    std::vector<WireWrite> writes;
    std::int64_t now = 0;
    for (std::uint64_t n = 1; n <= load.writes; ++n) {
        now += static_cast<std::int64_t>(random.below(2 * load.mean_gap_ns + 1));
        WireWrite w{.time_ns = now, .tag = n};
        w.origin = static_cast<std::uint16_t>(random.below(nodes));
        w.interrupt = random.below(16) == 0;
        const bool is_long = random.below(4) == 0;
        const std::uint64_t bytes = random.below(load.most_bytes) + 1;
        w.bytes = is_long ? static_cast<std::uint32_t>(bytes) : 4;
        w.offset = 4 * random.below(1000);
        writes.push_back(w);
    }
    return writes;
}

template <class AnyWire>
void drain(AnyWire& wire, std::vector<WireOutcome>* outcomes) {
    while (wire.next_time_ns() != kNever) {
        wire.advance(wire.next_time_ns(), [&](const WireOutcome& o) { outcomes->push_back(o); });
    }
}

std::vector<WireOutcome> outcomes_of(Wire& wire, const std::vector<WireWrite>& writes) {
    for (const WireWrite& w : writes) EXPECT_EQ(wire.submit(w), WireSubmit::accepted);
    std::vector<WireOutcome> outcomes;
    drain(wire, &outcomes);
    return outcomes;
}

/// Each write once at each other node and then back, each origin's in order at each node.
void check(const Wire& wire, const std::vector<WireWrite>& writes,
           const std::vector<WireOutcome>& outcomes) {
    const std::uint32_t nodes = wire.topology().nodes();
    expect_order(outcomes);
    std::vector<std::uint32_t> arrivals(writes.size() + 1), returned(writes.size() + 1);
    for (const WireOutcome& o : outcomes) {
        ASSERT_LT(o.node, nodes);
        ASSERT_LE(o.tag, writes.size());
        const WireWrite& w = writes[o.tag - 1];
        ASSERT_TRUE(o.origin == w.origin && o.interrupt == w.interrupt) << "write " << o.tag;
        const bool is_back = o.node == o.origin;
        ASSERT_EQ(o.kind, is_back ? Kind::returned : Kind::arrived);
        ++(is_back ? returned : arrivals)[o.tag];
        ASSERT_TRUE(!is_back || arrivals[o.tag] == nodes - 1) << "it comes back last";
    }
    for (std::size_t tag = 1; tag < arrivals.size(); ++tag) {
        ASSERT_EQ(arrivals[tag], nodes - 1) << "write " << tag;
        ASSERT_EQ(returned[tag], 1u) << "write " << tag;
    }
}

std::int64_t ceil_ns(std::uint64_t ps) {
    return static_cast<std::int64_t>((ps + 999) / 1000);
}

/// The least time that `members` hops on one ring take: first bit to last bit of these words, and
/// the nodes between.
std::int64_t least_on_ring(const TimingProfile& p, std::uint64_t hops, std::uint32_t words) {
    if (p.instant != 0) return 0;
    return ceil_ns(p.insertion_ps + packet_ps(p, std::min(words, p.packet_bytes / 4)) +
                   (hops - 1) * p.node_delay_ps + hops * p.cable_ps);
}

/// The way from one node to another; `members` of a ring, bridge last.
struct Way {
    static std::uint64_t hops(std::uint64_t from, std::uint64_t to, std::uint64_t members) {
        return (to + members - from) % members;
    }
    static std::int64_t least(const TimingProfile& p, const Topology& t, const WireWrite& w,
                              std::uint32_t to) {
        const std::uint32_t words = (w.bytes + 3) / 4;
        const std::uint32_t k = t.nodes_per_ring;
        const std::uint32_t from_ring = w.origin / k;
        const std::uint32_t to_ring = to / k;
        if (from_ring == to_ring) {
            return least_on_ring(p, hops(w.origin % k, to % k, k + 1), words);
        }
        // A nanosecond less: times round up once, not on each ring.
        return least_on_ring(p, hops(w.origin % k, k, k + 1), words) +
               least_on_ring(p, hops(from_ring, to_ring, t.rings), words) +
               least_on_ring(p, hops(k, to % k, k + 1), words) + 2 * t.bridge_ns - 2;
    }
};

struct Shape {
    std::uint32_t rings;
    std::uint32_t nodes_per_ring;
    std::uint64_t writes;
};

std::string name_of(const std::string& profile, const Shape& s) {
    return profile + ", " + std::to_string(s.rings) + " rings of " +
           std::to_string(s.nodes_per_ring);
}

// ---- One ring

TEST(SimulatedWire, one_ring_is_the_bare_model) {
    for (const std::string& profile : timing_profile_names()) {
        for (const std::uint32_t nodes : {1U, 2U, 7U, 256U}) {
            SCOPED_TRACE(profile + ", " + std::to_string(nodes) + " nodes");
            Wire wire(parse_timing(profile), {1, nodes}, 500);
            WireModel model(parse_timing(profile), nodes, 500);
            wire.report_sent(true);
            model.report_sent(true);
            for (WireWrite w : writes_of({200, 500, nodes}, nodes)) {
                w.time_ns += 500;
                ASSERT_EQ(wire.submit(w), model.submit(w));
            }
            EXPECT_EQ(wire.next_time_ns(), model.next_time_ns());
            std::vector<WireOutcome> of_wire, of_model;
            drain(wire, &of_wire);
            drain(model, &of_model);
            EXPECT_EQ(hash_of(of_wire), hash_of(of_model));
            EXPECT_EQ(of_wire.size(), of_model.size());
            EXPECT_EQ(wire.totals().passed, model.totals().passed);
            EXPECT_EQ(wire.counters(nodes - 1).sent, model.counters(nodes - 1).sent);
            EXPECT_EQ(wire.now_ns(), model.now_ns());
            EXPECT_EQ(wire.bound_ns(3), rmem::bound_ns(model.profile(), nodes, 3));
        }
    }
}

TEST(SimulatedWire, one_ring_has_the_models_faults) {
    Wire wire(parse_timing("scramnet-burst"), {1, 3});
    wire.set_alive(1, false, 0);
    WireWrite w{.tag = 7};
    wire.submit(w);
    std::vector<WireOutcome> outcomes;
    drain(wire, &outcomes);
    ASSERT_EQ(outcomes.size(), 2u);
    EXPECT_EQ(outcomes[0].node, 2u);
    EXPECT_EQ(outcomes[1].kind, Kind::returned);
    wire.set_cable(0, 0, false, wire.now_ns());
    wire.set_cable(1, 0, false, wire.now_ns());
    w.time_ns = wire.now_ns();
    wire.submit(w);
    outcomes.clear();
    drain(wire, &outcomes);
    ASSERT_EQ(outcomes.size(), 1u);
    EXPECT_EQ(outcomes[0].kind, Kind::lost);
    EXPECT_EQ(outcomes[0].cause, WireLoss::cable);
}

// ---- Hierarchies

TEST(SimulatedWire, in_a_hierarchy_every_write_arrives_once_in_order_everywhere_and_returns_last) {
    for (const Shape& s :
         {Shape{2, 1, 300}, {2, 2, 400}, {3, 5, 400}, {16, 16, 150}, {32, 128, 12}}) {
        for (const std::string& profile : timing_profile_names()) {
            SCOPED_TRACE(name_of(profile, s));
            Wire wire(parse_timing(profile), {s.rings, s.nodes_per_ring});
            const auto writes =
                writes_of({s.writes, 800, s.rings + s.writes}, s.rings * s.nodes_per_ring);
            const auto outcomes = outcomes_of(wire, writes);
            check(wire, writes, outcomes);
            EXPECT_EQ(wire.totals().clamped, 0u);
        }
    }
}

TEST(SimulatedWire, nothing_takes_less_than_the_shortest_way) {
    for (const Shape& s : {Shape{2, 2, 300}, {3, 5, 300}, {16, 16, 40}}) {
        for (const std::string& profile : timing_profile_names()) {
            SCOPED_TRACE(name_of(profile, s));
            const TimingProfile timing = parse_timing(profile);
            Wire wire(timing, {s.rings, s.nodes_per_ring});
            const auto writes = writes_of({s.writes, 2000, 9}, s.rings * s.nodes_per_ring);
            std::uint64_t early = 0;
            for (const WireOutcome& o : outcomes_of(wire, writes)) {
                if (o.kind != Kind::arrived) continue;
                const WireWrite& w = writes[o.tag - 1];
                const std::int64_t least = Way::least(timing, wire.topology(), w, o.node);
                if (o.time_ns - w.time_ns < least) ++early;
            }
            EXPECT_EQ(early, 0u);
        }
    }
}

TEST(SimulatedWire, a_word_takes_its_time_on_three_rings_and_in_two_bridges) {
    // Leaf of nodes 0, 1 and bridge; backbone of two; leaf of nodes 2, 3 and bridge.
    Wire wire(parse_timing("scramnet-burst"), {2, 2, 1000});
    EXPECT_EQ(wire.next_time_ns(), kNever);
    const auto outcomes = outcomes_of(wire, {{.origin = 1, .time_ns = 10'000, .tag = 99}});
    const std::int64_t at_second_leaf = 10'000 + 547 + 1000 + 547 + 1000;
    const std::pair<unsigned, std::int64_t> expected[] = {
        {0, 10'000 + 547 + 247},  // after the bridge, which has it 247 ns earlier
        {2, at_second_leaf + 547},
        {3, at_second_leaf + 547 + 247},
        {1, at_second_leaf + 547 + 2 * 247}};
    ASSERT_EQ(outcomes.size(), std::size(expected));
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        EXPECT_EQ(outcomes[i].node, expected[i].first);
        EXPECT_EQ(outcomes[i].time_ns, expected[i].second) << "node " << outcomes[i].node;
    }
    EXPECT_EQ(outcomes[3].kind, Kind::returned);
    EXPECT_EQ(outcomes[3].tag, 99u);
}

TEST(SimulatedWire, slicing_the_time_changes_nothing_in_a_hierarchy) {
    for (const std::int64_t bridge_ns : {0, 1, 247, 10'000}) {
        for (const std::string& profile : timing_profile_names()) {
            SCOPED_TRACE(profile + ", a bridge takes " + std::to_string(bridge_ns) + " ns");
            const Topology topology{4, 6, bridge_ns};
            const auto writes = writes_of({250, 700, 17}, topology.nodes());
            Wire whole(parse_timing(profile), topology);
            Wire sliced(parse_timing(profile), topology);
            Wire at_once(parse_timing(profile), topology);
            const auto expected = outcomes_of(whole, writes);
            std::vector<WireOutcome> found, last;
            const auto keep = [](auto* to) {
                return [to](const WireOutcome& o) { to->push_back(o); };
            };
            Random random(3);
            for (const WireWrite& w : writes) {
                at_once.submit(w);
                ASSERT_EQ(sliced.submit(w), WireSubmit::accepted);
                sliced.advance(w.time_ns - static_cast<std::int64_t>(random.below(3)),
                               keep(&found));
                EXPECT_LE(sliced.now_ns(), w.time_ns);
                sliced.advance(w.time_ns - 1000, keep(&found));
            }
            drain(sliced, &found);
            at_once.advance(1'000'000'000, keep(&last));
            EXPECT_EQ(at_once.now_ns(), 1'000'000'000);
            EXPECT_EQ(hash_of(found), hash_of(expected));
            EXPECT_EQ(hash_of(last), hash_of(expected));
        }
    }
}

TEST(SimulatedWire, the_same_load_gives_the_same_hash_on_every_compiler_in_a_hierarchy) {
    const auto hash = [](const char* profile) {
        const Topology topology{3, 5};
        Wire wire(parse_timing(profile), topology);
        return hash_of(outcomes_of(wire, writes_of({500, 900, 42}, topology.nodes())));
    };
    EXPECT_EQ(hash("scramnet-burst"), 17630251418694756316u);
    EXPECT_EQ(hash("scramnet-burst-plus"), 12367231970159458845u);
    EXPECT_EQ(hash("gt200"), 12875944073712665732u);
}

TEST(SimulatedWire, bridges_that_are_swamped_lose_nothing_and_keep_the_order) {
    for (const std::string profile :
         {"scramnet-burst", "scramnet-burst-plus", "scramnet-burst,fifo=lose"}) {
        SCOPED_TRACE(profile);
        // Each leaf's full rate meets on the backbone and on each other leaf: five times too much.
        const Topology topology{5, 4};
        Wire wire(parse_timing(profile), topology);
        const auto writes = writes_of({4000, 40, 23, 256}, topology.nodes());
        const auto outcomes = outcomes_of(wire, writes);
        check(wire, writes, outcomes);
        const WireCounters totals = wire.totals();
        EXPECT_EQ(totals.lost_fifo_full, 0u);
        EXPECT_EQ(totals.aged_out, 0u);
        EXPECT_EQ(totals.clamped, 0u);
        EXPECT_EQ(totals.max_fifo_words, parse_timing(profile).fifo_words);
        std::uint64_t by_bridges = totals.held_off;
        for (std::uint32_t n = 0; n < topology.nodes(); ++n) {
            by_bridges -= wire.counters(n).held_off;
        }
        EXPECT_GT(by_bridges, 100u);
    }
}

TEST(SimulatedWire, a_write_into_an_idle_hierarchy_keeps_the_bound) {
    for (const Shape& s : {Shape{2, 2, 0}, {3, 5, 0}, {16, 16, 0}, {8, 255, 0}}) {
        for (const std::string& profile : timing_profile_names()) {
            SCOPED_TRACE(name_of(profile, s));
            Wire wire(parse_timing(profile), {s.rings, s.nodes_per_ring, 2000});
            Random random(5);
            for (const std::uint32_t words : {1U, 2U, 65U, 1000U}) {
                const auto origin = random.below(wire.topology().nodes());
                const WireWrite w{.origin = static_cast<std::uint16_t>(origin),
                                  .bytes = 4 * words,
                                  .time_ns = std::max<std::int64_t>(wire.now_ns(), 0)};
                wire.submit(w);
                std::vector<WireOutcome> outcomes;
                drain(wire, &outcomes);
                if (wire.bound_ns(words) == 0) continue;
                const auto& last_arrival = outcomes[outcomes.size() - 2];
                EXPECT_LE(last_arrival.time_ns - w.time_ns, wire.bound_ns(words)) << words;
            }
        }
    }
}

TEST(SimulatedWire, a_bound_that_the_profile_promises_is_the_hierarchys) {
    EXPECT_EQ(Wire(parse_timing("scramnet-burst,bound=50us"), {4, 4}).bound_ns(), 50'000);
    EXPECT_EQ(Wire(parse_timing("none"), {4, 4}).bound_ns(), 0);
}

TEST(SimulatedWire, what_is_late_is_taken_as_now_in_a_hierarchy_too) {
    Wire wire(parse_timing("scramnet-burst"), {2, 3}, 1000);
    EXPECT_EQ(wire.now_ns(), 1000);
    std::vector<WireOutcome> outcomes;
    wire.advance(50'000, [&](const WireOutcome& o) { outcomes.push_back(o); });
    EXPECT_EQ(wire.submit({.origin = 4, .time_ns = 20'000}), WireSubmit::clamped);
    drain(wire, &outcomes);
    EXPECT_EQ(outcomes.front().time_ns, 50'547);
    EXPECT_EQ(wire.counters(4).clamped, 1u);
}

TEST(SimulatedWire, a_hierarchys_fifo_is_that_of_the_nodes_card_at_the_present) {
    Wire wire(parse_timing("scramnet-burst-plus"), {3, 4});
    wire.submit({.origin = 9, .bytes = 4 * 1024});
    const auto ignore = [](const WireOutcome&) {};
    wire.advance(0, ignore);
    EXPECT_EQ(wire.fifo_occupancy(1), 0u);
    EXPECT_GT(wire.fifo_occupancy(9), 1000u);
    EXPECT_GT(wire.room_at(9, 100), 0);
    // Between two events of its ring, too: words leave one by one.
    std::uint32_t last = wire.fifo_occupancy(9);
    for (std::int64_t t = 1000; t <= 10'000; t += 1000) {
        wire.advance(t, ignore);
        EXPECT_LT(wire.fifo_occupancy(9), last);
        last = wire.fifo_occupancy(9);
    }
    EXPECT_EQ(wire.room_at(1, 100), 10'000);
}

TEST(SimulatedWire, only_the_source_says_when_a_write_is_sent) {
    Wire wire(parse_timing("scramnet-burst"), {3, 2});
    wire.report_sent(true);
    const auto outcomes = outcomes_of(wire, {{.origin = 3, .tag = 5}});
    ASSERT_EQ(outcomes.size(), 7u);
    EXPECT_EQ(outcomes[0].kind, Kind::sent);
    EXPECT_EQ(outcomes[0].node, 3u);
    EXPECT_EQ(outcomes[0].tag, 5u);
    for (std::size_t n = 1; n < outcomes.size(); ++n) EXPECT_NE(outcomes[n].kind, Kind::sent);
}

// ---- Errors

TEST(SimulatedWire, topologies_that_cannot_be_are_refused) {
    const TimingProfile profile = parse_timing("scramnet-burst");
    for (const Topology& t :
         {Topology{0, 4}, {1, 0}, {1, 257}, {2, 0}, {2, 256}, {257, 1}, {70'000, 70'000}}) {
        SCOPED_TRACE(testing::Message() << t.rings << " rings of " << t.nodes_per_ring);
        test::refused(Errc::bad_node_count, [&] { const Wire wire(profile, t); });
    }
    EXPECT_THROW(Wire(profile, {2, 2, -1}), Error);
    EXPECT_EQ(Wire(profile, {256, 255}).topology().nodes(), 65'280u);
}

TEST(SimulatedWire, a_hierarchy_refuses_faults_and_writes_of_nobody) {
    Wire wire(parse_timing("scramnet-burst"), {2, 2});
    EXPECT_THROW(wire.set_alive(0, false, 0), Error);
    EXPECT_THROW(wire.set_cable(0, 0, false, 0), Error);
    EXPECT_EQ(wire.submit({.origin = 4}), WireSubmit::refused) << "would be the backbone's";
    EXPECT_EQ(wire.submit({.origin = 1, .bytes = 0}), WireSubmit::refused);
    EXPECT_EQ(wire.next_time_ns(), kNever);
}

}  // namespace
}  // namespace rmem::sim
