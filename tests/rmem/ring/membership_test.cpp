// SPDX-License-Identifier: Apache-2.0
// Rings that stay when their members have left.
#include "rmem/ring/membership.hpp"

#include "rmem/node.hpp"
#include "rmem/ring/node_slot.hpp"
#include "tests/support/child.hpp"
#include "tests/support/refused.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

namespace rmem::test {
namespace {

RingConfig config_of(const RingName& name, LinkKind link, const char* timing = "none") {
    RingConfig config = name.config(2, link);
    config.timing = parse_timing(timing);
    return config;
}

std::shared_ptr<Ring> open(const RingConfig& config) {
    return Ring::open(config, Deadline::in(kPatienceNs));
}

std::uint32_t word_of(const Ring& ring, unsigned node, std::size_t offset) {
    auto* const word = reinterpret_cast<std::uint32_t*>(ring.bank(node) + offset);
    return std::atomic_ref(*word).load();
}

void write(Node& node, std::size_t offset, std::uint32_t value) {
    EXPECT_EQ(node.write_word(offset, value), WriteResult::ok);
    EXPECT_TRUE(node.flush(Deadline::in(kPatienceNs)));
}

/// A ring that stays, until the end of the test.
class StayingRing : public ::testing::TestWithParam<const char*> {
protected:
    StayingRing() { open(config_)->set_stays(true); }
    ~StayingRing() override { Ring::attach(name_.get())->set_stays(false); }

    /// One rank alone writes, and leaves.
    void write_alone(unsigned rank, std::size_t offset, std::uint32_t value) const {
        Node node(config_, {rank, rank});
        write(node, offset, value);
    }

    const RingName name_;
    const RingConfig config_ = config_of(name_, LinkKind::ring, GetParam());
};
INSTANTIATE_TEST_SUITE_P(With, StayingRing, ::testing::Values("none", "scramnet-burst"),
                         [](const auto& test) { return std::string(test.param).substr(0, 4); });

TEST_P(StayingRing, gives_those_who_come_what_the_last_ones_left) {
    write_alone(1, 0x40, 7);
    EXPECT_TRUE(name_.exists());
    const auto ring = open(config_);
    EXPECT_EQ(word_of(*ring, 1, 0x40), 7U);
    EXPECT_EQ(word_of(*ring, 0, 0x40), 7U) << "node 0 was not there when it was written";
    EXPECT_EQ(Node(ring, {0, 0}).load(0x40), 7U);
}

TEST_P(StayingRing, goes_on_from_the_newest_bank_by_whichever_rank_comes_first) {
    write_alone(0, 0x40, 1);
    write_alone(1, 0x40, 2);
    write_alone(0, 0x44, 3);
    Node back(config_, {1, 1});
    EXPECT_EQ(back.load(0x40), 2U);
    EXPECT_EQ(back.load(0x44), 3U);
}

TEST_P(StayingRing, undoes_no_newer_write_with_an_older_one_from_a_log) {
    const auto ring = open(config_);  // is there all the time, as `rmem run` is
    {
        Node a(ring, {0, 0}), b(ring, {1, 1});
        write(a, 0x40, 1);
        write(b, 0x40, 2);
    }
    Node b(ring, {1, 1});
    b.poll();
    EXPECT_EQ(b.load(0x40), 2U) << "rank 0's write is in its log still";
}

TEST_P(StayingRing, knows_nothing_of_its_former_members) {
    write_alone(1, 0x40, 7);
    EXPECT_EQ(Ring::observe(name_.get())->rank(1).incarnation.load(), 1U) << "until somebody comes";
    const auto ring = open(config_);
    EXPECT_EQ(ring->rank(1).incarnation.load(), 0U);
    EXPECT_EQ(ring->rank(1).state.load(), static_cast<std::uint32_t>(RankState::absent));
    EXPECT_EQ(ring->node(1).applied[1].load(), 0U);
    EXPECT_EQ(word_of(*ring, 1, 0x40), 7U);
}

TEST_P(StayingRing, is_refused_where_settings_differ_and_not_replaced) {
    write_alone(0, 0x40, 7);
    RingConfig other = config_;
    other.user_bytes = 8192;
    refused(Errc::config_mismatch, [&] { open(other); });
    EXPECT_EQ(word_of(*Ring::observe(name_.get()), 0, 0x40), 7U);
}

TEST(StayingRingOfOneBank, clears_what_protocols_had_in_it_and_not_the_users_memory) {
    const RingName name;
    RingConfig config = config_of(name, LinkKind::direct);
    config.system_bytes = 4096;
    config.system_hash = 1;
    {
        const auto ring = open(config);
        ring->set_stays(true);
        ring->bank(0)[4095] = std::byte{1};
        ring->bank(0)[4096] = std::byte{2};
    }
    const auto ring = open(config);
    EXPECT_EQ(ring->bank(0)[4095], std::byte{1});
    EXPECT_EQ(ring->bank(0)[4096], std::byte{0});
    ring->bank(0)[4096] = std::byte{3};
    EXPECT_EQ(open(config)->bank(0)[4096], std::byte{3}) << "only for the first to come";
    ring->set_stays(false);
}

TEST(StayingRingOfOneBank, keeps_its_memory_until_it_is_told_to_go) {
    const RingName name;
    const RingConfig config = config_of(name, LinkKind::direct);
    open(config)->set_stays(true);
    {
        Node node(config, {0, 0});
        EXPECT_EQ(node.write_word(0x40, 7), WriteResult::ok);
    }
    EXPECT_TRUE(Ring::observe(name.get())->stays());
    EXPECT_FALSE(Ring::observe(name.get())->has_members());
    EXPECT_EQ(Node(config, {1, 1}).load(0x40), 7U);
    Ring::attach(name.get())->set_stays(false);
    EXPECT_FALSE(name.exists());
}

}  // namespace
}  // namespace rmem::test
