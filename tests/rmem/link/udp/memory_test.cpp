// SPDX-License-Identifier: Apache-2.0
// ctest: check
#include "rmem/link/udp/memory.hpp"

#include "rmem/link/udp/engine.hpp"
#include "rmem/link/udp/engine_settings.hpp"
#include "tests/support/child.hpp"
#include "tests/support/own_network.hpp"
#include "tests/support/test_ring.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace rmem {
namespace {

using test::TestRing;

std::uint32_t word_of(const std::byte* bank, std::size_t offset) {
    return reinterpret_cast<const std::atomic<std::uint32_t>*>(bank + offset)->load();
}

// ---- Flush

/// This takes the card milliseconds, and the network much less.
TEST(UdpMemory, flushed_means_published_also_where_a_profile_defers_what_has_come) {
    const TestRing ring(test::udp_pair(2, "scramnet-burst"));
    const std::size_t bytes = ring.config().user_bytes;
    const std::byte* const others = ring.node(1).bank();  // its helper applies from now on
    for (std::uint32_t round = 1; round <= 5; ++round) {
        const std::vector<std::uint32_t> words(bytes / 4, round);
        test::write_all(ring.node(0), 0, words.data(), bytes);
        ASSERT_TRUE(ring.node(0).flush(Deadline::in(kDefaultJoinTimeoutNs)));
        EXPECT_EQ(word_of(others, bytes - 4), round);
    }
}

// ---- Waiting for the node's engine

/// A program beside a daemon: an engine that only runs when it is told to.
class UdpMemoryClient : public ::testing::Test {
protected:
    static constexpr std::int64_t kWaitNs = 200'000'000;
    static constexpr std::int64_t kSleeps = 10;  ///< at least, of a millisecond or less

    UdpMemoryClient() {
        test::stay_on_this_host(name.get());
        ring = Ring::open(config, Deadline::in(kDefaultJoinTimeoutNs), 0);
        of_daemon = Ring::open(config, Deadline::in(kDefaultJoinTimeoutNs), 0);
        member.emplace(ring, Member{0, 0});
        options.join_timeout_ns = kWaitNs;
        // relaxed is enough: there is one thread
        ring->board().kind.store(static_cast<std::uint32_t>(udp::EngineKind::daemon),
                                 std::memory_order_relaxed);
    }
    void start_engine() {
        lock = of_daemon->try_lock_engine();
        ASSERT_TRUE(lock);
        engine.emplace(*of_daemon, udp::EngineSettings::read(config), udp::EngineKind::daemon,
                       std::nullopt);
        engine->join(Deadline::in(kDefaultJoinTimeoutNs));
    }
    /// How often this thread went to sleep meanwhile; to poll or to yield is not to sleep.
    template <class Call>
    static std::int64_t sleeps_in(Call&& call) {
        const auto sleeps = [] {
            rusage used{};
            ::getrusage(RUSAGE_THREAD, &used);
            return std::int64_t{used.ru_nvcsw};
        };
        const std::int64_t before = sleeps();
        call();
        return sleeps() - before;
    }

    test::RingName name;
    const RingConfig config = name.config(1, LinkKind::udp);
    std::shared_ptr<Ring> ring, of_daemon;
    std::optional<Membership> member;
    UdpOptions options;
    std::optional<ByteLock> lock;
    std::optional<udp::Engine> engine;
};

TEST_F(UdpMemoryClient, waits_for_an_engine_then_for_the_roster_and_sleeps_between_two_looks) {
    const auto wait = [&] { EXPECT_THROW(UdpMemory(*member, options), Error); };
    EXPECT_GE(sleeps_in(wait), kSleeps) << "there is no engine";
    start_engine();
    EXPECT_GE(sleeps_in(wait), kSleeps) << "nobody runs it";
}

TEST_F(UdpMemoryClient, waits_in_a_flush_and_sleeps_between_two_looks) {
    start_engine();
    options.join_timeout_ns = kDefaultJoinTimeoutNs;
    std::optional<UdpMemory> memory;
    std::atomic<bool> is_open{false};
    std::thread opens([&] {
        memory.emplace(*member, options);
        is_open = true;
    });
    for (; !is_open; engine->run()) std::this_thread::yield();
    opens.join();
    memory->post_word(0, 1);
    const auto flush = [&] { EXPECT_FALSE(memory->flush(Deadline::in(kWaitNs))); };
    EXPECT_GE(sleeps_in(flush), kSleeps);
    for (int i = 0; i < 10; ++i) {
        memory->commit();
        engine->run();
    }
    EXPECT_TRUE(memory->flush(Deadline::now()));
}

// ---- Posts

/// Node 0's memory as a program has it; node 1 applies all the time.
class UdpMemoryUnderLoad : public ::testing::Test {
protected:
    static constexpr std::uint32_t kMany = 5'000;
    static constexpr std::size_t kBytes = 4096;

