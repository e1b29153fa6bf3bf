// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
#include "rmem/link/ring/engine_thread.hpp"

#include "rmem/ring/applied.hpp"
#include "tests/rmem/link/ring/ring_fixture.hpp"

#include <chrono>
#include <thread>

namespace rmem {
namespace {

using test::eventually;
using test::kPatienceNs;
using test::RingRank;
using test::TestRing;

struct ThreeNodes {
    static constexpr std::size_t kUser = 65536;
    explicit ThreeNodes(const std::string& timing)
        : ring({.nodes = 3, .timing = timing, .user_bytes = kUser, .system_bytes = 4096}) {}
    TestRing ring;
    RingRank a{ring, 0}, b{ring, 1}, c{ring, 2};

    std::uint32_t in_bank(unsigned node, std::size_t offset) const {
        return test::in_bank(ring, node, offset);
    }
    bool all_sleep() const {
        return eventually([&] { return ring.ring()->delivery().engines_asleep.load() == 3; });
    }
    void write(std::size_t offset, std::uint32_t value) {
        a.wait_for_room(4);
        a.memory.post_word(offset, value);
        a.memory.commit();
    }
};

/// Each test runs on a ring without timing, and on one with.
struct RingEngineThreadTest : ::testing::TestWithParam<std::string>, ThreeNodes {
    RingEngineThreadTest() : ThreeNodes(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(On, RingEngineThreadTest, ::testing::Values("none", "scramnet-burst"),
                         test::profile_case_name);

// Nobody calls but the writer: each bank is kept by its thread, from sleep to sleep.
TEST_P(RingEngineThreadTest, the_first_write_wakes_them_and_they_sleep_again) {
    for (std::uint32_t round = 1; round <= 3; ++round) {
        ASSERT_TRUE(all_sleep());
        write(64, round);
        for (const unsigned node : {1U, 2U}) {
            EXPECT_TRUE(eventually([&] { return in_bank(node, 64) == round; })) << node;
        }
    }
}

// A protocol's words have readers that run their engines.
TEST_P(RingEngineThreadTest, what_is_outside_the_memory_of_users_lets_them_sleep) {
    ASSERT_TRUE(all_sleep());
    write(kUser + 64, 1);
    EXPECT_EQ(ring.ring()->delivery().engines_asleep.load(), 3U);
    b.await(kUser + 64, 1);
    write(64, 2);
    EXPECT_TRUE(eventually([&] { return in_bank(2, 64) == 2; }));
    EXPECT_EQ(in_bank(2, kUser + 64), 1U) << "it was written before";
}

TEST_P(RingEngineThreadTest, a_flush_needs_no_call_of_the_others) {
    for (std::uint32_t round = 1; round <= 20; ++round) {
        if (round % 10 == 0) {
            ASSERT_TRUE(all_sleep());
        }
        write(64, round);
        ASSERT_TRUE(a.memory.flush(Deadline::in(kPatienceNs)));
        EXPECT_EQ(in_bank(1, 64), round);
        EXPECT_EQ(in_bank(2, 64), round);
    }
}

TEST_P(RingEngineThreadTest, a_program_that_loads_plainly_sees_writes_from_sleep_and_in_streams) {
    constexpr std::uint32_t kWords = 2'000;
    b.memory.keep_applying(true);
    for (std::uint32_t round = 1; round <= 3; ++round) {
        ASSERT_TRUE(all_sleep());
        write(64, round);
        EXPECT_TRUE(eventually([&] { return in_bank(1, 64) == round; }));
    }
    std::thread writer([&] {
        for (std::uint32_t word = 1; word <= kWords; ++word) write(128, word);
    });
    std::uint32_t seen = 0;
    EXPECT_TRUE(eventually([&] {
        const std::uint32_t now = in_bank(1, 128);
        EXPECT_GE(now, seen);
        seen = now;
        return seen == kWords;
    }));
    writer.join();
    b.memory.keep_applying(false);
    EXPECT_TRUE(all_sleep());
}

/// Each process that woke up for what others say to each other would compute the wire for itself.
struct AnEngineThread : ::testing::Test, ThreeNodes {
    AnEngineThread() : ThreeNodes("scramnet-burst") {}
};

TEST_F(AnEngineThread, reads_nothing_that_writers_have_brought_while_its_node_slept) {
    constexpr std::size_t kAt = kUser + 64;
    constexpr std::uint32_t kWords = 2'000;
    ASSERT_TRUE(all_sleep());
    const LogArea log = ring.ring()->log(0);
    const auto has_come_round = [&] {
        return applied_of(*ring.ring(), 0, 0) == log.header().head.load();
    };
    for (const unsigned r : {1U, 2U}) ring.ring()->attention()[r] = kAttentionAsleep;
    const std::int64_t ran = c.memory.engine().ran_ns();
    for (std::uint32_t word = 1; word <= kWords; ++word) {
        write(kAt, word);
        if (word % 64 == 0) a.await(has_come_round);
    }
    EXPECT_EQ(c.memory.engine().ran_ns(), ran);
    const std::uint64_t quiet = log.header().quiet.load();
    EXPECT_GT(quiet, kWords / 2);
    EXPECT_GE(ring.ring()->node(2).applied[0].load(), quiet);
    for (std::uint64_t at = 0; at < quiet; ++at) {
        for (auto& part : log.unit(log.place_of(at)).part) part.store(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // longer than a write is on its way
    c.await(kAt, kWords);
    EXPECT_EQ(ring.ring()->node(2).link.get(LinkCounter::records_refused), 0U);
}

// More than the log holds: its writer has what has come round taken off, and the others woken.
TEST_P(RingEngineThreadTest, a_full_log_wakes_those_behind) {
    constexpr std::uint32_t kWords = 3 * kLogBytes / kLogUnitBytes / 2;
    ASSERT_TRUE(all_sleep());
    const std::uint32_t words = GetParam() == "none" ? kWords : 4'000;
    for (std::uint32_t word = 1; word <= words; ++word) write(64, word);
    EXPECT_TRUE(eventually([&] { return in_bank(2, 64) == words; }));
}

}  // namespace
}  // namespace rmem
