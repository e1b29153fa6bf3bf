// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes of other ranks' registered memory.
#include "tests/support/device_ranks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpi_channel {
namespace {

using testing::IsEmpty;

constexpr std::uint64_t kKey = 42;
constexpr std::size_t kBytes = 5 << 20;
const std::size_t kSizes[] = {0, 1, 8, 400, 500, 5000, kRemotePiece, kRemotePiece + 1, 1'000'000};

/// Rank 1 has registered its memory; rank 0 accesses it.
class Access : public testing::Test {
protected:
    explicit Access(std::size_t least = kNoGets) : ranks(3), memory(pattern(kBytes, 9)) {
        if (least != kNoGets) ranks.use_memory(least);
        register_memory(true, true);
    }
    void register_memory(bool may_read, bool may_write) {
        ranks[1].regions.remove(kKey);
        ranks[1].regions.add(kKey, {memory.data(), memory.size(), true, may_read, may_write, this});
    }
    RemoteOrder order(bool writes, std::vector<std::byte>& bytes, std::uint64_t at,
                      unsigned pieces = 1) {
        RemoteOrder made;
        made.writes = writes;
        made.to = 1;
        made.parts = parts_of(bytes, pieces);
        made.places.push_back({kKey, at, bytes.size()});
        made.context = &bytes;
        return made;
    }
    RemoteStatus run(const RemoteOrder& made) {
        ranks[0].device.access(made);
        ranks.run();
        const auto ended = std::exchange(ranks[0].ended, {});
        EXPECT_EQ(ended.size(), 1U);
        if (ended.size() != 1) return RemoteStatus::gone;
        EXPECT_EQ(ended[0].context, made.context);
        EXPECT_EQ(ended[0].writes, made.writes);
        return ended[0].status;
    }
    RemoteStatus write(std::vector<std::byte>& bytes, std::uint64_t at, unsigned pieces = 1) {
        return run(order(true, bytes, at, pieces));
    }
    RemoteStatus read(std::vector<std::byte>& bytes, std::uint64_t at, unsigned pieces = 1) {
        return run(order(false, bytes, at, pieces));
    }
    bool holds(const std::vector<std::byte>& bytes, std::size_t at) const {
        return std::equal(bytes.begin(), bytes.end(), memory.begin() + static_cast<long>(at));
    }