    UdpMemoryUnderLoad() {
        test::stay_on_this_host(name.get());
        other.emplace(Ring::open(config, soon(), 1), Member{1, 1});
        others_bank = other->bank();
        ring = Ring::open(config, soon(), 0);
        member.emplace(ring, Member{0, 0});
    }
    void open(bool helper) {
        UdpOptions options;
        options.helper = helper;
        memory.emplace(*member, options);
    }
    /// A message after the other, as a protocol sends them.
    void send(std::uint32_t count, bool looks_in_between) {
        for (; count > 0; --count) {
            while (!memory->room(4)) memory->progress();
            memory->post_word(0, ++value);
            memory->commit();
            if (looks_in_between) memory->progress();
        }
    }
    bool arrives() {
        return test::eventually([this] { return word_of(others_bank, 0) == value; });
    }
    /// Of all that the memory, which ends, has written.
    std::uint64_t batches_sent() {
        memory.reset();
        return ring->board().counters.get(udp::UdpCounter::batches_sent);
    }
    static Deadline soon() { return Deadline::in(kDefaultJoinTimeoutNs); }

    test::RingName name;
    const RingConfig config = name.config(2, LinkKind::udp, kBytes);
    std::optional<Node> other;
    const std::byte* others_bank = nullptr;
    std::shared_ptr<Ring> ring;
    std::optional<Membership> member;
    std::optional<UdpMemory> memory;
    std::uint32_t value = 0;
};

using UdpMemoryPosts = UdpMemoryUnderLoad;

TEST_F(UdpMemoryPosts, a_flag_and_what_lies_behind_it_are_one_write) {
    open(true);
    const std::array<std::uint32_t, 3> message{++value, 7, 8};
    const std::uint64_t before = ring->rank(0).link.get(LinkCounter::writes_sent);
    memory->post(0, message.data(), message.size());
    memory->commit();
    EXPECT_EQ(ring->rank(0).link.get(LinkCounter::writes_sent), before + 1);
    EXPECT_TRUE(arrives());
    EXPECT_EQ(word_of(others_bank, 4), 7U);
    EXPECT_EQ(word_of(others_bank, 8), 8U);
}

/// The other node's bank is filled by another thread than this one, which reads it.
TEST_F(UdpMemoryPosts, a_reader_that_sees_the_flag_sees_what_lies_behind_it) {
    open(true);
    std::array<std::uint32_t, kLinePostWords> message{};
    std::jthread posting([&] {
        for (std::uint32_t i = 1; i <= kMany; ++i) {
            message.fill(i);
            while (!memory->room(64)) memory->progress();
            memory->post(0, message.data(), message.size());
            memory->commit();
        }
        memory->flush(soon());
    });
    for (std::uint32_t flag = 0; flag < kMany;) {
        flag = word_of(others_bank, 0);
        for (std::size_t i = 1; i < message.size(); ++i)
            ASSERT_GE(word_of(others_bank, i * 4), flag);
    }
}

// ---- Room

/// What does not fit into the log goes on its way while there is more.
TEST_F(UdpMemoryPosts, find_room_for_a_large_group_and_take_it) {
    open(true);
    ASSERT_TRUE(memory->room(std::size_t{64} << 20)) << "nothing is under way";
    const std::vector<std::uint32_t> block(kBytes / kWordBytes, 7);
    for (int i = 0; i < 200; ++i) memory->write(0, block.data(), kBytes);
    memory->commit();
    EXPECT_TRUE(memory->flush(soon()));
    EXPECT_EQ(word_of(others_bank, kBytes - kWordBytes), 7U);
    EXPECT_TRUE(memory->room(std::size_t{64} << 20));
}

// ---- Under load

/// To look for messages between two of its own is not to wait for one.
TEST_F(UdpMemoryUnderLoad, many_messages_share_a_datagram_also_when_the_sender_looks_in_between) {
    for (const bool looks_in_between : {false, true}) {
        const std::uint64_t before = batches_sent();
        open(false);
        send(kMany, looks_in_between);
        EXPECT_LT(batches_sent() - before, kMany / 2) << looks_in_between;
        EXPECT_TRUE(arrives());
    }
}

TEST_F(UdpMemoryUnderLoad, large_writes_keep_their_place_among_words) {
    open(false);
    constexpr std::size_t kBlock = 1024;
    std::vector<std::uint32_t> block(512);
    for (std::uint32_t round = 1; round <= 50; ++round) {
        send(20, false);
        std::fill(block.begin(), block.end(), round);
        const std::size_t bytes = block.size() * kWordBytes;
        const std::size_t at = kBlock + kWordBytes * round;
        memory->post_word(at, 500 + round);  // stands if it is overtaken by the block
        memory->write(kBlock, block.data(), bytes);
        ASSERT_EQ(memory->load(at), round);
        memory->post_word(at + kWordBytes, 1000 + round);  // undone if it overtakes the block
        memory->commit();
        send(1, false);
        ASSERT_TRUE(memory->flush(soon()));
        ASSERT_EQ(word_of(others_bank, 0), value);
        ASSERT_EQ(word_of(others_bank, at), round);
        ASSERT_EQ(word_of(others_bank, at + kWordBytes), 1000 + round);
        ASSERT_EQ(word_of(others_bank, kBlock), round);
    }
}

TEST_F(UdpMemoryUnderLoad, messages_that_are_waited_for_never_share_one) {
    open(false);
    for (int i = 0; i < 100; ++i) {
        send(1, false);
        memory->wait(Deadline::now());
    }
    EXPECT_GE(batches_sent(), 100U);
}

TEST_F(UdpMemoryUnderLoad, what_is_open_leaves_by_each_of_these) {
    const struct {
        const char* what;
        bool helper;
        std::function<void()> call;
    } kWays[] = {
        {"the program waits", false, [this] { memory->wait(Deadline::now()); }},
        {"it asks twice for messages", false,
         [this] {
             memory->progress();
             memory->progress();
         }},
        {"it calls no more", true, [] {}},
    };
    for (const auto& [what, helper, call] : kWays) {
        memory.reset();
        open(helper);
        for (int round = 0; round < 20; ++round) {
            send(50, round % 2 == 0);
            call();
            ASSERT_TRUE(arrives()) << what << ", round " << round;
        }
    }
}

// ---- The end of an incarnation

struct SoonDead {
    SoonDead() { ::setenv("RMEM_DEAD_TIMEOUT", "200ms", 1); }
    ~SoonDead() { ::unsetenv("RMEM_DEAD_TIMEOUT"); }
    SoonDead(const SoonDead&) = delete;
    SoonDead& operator=(const SoonDead&) = delete;
};

class UdpMemoryDropped : private SoonDead, public UdpMemoryUnderLoad {
protected:
    std::uint32_t epoch() const { return ring->board().membership_epoch.load(); }
    static bool is_member(const Ring& of, unsigned node) {
        return (of.board().members[0].load() >> node & 1U) != 0;
    }
};

/// The next incarnation has nothing under way, but the others may lack what the last one wrote.
TEST_F(UdpMemoryDropped, has_not_flushed_what_it_wrote_before) {
    open(false);
    const std::uint32_t before = epoch();
    const auto others = Ring::observe(config.segment_name(1));
    ASSERT_TRUE(test::eventually([&] { return !is_member(*others, 0); })) << "it does not run";
    memory->post_word(0, 1);
    memory->commit();
    ASSERT_TRUE(test::eventually([&] {
        memory->wait(Deadline::now());
        return epoch() != before;
    }));
    EXPECT_FALSE(memory->flush(soon()));
    EXPECT_EQ(word_of(others_bank, 0), 0U);
}

TEST_F(UdpMemoryUnderLoad, what_is_open_leaves_before_the_program_ends) {
    open(false);
    send(50, false);
    memory.reset();
    EXPECT_EQ(word_of(others_bank, 0), value);
}

}  // namespace
}  // namespace rmem
