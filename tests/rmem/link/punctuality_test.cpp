// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/punctuality.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace rmem {
namespace {

struct PunctualityTest : ::testing::Test {
    RingConfig config;
    std::unique_ptr<NodeSlot> slot = std::make_unique<NodeSlot>();

    Punctuality made(std::int64_t bound) {
        config.nodes = 2;
        config.bound_ns = bound;
        return Punctuality(config, *slot);
    }
    static Punctuality::Arrival arrival(std::int64_t written, std::int64_t due,
                                        std::int64_t applied) {
        Punctuality::Arrival made;
        made.offset = 64;
        made.words = 1;
        made.written_ns = written;
        made.due_ns = due;
        made.applied_ns = applied;
        return made;
    }
    std::uint64_t count(LinkCounter id) const { return slot->link.get(id); }
};

TEST_F(PunctualityTest, lateness_is_applied_minus_due) {
    auto gauge = made(0);
    gauge.begin(10'000);
    gauge.end();
    gauge.begin(11'000);
    gauge.look(11'100, 0);
    EXPECT_FALSE(gauge.arrived(arrival(10'300, 11'000, 11'100)));
    EXPECT_EQ(slot->lateness.count(), 1U);
    EXPECT_EQ(slot->lateness.max(), 100U);
    EXPECT_EQ(slot->propagation.max(), 800U);
    EXPECT_EQ(count(LinkCounter::late_max_ns), 100U);
    EXPECT_EQ(count(LinkCounter::late_by_host), 0U);
}

TEST_F(PunctualityTest, what_fell_due_before_a_gap_ended_is_the_hosts) {
    auto gauge = made(0);
    gauge.begin(10'000);
    gauge.end();
    gauge.begin(10'000 + Punctuality::kAwayNs + 1);
    gauge.arrived(arrival(9'000, 10'500, 11'600));
    EXPECT_EQ(count(LinkCounter::late_by_host), 1U);
    EXPECT_EQ(slot->lateness.count(), 0U);
    EXPECT_EQ(slot->propagation.count(), 1U);
}

TEST_F(PunctualityTest, what_is_due_when_it_comes_is_never_late_and_breaks_a_bound_by_itself) {
    auto gauge = made(1'000);
    gauge.begin(10'000 + Punctuality::kAwayNs + 1);
    EXPECT_FALSE(gauge.arrived(arrival(11'000, Punctuality::kWhenItComes, 12'000)));
    const auto violation = gauge.arrived(arrival(11'000, Punctuality::kWhenItComes, 12'001));
    ASSERT_TRUE(violation);
    EXPECT_FALSE(violation->by_host);
    EXPECT_EQ(count(LinkCounter::bound_violations), 1U);
    EXPECT_EQ(count(LinkCounter::late_by_host), 0U);
    EXPECT_EQ(slot->lateness.count(), 0U);
}

TEST_F(PunctualityTest, the_engines_own_work_is_no_gap) {
    auto gauge = made(0);
    gauge.begin(10'000);
    gauge.end();
    gauge.begin(11'000);
    gauge.look(14'000, 2'000);
    gauge.arrived(arrival(10'000, 11'500, 14'000));
    EXPECT_EQ(count(LinkCounter::late_by_host), 0U);
    EXPECT_EQ(slot->lateness.max(), 2'500U);
}

TEST_F(PunctualityTest, catching_up_after_a_gap_belongs_to_it) {
    auto gauge = made(0);
    gauge.begin(10'000);
    gauge.end();
    gauge.begin(100'000);
    for (std::int64_t now = 100'500; now <= 105'000; now += 500) {
        gauge.look(now, 0);
        gauge.arrived(arrival(now - 2'000, now - 300, now));  // due after the gap
    }
    gauge.end();
    EXPECT_EQ(slot->lateness.count(), 0U);
    gauge.begin(105'500);
    gauge.end();
    gauge.begin(106'000);
    gauge.look(106'100, 0);
    gauge.arrived(arrival(105'000, 106'000, 106'100));
    EXPECT_EQ(slot->lateness.count(), 1U) << "caught up";
}

TEST_F(PunctualityTest, a_bound_that_the_wire_broke_is_told_from_one_that_the_host_broke) {
    auto gauge = made(1'000);
    gauge.begin(10'000);
    const auto wire = gauge.arrived(arrival(10'000, 11'500, 11'600));
    ASSERT_TRUE(wire.has_value());
    EXPECT_FALSE(wire->by_host);
    EXPECT_EQ(wire->propagation_ns, 1'600);
    const auto host = gauge.arrived(arrival(10'000, 10'900, 11'600));
    ASSERT_TRUE(host.has_value());
    EXPECT_TRUE(host->by_host);
    auto unpublished = arrival(10'000, 15'000, 15'000);
    unpublished.unseen_ns = 4'500;
    const auto writers_host = gauge.arrived(unpublished);
    ASSERT_TRUE(writers_host.has_value());
    EXPECT_TRUE(writers_host->by_host) << "the writer's host is a host too";
    EXPECT_FALSE(gauge.arrived(arrival(10'000, 10'900, 11'000)));
    EXPECT_EQ(count(LinkCounter::bound_violations), 1U);
    EXPECT_EQ(count(LinkCounter::bound_missed_by_host), 2U);
}

TEST_F(PunctualityTest, only_a_derived_bound_grows_by_what_was_queued) {
    config.timing = parse_timing("scramnet-burst");
    auto derived = made(0);
    const std::int64_t late = derived.bound() + 1;
    auto queued = arrival(0, late, late);
    EXPECT_TRUE(derived.arrived(queued));
    queued.queued_words = 10;
    EXPECT_FALSE(derived.arrived(queued));
    auto configured = made(1'000);
    EXPECT_TRUE(configured.arrived(queued));
}

}  // namespace
}  // namespace rmem
