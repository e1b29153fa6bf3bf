// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/arrivals.hpp"

#include "rmem/link/udp/protocol/datagram_writer.hpp"
#include "tests/support/broken.hpp"
#include "tests/support/child.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rmem::udp {
namespace {

constexpr std::int64_t kNow = 1'000'000'000;

/// Node 0 of four, to which batches come that tests make.
class ArrivalsTest : public ::testing::Test {
protected:
    void open(const std::string& timing, std::int64_t bound_ns = 0) {
        RingConfig config = name_.config(4, LinkKind::udp);
        config.timing = parse_timing(timing);
        config.bound_ns = bound_ns;
        ring_ = Ring::open(config, Deadline::in(kNow), 0);
        interrupts_.reset(new InterruptBoard(InterruptBoard::of_engine(*ring_, 0)));
        roster_.emplace(*ring_, 0);
        tap_.emplace(*ring_);
        arrivals_.emplace(*ring_, 0, *interrupts_, *roster_, *tap_);
    }
    /// One word of this value at the origin's place, stored at that time by the origin's clock,
    /// which is known so well.
    void take(unsigned origin, std::uint32_t value, std::int64_t written, std::int64_t now,
              std::int64_t error_ns = 0) {
        take_batch(origin, origin, {{value}}, {written, error_ns}, now);
    }
    /// Writes of these words, one behind the other from that word on.
    void take_batch(unsigned origin, std::size_t index,
                    const std::vector<std::vector<std::uint32_t>>& writes,
                    const RoundTrip::Estimate& written, std::int64_t now,
                    Arrivals::Showing showing = Arrivals::Showing::in_time) {
        std::vector<std::byte> buffer(kDefaultPayload);
        DatagramWriter writer(buffer);
        writer.begin({});
        ASSERT_TRUE(writer.begin_batch(++sequences_.at(origin), written.value_ns));
        for (const auto& words : writes) {
            const auto count = static_cast<std::uint16_t>(words.size());
            ASSERT_TRUE(writer.add_record({index, count, 0}, words.data()));
            index += count;
        }
        arrivals_->take(origin, Batch(writer.end_batch()), written, now, showing);
    }
    std::uint32_t word(std::size_t index) const {
        return reinterpret_cast<const std::atomic<std::uint32_t>*>(ring_->bank(0))[index].load();
    }
    std::uint64_t count(LinkCounter id) const { return ring_->node(0).link.get(id); }

