// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/ring_view.hpp"

#include "billboard/core/counters.hpp"
#include "tools/watch/port_counters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>

namespace tools {
namespace {

using rmem::LinkCounter;
using rmem::udp::UdpCounter;
using ::testing::ElementsAre;

template <class Id>
void set(CounterValues& values, Id id, std::uint64_t value) {
    values.resize(std::max<std::size_t>(values.size(), static_cast<std::size_t>(Id::count_)));
    values[static_cast<std::size_t>(id)] = value;
}

/// A ring of two nodes, a rank each, of which node 0 is on this host.
RingSample sample_at(std::int64_t seconds) {
    RingSample sample;
    sample.at_ns = seconds * 1'000'000'000;
    sample.exists = sample.has_members = true;
    sample.config.name = "rig";
    sample.config.nodes = sample.config.ranks = 2;
    sample.config.link = rmem::LinkKind::udp;
    sample.ranks.resize(2);
    sample.ranks[0].state = "alive";
    sample.ranks[1].node = 1;
    sample.ranks[1].state = "elsewhere";
    sample.nodes.resize(2);
    sample.nodes[0].state = sample.nodes[1].state = NodeState::up;
    sample.nodes[0].is_here = true;
    sample.nodes[0].engine.emplace();
    sample.nodes[0].engine->members.set(0).set(1);
    sample.nodes[0].engine->peers = {{1, 0, 50'000, 1'000}};
    return sample;
}

const EventView* event(const RingView& view, const std::string& name) {
    for (const EventView& one : view.events) {
        if (one.name == name) return &one;
    }
    return nullptr;
}

TEST(RingView, tells_the_traffic_of_a_node_per_second) {
    auto before = sample_at(10), now = sample_at(12);
    set(before.ranks[0].link, LinkCounter::writes_sent, 100);
    set(now.ranks[0].link, LinkCounter::writes_sent, 300);
    set(now.ranks[0].link, LinkCounter::bytes_sent, 4000);
    set(now.nodes[0].link, LinkCounter::writes_applied, 50);
    set(now.nodes[0].engine->counters, UdpCounter::datagrams_sent, 20);
    set(now.nodes[0].engine->counters, UdpCounter::datagrams_received, 30);
    const RingView view = view_of(before, now);
    EXPECT_EQ(view.elapsed_ns, 2'000'000'000);
    EXPECT_DOUBLE_EQ(view.nodes[0].writes, 100);
    EXPECT_DOUBLE_EQ(view.nodes[0].bytes, 2000);
    EXPECT_DOUBLE_EQ(view.nodes[0].applied, 25);
    EXPECT_DOUBLE_EQ(view.nodes[0].datagrams_sent, 10);
    EXPECT_DOUBLE_EQ(view.nodes[0].datagrams_received, 15);
}

TEST(RingView, tells_messages_of_which_short_ones_are_sampled) {
    auto before = sample_at(10), now = sample_at(12);
    EXPECT_FALSE(view_of(before, now).has_messages);
    set(before.ranks[0].protocol, billboard::Counter::buffers_posted, 7);
    set(now.ranks[0].protocol, billboard::Counter::buffers_posted, 17);
    set(now.ranks[0].link, LinkCounter::messages_sampled, 4);
    const RingView view = view_of(before, now);
    EXPECT_TRUE(view.has_messages);
    EXPECT_DOUBLE_EQ(view.nodes[0].messages, (10 + 4 * 1024) / 2.0);
    EXPECT_EQ(event(view, "messages_sampled"), nullptr) << "traffic is no event";
}

TEST(RingView, tells_what_is_heard_of_a_node_on_another_host) {
    auto before = sample_at(0), now = sample_at(1);
    now.nodes[0].engine->peers[0].batches = 40;
    const RingView view = view_of(before, now);
    EXPECT_FALSE(view.nodes[1].is_here);
    EXPECT_FALSE(view.nodes[1].has_traffic);
    EXPECT_DOUBLE_EQ(view.nodes[1].batches, 40);
    EXPECT_EQ(view.nodes[1].round_trip_ns, 50'000);
    EXPECT_EQ(view.nodes[0].round_trip_ns, 50'000) << "to the farthest member";
    EXPECT_EQ(view.nodes_up, 2U);
    EXPECT_EQ(view.ranks_alive, 2U);
}

TEST(RingView, counts_no_rank_that_has_not_come) {
    auto now = sample_at(1);
    now.ranks[1].node = 0;
    EXPECT_EQ(view_of(now, now).nodes[0].ranks, 2U);
    now.ranks[1].state = "absent";
    EXPECT_EQ(view_of(now, now).nodes[0].ranks, 1U);
}

TEST(RingView, knows_the_way_to_members_alone) {
    auto now = sample_at(1);
    now.nodes[0].engine->members.reset(1);
    EXPECT_EQ(view_of(now, now).nodes[0].round_trip_ns, 0);
}

TEST(RingView, has_no_rates_before_time_has_passed) {
    auto now = sample_at(1);
    set(now.ranks[0].link, LinkCounter::writes_sent, 300);
    EXPECT_EQ(view_of(now, now).nodes[0].writes, 0);
    auto before = now;
    set(now.ranks[0].link, LinkCounter::writes_sent, 400);
    EXPECT_EQ(view_of(before, now).nodes[0].writes, 0);
}

TEST(RingView, takes_counters_that_fell_as_begun_again) {
    auto before = sample_at(0), now = sample_at(1);
    set(before.ranks[0].link, LinkCounter::writes_sent, 1'000'000);
    set(now.ranks[0].link, LinkCounter::writes_sent, 7);
    EXPECT_DOUBLE_EQ(view_of(before, now).nodes[0].writes, 7);
}

TEST(RingView, compares_with_nothing_when_the_ring_was_another_one_or_none) {
    auto before = sample_at(0), now = sample_at(1);
    set(now.ranks[0].link, LinkCounter::writes_sent, 7);
    set(before.ranks[0].link, LinkCounter::writes_sent, 5);
    before.nodes.resize(1);
    EXPECT_DOUBLE_EQ(view_of(before, now).nodes[0].writes, 7);
    EXPECT_DOUBLE_EQ(view_of(RingSample(), now).nodes[0].writes, 7);
    EXPECT_FALSE(view_of(now, RingSample()).exists);
}

TEST(RingView, tells_percentiles_of_now_and_of_ever) {
    const auto histogram = std::make_unique<rmem::Histogram>();
    auto before = sample_at(0), now = sample_at(1);
    histogram->record(1'000'000);
    before.nodes[0].propagation = HistogramSample(*histogram);
    for (int i = 0; i < 9; ++i) histogram->record(800);
    now.nodes[0].propagation = HistogramSample(*histogram);
    now.nodes[1].propagation = HistogramSample(*histogram);
    const RingView view = view_of(before, now);
    EXPECT_EQ(view.nodes[0].now.count, 9U);
    EXPECT_EQ(view.nodes[0].ever.count, 10U);
    EXPECT_NEAR(static_cast<double>(view.nodes[0].now.p99_ns), 800, 50);
    EXPECT_EQ(view.nodes[0].ever.max_ns, 1'000'000U);
    EXPECT_EQ(view.ever.count, 10U) << "what was measured of the other host's node is among them";
}

TEST(RingView, tells_writes_that_the_wire_brought_too_late_from_those_that_the_host_did) {
    auto before = sample_at(0), now = sample_at(1);
    set(before.nodes[0].link, LinkCounter::bound_violations, 2);
    set(now.nodes[0].link, LinkCounter::bound_violations, 5);
    set(now.nodes[0].link, LinkCounter::bound_missed_by_host, 1);
    const RingView view = view_of(before, now);
    EXPECT_EQ(view.broken, 5U);
    EXPECT_EQ(view.broken_more, 3U);
    EXPECT_EQ(view.late, 1U);
    EXPECT_EQ(view.nodes[0].late_more, 1U);
}

TEST(RingView, has_an_event_for_each_counter_of_trouble_that_is_not_zero) {
    auto before = sample_at(0), now = sample_at(1);
    now.ranks[1].state = "alive";
    set(now.ranks[0].link, LinkCounter::back_pressure, 3);
    set(now.ranks[1].link, LinkCounter::back_pressure, 3);
    set(now.nodes[0].link, LinkCounter::back_pressure, 1);
    set(now.ranks[0].link, LinkCounter::writes_sent, 4);
    set(before.nodes[0].engine->counters, UdpCounter::refused_tag, 1);
    set(now.nodes[0].engine->counters, UdpCounter::refused_tag, 2);
    set(now.nodes[0].engine->counters, UdpCounter::naks_sent, 9);
    const RingView view = view_of(before, now);
    ASSERT_EQ(view.events.size(), 3U);
    EXPECT_STREQ(view.events[0].kind, "losses") << "in the order of the kinds";
    const auto* pressure = event(view, "back_pressure");
    ASSERT_NE(pressure, nullptr);
    EXPECT_STREQ(pressure->kind, "back-pressure");
    EXPECT_EQ(pressure->total, 7U);
    EXPECT_THAT(pressure->nodes, ElementsAre(0, 1));
    const auto* refused = event(view, "refused_tag");
    ASSERT_NE(refused, nullptr);
    EXPECT_STREQ(refused->kind, "refusals");
    EXPECT_EQ(refused->total, 2U);
    EXPECT_EQ(refused->more, 1U);
    EXPECT_EQ(event(view, "writes_sent"), nullptr) << "traffic is no event";
}

/// Counters of all three lists, of which each tells its kind.
TEST(RingView, shows_each_counter_that_is_not_of_work_as_an_event_of_its_kind) {
    auto now = sample_at(1);
    now.ranks[0].link.assign(rmem::kLinkCounterNames.size(), 1);
    now.ranks[0].protocol.assign(billboard::kCounterNames.size(), 1);
    now.nodes[0].engine->counters.assign(rmem::udp::kUdpCounterNames.size(), 1);
    const RingView view = view_of(sample_at(0), now);
    const auto kinds = event_kinds();
    std::size_t events = 0;
    const auto count = [&](std::span<const rmem::CounterName> names) {
        for (const rmem::CounterName& name : names) {
            const auto shown = std::find_if(view.events.begin(), view.events.end(), [&](auto& one) {
                return std::string(one.name) == name.name &&
                       std::string(one.meaning) == name.meaning;
            });
            if (name.kind == rmem::CounterKind::work) {
                EXPECT_EQ(shown, view.events.end()) << name.name;
                continue;
            }
            ++events;
            ASSERT_NE(shown, view.events.end()) << name.name;
            EXPECT_STREQ(shown->kind, kinds.at(static_cast<std::size_t>(name.kind))) << name.name;
        }
    };
    count(rmem::kLinkCounterNames);
    count(billboard::kCounterNames);
    count(rmem::udp::kUdpCounterNames);
    EXPECT_EQ(view.events.size(), events);
}

TEST(RingView, has_an_event_for_each_counter_of_a_port_that_is_not_zero_behind_all_others) {
    auto before = sample_at(0), now = sample_at(1);
    set(now.ranks[0].protocol, billboard::Counter::corrupt, 1);
    set(before.ranks[0].ports[2], ports::dp::Counter::written, 10);
    set(now.ranks[0].ports[2], ports::dp::Counter::written, 15);
    now.ranks[1].ports[0].assign(FM_COUNTERS, 0);
    now.ranks[1].ports[0][FM_CORRUPT] = 2;
    const RingView view = view_of(before, now);
    ASSERT_EQ(view.events.size(), 3U);
    EXPECT_STREQ(view.events[0].kind, "refusals");
    EXPECT_STREQ(view.events[1].kind, "fm");
    EXPECT_EQ(view.events[1].total, 2U) << "apart from the billboard's of that name";
    EXPECT_THAT(view.events[1].nodes, ElementsAre(1));
    EXPECT_STREQ(view.events[2].kind, "dp");
    EXPECT_EQ(view.events[2].total, 15U);
    EXPECT_EQ(view.events[2].more, 5U);
}

TEST(RingView, tells_what_a_munet_daemon_has_now_and_what_it_has_counted) {
    auto before = sample_at(0), now = sample_at(1);
    EXPECT_FALSE(view_of(before, now).nodes[0].munet);
    now.nodes[0].munet = {true, 123, 2, {5, 3, 0, 0, 0, 0, 0, 9}, {}};
    const RingView view = view_of(before, now);
    ASSERT_TRUE(view.nodes[0].munet);
    EXPECT_EQ(view.nodes[0].munet->endpoints, 2U);
    EXPECT_EQ(view.nodes[0].munet->backlog, 9U);
    ASSERT_EQ(view.events.size(), 2U) << "created and destroyed";
    EXPECT_STREQ(view.events[0].kind, "munet");
    EXPECT_EQ(event(view, "created")->total, 5U);
}

TEST(RingView, says_nothing_of_writes_that_link_direct_does_not_count) {
    auto now = sample_at(1);
    now.config.link = rmem::LinkKind::direct;
    EXPECT_FALSE(view_of(now, now).nodes[0].has_traffic);
    EXPECT_FALSE(view_of(now, now).has_wire);
    set(now.ranks[0].link, LinkCounter::writes_sent, 1);
    EXPECT_TRUE(view_of(now, now).nodes[0].has_traffic);
    now.config.link = rmem::LinkKind::fabric;
    EXPECT_TRUE(view_of(now, now).is_remote);
}

}  // namespace
}  // namespace tools
