// SPDX-License-Identifier: Apache-2.0
// ctest: check tsan apart
#include "rmem/link/ring/engine.hpp"

#include "rmem/base/random.hpp"
#include "tests/rmem/link/ring/ring_fixture.hpp"
#include "tests/support/broken.hpp"

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace rmem {

struct PlantedBug {
    /// The model brings a write of rank 1 before its time.
    static void bring_early(RingEngine& engine) {
        WireOutcome outcome;
        outcome.tag = EngineWire::tag_of(1, engine.logs_.flights(1).end());
        outcome.origin = 1;
        outcome.time_ns = engine.own_.time.now() + 1;
        engine.logs_.add_flight(1, {});
        engine.transit_.on_outcome(outcome);
    }
};

namespace {

using test::checking;
using test::faulty;
using test::RingRank;
using test::stay_away;
using test::still;
using test::TestRing;
using test::word_record;
using RingEngineOfStillPair = test::StillPair;

// ---- Time

TEST_F(RingEngineOfStillPair, writes_that_their_writer_brings_are_not_missed_by_other_engines) {
    auto& claim = ring.ring()->log(0).header().deliverer;
    claim = a.member.incarnation();
    a.memory.post_word(0, 1);
    EXPECT_TRUE(b.memory.engine().lacks_writes());
    EXPECT_FALSE(b.memory.engine().lacks_writes(false));
    claim = 0;
    EXPECT_TRUE(b.memory.engine().lacks_writes(false));
}

TEST_F(RingEngineOfStillPair, reads_what_a_guest_writes_that_comes_later) {
    RingRank guest(ring.ring(), {Member::kGuest, 0}, still());
    guest.memory.post_word(0, 1);
    b.await(0, 1);
}

TEST(RingEngine, one_transmitter_sends_no_more_than_the_profile_lets_it) {
    TestRing ring({.timing = "scramnet-burst"});
    RingRank a(ring, 0), b(ring, 1);
    constexpr std::uint32_t kWords = 10'000;
    const std::int64_t start = now_ns();
    for (std::uint32_t i = 1; i <= kWords; ++i) {
        a.wait_for_room(4);
        a.memory.post_word(0, i);
    }
    b.await(0, kWords);
    // 615 ns per word, on any host: never faster.
    EXPECT_GE(now_ns() - start, std::int64_t{kWords} * 615);
}

TEST(RingEngine, variable_packets_carry_a_block_in_less_wire_time_but_not_in_less_than_theirs) {
    TestRing ring({.timing = "scramnet-burst-plus"});
    RingRank a(ring, 0), b(ring, 1);
    constexpr std::size_t kBytes = 32768;
    const std::vector<std::byte> block(kBytes);
    const std::int64_t start = now_ns();
    a.memory.write(4096, block.data(), kBytes);
    a.memory.post_word(0, 1);
    b.await(0, 1);
    EXPECT_GE(now_ns() - start, static_cast<std::int64_t>(kBytes) * 59) << "16.7 MB/s";
}

TEST_F(RingEngineOfStillPair, what_fell_due_while_nobody_looked_is_counted_apart) {
    a.memory.post_word(0, 1);
    stay_away(100'000);
    b.await(0, 1);
    EXPECT_EQ(ring.count(1, LinkCounter::late_by_host), 1U);
    EXPECT_EQ(ring.slot(1).lateness.count(), 0U);
    EXPECT_EQ(ring.slot(1).propagation.count(), 1U);
    EXPECT_GE(ring.slot(1).propagation.max(), 100'000U - 1000);
}

// ---- The bound

TEST(RingEngine, k_writes_delayed_past_the_bound_are_k_violations) {
    for (const char* timing : {"scramnet-burst", "none"}) {
        std::mutex mutex;
        std::vector<BoundViolation> reported;  // outlives the helper, which may report late
        TestRing ring({.timing = timing, .bound_ns = 100'000'000});
        RingRank a(ring, 0, faulty("delay:node=0,by=150ms,count=3,after=2")), b(ring, 1);
        b.memory.engine().on_bound_violation([&](const BoundViolation& violation) {
            const std::lock_guard lock(mutex);
            reported.push_back(violation);
        });
        for (std::uint32_t i = 1; i <= 10; ++i) {
            a.memory.post_word(i * 4, i);
            a.flush();
            b.await(i * 4, i);
        }
        EXPECT_EQ(ring.count(1, LinkCounter::bound_violations), 3U) << timing;
        EXPECT_EQ(ring.rank_count(0, LinkCounter::faults_injected), 3U);
        EXPECT_EQ(ring.count(0, LinkCounter::bound_violations), 0U) << "the writer's own node";
        EXPECT_TRUE(test::eventually([&] {
            const std::lock_guard lock(mutex);
            std::erase_if(reported, [](const BoundViolation& v) { return v.by_host; });
            return reported.size() >= 3;
        }));
        b.memory.engine().on_bound_violation(nullptr);
        const std::lock_guard lock(mutex);
        ASSERT_EQ(reported.size(), 3U);
        EXPECT_EQ(reported[0].offset, 12U);
        EXPECT_EQ(reported[0].origin, 0U);
        EXPECT_GT(reported[0].propagation_ns, 150'000'000);
    }
}

TEST(RingEngine, a_write_in_time_on_the_wire_that_the_host_keeps_is_the_hosts_fault) {
    TestRing ring({.timing = "scramnet-burst", .bound_ns = 1'000'000});
    RingRank a(ring, 0, still()), b(ring, 1, still());
    a.memory.post_word(0, 1);
    stay_away(2'000'000);
    b.await(0, 1);
    EXPECT_EQ(ring.count(1, LinkCounter::bound_missed_by_host), 1U);
    EXPECT_EQ(ring.count(1, LinkCounter::bound_violations), 0U);
}

TEST(RingEngine, the_derived_bound_allows_for_what_was_queued_before) {
    TestRing ring({.timing = "scramnet-burst"});
    RingRank a(ring, 0), b(ring, 1);
    EXPECT_EQ(a.memory.bound_ns(), bound_ns(ring.config().timing, 2));
    for (std::uint32_t i = 1; i <= 500; ++i) a.memory.post_word(0, i);
    b.await(0, 500);
    EXPECT_EQ(ring.count(1, LinkCounter::bound_violations), 0U);
}

// ---- The transmit FIFO

// A thousand times slower, a block of 8 KiB takes 1.26 s on the wire, and much less to hand over,
// even on a host that stops us in between.

constexpr std::size_t kBlockWords = 2048;

std::vector<std::uint32_t> numbered_words() {
    std::vector<std::uint32_t> words(kBlockWords);
    for (std::uint32_t i = 0; i < kBlockWords; ++i) words[i] = i + 1;
    return words;
}

TEST(RingEngine, with_hold_off_nothing_is_lost_to_a_full_fifo) {
    TestRing ring({.timing = "scramnet-burst", .slower = 1000});
    RingRank a(ring, 0), b(ring, 1);
    const auto words = numbered_words();
    a.memory.write(0, words.data(), kBlockWords * 4);
    a.flush();
    EXPECT_EQ(std::memcmp(b.memory.data(0, kBlockWords * 4), words.data(), kBlockWords * 4), 0);
    EXPECT_GT(ring.rank_count(0, LinkCounter::held_off), 0U);
    EXPECT_EQ(ring.rank_count(0, LinkCounter::writes_lost_fifo), 0U);
}

TEST(RingEngine, without_hold_off_a_full_fifo_loses_writes_and_counts_them) {
    TestRing ring({.nodes = 3, .timing = "scramnet-burst,fifo=lose", .slower = 1000});
    RingRank a(ring, 0), b(ring, 1), c(ring, 2);
    const auto words = numbered_words();
    a.memory.write(0, words.data(), kBlockWords * 4);
    a.flush();
    const auto lost = ring.rank_count(0, LinkCounter::writes_lost_fifo);
    EXPECT_GT(lost, 0U);
    EXPECT_EQ(ring.rank_count(0, LinkCounter::held_off), 0U);
    std::size_t missing = 0;
    for (std::size_t i = 0; i < kBlockWords; ++i) {
        missing += b.memory.load(i * 4) == 0 ? 1U : 0U;
        ASSERT_EQ(b.memory.load(i * 4), c.memory.load(i * 4)) << "all banks lost the same";
        ASSERT_EQ(a.memory.load(i * 4), words[i]) << "the own bank has it";
    }
    EXPECT_EQ(missing, lost * kMaxRecordWords);
    EXPECT_EQ(ring.count(1, LinkCounter::writes_applied) + lost, kBlockWords / kMaxRecordWords);
}

TEST(RingEngine, a_full_fifo_is_no_room_until_the_wire_has_moved_on) {
    TestRing ring({.timing = "scramnet-burst", .slower = 1000});
    RingRank a(ring, 0, still()), b(ring, 1);
    const std::vector<std::byte> block(4096);
    EXPECT_TRUE(a.memory.room(4096));
    a.memory.write(4096, block.data(), 4096);  // 1024 words, which take 630 ms
    EXPECT_FALSE(a.memory.room(2048));
    EXPECT_EQ(ring.rank_count(0, LinkCounter::back_pressure), 1U);
    a.wait_for_room(2048);
}

// ---- Concurrent writers

/// Both nodes write one word while neither runs its engine; then both do.
void write_at_once(RingRank& a, RingRank& b) {
    a.memory.post_word(128, 1);
    b.memory.post_word(128, 2);
    a.flush();
    b.flush();
}

TEST(RingEngine, two_nodes_that_write_one_word_at_once_end_with_different_banks) {
    for (const char* timing : {"none", "scramnet-burst"}) {
        TestRing ring({.timing = timing});
        RingRank a(ring, 0, still()), b(ring, 1, still());
        a.memory.post_word(128, 1);
        b.memory.post_word(128, 2);
        const auto done = [&](unsigned n) {
            return ring.count(n, LinkCounter::writes_applied) == 1;
        };
        a.await([&] { return done(0); });
        b.await([&] { return done(1); });
        EXPECT_EQ(a.memory.load(128), 2U) << timing;
        EXPECT_EQ(b.memory.load(128), 1U) << timing;
    }
}

TEST(RingEngine, the_checker_names_both_writers) {
    TestRing ring({.timing = "scramnet-burst", .slower = 1000});
    RingRank a(ring, 0, checking()), b(ring, 1, checking());
    std::mutex mutex;
    std::vector<WriterRace> races;
    const auto report = [&](const WriterRace& race) {
        const std::lock_guard lock(mutex);
        races.push_back(race);
    };
    a.memory.engine().on_race(report);
    b.memory.engine().on_race(report);
    // At once means within a propagation; a host that stops us in between makes it two writes in
    // turn.
    for (int tries = 0; tries < 1000; ++tries) {
        write_at_once(a, b);
        const std::lock_guard lock(mutex);
        if (!races.empty()) break;
    }
    const std::lock_guard lock(mutex);
    ASSERT_FALSE(races.empty());
    EXPECT_EQ(races[0].offset, 128U);
    EXPECT_EQ(races[0].node, 1U) << "wrote second";
    EXPECT_EQ(races[0].other, 0U);
    EXPECT_GE(races[0].written_ns, races[0].other_written_ns);
    EXPECT_LT(races[0].written_ns, races[0].other_arrived_ns);
    EXPECT_EQ(ring.count(1, LinkCounter::races_found), 1U);
    EXPECT_EQ(ring.count(0, LinkCounter::races_found), 0U);
}

TEST(RingEngine, the_checker_says_nothing_of_writers_that_take_turns) {
    TestRing ring({.timing = "scramnet-burst"});
    RingRank a(ring, 0, checking()), b(ring, 1, checking());
    for (std::uint32_t i = 0; i < 100; ++i) {
        a.memory.post_word(128, 2 * i + 1);
        a.flush();
        b.memory.post_word(128, 2 * i + 2);
        b.flush();
    }
    EXPECT_EQ(ring.count(0, LinkCounter::races_found), 0U);
    EXPECT_EQ(ring.count(1, LinkCounter::races_found), 0U);
}

// ---- Faults of the wire

TEST(RingEngine, a_cut_cable_heals_over_the_second_ring) {
    const char* faults = "cut:cable=0,at=0ms";
    TestRing ring({.nodes = 3, .timing = "scramnet-burst"});
    RingRank a(ring, 0, faulty(faults, 3)), b(ring, 1, faulty(faults, 3)),
        c(ring, 2, faulty(faults, 3));
    for (std::uint32_t i = 1; i <= 100; ++i) {
        a.memory.post_word(0, i);
        a.flush();
    }
    b.await(0, 100);
    c.await(0, 100);
    EXPECT_TRUE(test::eventually([&] { return ring.count(1, LinkCounter::ring_switches) == 1; }));
    EXPECT_EQ(ring.count(1, LinkCounter::ring_breaks), 0U);
    EXPECT_GE(ring.count(1, LinkCounter::faults_injected), 1U);
}

/// Plays a scene whose first part must be over before its fault is mended, which happens after the
/// time that it is given (ms of the ring). It tells whether it was; if not, it is played once more
/// on a new ring with more time, for a host may stop us anywhere.
void play_in_time(const std::function<bool(unsigned)>& scene) {
    for (unsigned ms = 300; ms < 30'000; ms *= 4) {
        if (scene(ms) || ::testing::Test::HasFailure()) return;
    }
    FAIL() << "a host too slow for this test";
}

std::int64_t age_of(const TestRing& ring) {
    return now_ns() - ring.ring()->header().made_ns;
}

TEST(RingEngine, behind_a_segment_without_cables_nothing_arrives_until_it_is_mended) {
    play_in_time([](unsigned ms) {
        const std::string faults = fmt::format("cut:cable=0,ring=both,at=0ms,until={}ms", ms);
        const std::int64_t mended = ms * 1'000'000LL;
        TestRing ring({.nodes = 2, .timing = "scramnet-burst"});
        RingRank a(ring, 0, faulty(faults)), b(ring, 1, faulty(faults));
        a.memory.post_word(0, 1);
        a.flush();  // a lost one does not delay it
        const std::uint32_t seen = b.load(0);
        if (age_of(ring) >= mended) return false;
        EXPECT_EQ(seen, 0U);
        EXPECT_EQ(ring.count(1, LinkCounter::lost_on_wire), 1U);
        b.memory.post_word(4, 1);  // the other way
        a.await(4, 1);
        EXPECT_TRUE(test::eventually([&] { return ring.count(1, LinkCounter::ring_breaks) == 1; }));
        while (age_of(ring) <= mended + 1'000'000) std::this_thread::yield();
        a.memory.post_word(0, 2);
        b.await(0, 2);
        return true;
    });
}

TEST(RingEngine, a_bypassed_node_neither_sends_nor_receives) {
    play_in_time([](unsigned ms) {
        const std::string faults = fmt::format("bypass:node=1,at=0ms,until={}ms", ms);
        const std::int64_t mended = ms * 1'000'000LL;
        TestRing ring({.nodes = 3, .timing = "scramnet-burst"});
        RingRank a(ring, 0, faulty(faults, 3)), b(ring, 1, faulty(faults, 3)),
            c(ring, 2, faulty(faults, 3));
        a.memory.post_word(0, 1);
        b.memory.post_word(4, 1);
        a.flush();
        b.flush();
        const std::uint32_t seen[] = {c.load(0), b.load(0), c.load(4)};
        if (age_of(ring) >= mended) return false;
        EXPECT_EQ(seen[0], 1U);
        EXPECT_EQ(seen[1], 0U);
        EXPECT_EQ(seen[2], 0U);
        while (age_of(ring) <= mended + 1'000'000) std::this_thread::yield();
        a.memory.post_word(0, 2);
        b.await(0, 2);
        return true;
    });
}

TEST(RingEngine, lost_writes_are_counted_as_faults) {
    TestRing ring({.timing = "none"});
    RingRank a(ring, 0, faulty("seed=3;lose:share=50%")), b(ring, 1);
    for (std::uint32_t i = 1; i <= 1000; ++i) a.memory.post_word(i * 4, i);
    a.flush();
    const auto lost = ring.rank_count(0, LinkCounter::faults_injected);
    EXPECT_GT(lost, 400U);
    EXPECT_LT(lost, 600U);
    EXPECT_EQ(ring.count(1, LinkCounter::writes_applied), 1000 - lost);
}

// ---- Ranks that come back

constexpr std::int64_t kTickNs = 1'000'000;  // an engine acts each on what it knows of members

TEST(RingEngine, a_rank_that_writes_again_before_the_wire_has_come_to_its_death_is_heard) {
    TestRing ring({.timing = "scramnet-burst"});
    RingRank a(ring, 0, still());
    for (std::uint32_t incarnation = 1; incarnation <= 3; ++incarnation) {
        std::optional<RingRank> b;
        b.emplace(ring, 1U, still());
        b->memory.post_word(4, incarnation);
        a.await(4, incarnation);
        b.reset();
        stay_away(kTickNs);
        a.memory.engine().look_at_members();
        a.memory.progress();  // once: the death is due in the run after this
    }
}

TEST(RingEngine, a_rank_that_writes_again_before_anybody_acts_on_its_death_is_heard) {
    TestRing ring({.timing = "scramnet-burst", .slower = 1000});
    RingRank a(ring, 0, still());
    std::optional<RingRank> b;
    b.emplace(ring, 1U, still());
    b->memory.post_word(4, 1);
    a.await(4, 1);
    b.reset();
    stay_away(kTickNs);
    a.memory.engine().look_at_members();
    b.emplace(ring, 1U, still());
    for (std::uint32_t i = 1; i <= 8; ++i) b->memory.post_word(i * 4, 2);  // 5 ms of wire
    a.memory.progress();
    for (std::uint32_t i = 1; i <= 8; ++i) a.await(i * 4, 2);
}

TEST_F(RingEngineOfStillPair,
       what_a_rank_wrote_before_it_was_noticed_and_published_after_that_is_heard) {
    LogWriter raw(ring.ring()->log(1));
    const LogRecord before = word_record(4);
    stay_away(kTickNs);
    a.memory.engine().run_for_fifo();  // takes the model to this time
    const std::uint32_t value = 1;
    raw.append(before, &value);
    raw.append(word_record(8), &value);
    a.await(8, 1);
    EXPECT_EQ(a.memory.load(4), 1U);
    EXPECT_EQ(ring.count(0, LinkCounter::lost_on_wire), 0U);
}

/// It is on the wire, and the others apply it.
TEST(RingEngine, a_node_that_comes_applies_what_a_killed_rank_had_just_written) {
    TestRing ring({.nodes = 3, .timing = "scramnet-burst"});
    RingRank a(ring, 0, still());
    {
        const Membership killed(ring.ring(), {2, 2});
        ring.ring()->delivery().note_change();
        a.memory.progress();
        const std::uint32_t value = 1;
        LogWriter(ring.ring()->log(2)).append(word_record(4), &value);
    }
    RingRank comes(ring, 1, still());
    comes.await(4, 1);
    a.await(4, 1);
    EXPECT_EQ(ring.count(1, LinkCounter::lost_on_wire), 0U);
}

// ---- What others wrote is not trusted

TEST(RingEngine, a_record_that_cannot_be_is_refused_and_what_follows_is_applied) {
    TestRing ring({.timing = "none"});
    RingRank a(ring, 0, still()), b(ring, 1);
    LogWriter raw(ring.ring()->log(0));
    const std::uint32_t value = 1;
    raw.append(word_record(ring.config().bank_bytes()), &value);  // one word behind the bank
    b.await([&] { return ring.count(1, LinkCounter::records_refused) == 1; });
    raw.append(word_record(0), &value);
    b.await(0, 1);
}

TEST(RingEngine, random_bytes_in_a_log_crash_nobody) {
    TestRing ring({.timing = "scramnet-burst"});
    RingRank b(ring, 1);
    std::uint64_t state = 1;
    for (int round = 0; round < 200; ++round) {
        Membership other(ring.ring(), {0, 0});
        const LogArea log = ring.ring()->log(0);
        const auto scribble = [&state](void* at, std::size_t bytes) {
            auto* words = static_cast<std::atomic<std::uint64_t>*>(at);
            for (std::size_t i = 0; i < bytes / sizeof *words; ++i) {
                const std::uint64_t random = next_random(state);
                words[i].store(random >> (random % 64), std::memory_order_relaxed);
            }
        };
        scribble(&log.header(), sizeof(LogHeader));
        scribble(&log.unit(0), 4096);
        for (int run = 0; run < 20; ++run) b.memory.progress();
    }
    EXPECT_GT(ring.count(1, LinkCounter::records_refused), 0U);
}

// ---- What it notices

TEST(RingEngineDeathTest, checks_that_nothing_is_applied_early) {
    TestRing ring({.timing = "scramnet-burst"});
    RingRank a(ring, 0, still());
    RingEngine engine(a.member, {}, false);
    EXPECT_BROKEN_WHERE_CHECKED(PlantedBug::bring_early(engine));
}

TEST(EngineLockDeathTest, checks_that_who_lets_go_holds_it) {
    TestRing ring({});
    RingRank a(ring, 0, still());
    EngineLock lock(*ring.ring(), 0, 0, a.member.incarnation());
    EXPECT_BROKEN_WHERE_CHECKED(lock.unlock());
}

}  // namespace
}  // namespace rmem
