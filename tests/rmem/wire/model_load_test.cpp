// SPDX-License-Identifier: Apache-2.0
// ctest: full
// What holds for any load, with faults and without.
#include "rmem/base/random.hpp"
#include "rmem/wire/timing.hpp"
#include "tests/rmem/wire/model_fixture.hpp"
#include "tests/support/sanitizers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace rmem {
namespace {

constexpr int kWrites = 1500;

struct Load {
    std::string profile;
    std::uint16_t nodes;
    std::uint64_t mean_gap_ns;
    std::uint64_t seed;
    bool faults;
    int writes = test::kSanitized ? kWrites / 5 : kWrites;
};

void play(const Load& load, bool sliced, Bench* b) {
    Random random(load.seed);
    std::int64_t now = 0;
    std::vector<std::uint64_t> next_offset(load.nodes, 0);
    for (int n = 0; n < load.writes; ++n) {
        now += static_cast<std::int64_t>(random.below(2 * load.mean_gap_ns) + 1);
        const auto origin = static_cast<std::uint16_t>(random.below(load.nodes));
        const std::uint64_t shape = random.below(8);
        const std::uint64_t size = shape == 0 ? random.below(700) + 1 : shape < 3 ? 60 : 4;
        if (random.below(2) == 0) next_offset[origin] = 4096 * random.below(1000);
        const bool interrupt = random.below(16) == 0;
        const std::uint64_t extra = random.below(50) == 0 ? random.below(3000) : 0;
        b->write_at(origin, now, next_offset[origin], static_cast<std::uint32_t>(size), interrupt,
                    static_cast<std::int64_t>(extra));
        next_offset[origin] += (size + 3) / 4 * 4;
        const std::uint64_t fault = random.below(60);
        const auto victim = static_cast<std::uint32_t>(random.below(load.nodes));
        const std::uint64_t detail = random.below(4);
        const auto slack = static_cast<std::int64_t>(random.below(3));
        if (load.faults && fault == 0) b->model.set_alive(victim, detail != 0, now);
        if (load.faults && fault == 1) {
            b->model.set_cable(static_cast<std::uint32_t>(detail / 2), victim, detail % 2 != 0,
                               now);
        }
        if (sliced) b->advance(now - slack);
    }
    b->drain();
}

std::vector<Load> loads(bool faults) {
    std::vector<Load> all;
    for (const std::string& profile : timing_profile_names()) {
        for (const std::uint16_t nodes : std::initializer_list<std::uint16_t>{1, 2, 3, 7, 30}) {
            for (const std::uint64_t gap : {300U, 3000U, 30'000U}) {
                all.push_back({profile, nodes, gap, 1000 * nodes + gap, faults});
            }
        }
    }
    all.push_back({"scramnet-burst,fifo=lose", 4, 300, 5, faults});
    all.push_back({"scramnet-burst-plus,fifo=lose,cable=100m", 4, 100, 6, faults});
    return all;
}

std::string name_of(const Load& load) {
    return load.profile + ", " + std::to_string(load.nodes) + " nodes, a write each " +
           std::to_string(load.mean_gap_ns) + " ns";
}

TEST(WireModelLoad, every_write_arrives_once_in_order_everywhere_or_is_lost) {
    for (const Load& load : loads(false)) {
        SCOPED_TRACE(name_of(load));
        Bench b(load.profile, load.nodes);
        play(load, false, &b);
        expect_order(b.outcomes);
        const std::uint64_t lost = b.count(Kind::lost);
        const std::uint64_t whole = b.tags - lost;
        EXPECT_EQ(b.count(Kind::returned), whole);
        EXPECT_EQ(b.count(Kind::arrived), whole * (load.nodes - 1u));
        EXPECT_EQ(b.model.totals().lost_fifo_full, lost);
        EXPECT_EQ(lost != 0, load.profile.find("lose") != std::string::npos);
        EXPECT_EQ(b.model.totals().sent, load.profile == "none"
                                             ? b.tags * load.nodes
                                             : b.model.totals().removed_by_source);
    }
}

TEST(WireModelLoad, faults_break_neither_order_nor_the_count) {
    for (const Load& load : loads(true)) {
        SCOPED_TRACE(name_of(load));
        Bench b(load.profile, load.nodes);
        play(load, false, &b);
        expect_order(b.outcomes);
        const WireCounters total = b.model.totals();
        EXPECT_EQ(b.count(Kind::lost),
                  total.lost_cable + total.lost_dead_node + total.lost_fifo_full);
        EXPECT_EQ(b.count(Kind::arrived), total.received);
        EXPECT_EQ(b.count(Kind::returned), total.returned);
        EXPECT_LE(total.returned + b.count(Kind::lost), total.submitted);
        EXPECT_EQ(b.model.next_time_ns(), kNever);
    }
}

/// What the ring link's engines go by that have been away (rmem/link/ring/engine_transit.cpp).
TEST(WireModelLoad, the_wire_is_clear_when_each_word_has_had_its_place_twice_and_the_way_round) {
    Random random(7);
    for (const std::string& name : timing_profile_names()) {
        TimingProfile profile = parse_timing(name);
        if (profile.instant != 0) continue;
        profile.overflow = FifoPolicy::hold_off;
        for (unsigned turn = 0; turn < 100; ++turn) {
            const auto nodes = static_cast<std::uint16_t>(2 + random.below(turn % 4 == 0 ? 60 : 9));
            const auto origins = 1 + random.below(nodes);
            const std::uint64_t most_bytes = random.below(2) == 0 ? 4 : 1024;
            const std::uint64_t most_gap_ns = 1 + random.below(10'000);
            SCOPED_TRACE(name + ", " + std::to_string(nodes) + " nodes, turn " +
                         std::to_string(turn));
            Bench b(profile, nodes);
            std::vector<std::size_t> period_of{0};
            std::vector<std::int64_t> clear{-1};
            std::int64_t now = 0;
            for (unsigned n = 0; n < 300; ++n) {
                if (random.below(4) == 0)
                    now += static_cast<std::int64_t>(random.below(most_gap_ns));
                const auto bytes = static_cast<std::uint32_t>(4 + random.below(most_bytes) / 4 * 4);
                b.write_at(static_cast<std::uint16_t>(random.below(origins)), now,
                           random.below(1000) * 4, bytes);
                if (now > clear.back()) clear.push_back(now);
                clear.back() = std::max(clear.back(), now + round_ns(profile, nodes)) +
                               2 * busy_ns(profile, bytes / 4);
                period_of.push_back(clear.size() - 1);
            }
            b.drain();
            for (const WireOutcome& o : b.outcomes) ASSERT_LE(o.time_ns, clear[period_of[o.tag]]);
            ASSERT_EQ(b.count(Kind::returned), b.tags);
        }
    }
}

TEST(WireModelLoad, slicing_the_time_changes_nothing) {
    for (const Load& load : loads(false)) {
        SCOPED_TRACE(name_of(load));
        Bench whole(load.profile, load.nodes);
        play(load, false, &whole);
        Bench sliced(load.profile, load.nodes);
        play(load, true, &sliced);
        EXPECT_EQ(sliced.model.totals().clamped, 0u);
        EXPECT_EQ(hash_of(whole.outcomes), hash_of(sliced.outcomes));
    }
}

TEST(WireModelLoad, the_same_load_gives_the_same_hash_on_every_compiler) {
    const auto hash = [](const char* profile, bool faults) {
        const Load load{profile, 7, 900, 42, faults, kWrites};
        Bench b(load.profile, load.nodes);
        play(load, false, &b);
        return hash_of(b.outcomes);
    };
    EXPECT_EQ(hash("scramnet-burst", false), 15842872155940950172u);
    EXPECT_EQ(hash("scramnet-burst-plus", true), 11840267370587906238u);
    EXPECT_EQ(hash("gt200", true), 13511699525727592033u);
}

}  // namespace
}  // namespace rmem