    test::RingName name_;
    std::shared_ptr<Ring> ring_;
    std::unique_ptr<InterruptBoard> interrupts_;
    std::optional<Roster> roster_;
    std::optional<Tap> tap_;
    std::optional<Arrivals> arrivals_;
    std::array<std::uint64_t, 4> sequences_{};
};

TEST_F(ArrivalsTest, are_in_the_bank_when_they_come) {
    open("none");
    take(1, 7, kNow, kNow + 1000);
    EXPECT_EQ(word(1), 7U);
    EXPECT_TRUE(arrivals_->take_news());
    EXPECT_FALSE(arrivals_->take_news());
    EXPECT_EQ(arrivals_->due_ns(), kNever);
    EXPECT_EQ(ring_->node(1).propagation.max(), 1000U);
}

TEST_F(ArrivalsTest, are_news_of_users_in_their_memory_alone) {
    open("none");
    const std::size_t users_words = ring_->config().user_bytes / kWordBytes;
    take_batch(0, users_words, {{1}}, {kNow, 0}, kNow);
    EXPECT_FALSE(arrivals_->take_news_of_users()) << "the billboard's";
    EXPECT_TRUE(arrivals_->take_news());
    take_batch(0, users_words - 1, {{1}}, {kNow, 0}, kNow + 1);
    EXPECT_TRUE(arrivals_->take_news_of_users());
    EXPECT_FALSE(arrivals_->take_news_of_users());
}

TEST_F(ArrivalsTest, count_and_measure_each_write_of_a_batch) {
    constexpr std::uint64_t kWrites = 5;
    open("none", 5'000);
    const std::vector<std::vector<std::uint32_t>> writes(kWrites, {7, 8});
    take_batch(1, 0, writes, {kNow, 0}, kNow + 5'000);
    for (std::size_t i = 0; i < 2 * kWrites; ++i) EXPECT_EQ(word(i), 7 + i % 2);
    EXPECT_EQ(count(LinkCounter::writes_applied), kWrites);
    EXPECT_EQ(count(LinkCounter::bytes_applied), kWrites * 2 * kWordBytes);
    EXPECT_EQ(ring_->node(0).propagation.count(), kWrites);
    EXPECT_EQ(ring_->node(1).propagation.count(), kWrites);
    EXPECT_EQ(count(LinkCounter::bound_violations), 0U);
    take_batch(1, 0, writes, {kNow, 0}, kNow + 5'001);
    EXPECT_EQ(count(LinkCounter::bound_violations), kWrites);
    EXPECT_EQ(count(LinkCounter::bound_missed_by_host), 0U);
    const auto violations = arrivals_->take_violations();
    ASSERT_EQ(violations.size(), kWrites);
    EXPECT_EQ(violations.front().origin, 1U);
    EXPECT_EQ(violations.front().propagation_ns, 5'001);
    EXPECT_FALSE(arrivals_->has_violations());
    EXPECT_EQ(ring_->node(0).propagation.count(), 2 * kWrites);
    EXPECT_EQ(ring_->node(1).propagation.count(), 2 * kWrites);
}

TEST_F(ArrivalsTest, writes_that_may_have_kept_the_bound_as_far_as_clocks_tell_break_none) {
    open("none", 5'000);
    take(1, 1, kNow, kNow + 5'400, 400);
    EXPECT_EQ(count(LinkCounter::bound_violations), 0U);
    take(1, 1, kNow, kNow + 5'401, 400);
    EXPECT_EQ(count(LinkCounter::bound_violations), 1U);
}

TEST_F(ArrivalsTest, writes_of_a_profile_are_deferred_until_the_card_would_have_had_them) {
    open("scramnet-burst");
    take(1, 7, kNow, kNow + 10);
    EXPECT_EQ(word(1), 0U) << "no card is that fast";
    const std::int64_t due = arrivals_->due_ns();
    EXPECT_GT(due, kNow + 10);
    EXPECT_LT(due, kNow + 100'000);
    arrivals_->apply_due(due - 1);
    EXPECT_EQ(word(1), 0U);
    arrivals_->apply_due(due);
    EXPECT_EQ(word(1), 7U);
    EXPECT_EQ(arrivals_->deferred(), 1U);
}

TEST_F(ArrivalsTest, are_never_earlier_than_the_card_however_wrong_the_clock_may_be) {
    open("scramnet-burst");
    take(1, 7, kNow, kNow + 700, 600);
    const std::int64_t due = arrivals_->due_ns();
    arrivals_->apply_all(kNow + 700);
    take(2, 7, kNow, kNow + 700, 0);
    EXPECT_LT(arrivals_->due_ns(), due - 600) << "node 2 is one hop nearer, too";
}

TEST_F(ArrivalsTest, writes_of_one_transmitter_come_at_its_rate_and_of_two_at_both) {
    open("scramnet-burst");
    for (int i = 0; i < 100; ++i) take(3, static_cast<std::uint32_t>(i + 1), kNow, kNow + 10);
    const std::int64_t word_ns = 615;  // 6.5 MB/s, as it is given
    arrivals_->apply_due(kNow + 50 * word_ns);
    EXPECT_NEAR(word(3), 50, 3);
    take(2, 1, kNow, kNow + 10);
    arrivals_->apply_due(kNow + 52 * word_ns);
    EXPECT_EQ(word(2), 1U);
    arrivals_->apply_all(kNow);
    EXPECT_EQ(word(3), 100U);
    EXPECT_EQ(arrivals_->due_ns(), kNever);
}

TEST_F(ArrivalsTest, writes_that_come_late_do_not_overtake_deferred_ones) {
    open("scramnet-burst");
    take(1, 1, kNow, kNow + 10);
    take(1, 2, kNow - 1'000'000'000, kNow + 20);
    EXPECT_EQ(word(1), 0U);
    arrivals_->apply_due(arrivals_->due_ns());
    EXPECT_EQ(word(1), 1U);
    arrivals_->apply_due(arrivals_->due_ns());
    EXPECT_EQ(word(1), 2U);
}

TEST_F(ArrivalsTest, say_by_how_many_batches_the_bank_is_behind) {
    open("scramnet-burst");
    EXPECT_EQ(arrivals_->behind(1), 0U);
    for (std::uint32_t i = 1; i <= 5; ++i) take(1, i, kNow, kNow + 10);
    take(2, 1, kNow, kNow + 10);
    EXPECT_EQ(arrivals_->behind(1), 5U);
    EXPECT_EQ(arrivals_->behind(2), 1U);
    EXPECT_TRUE(arrivals_->take_published().empty());
    while (arrivals_->behind(1) > 2) arrivals_->apply_due(arrivals_->due_ns());
    EXPECT_EQ(word(1), 3U);
    EXPECT_TRUE(arrivals_->take_published().contains(1));
    EXPECT_TRUE(arrivals_->take_published().empty()) << "it says so once";
    arrivals_->apply_all(kNow);
    EXPECT_EQ(arrivals_->behind(1), 0U);
    EXPECT_EQ(arrivals_->behind(2), 0U);
}

TEST_F(ArrivalsTest, writes_of_a_node_that_has_gone_are_published_at_once_and_hold_up_nobody_else) {
    open("scramnet-burst");
    for (std::uint32_t i = 1; i <= 100; ++i) take(1, i, kNow, kNow + 10);
    take(2, 1, kNow, kNow + 10);
    arrivals_->apply_all_of(1, kNow + 10);
    EXPECT_EQ(word(1), 100U);
    EXPECT_EQ(word(2), 0U);
    take_batch(1, 1, {{101}}, {kNow + 10, 0}, kNow + 10, Arrivals::Showing::at_once);
    EXPECT_EQ(word(1), 101U);
    take(1, 102, kNow + 10, kNow + 20);
    EXPECT_LT(arrivals_->due_ns(), kNow + 10'000) << "a new life's card is idle";
    arrivals_->apply_due(arrivals_->due_ns());
    EXPECT_EQ(word(2), 1U);
}

TEST_F(ArrivalsTest, writes_that_say_a_time_later_than_now_are_deferred_no_longer_than_others) {
    open("scramnet-burst");
    take(1, 1, kNow, kNow);
    const std::int64_t due = arrivals_->due_ns();
    arrivals_->apply_all_of(1, kNow);
    take(1, 2, kNow + 1'000'000'000'000, kNow);
    EXPECT_EQ(arrivals_->due_ns(), due);
}

TEST_F(ArrivalsTest, notice_a_batch_that_comes_after_a_later_one) {
    open("scramnet-burst");
    take(1, 7, kNow, kNow + 10);
    take(1, 8, kNow, kNow + 10);
    sequences_[1] = 0;
    EXPECT_BROKEN_WHERE_CHECKED(take(1, 9, kNow, kNow + 10));
}

}  // namespace
}  // namespace rmem::udp
