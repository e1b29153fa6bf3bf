// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
#include "rmem/link/ring/delivery.hpp"

#include "rmem/link/ring/memory.hpp"
#include "rmem/node.hpp"
#include "rmem/ring/applied.hpp"
#include "tests/rmem/link/ring/ring_fixture.hpp"
#include "tests/support/broken.hpp"
#include "tests/support/patterns.hpp"

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

namespace rmem {

struct PlantedBug {
    static void publish_nothing(RingDelivery& delivery) { delivery.publish(0); }
};

namespace {

using test::allow_delivery;
using test::checking;
using test::eventually;
using test::faulty;
using test::in_bank;
using test::RingRank;
using test::still;
using test::TestRing;

const LogHeader& log_of(const TestRing& ring, unsigned rank) {
    return ring.ring()->log(rank).header();
}

bool delivers(const TestRing& ring, unsigned rank) {
    return log_of(ring, rank).deliverer.load() != 0;
}

/// Ranks of nodes on a wire that takes no time.
struct RingDeliveryOfPair : ::testing::Test {
    TestRing ring{{.nodes = 2}};
    RingRank a{ring, 0}, b{ring, 1};
};
struct RingDeliveryOfThree : ::testing::Test {
    TestRing ring{{.nodes = 3}};
    RingRank a{ring, 0}, b{ring, 1}, c{ring, 2};
};
using RingDeliveryOfStillPair = test::StillPair;

TEST_F(RingDeliveryOfThree, a_block_is_in_all_banks_when_the_call_is_over) {
    for (const std::size_t size : {4U, 8U, 60U, 64U, 1'024U, 1'028U, 20'000U}) {
        const auto bytes = test::pattern(size, size);
        a.wait_for_room(size);
        a.memory.write(256, bytes.data(), size);
        for (const unsigned node : {1U, 2U}) {
            EXPECT_EQ(test::first_difference({ring.ring()->bank(node) + 256, size}, size), size);
        }
    }
}

TEST_F(RingDeliveryOfPair, a_flush_of_delivered_writes_waits_for_nobody) {
    a.memory.post_word(0, 1);
    a.memory.post_word(0, 2);
    EXPECT_TRUE(a.memory.flush(Deadline::now()));
}

TEST_F(RingDeliveryOfPair, no_engine_takes_what_is_delivered) {
    for (std::uint32_t i = 1; i <= 5'000; ++i) {
        a.memory.post_word(0, i);
        static_cast<void>(b.memory.engine().run());
        EXPECT_EQ(b.memory.load(0), i);
    }
    EXPECT_TRUE(eventually([&] {
        b.memory.engine().run();
        return b.memory.engine().is_idle();
    }));
    EXPECT_EQ(ring.slot(1).applied[0].load(), 0U) << "by its engine";
}

TEST_F(RingDeliveryOfThree, counts_of_other_nodes_are_exact_after_a_flush) {
    constexpr std::uint64_t kWrites = 3 * RingDelivery::kCounted + 5;
    for (std::uint32_t i = 1; i <= kWrites; ++i) a.memory.post_word(0, i);
    const std::uint64_t before = ring.count(1, LinkCounter::writes_applied);
    EXPECT_LE(before, kWrites);
    EXPECT_GE(before, kWrites - RingDelivery::kCounted);
    a.flush();
    for (const unsigned node : {1U, 2U}) {
        EXPECT_EQ(ring.count(node, LinkCounter::writes_applied), kWrites);
        EXPECT_EQ(ring.count(node, LinkCounter::bytes_applied), kWrites * kWordBytes);
        EXPECT_GE(ring.slot(node).propagation.count(), 3U) << "a sample";
    }
    EXPECT_EQ(ring.count(0, LinkCounter::writes_applied), 0U) << "own ones";
}

TEST(RingDelivery, with_a_bound_each_write_is_measured) {
    TestRing ring({.nodes = 2, .bound_ns = 1});  // that nothing keeps
    RingRank a(ring, 0), b(ring, 1);
    for (std::uint32_t i = 1; i <= 100; ++i) a.memory.post_word(0, i);
    EXPECT_EQ(ring.slot(1).propagation.count(), 100U);
    EXPECT_GT(ring.count(1, LinkCounter::bound_missed_by_host), 50U);
}

TEST(RingDelivery, a_program_that_is_to_be_told_of_violations_is_told) {
    TestRing ring({.nodes = 2, .bound_ns = 1});
    RingRank a(ring, 0), b(ring, 1);
    std::atomic<unsigned> told{0};
    b.memory.on_bound_violation([&](const BoundViolation& violation) {
        EXPECT_EQ(violation.origin, 0U);
        ++told;
    });
    for (std::uint32_t i = 1; i <= 10; ++i) a.memory.post_word(0, i);
    b.await([&] { return told == 10; });
    b.memory.on_bound_violation({});
    a.flush();
    a.memory.post_word(0, 11);
    EXPECT_TRUE(delivers(ring, 0)) << "nobody wants to know any more";
}

TEST_F(RingDeliveryOfPair, an_own_write_with_write_me_last_is_in_the_own_bank_too) {
    a.memory.set_write_me_last(true);
    a.memory.post_word(0, 7);
    EXPECT_EQ(in_bank(ring, 0, 0), 7U);
    EXPECT_EQ(in_bank(ring, 1, 0), 7U);
}

TEST_F(RingDeliveryOfThree, a_marked_write_raises_interrupts_where_it_is_delivered) {
    b.memory.interrupts().watch(64, 4, Trigger::marked);
    c.memory.interrupts().watch(68, 4, Trigger::any_write);
    a.memory.interrupts().mark(64, 4);
    a.memory.post_word(64, 5);
    a.memory.post_word(68, 6);
    const auto at_b = b.memory.interrupts().take();
    const auto at_c = c.memory.interrupts().take();
    ASSERT_TRUE(at_b && at_c) << "at once: nobody has to run anything";
    EXPECT_EQ(at_b->value, 5U);
    EXPECT_EQ(at_b->origin, 0U);
    EXPECT_EQ(at_c->offset, 68U);
    EXPECT_FALSE(b.memory.interrupts().take() || c.memory.interrupts().take());
}

// ---- Ranks that want each write

TEST(RingDelivery, a_rank_delivers_again_when_the_one_that_wanted_each_write_has_left) {
    TestRing ring({.nodes = 3});
    RingRank a(ring, 0), b(ring, 1);
    a.memory.post_word(0, 1);
    EXPECT_TRUE(delivers(ring, 0));
    {
        RingRank checks(ring, 2, checking());
        a.memory.post_word(0, 2);
        EXPECT_FALSE(delivers(ring, 0));
        checks.await(0, 2);
        b.await(0, 2);
        a.flush();
    }
    b.await([&] {
        a.memory.post_word(4, a.memory.load(4) + 1);
        return delivers(ring, 0);
    });
    a.memory.post_word(0, 3);
    EXPECT_EQ(in_bank(ring, 1, 0), 3U);
}

TEST(RingDelivery, a_rank_with_faults_of_its_own_leaves_its_writes_to_the_engines) {
    TestRing ring({.nodes = 2});
    RingRank a(ring, 0, faulty("delay:node=0,by=1ms")), b(ring, 1);
    b.memory.post_word(4, 1);
    EXPECT_TRUE(delivers(ring, 1)) << "that it has faults is nothing to others";
    a.memory.post_word(0, 1);
    EXPECT_FALSE(delivers(ring, 0));
    b.await(0, 1);
}

// ---- On a wire that takes time

TEST(RingDelivery, a_write_waits_until_it_is_due_where_a_program_loads_plainly) {
    TestRing ring({.nodes = 3, .timing = "scramnet-burst"});
    RingRank a(ring, 0, still()), b(ring, 1, still()), c(ring, 2, still());
    ring.ring()->rank(1).needs_delivery = 1;
    allow_delivery(ring);
    unsigned brought = 0;
    for (std::uint32_t i = 1; i <= 100; ++i) {
        const std::int64_t began = now_ns();
        a.memory.post_word(64, i);
        const std::int64_t took = now_ns() - began;
        // Else its time for waiting was over: the host was away.
        if (in_bank(ring, 1, 64) != i || in_bank(ring, 2, 64) != i) continue;
        EXPECT_GE(took, 546) << "the wire's time";
        ++brought;
    }
    EXPECT_GT(brought, 0U) << "nobody else has run anything";
    EXPECT_FALSE(delivers(ring, 0)) << "it claims its log for the time of a write only";
    EXPECT_EQ(ring.count(1, LinkCounter::writes_applied), ring.slot(1).propagation.count());
}

TEST(RingDelivery, a_program_that_asks_for_its_bank_again_changes_nothing) {
    TestRing ring({.nodes = 2, .timing = "scramnet-burst"});
    RingRank a(ring, 0), b(ring, 1);
    b.memory.keep_applying(true);
    const std::uint32_t changes = ring.ring()->delivery().changes;
    for (int i = 0; i < 10; ++i) b.memory.keep_applying(true);
    EXPECT_EQ(ring.ring()->delivery().changes, changes);
    b.memory.keep_applying(false);
    EXPECT_NE(ring.ring()->delivery().changes, changes);
}

TEST_F(RingDeliveryOfStillPair, a_stream_waits_for_a_share_of_its_writes_only) {
    constexpr std::uint32_t kWrites = 500;  // less than the FIFO holds
    const std::int64_t began = now_ns();
    for (std::uint32_t i = 1; i <= kWrites; ++i) a.memory.post_word(68, i);
    // One that takes half of the wire's time, as under a sanitizer, can always be waited for.
    const bool is_short = (now_ns() - began) / kWrites < 200;
    b.await(68, kWrites);
    ring.ring()->rank(1).needs_delivery = 1;
    allow_delivery(ring);
    unsigned brought = 0;
    for (std::uint32_t i = 1; i <= kWrites; ++i) {
        a.memory.post_word(64, i);
        if (in_bank(ring, 1, 64) == i) ++brought;
    }
    EXPECT_GT(brought, 0U);
    if (is_short) {
        EXPECT_LT(brought, kWrites);
    }
    b.await(64, kWrites);
}

TEST_F(RingDeliveryOfStillPair,
       an_engine_leaves_a_claimed_log_to_its_writer_and_takes_it_when_that_lets_go) {
    auto& claim = ring.ring()->log(0).header().deliverer;
    claim = a.member.incarnation();
    a.memory.post_word(64, 1);
    a.memory.post_word(68, 2);
    const std::int64_t end = now_ns() + 2'000'000;
    while (now_ns() < end) b.memory.progress();
    EXPECT_EQ(in_bank(ring, 1, 64), 0U);
    claim = 0;
    b.await(68, 2);
    EXPECT_EQ(in_bank(ring, 1, 64), 1U);
    EXPECT_EQ(ring.count(1, LinkCounter::lost_on_wire), 0U);
    EXPECT_EQ(ring.count(1, LinkCounter::writes_applied), 2U);
}

/// As of a process that is stopped while it brings a write: it may store into the new bank.
TEST(RingDelivery, a_node_that_comes_gives_who_has_claimed_a_log_time_to_let_go) {
    TestRing ring({.nodes = 2, .timing = "scramnet-burst"});
    RingRank a(ring, 0, still());
    auto& claim = ring.ring()->log(0).header().deliverer;
    claim = a.member.incarnation();
    const std::int64_t began = now_ns();
    RingRank b(ring, 1, still());
    EXPECT_GE(now_ns() - began, 10'000'000);
    claim = 0;
    a.memory.post_word(64, 1);
    b.await(64, 1);
}

TEST(RingDelivery, words_keep_their_order_while_writer_and_engine_take_turns) {
    TestRing ring({.nodes = 3, .timing = "scramnet-burst"});
    RingRank a(ring, 0), b(ring, 1), c(ring, 2);
    b.memory.keep_applying(true);
    std::atomic<bool> ends{false};
    std::thread reader([&] {
        std::uint32_t seen = 0;
        while (!ends) {
            const std::uint32_t flag = in_bank(ring, 1, 68);
            const std::uint32_t data = in_bank(ring, 1, 64);
            EXPECT_GE(flag, seen);
            EXPECT_GE(data, flag) << "a flag came before its data";
            seen = flag;
        }
    });
    std::thread runner([&] {
        while (!ends) c.memory.progress();
    });
    for (std::uint32_t i = 1; i <= 5'000; ++i) {
        a.wait_for_room(2 * kWordBytes);
        a.memory.post_word(64, i);
        a.memory.post_word(68, i);
        if (i % 7 == 0) a.memory.progress();
        if (i % 64 == 0) std::this_thread::yield();
    }
    EXPECT_TRUE(eventually([&] { return in_bank(ring, 1, 68) == 5'000; }));
    EXPECT_TRUE(eventually([&] { return in_bank(ring, 2, 68) == 5'000; }));
    ends = true;
    reader.join();
    runner.join();
}

TEST_F(RingDeliveryOfStillPair, an_interrupt_is_raised_by_the_writer_where_nobody_runs_the_engine) {
    b.memory.interrupts().watch(64, 4, Trigger::any_write);
    ring.ring()->rank(1).needs_delivery = 1;
    allow_delivery(ring);
    unsigned raised = 0;
    for (std::uint32_t i = 1; i <= 20; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        a.memory.post_word(64, i);
        const auto interrupt = b.memory.interrupts().take();
        if (!interrupt) continue;  // the host was away
        EXPECT_EQ(interrupt->value, i);
        EXPECT_EQ(interrupt->origin, 0U);
        ++raised;
    }
    EXPECT_GT(raised, 0U);
}

TEST(RingDelivery, a_program_with_a_descriptor_needs_delivery) {
    TestRing ring({.nodes = 2, .timing = "scramnet-burst"});
    Node b = ring.join(1);
    EXPECT_EQ(ring.ring()->rank(1).needs_delivery.load(), 0U);
    static_cast<void>(b.interrupt_fd());
    EXPECT_EQ(ring.ring()->rank(1).needs_delivery.load(), 1U);
}

TEST_F(RingDeliveryOfPair, the_time_of_a_write_is_known_where_a_recorder_asks) {
    LogReader log(ring.ring()->log(0), LogReader::Role::observer);
    ring.ring()->delivery().recorders.fetch_add(1);
    ring.ring()->delivery().note_change();
    log.skip_all();
    const std::int64_t before = now_ns();
    a.memory.post_word(0, 2);  // the first one after that
    LogReader::Entry entry;
    ASSERT_EQ(log.peek(entry), LogReader::Found::record);
    EXPECT_GE(entry.record.written_ns, before);
    EXPECT_EQ(entry.record.flags & LogRecord::kUntimed, 0U);
}

// ---- Coming and going

/// A stream in which word i of a table always follows the ones before it.
class Stream {
public:
    static constexpr std::uint32_t kWords = 61;  // no power of two: each place gets each number

    explicit Stream(RingRank& from) : from_(from), thread_([this] { run(); }) {}
    ~Stream() { end(); }
    void end() {
        ends_ = true;
        if (thread_.joinable()) thread_.join();
    }
    std::uint32_t written() const { return written_; }

private:
    void run() {
        for (std::uint32_t i = 1; !ends_; ++i) {
            from_.wait_for_room(kWordBytes);
            from_.memory.post_word(i % kWords * kWordBytes, i);
            written_ = i;
        }
    }

    RingRank& from_;
    std::atomic<bool> ends_{false};
    std::atomic<std::uint32_t> written_{0};
    std::thread thread_;
};

TEST(RingDelivery, nodes_that_join_in_a_stream_miss_nothing) {
    TestRing ring({.nodes = 3});
    RingRank a(ring, 0), b(ring, 1);
    Stream stream(a);
    for (unsigned round = 0; round < 60; ++round) {
        const std::uint32_t before = stream.written();
        RingRank joins(ring, 2);
        std::uint32_t newest = 0;
        for (std::uint32_t w = 0; w < Stream::kWords; ++w) {
            newest = std::max(newest, joins.memory.load(w * kWordBytes));
        }
        EXPECT_GE(newest, before) << "what was written before it came";
        joins.await([&] {
            return joins.memory.load(0) > newest || stream.written() < newest + Stream::kWords;
        });
        const std::uint32_t then = stream.written();
        joins.await([&] { return joins.memory.load(then % Stream::kWords * kWordBytes) >= then; });
    }
    RingRank stays(ring, 2);
    stream.end();
    a.flush();
    for (std::uint32_t w = 0; w < Stream::kWords; ++w) {
        EXPECT_EQ(in_bank(ring, 2, w * kWordBytes), in_bank(ring, 0, w * kWordBytes)) << w;
        EXPECT_EQ(in_bank(ring, 1, w * kWordBytes), in_bank(ring, 0, w * kWordBytes)) << w;
    }
}

TEST(RingDelivery, words_never_go_back_while_ranks_come_and_go) {
    TestRing ring({.nodes = 3});
    RingRank a(ring, 0), b(ring, 1);
    std::atomic<bool> ends{false};
    std::thread watcher([&] {
        std::vector<std::uint32_t> seen(Stream::kWords);
        while (!ends) {
            for (std::uint32_t w = 0; w < Stream::kWords; ++w) {
                const std::uint32_t now = in_bank(ring, 1, w * kWordBytes);
                EXPECT_GE(now, seen[w]);
                seen[w] = now;
            }
        }
    });
    {
        Stream stream(a);
        for (unsigned round = 0; round < 60; ++round) {
            const RingRank comes(ring, 2, round % 2 == 0 ? RingOptions{} : checking());
            const std::uint32_t then = stream.written();
            b.await([&] { return stream.written() > then + 100; });
        }
    }
    ends = true;
    watcher.join();
}

TEST(RingDelivery, a_rank_that_comes_back_goes_on_where_it_stopped) {
    TestRing ring({.nodes = 2});
    RingRank b(ring, 1);
    for (std::uint32_t round = 1; round <= 20; ++round) {
        RingRank a(ring, 0);
        EXPECT_EQ(a.memory.load(0), round - 1);
        a.memory.post_word(0, round);
        a.memory.post_word(4, round);
        b.await(4, round);
        EXPECT_EQ(b.memory.load(0), round);
    }
}

constexpr std::uint32_t kFilled = 256;

/// Writes so often that the log is used more than once, and nobody finds the words there.
void fill(RingRank& a, const std::function<void()>& then) {
    for (std::uint32_t i = 1; i <= 100'000; ++i, then()) {
        a.wait_for_room(kWordBytes);
        a.memory.post_word(i % kFilled * kWordBytes, i);
    }
}
void expect_all_where_one_comes(const TestRing& ring) {
    RingRank comes(ring, 2);
    for (std::size_t w = 0; w < kFilled; ++w) {
        EXPECT_EQ(comes.memory.load(w * kWordBytes), in_bank(ring, 0, w * kWordBytes)) << w;
    }
}

TEST(RingDelivery, a_node_that_was_left_before_others_delivered_has_what_they_wrote) {
    TestRing ring({.nodes = 3});
    {
        RingRank a(ring, 0), checks(ring, 1, checking());
        std::optional<RingRank> leaves;
        leaves.emplace(ring, 2);
        leaves.reset();
        fill(a, [&] { checks.memory.progress(); });
        a.flush();
        EXPECT_FALSE(delivers(ring, 0));
        a.memory.post_word(0, 1);
    }
    {
        RingRank a(ring, 0);
        a.memory.post_word(4, 1);
        EXPECT_TRUE(delivers(ring, 0));
    }
    expect_all_where_one_comes(ring);
}

TEST(RingDelivery, a_node_that_comes_when_all_others_have_left_has_what_they_wrote) {
    TestRing ring({.nodes = 3});
    {
        RingRank a(ring, 0);
        fill(a, [] {});
    }
    expect_all_where_one_comes(ring);
}

TEST(RingDelivery, a_check_finds_a_write_that_is_published_twice) {
    TestRing ring({.nodes = 2});
    RingRank a(ring, 0);
    RingDelivery delivery(a.member, a.memory.interrupts(), true);
    EXPECT_BROKEN_WHERE_CHECKED(PlantedBug::publish_nothing(delivery));
}

}  // namespace
}  // namespace rmem
