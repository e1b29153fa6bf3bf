// SPDX-License-Identifier: Apache-2.0
// ctest: check tsan
#include "rmem/link/ring/memory.hpp"

#include "rmem/ring/segment.hpp"
#include "tests/rmem/link/ring/ring_fixture.hpp"
#include "tests/support/patterns.hpp"

#include <unistd.h>

#include <array>
#include <barrier>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

namespace rmem {
namespace {

using test::checking;
using test::kPatienceNs;
using test::profile_case_name;
using test::RingRank;
using test::RingSpec;
using test::still;
using test::TestRing;
using test::write_blocks;

/// Every test runs on a ring without timing, with one-word packets and with variable packets. What
/// all links do is in "tests/support/link_conformance.hpp".
struct RingMemoryTest : ::testing::TestWithParam<std::string> {
    static RingSpec spec(unsigned nodes = 2, unsigned ranks = 0) {
        return {.nodes = nodes, .ranks = ranks, .timing = GetParam()};
    }
    static bool instant() { return GetParam() == "none"; }
    /// More than the log holds, where that takes no time.
    static unsigned blocks() { return instant() ? 3000 : 10; }
};
/// A rank of each of two nodes, with helpers, or moved by calls alone.
struct RingMemoryPair : RingMemoryTest {
    TestRing ring{spec()};
    RingRank a{ring, 0}, b{ring, 1};
};
struct RingMemoryStillPair : RingMemoryTest {
    TestRing ring{spec()};
    RingRank a{ring, 0, still()}, b{ring, 1, still()};
};
const auto kProfiles = ::testing::Values("none", "scramnet-burst", "scramnet-burst-plus", "gt200");
INSTANTIATE_TEST_SUITE_P(On, RingMemoryTest, kProfiles, profile_case_name);
INSTANTIATE_TEST_SUITE_P(On, RingMemoryPair, kProfiles, profile_case_name);
INSTANTIATE_TEST_SUITE_P(On, RingMemoryStillPair, kProfiles, profile_case_name);

TEST_P(RingMemoryPair, writes_of_any_size_arrive_whole) {
    std::uint32_t flag = 0;
    a.memory.write(256, nullptr, 0);
    EXPECT_EQ(ring.rank_count(0, LinkCounter::writes_sent), 0U);
    for (const std::size_t size : {1U, 3U, 4U, 5U, 8U, 63U, 64U, 100U, 1024U, 1025U, 5000U}) {
        const auto bytes = test::pattern(size, size);
        a.wait_for_room(size + 8);
        a.memory.write(256, bytes.data(), size);
        a.memory.post_word(0, ++flag);
        a.memory.commit();
        b.await(0, flag);
        EXPECT_EQ(test::first_difference({b.memory.data(256, size), size}, size), size);
    }
}

TEST_P(RingMemoryPair, what_was_composed_in_the_own_bank_is_published) {
    const auto bytes = test::pattern(200, 1);
    std::memcpy(a.memory.own(512), bytes.data(), 200);
    a.memory.publish(512, 200);
    a.memory.post_word(0, 1);
    b.await(0, 1);
    EXPECT_EQ(test::first_difference({b.memory.data(512, 200), 200}, 1), 200U);
}

TEST_P(RingMemoryPair, a_post_is_one_write_where_the_wire_takes_no_time_and_two_where_it_does) {
    std::uint32_t flag = 0;
    for (const std::size_t count : {std::size_t{1}, std::size_t{2}, RingMemory::kMaxPostWords}) {
        const std::size_t size = (count - 1) * 4;
        const auto bytes = test::pattern(size, 3);
        std::vector<std::uint32_t> words(count, ++flag);
        if (size != 0) std::memcpy(&words[1], bytes.data(), size);
        const std::uint64_t before = ring.rank_count(0, LinkCounter::writes_sent);
        a.wait_for_room(size + 4);
        a.memory.post(128, words.data(), count);
        a.memory.commit();
        b.await(128, flag);
        EXPECT_EQ(test::first_difference({b.memory.data(132, size), size}, 3), size);
        EXPECT_EQ(ring.rank_count(0, LinkCounter::writes_sent) - before,
                  instant() || size == 0 ? 1U : 2U);
    }
}

/// The bank is read while others fill it: by the writer, an engine, or both.
TEST_P(RingMemoryPair, a_reader_that_sees_the_flag_of_a_post_sees_what_lies_behind_it) {
    constexpr std::uint32_t kMany = 5'000;
    b.memory.keep_applying(true);
    std::jthread posting([&] {
        std::array<std::uint32_t, RingMemory::kMaxPostWords> message{};
        for (std::uint32_t i = 1; i <= kMany; ++i) {
            message.fill(i);
            a.wait_for_room(sizeof message);
            a.memory.post(128, message.data(), 1 + i % message.size());
            a.memory.commit();
        }
    });
    const auto word = [&](std::size_t at) { return b.memory.load(at); };
    for (std::uint32_t flag = 0; flag < kMany;) {
        flag = word(128);
        const std::size_t count = 1 + flag % RingMemory::kMaxPostWords;
        for (std::size_t i = 1; i < count; ++i) ASSERT_GE(word(128 + i * 4), flag);
    }
}

TEST_P(RingMemoryPair, a_lazy_write_arrives_without_a_commit) {
    a.memory.write_lazy(4, 5);
    b.await(4, 5);
}

TEST_P(RingMemoryPair, the_end_of_a_word_that_is_written_in_part_is_the_own_banks) {
    a.memory.post_word(8, 0x44332211);
    a.memory.write(8, "\xaa", 1);
    a.memory.commit();
    b.await(8, 0x443322aa);
}

TEST_P(RingMemoryTest, flush_gives_up_at_its_deadline) {
    TestRing ring(spec());
    RingRank a(ring, 0), b(ring, 1, still());  // which nobody moves
    a.memory.post_word(0, 1);
    EXPECT_FALSE(a.memory.flush(Deadline::in(5'000'000)));
    EXPECT_TRUE(b.memory.flush(Deadline::in(kPatienceNs)));
    b.await(0, 1);
    a.flush();
    EXPECT_EQ(ring.rank_count(0, LinkCounter::flushes), 1U) << "those that have succeeded";
}

TEST_P(RingMemoryStillPair, a_full_log_is_back_pressure_until_the_slowest_node_goes_on) {
    const std::vector<std::byte> bytes(1024);
    std::uint32_t sent = 0;
    // Where there is a FIFO it fills now and then, and empties when the own node moves on: the log
    // is full when that does not help, however often there was time for it.
    const auto room_in_time = [&] {
        for (int tries = 0; tries < 200; ++tries) {
            a.memory.progress();
            if (a.memory.room(1024)) return true;
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        return false;
    };
    while (room_in_time()) {
        a.memory.write(1024, bytes.data(), 1024);
        ++sent;
    }
    EXPECT_FALSE(a.memory.room(1024));
    EXPECT_GT(sent, 500U) << "about a MiB fits";
    EXPECT_GT(ring.rank_count(0, LinkCounter::back_pressure), 0U);
    EXPECT_EQ(ring.count(1, LinkCounter::writes_applied), 0U);
    b.await([&] {
        a.memory.progress();
        return ring.count(1, LinkCounter::writes_applied) >= sent;
    });
    a.wait_for_room(1024);
    a.memory.post_word(0, 1);
    b.await(0, 1);
}

TEST_P(RingMemoryTest, a_write_larger_than_the_log_arrives) {
    RingSpec large = spec();
    large.user_bytes = 4 << 20;
    TestRing ring(large);
    RingRank a(ring, 0), b(ring, 1);
    const auto bytes = test::pattern(2 << 20, 3);
    a.wait_for_room(bytes.size());
    a.memory.write(4096, bytes.data(), bytes.size());
    a.memory.post_word(0, 1);
    b.await(0, 1);
    EXPECT_EQ(test::first_difference({b.memory.data(4096, bytes.size()), bytes.size()}, 3),
              bytes.size());
}

TEST_P(RingMemoryTest, a_sleeping_rank_is_woken_by_a_write) {
    TestRing ring(spec());
    RingRank a(ring, 0, still());
    for (std::uint32_t round = 1; round <= 20; ++round) {
        std::thread sleeper([&] {
            RingRank b(ring, 1, still());
            b.await(0, round);
        });
        while (ring.ring()->attention()[1].load() == 0) std::this_thread::yield();
        a.memory.post_word(0, round);
        // Nobody but the sleeper moves node 1.
        sleeper.join();
    }
}

TEST_P(RingMemoryTest, a_computing_ranks_bank_is_kept_by_its_helper) {
    TestRing ring(spec());
    RingRank a(ring, 0), b(ring, 1, checking());
    a.memory.post_word(0, 1);
    EXPECT_TRUE(test::eventually([&] { return b.memory.load(0) == 1; }));
    EXPECT_TRUE(test::eventually([&] { return ring.count(1, LinkCounter::engine_takeovers) > 0; }));
}

TEST_P(RingMemoryStillPair, with_write_me_last_an_own_write_shows_when_it_has_come_round) {
    a.memory.set_write_me_last(true);
    a.memory.post_word(0, 1);
    EXPECT_EQ(a.memory.load(0), 0U);
    b.await(0, 1);
    EXPECT_EQ(a.memory.load(0), 0U) << "nobody has run this node's engine";
    a.await(0, 1);
    a.memory.set_write_me_last(false);
    a.memory.post_word(0, 2);
    EXPECT_EQ(a.memory.load(0), 2U);
}

TEST_P(RingMemoryTest, with_write_me_last_an_own_write_waits_for_a_node_that_is_late) {
    constexpr std::int64_t kLongNs = 2'000'000;  // the wire has carried it by then
    TestRing ring(spec(3));
    RingRank a(ring, 0, still()), b(ring, 1, still()), late(ring, 2, still());
    a.memory.set_write_me_last(true);
    const SleepingEngines sleeping(*ring.ring());
    for (std::uint32_t i = 1; i <= 2; ++i) {
        sleeping.lie_down(2, SleepingEngines::State::resting);  // as a thread of its would
        a.memory.post_word(0, i);
        const auto end = Deadline::in(kLongNs);
        while (!end.passed(now_ns())) {
            a.memory.progress();
            b.memory.progress();
        }
        EXPECT_EQ(a.memory.load(0), i - 1);
        EXPECT_FALSE(sleeping.rise(2)) << "it was woken";
        late.await(0, i);
        a.await(0, i);
    }
}

TEST_P(RingMemoryPair, the_data_filter_lets_marked_words_pass) {
    a.memory.interrupts().mark(64, 4);
    b.memory.interrupts().watch(64, 4, Trigger::marked);
    a.memory.set_data_filter(true);
    a.memory.post_word(64, 0);  // as it is
    a.memory.post_word(68, 0);  // filtered
    a.flush();
    const auto interrupt = b.memory.interrupts().take();
    ASSERT_TRUE(interrupt.has_value());
    EXPECT_EQ(interrupt->offset, 64U);
    EXPECT_EQ(interrupt->origin, 0U);
    EXPECT_EQ(ring.count(1, LinkCounter::writes_applied), 1U);
}

TEST_P(RingMemoryTest, two_ranks_of_one_node_share_its_bank_and_its_engine) {
    TestRing ring(spec(2, 4));
    std::barrier together(4);
    std::vector<std::thread> threads;
    for (unsigned r = 0; r < 4; ++r) {
        threads.emplace_back([&, r] {
            RingRank me(ring, r);
            together.arrive_and_wait();
            for (std::uint32_t i = 1; i <= 500; ++i) {
                me.wait_for_room(4);
                me.memory.post_word(r * 64, i);
            }
            for (unsigned other = 0; other < 4; ++other) me.await(other * 64, 500);
            together.arrive_and_wait();
        });
    }
    for (auto& thread : threads) thread.join();
    for (unsigned n = 0; n < 2; ++n) {
        EXPECT_EQ(ring.count(n, LinkCounter::writes_applied), 2U * 500)
            << "each once, by one of two";
        EXPECT_EQ(ring.count(n, LinkCounter::lost_on_wire), 0U);
        if (instant()) continue;  // a sample
        EXPECT_EQ(ring.slot(n).propagation.count(), 2U * 500);
    }
}

TEST_P(RingMemoryTest, a_node_that_joins_late_finds_the_memory_as_the_others_have_it) {
    TestRing ring(spec(3));
    RingRank a(ring, 0);
    write_blocks(a, blocks());
    a.memory.post_word(0, 1);
    RingRank b(ring, 1);
    a.memory.post_word(4, 2);
    RingRank c(ring, 2);
    for (RingRank* late : {&b, &c}) {
        late->await(0, 1);
        late->await(4, 2);
    }
}

TEST_P(RingMemoryTest, a_node_that_joins_takes_memory_for_what_was_touched_alone) {
    RingSpec wide = spec(2);
    wide.user_bytes = std::size_t{16} << 20;
    TestRing ring(wide);
    const std::size_t middle = wide.user_bytes / 2;
    RingRank a(ring, 0);
    a.memory.post_word(middle, 7);
    { RingRank b(ring, 1); }
    const Segment& segment = ring.ring()->segment();
    const auto begin = static_cast<std::size_t>(ring.ring()->bank(1) - segment.data());
    std::size_t bytes = 0;
    for (std::size_t at = begin; at < begin + wide.user_bytes;) {
        const std::size_t from = std::min(segment.next_touched(at), begin + wide.user_bytes);
        at = std::min(segment.next_untouched(from), begin + wide.user_bytes);
        bytes += at - from;
    }
    EXPECT_GE(bytes, kWordBytes);
    EXPECT_LE(bytes, std::size_t{256} << 10) << "of which a page at the most was written";
    EXPECT_EQ(RingRank(ring, 1).memory.load(middle), 7U);
}

TEST_P(RingMemoryTest, a_node_that_comes_back_has_what_it_wrote_before_it_was_killed) {
    TestRing ring(spec());
    RingRank b(ring, 1, checking(still()));  // which nobody moves, nor delivers to
    test::Child killed([&] {
        RingRank a(ring.open(), {0, 0}, {});
        a.memory.post_word(0, 1);
        a.memory.post_word(0, 2);
        const std::vector<std::byte> block(256, std::byte{3});
        a.memory.write(64, block.data(), block.size());
        ::kill(::getpid(), SIGKILL);
    });
    EXPECT_EQ(killed.wait(), -SIGKILL);
    RingRank a(ring, 0);
    EXPECT_EQ(a.memory.load(0), 2U);
    EXPECT_EQ(a.memory.load(64), 0x03030303U);
    a.memory.post_word(0, 3);
    b.await(0, 3);
    EXPECT_EQ(b.memory.load(316), 0x03030303U);
    a.flush();
    EXPECT_EQ(a.memory.load(0), 3U) << "what came round late";
}

TEST_P(RingMemoryTest, what_two_ranks_of_a_node_wrote_before_they_were_killed_keeps_its_order) {
    TestRing ring(spec(2, 4));
    RingRank b(ring, 1, checking(still()));  // which nobody moves, nor delivers to
    test::Child killed([&] {
        const auto mapping = ring.open();
        RingRank first(mapping, {2, 0}, {}), second(mapping, {0, 0}, {});
        first.memory.post_word(0, 1);
        second.memory.post_word(0, 2);
        first.memory.post_word(4, 3);
        ::kill(::getpid(), SIGKILL);
    });
    EXPECT_EQ(killed.wait(), -SIGKILL);
    RingRank a(ring, 0);
    EXPECT_EQ(a.memory.load(0), 2U);
    EXPECT_EQ(a.memory.load(4), 3U);
    b.await(4, 3);
    // Without timing each rank's log is applied by itself.
    if (!instant()) {
        EXPECT_EQ(b.memory.load(0), 2U);
    }
}

/// Taken for dead it would never be waited for again.
TEST(RingMemory, a_flush_waits_for_a_node_that_is_about_to_join) {
    TestRing ring({.timing = "scramnet-burst"});
    RingRank a(ring, 0);
    Membership comes(ring.ring(), {1, 1});
    ring.slot(1).present = 1;  // as while its bank is copied…
    ring.ring()->rank(1).wants_each_write = 1;
    ring.ring()->delivery().note_change();
    a.memory.post_word(64, 1);
    EXPECT_FALSE(a.memory.flush(Deadline::in(20'000'000)));
    RingMemory memory(comes, {});
    EXPECT_TRUE(a.memory.flush(Deadline::in(test::kPatienceNs)));
    EXPECT_EQ(memory.load(64), 1U);
}

}  // namespace
}  // namespace rmem
