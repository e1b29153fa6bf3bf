// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/memory.hpp"

#include "tests/support/child.hpp"
#include "tests/support/own_network.hpp"
#include "tests/support/test_ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
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

// ---- Posts

/// Node 0's memory as a program has it; node 1 applies all the time.
class UdpMemoryUnderLoad : public ::testing::Test {
protected:
    static constexpr std::uint32_t kMany = 5'000;

    UdpMemoryUnderLoad() {
        config.name = name.get();
        config.link = LinkKind::udp;
        config.nodes = config.ranks = 2;
        config.user_bytes = 4096;
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
    /// Of the memory's whole time.
    std::uint64_t batches_sent() {
        memory.reset();
        return ring->board().counters.get(udp::UdpCounter::batches_sent);
    }
    static Deadline soon() { return Deadline::in(kDefaultJoinTimeoutNs); }

    test::RingName name;
    RingConfig config;
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
    const std::array<std::uint32_t, 2> message{7, 8};
    const std::uint64_t before = ring->rank(0).link.get(LinkCounter::writes_sent);
    memory->post(0, ++value, message.data(), sizeof message);
    memory->commit();
    EXPECT_EQ(ring->rank(0).link.get(LinkCounter::writes_sent), before + 1);
    EXPECT_TRUE(arrives());
    EXPECT_EQ(word_of(others_bank, 4), 7U);
    EXPECT_EQ(word_of(others_bank, 8), 8U);
}

/// The other node's bank is filled by another thread than this one, which reads it.
TEST_F(UdpMemoryPosts, a_reader_that_sees_the_flag_sees_what_lies_behind_it) {
    open(true);
    std::array<std::uint32_t, kMaxPostBytes / 4> message{};
    std::jthread posting([&] {
        for (std::uint32_t i = 1; i <= kMany; ++i) {
            message.fill(i);
            while (!memory->room(64)) memory->progress();
            memory->post(0, i, message.data(), sizeof message);
            memory->commit();
        }
        memory->flush(soon());
    });
    for (std::uint32_t flag = 0; flag < kMany;) {
        flag = word_of(others_bank, 0);
        for (std::size_t at = 4; at <= kMaxPostBytes; at += 4) {
            ASSERT_GE(word_of(others_bank, at), flag);
        }
    }
}

// ---- Room

/// A block of half a window, or more, goes on its way while another is.
TEST_F(UdpMemoryPosts, find_room_for_a_large_group_before_all_have_the_one_before) {
    open(true);
    ASSERT_TRUE(memory->room(std::size_t{64} << 20)) << "nothing is under way";
    memory->post_word(0, 1);
    EXPECT_TRUE(memory->room(std::size_t{64} << 20));
    memory->commit();
    EXPECT_TRUE(memory->room(std::size_t{64} << 20));
}

// ---- Under load

TEST_F(UdpMemoryUnderLoad, many_messages_share_a_datagram) {
    open(false);
    send(kMany, false);
    EXPECT_LT(batches_sent(), kMany / 2);
    EXPECT_TRUE(arrives());
}

/// To look for messages between two of its own is not to wait for one.
TEST_F(UdpMemoryUnderLoad, they_do_so_also_when_the_sender_looks_for_messages_in_between) {
    open(false);
    send(kMany, true);
    EXPECT_LT(batches_sent(), kMany / 2);
    EXPECT_TRUE(arrives());
}

TEST_F(UdpMemoryUnderLoad, words_are_streamed_and_large_writes_keep_their_place) {
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
    memory.reset();
    EXPECT_GE(ring->board().counters.get(udp::UdpCounter::streamed), 50U * 10);
}

TEST_F(UdpMemoryUnderLoad, messages_that_are_waited_for_never_share_one) {
    open(false);
    for (int i = 0; i < 100; ++i) {
        send(1, false);
        memory->wait(Deadline::now());
    }
    EXPECT_GE(batches_sent(), 100U);
}

TEST_F(UdpMemoryUnderLoad, what_is_open_leaves_when_the_program_waits) {
    open(false);
    for (int round = 0; round < 20; ++round) {
        send(50, round % 2 == 0);
        memory->wait(Deadline::now());
        ASSERT_TRUE(arrives()) << round;
    }
}

TEST_F(UdpMemoryUnderLoad, what_is_open_leaves_when_the_program_asks_twice_for_messages) {
    open(false);
    for (int round = 0; round < 20; ++round) {
        send(50, true);
        memory->progress();
        ASSERT_TRUE(arrives()) << round;
    }
}

TEST_F(UdpMemoryUnderLoad, what_is_open_leaves_without_another_call_of_the_program) {
    open(true);
    for (int round = 0; round < 20; ++round) {
        send(50, round % 2 == 0);
        ASSERT_TRUE(arrives()) << round;
    }
}

TEST_F(UdpMemoryUnderLoad, what_is_open_leaves_before_the_program_ends) {
    open(false);
    send(50, false);
    memory.reset();
    EXPECT_EQ(word_of(others_bank, 0), value);
}

}  // namespace
}  // namespace rmem