    DeviceRanks ranks;
    std::vector<std::byte> memory;
};

TEST_F(Access, bytes_of_any_number_and_in_any_parts_are_written_and_read) {
    for (const std::size_t size : kSizes) {
        for (const unsigned pieces : {1U, 3U}) {
            auto out = pattern(size, static_cast<unsigned>(size) + pieces), in = pattern(size, 2);
            ASSERT_EQ(write(out, 77, pieces), RemoteStatus::ok) << size;
            EXPECT_TRUE(holds(out, 77)) << size;
            ASSERT_EQ(read(in, 77, pieces), RemoteStatus::ok) << size;
            EXPECT_TRUE(in == out) << size;
        }
    }
    EXPECT_EQ(ranks[1].device.counters().denied, 0U);
}

TEST_F(Access, its_end_is_told_when_the_bytes_are_there_and_not_before) {
    auto out = pattern(8, 1);
    ranks[0].device.access(order(true, out, 0));
    for (int i = 0; i < 100; ++i) ranks[0].device.progress();
    EXPECT_THAT(ranks[0].ended, IsEmpty());
    ranks.run();
    EXPECT_EQ(ranks[0].ended.size(), 1U);
    EXPECT_TRUE(holds(out, 0));
}

TEST_F(Access, what_it_may_not_touch_stays_as_it_is_to_the_last_byte) {
    const auto before = memory;
    for (const std::size_t size : {std::size_t{8}, std::size_t{100'000}, std::size_t{2 << 20}}) {
        auto out = pattern(size, 1), in = pattern(size, 2);
        const auto same = in;
        for (const std::uint64_t at : {std::uint64_t{kBytes - size + 1}, std::uint64_t{kBytes},
                                       ~std::uint64_t{0}, ~std::uint64_t{0} - size}) {
            EXPECT_EQ(write(out, at), RemoteStatus::denied) << at;
            EXPECT_EQ(read(in, at), RemoteStatus::denied) << at;
        }
        RemoteOrder unknown = order(true, out, 0);
        unknown.places[0].key = kKey + 1;
        EXPECT_EQ(run(unknown), RemoteStatus::no_key);
        unknown.writes = false;
        EXPECT_EQ(run(unknown), RemoteStatus::no_key);
        register_memory(true, false);
        EXPECT_EQ(write(out, 0), RemoteStatus::denied);
        register_memory(false, true);
        EXPECT_EQ(read(in, 0), RemoteStatus::denied);
        register_memory(true, true);
        EXPECT_TRUE(in == same);
    }
    EXPECT_TRUE(memory == before);
    EXPECT_GT(ranks[1].device.counters().denied, 0U);
    EXPECT_EQ(ranks[1].device.counters().broken, 0U);
    EXPECT_THAT(ranks[1].touches, IsEmpty());
}

TEST_F(Access, an_address_may_be_the_bytes_own) {
    ranks[1].regions.add(7, {memory.data() + 10, 100, false, true, true, nullptr});
    auto out = pattern(8, 1);
    RemoteOrder made = order(true, out, 0);
    made.places[0] = {7, reinterpret_cast<std::uintptr_t>(memory.data()) + 102, 8};
    EXPECT_EQ(run(made), RemoteStatus::ok);
    EXPECT_TRUE(holds(out, 102));
    made.places[0].address += 1;
    EXPECT_EQ(run(made), RemoteStatus::denied);
    made.places[0].address = reinterpret_cast<std::uintptr_t>(memory.data()) + 9;
    EXPECT_EQ(run(made), RemoteStatus::denied);
}

TEST_F(Access, several_places_are_one_behind_the_other) {
    auto out = pattern(300'000, 1), in = pattern(300'000, 2);
    for (const bool writes : {true, false}) {
        RemoteOrder made = order(writes, writes ? out : in, 0, 2);
        made.places = {{kKey, 1'000'000, 100'001}, {kKey, 5, 100'000}, {kKey, 2'000'000, 99'999}};
        EXPECT_EQ(run(made), RemoteStatus::ok);
    }
    EXPECT_TRUE(in == out);
    EXPECT_TRUE(std::equal(out.begin(), out.begin() + 100'001, memory.begin() + 1'000'000));
    EXPECT_TRUE(std::equal(out.begin() + 100'001, out.begin() + 200'001, memory.begin() + 5));
}

TEST_F(Access, the_target_is_told_of_each_once_with_the_initiator_s_word) {
    auto out = pattern(300'000, 1);
    RemoteOrder made = order(true, out, 0);
    made.data = 0xfeed;
    EXPECT_EQ(run(made), RemoteStatus::ok);
    ASSERT_EQ(ranks[1].touches.size(), 1U);
    EXPECT_TRUE(ranks[1].touches[0].writes);
    EXPECT_EQ(ranks[1].touches[0].data, 0xfeedU);
    EXPECT_EQ(ranks[1].touches[0].from, 0U);
    EXPECT_EQ(ranks[1].touches[0].owner, this);
    EXPECT_EQ(read(out, 0), RemoteStatus::ok);
    ASSERT_EQ(ranks[1].touches.size(), 2U);
    EXPECT_FALSE(ranks[1].touches[1].writes);
}

TEST_F(Access, many_at_once_end_and_a_target_keeps_few_answers) {
    std::vector<std::vector<std::byte>> bytes;
    for (unsigned i = 0; i < 200; ++i) bytes.push_back(pattern(1 + i * 997 % 20'000, i));
    for (unsigned i = 0; i < 200; ++i) {
        ranks[0].device.access(order(true, bytes[i], i * 20'000));
        ranks[2].device.access(order(false, bytes[i], 4'500'000));
    }
    EXPECT_GE(ranks[0].device.backlog(1), 100U);
    ranks.run();
    EXPECT_EQ(ranks[0].ended.size(), 200U);
    EXPECT_EQ(ranks[2].ended.size(), 200U);
    EXPECT_FALSE(ranks[0].device.has_backlog());
}

TEST_F(Access, what_was_written_is_read_afterwards_and_messages_come_before_later_writes) {
    for (unsigned i = 0; i < 100; ++i) {
        auto out = pattern(1 + i * 700, i), in = pattern(1 + i * 700, i + 1);
        ranks[0].device.access(order(true, out, 0));
        ranks[0].device.access(order(false, in, 0));
        ranks.run();
        ASSERT_TRUE(in == out) << i;
    }
}

TEST_F(Access, copied_bytes_are_the_callers_at_once) {
    for (unsigned i = 0; i < 40; ++i) {
        auto out = pattern(400, i);
        RemoteOrder made = order(true, out, i * 400);
        made.copy = true;
        ranks[0].device.access(made);
        std::fill(out.begin(), out.end(), std::byte{});
    }
    ranks.run();
    for (unsigned i = 0; i < 40; ++i) EXPECT_TRUE(holds(pattern(400, i), i * 400)) << i;
}

TEST_F(Access, a_region_that_is_removed_while_bytes_come_takes_no_more_of_them) {
    const auto before = memory;
    auto out = pattern(kRemotePiece, 1);
    ranks[0].device.access(order(true, out, 0));
    ranks[1].device.progress();
    ranks[1].device.progress();
    ranks[1].regions.remove(kKey);
    const auto then = memory;
    ASSERT_FALSE(holds(out, 0)) << "not all of it was there";
    ranks.run();
    ASSERT_EQ(ranks[0].ended.size(), 1U);
    EXPECT_EQ(ranks[0].ended[0].status, RemoteStatus::no_key);
    EXPECT_TRUE(memory == then);
}

TEST_F(Access, own_memory_is_accessed_like_that_of_others) {
    ranks[0].regions.add(kKey, {memory.data(), memory.size(), true, true, true, nullptr});
    for (const std::size_t size : kSizes) {
        auto out = pattern(size, 1), in = pattern(size, 2);
        RemoteOrder made = order(true, out, 3);
        made.to = 0;
        EXPECT_EQ(run(made), RemoteStatus::ok);
        made = order(false, in, 3);
        made.to = 0;
        EXPECT_EQ(run(made), RemoteStatus::ok);
        EXPECT_TRUE(in == out);
    }
}

TEST_F(Access, accesses_of_a_dead_rank_end_as_gone_once) {
    std::vector<std::vector<std::byte>> bytes(40, pattern(200'000, 1));
    for (auto& each : bytes) ranks[0].device.access(order(each[0] == each[1], each, 0));
    ranks[1].device.progress();
    ranks.kill(1);
    ranks.run();
    EXPECT_EQ(std::exchange(ranks[0].ended, {}).size(), 40U);
    EXPECT_FALSE(ranks[0].device.has_backlog());
    EXPECT_EQ(write(bytes[0], 0), RemoteStatus::gone);
}

TEST_F(Access, a_rank_that_answers_what_was_not_asked_or_asks_without_end_is_given_up) {
    const auto put = [&](unsigned from, unsigned to, const RemotePacket& packet,
                         std::size_t payload) {
        Packet outer;
        outer.header.type = PacketType::remote;
        std::vector<std::byte> bytes(kMaxPacketBytes + kMaxRemoteBytes);
        std::size_t size = mpi_channel::write(outer, bytes.data());
        size += mpi_channel::write(packet, bytes.data() + size);
        bytes.resize(size + payload);
        ranks.pipes.put(from, to, bytes);
    };
    RemotePacket reply;
    reply.kind = RemoteKind::reply;
    reply.value = 8;
    put(2, 1, reply, 8);
    ranks.run();
    EXPECT_EQ(ranks[1].device.counters().broken, 1U);
    RemotePacket ask;
    ask.kind = RemoteKind::read;
    ask.place = {kKey, 0, 8};
    ask.size = 8;
    for (unsigned i = 0; i < 100; ++i) put(2, 0, ask, 0);
    for (int i = 0; i < 100; ++i) ranks[0].device.progress();  // rank 2 takes no answer
    EXPECT_EQ(ranks[0].device.counters().broken, 1U);
    EXPECT_LT(ranks[0].device.counters().served, 30U);
    ranks.kill(2);
    RemotePacket outside = ask;
    outside.at = 1;  // the piece is not in the whole
    put(0, 1, outside, 0);
    ranks.run();
    EXPECT_EQ(ranks[1].device.counters().broken, 2U);
}

class AccessByGet : public Access {
protected:
    AccessByGet() : Access(1000) {}
};

TEST_F(AccessByGet, long_ones_go_from_memory_to_memory) {
    for (const std::size_t size : {kRemotePiece, kRemotePiece + 1, std::size_t{3'000'000}}) {
        auto out = pattern(size, 1), in = pattern(size, 2);
        EXPECT_EQ(write(out, 3), RemoteStatus::ok);
        EXPECT_TRUE(holds(out, 3));
        EXPECT_EQ(ranks[1].memory.bytes_read, size <= kRemotePiece ? 0 : size);
        EXPECT_EQ(read(in, 3, 3), RemoteStatus::ok);
        EXPECT_TRUE(in == out);
        EXPECT_EQ(ranks[0].memory.bytes_read, size <= kRemotePiece ? 0 : size);
        ranks[0].memory.bytes_read = ranks[1].memory.bytes_read = 0;
    }
}

TEST_F(AccessByGet, are_refused_like_others) {
    auto out = pattern(100'000, 1);
    EXPECT_EQ(write(out, kBytes), RemoteStatus::denied);
    EXPECT_EQ(read(out, kBytes), RemoteStatus::denied);
    EXPECT_EQ(ranks[0].memory.bytes_read + ranks[1].memory.bytes_read, 0U);
}

TEST_F(AccessByGet, what_cannot_be_read_goes_over_the_ring_and_is_told_once) {
    for (const std::size_t left : {std::size_t{0}, 2 * kGetSlice}) {
        DeviceRanks fresh(2);
        fresh.use_memory(1000);
        fresh[1].regions.add(kKey, {memory.data(), memory.size(), true, true, true, nullptr});
        fresh[0].memory.left = fresh[1].memory.left = left;
        auto out = pattern(4 * kGetSlice, 1), in = pattern(4 * kGetSlice, 2);
        RemoteOrder made = order(true, out, 3);
        made.data = 1;
        fresh[0].device.access(made);
        fresh.run();
        ASSERT_EQ(fresh[0].ended.size(), 1U);
        EXPECT_EQ(fresh[0].ended[0].status, RemoteStatus::ok);
        EXPECT_EQ(fresh[1].touches.size(), 1U);
        EXPECT_TRUE(holds(out, 3));
        fresh[0].device.access(order(false, in, 3));
        fresh.run();
        ASSERT_EQ(fresh[0].ended.size(), 2U);
        EXPECT_EQ(fresh[0].ended[1].status, RemoteStatus::ok);
        EXPECT_TRUE(in == out);
    }
}

}  // namespace
}  // namespace mpi_channel
