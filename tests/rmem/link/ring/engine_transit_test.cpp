// SPDX-License-Identifier: Apache-2.0
// ctest: check
// What an engine does with what was written while it did not run.
#include "rmem/base/random.hpp"
#include "rmem/link/ring/engine.hpp"
#include "tests/rmem/link/ring/ring_fixture.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace rmem {
namespace {

using test::RingRank;
using test::stay_away;
using test::still;
using test::TestRing;

constexpr unsigned kBacklogNodes = 5;

/// When each write comes to a node by a model that has followed all of them.
std::map<std::size_t, std::int64_t> arrivals_at(unsigned node, const TestRing& ring) {
    struct Written {
        std::int64_t at_ns;
        std::size_t offset;
        unsigned origin;
    };
    std::vector<Written> all;
    for (unsigned r = 0; r < kBacklogNodes; ++r) {
        LogReader log(ring.ring()->log(r), LogReader::Role::observer);
        log.seek(log.oldest());
        LogReader::Entry entry;
        for (; log.refresh() && log.peek(entry) == LogReader::Found::record; log.pass(entry))
            all.push_back({entry.record.written_ns, entry.record.offset, r});
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Written& a, const Written& b) { return a.at_ns < b.at_ns; });
    WireModel model(ring.config().timing, kBacklogNodes, all.front().at_ns);
    for (const Written& write : all) {
        WireWrite submitted;
        submitted.origin = static_cast<std::uint16_t>(write.origin);
        submitted.offset = submitted.tag = write.offset;
        submitted.time_ns = write.at_ns;
        model.submit(submitted);
    }
    std::map<std::size_t, std::int64_t> times;
    model.advance(all.back().at_ns + 1'000'000'000, [&](const WireOutcome& outcome) {
        if (outcome.kind == WireOutcomeKind::arrived && outcome.node == node)
            times[outcome.tag] = outcome.time_ns;
    });
    return times;
}

class Backlog : public ::testing::TestWithParam<std::string> {};

TEST_P(Backlog, nothing_is_early_for_an_engine_that_was_away) {
    TestRing ring({.nodes = kBacklogNodes, .timing = GetParam()});
    RingRank reader(ring, 0, still());
    std::vector<std::unique_ptr<RingRank>> writers;
    for (unsigned n = 1; n < kBacklogNodes; ++n)
        writers.push_back(std::make_unique<RingRank>(ring, n, still()));
    Random random(11);
    std::map<std::size_t, std::int64_t> seen;
    std::size_t words = 0;
    for (unsigned turn = 0; turn < 400; ++turn) {
        for (std::uint64_t n = random.below(25); n > 0; --n) {
            writers[random.below(kBacklogNodes - 1)]->memory.post_word(words++ * 4, 1);
            if (turn % 2 == 0 && random.below(3) == 0)
                stay_away(static_cast<std::int64_t>(random.below(4000)));
        }
        // Mostly while the wire still carries some of it.
        stay_away(static_cast<std::int64_t>(random.below(turn % 4 == 0 ? 200'000 : 20'000)));
        reader.memory.progress();
        const std::int64_t now = now_ns();
        for (std::size_t i = 0; i < words; ++i) {
            if (reader.memory.load(i * 4) != 0) seen.emplace(i * 4, now);
        }
    }
    const auto due = arrivals_at(0, ring);
    ASSERT_EQ(due.size(), words);
    for (const auto& [offset, at_ns] : seen) ASSERT_GE(at_ns, due.at(offset)) << offset;
    stay_away(1'000'000);
    reader.memory.progress();
    for (std::size_t i = 0; i < words; ++i) EXPECT_EQ(reader.memory.load(i * 4), 1U) << i;
    for (const auto& writer : writers) writer->memory.progress();  // or their leaving waits
}

TEST_P(Backlog, of_two_writers_of_a_word_the_later_one_is_there_however_long_it_was_away) {
    TestRing ring({.nodes = 3, .timing = GetParam()});
    RingRank reader(ring, 0, still()), a(ring, 1, still()), b(ring, 2, still());
    for (std::uint32_t i = 1; i <= 40; ++i) {
        (i % 3 == 0 ? a : b).memory.post_word(0, i);
        stay_away(50'000);
    }
    reader.memory.progress();
    EXPECT_EQ(reader.memory.load(0), 40U);
    EXPECT_EQ(ring.count(0, LinkCounter::late_by_host), 40U);
    a.memory.progress();
    b.memory.progress();
}

TEST_P(Backlog, a_write_that_a_fault_delays_is_late_by_the_wire_however_long_it_was_away) {
    TestRing ring({.timing = GetParam()});
    RingOptions late = still();
    late.faults = FaultPlan::parse("delay:node=1,by=200us,count=2", 2, LinkKind::ring);
    RingRank reader(ring, 0, still()), writer(ring, 1, late);
    for (std::uint32_t i = 0; i < 4; ++i) {
        writer.memory.post_word(i * 4, 1);
        stay_away(300'000);
    }
    reader.memory.progress();
    EXPECT_EQ(ring.count(0, LinkCounter::bound_violations), 2U);
    EXPECT_EQ(ring.count(0, LinkCounter::bound_missed_by_host), 2U);
}

INSTANTIATE_TEST_SUITE_P(Profiles, Backlog,
                         ::testing::Values("scramnet-burst", "scramnet-burst-plus", "gt200"),
                         test::profile_case_name);

}  // namespace
}  // namespace rmem
