// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/datagram_faults.hpp"

#include "rmem/link/udp/protocol/format.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <string>

namespace rmem::udp {
namespace {

using Bytes = std::vector<std::byte>;
using Kind = DatagramFault::Kind;

constexpr std::uint32_t kNodes = 4;
constexpr std::int64_t kStart = 1'000'000;
constexpr std::size_t kBytes = kHeaderBytes + kTagBytes;
constexpr std::size_t kNumberAt = 32;  // in the header

/// A datagram of a node, told apart by its number.
Bytes datagram(std::uint16_t origin, std::uint64_t number = 0) {
    Bytes bytes(kBytes);
    store(bytes.data(), kMagic);
    Header header;
    header.origin = origin;
    header.number = number;
    header.write(bytes.data());
    return bytes;
}

DatagramFaults faults_of(const std::string& spec, std::uint32_t node = 0) {
    return {FaultPlan::parse(spec, kNodes, LinkKind::udp), node, kStart};
}

bool passes(DatagramFaults& faults, std::uint16_t origin, std::int64_t now = kStart) {
    Bytes bytes = datagram(origin);
    return faults.pass(bytes, now);
}

/// The numbers of all that next() has, one digit each.
std::string held(DatagramFaults& faults, std::int64_t now) {
    std::string numbers;
    for (auto bytes = faults.next(now); !bytes.empty(); bytes = faults.next(now)) {
        EXPECT_EQ(bytes.size(), kBytes);
        numbers += std::to_string(load<std::uint64_t>(bytes.data() + kNumberAt));
    }
    return numbers;
}

TEST(DatagramFaults, faults_without_a_plan_let_everything_pass) {
    DatagramFaults faults = faults_of("");
    EXPECT_TRUE(faults.empty());
    EXPECT_TRUE(passes(faults, 1));
    EXPECT_EQ(faults.due_ns(), kNever);
    EXPECT_TRUE(faults.next(kNever - 1).empty());
    EXPECT_EQ(faults.counts().injected(), 0U);
}

TEST(DatagramFaults, drop_what_comes_from_and_goes_to_the_nodes_named) {
    DatagramFaults faults = faults_of("drop:from=1,to=0");
    EXPECT_FALSE(passes(faults, 1));
    EXPECT_TRUE(passes(faults, 2));
    EXPECT_EQ(faults.counts().of(Kind::drop), 1U);
    EXPECT_TRUE(faults_of("drop:from=1,to=0", 1).empty()) << "the other way everything passes";
}

TEST(DatagramFaults, leave_the_own_datagrams_alone) {
    DatagramFaults faults = faults_of("drop:");
    EXPECT_TRUE(passes(faults, 0));
    EXPECT_FALSE(passes(faults, 1));
}

TEST(DatagramFaults, do_to_strangers_only_what_is_meant_for_all) {
    Bytes stranger(kBytes, std::byte{0xaa});
    Bytes stump(3);
    Bytes nothing;
    DatagramFaults named = faults_of("drop:from=0-3");
    DatagramFaults all = faults_of("drop:");
    for (Bytes* bytes : {&stranger, &stump}) {
        EXPECT_TRUE(named.pass(*bytes, kStart));
        EXPECT_FALSE(all.pass(*bytes, kStart));
    }
    EXPECT_TRUE(all.pass(nothing, kStart));
}

TEST(DatagramFaults, last_from_at_until_just_before_until) {
    DatagramFaults faults = faults_of("drop:at=10us,until=20us");
    EXPECT_TRUE(passes(faults, 1, kStart + 9'999));
    EXPECT_FALSE(passes(faults, 1, kStart + 10'000));
    EXPECT_FALSE(passes(faults, 1, kStart + 19'999));
    EXPECT_TRUE(passes(faults, 1, kStart + 20'000));
}

TEST(DatagramFaults, count_the_datagrams_that_they_could_hit) {
    DatagramFaults faults = faults_of("drop:from=1,after=2,count=2");
    std::string went;
    for (int i = 0; i < 6; ++i) {
        EXPECT_TRUE(passes(faults, 2));
        went += passes(faults, 1) ? '-' : 'x';
    }
    EXPECT_EQ(went, "--xx--");
}

TEST(DatagramFaults, hold_so_that_others_overtake) {
    DatagramFaults faults = faults_of("hold:by=100us,count=2");
    for (std::uint64_t number = 1; number <= 3; ++number) {
        Bytes bytes = datagram(1, number);
        EXPECT_EQ(faults.pass(bytes, kStart), number == 3);
    }
    EXPECT_EQ(faults.due_ns(), kStart + 100'000);
    EXPECT_EQ(held(faults, kStart + 99'999), "");
    EXPECT_EQ(held(faults, kStart + 100'000), "12") << "held ones stay in their order";
    EXPECT_EQ(faults.due_ns(), kNever);
    EXPECT_EQ(faults.counts().of(Kind::hold), 2U);
}

TEST(DatagramFaults, faults_that_hold_one_datagram_add_up) {
    DatagramFaults faults = faults_of("hold:by=100us;hold:by=1us;duplicate:by=5us");
    EXPECT_FALSE(passes(faults, 1));
    EXPECT_EQ(faults.due_ns(), kStart + 101'000);
    EXPECT_EQ(held(faults, kStart + 105'999), "0");
    EXPECT_EQ(held(faults, kStart + 106'000), "0");
}

TEST(DatagramFaults, duplicate_now_or_later) {
    DatagramFaults at_once = faults_of("duplicate:");
    EXPECT_TRUE(passes(at_once, 1));
    EXPECT_EQ(held(at_once, kStart), "0");
    DatagramFaults later = faults_of("duplicate:by=1ms;duplicate:by=2ms");
    EXPECT_TRUE(passes(later, 1));
    EXPECT_EQ(held(later, kStart), "");
    EXPECT_EQ(held(later, kStart + 2'000'000), "00");
    EXPECT_EQ(later.counts().of(Kind::duplicate), 2U);
}

TEST(DatagramFaults, neither_hold_nor_duplicate_what_is_dropped) {
    DatagramFaults faults = faults_of("duplicate:;hold:by=1us;drop:");
    EXPECT_FALSE(passes(faults, 1));
    EXPECT_EQ(faults.due_ns(), kNever);
}

TEST(DatagramFaults, flip_exactly_one_bit_and_not_always_the_same) {
    DatagramFaults faults = faults_of("corrupt:");
    std::vector<Bytes> seen;
    for (int i = 0; i < 8; ++i) {
        const Bytes sound = datagram(1);
        Bytes bytes = sound;
        EXPECT_TRUE(faults.pass(bytes, kStart));
        int flipped = 0;
        for (std::size_t at = 0; at < kBytes; ++at) {
            flipped += std::popcount(std::to_integer<unsigned>(bytes[at] ^ sound[at]));
        }
        EXPECT_EQ(flipped, 1);
        seen.push_back(bytes);
    }
    EXPECT_NE(seen.front(), seen.back());
}

TEST(DatagramFaults, part_the_nodes_until_the_time_is_over) {
    for (const std::uint32_t node : {0U, 1U, 2U, 3U}) {
        DatagramFaults faults = faults_of("part:nodes=0-1,until=1ms", node);
        for (std::uint16_t other = 0; other < kNodes; ++other) {
            const bool same_side = (node < 2) == (other < 2);
            EXPECT_EQ(passes(faults, other), same_side) << other << " to " << node;
            EXPECT_TRUE(passes(faults, other, kStart + 1'000'000));
        }
        EXPECT_EQ(faults.counts().of(Kind::part), 2U);
    }
}

TEST(DatagramFaults, hold_a_bounded_number_and_count_the_rest_as_overflowed) {
    DatagramFaults faults = faults_of("hold:by=1s");
    for (std::size_t i = 0; i < DatagramFaults::kMaxHeld + 3; ++i) passes(faults, 1);
    EXPECT_EQ(faults.counts().overflowed, 3U);
    EXPECT_EQ(held(faults, kStart + 1'000'000'000).size(), DatagramFaults::kMaxHeld);
}

TEST(DatagramFaults, faults_of_one_seed_are_the_same_each_time_and_differ_between_nodes) {
    const auto pattern = [](const std::string& seed, std::uint32_t node) {
        DatagramFaults faults = faults_of("seed=" + seed + ";drop:share=50%", node);
        std::string hits;
        for (int i = 0; i < 64; ++i) hits += passes(faults, 3) ? '-' : 'x';
        return hits;
    };
    EXPECT_EQ(pattern("5", 1), pattern("5", 1));
    EXPECT_NE(pattern("5", 1), pattern("6", 1));
    EXPECT_NE(pattern("5", 1), pattern("5", 2));
}

TEST(DatagramFaults, hit_about_the_share_that_was_asked_for) {
    DatagramFaults faults = faults_of("drop:share=10%");
    int dropped = 0;
    for (int i = 0; i < 10'000; ++i) dropped += passes(faults, 1) ? 0 : 1;
    EXPECT_GT(dropped, 800);
    EXPECT_LT(dropped, 1200);
}

}  // namespace
}  // namespace rmem::udp
