// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/outbox.hpp"

#include "tests/rmem/link/udp/outbox_fixture.hpp"
#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace rmem::udp {
namespace {

constexpr std::int64_t kStep = 100;

TEST_F(OutboxTest, a_commit_leaves_at_once_with_all_that_was_put) {
    ASSERT_TRUE(put(1) && put(2));
    EXPECT_TRUE(batches().empty());
    outbox.commit(now);
    ASSERT_EQ(batches().size(), 1U);
    EXPECT_EQ(batches()[0], (std::vector<std::uint32_t>{1, 2}));
}

TEST_F(OutboxTest, takes_of_a_log_what_is_committed_or_all) {
    append({1});
    EXPECT_FALSE(outbox.has_news(Outbox::Take::committed));
    EXPECT_FALSE(take(Outbox::Take::committed));
    commit_log();
    append({2});
    EXPECT_TRUE(outbox.has_news(Outbox::Take::committed));
    EXPECT_FALSE(outbox.has_news(Outbox::Take::of_clients)) << "it is the own one";
    EXPECT_FALSE(take(Outbox::Take::of_clients));
    EXPECT_TRUE(take(Outbox::Take::committed));
    EXPECT_EQ(batches().back(), (std::vector<std::uint32_t>{1}));
    EXPECT_FALSE(outbox.has_all());
    EXPECT_TRUE(take(Outbox::Take::all));
    EXPECT_EQ(batches().back(), (std::vector<std::uint32_t>{2}));
    EXPECT_TRUE(outbox.has_all());
    EXPECT_EQ(ring->board().consumed[0].load(), log.head());
}

TEST_F(OutboxTest, takes_long_writes_in_order_and_a_number_of_datagrams_at_a_time) {
    const std::vector<std::uint32_t> words = some_words();
    for (auto at = words.begin(); at != words.end();) {
        const auto part = std::min<std::ptrdiff_t>(kMaxRecordWords, words.end() - at);
        append({at, at + part});
        at += part;
    }
    commit_log();
    EXPECT_EQ(words_taken_in_parts(), words);
    EXPECT_LE(most_datagrams, 3U) << "a write may end in the next";
    EXPECT_GT(takes, 10U);
}

TEST_F(OutboxTest, takes_the_words_of_a_long_write_from_the_bank_part_by_part) {
    std::vector<std::uint32_t> words = some_words();
    std::memcpy(ring->bank(0), words.data(), words.size() * kWordBytes);
    log.append(record_in_bank(words.size()), nullptr);
    append({77});
    commit_log();
    words.push_back(77);
    EXPECT_EQ(words_taken_in_parts(), words);
    EXPECT_TRUE(outbox.has_all());
}

/// A client's log comes before the own one's here.
TEST_F(OutboxTest, goes_on_with_a_long_write_where_it_was_though_a_client_writes_meanwhile) {
    ring->board().opened[1].store(1);
    ring->rank(1).state.store(static_cast<std::uint32_t>(RankState::joined));
    Outbox of_second{*ring, core, tap, roster, 1};
    of_second.find_programs();
    LogWriter second{ring->log(1)};
    second.append(record_in_bank(10'000), nullptr);
    batches();
    std::size_t words = 0;
    for (; of_second.take(Outbox::Take::all, 2, now); batches()) {
        ASSERT_LT(++takes, 1000U) << "it begins again and again";
        if (takes < 10) append({77});
    }
    of_second.commit(now);
    for (const auto& batch : batches()) words += batch.size();
    EXPECT_EQ(words, 10'009U);
}

TEST_F(OutboxTest, leaves_in_the_log_what_there_is_no_room_for) {
    constexpr std::uint32_t kDelayNs = 1'000'000;
    for (std::size_t i = 0; i + 1 < Outbox::kMaxDelayed; ++i) ASSERT_TRUE(put(1, kDelayNs));
    append({7}, 2 * kDelayNs);
    append({8});
    EXPECT_TRUE(take(Outbox::Take::all));
    EXPECT_FALSE(take(Outbox::Take::all));
    EXPECT_FALSE(outbox.has_all());
    outbox.on_time(now + kDelayNs);
    batches();
    EXPECT_TRUE(take(Outbox::Take::all));
    outbox.on_time(now + 2 * kDelayNs);
    EXPECT_EQ(batches().back(), (std::vector<std::uint32_t>{8}));
}

TEST_F(OutboxTest, says_since_when_something_waits_in_the_log_or_in_a_datagram) {
    EXPECT_EQ(outbox.open_since_ns(), kNever);
    const std::int64_t first = now;
    append({1});
    now += kStep;
    append({2});
    EXPECT_EQ(outbox.open_since_ns(), first);
    EXPECT_FALSE(outbox.is_committed());
    commit_log();
    EXPECT_TRUE(outbox.is_committed());
    EXPECT_TRUE(outbox.take(Outbox::Take::committed, 1000, now));
    EXPECT_EQ(outbox.open_since_ns(), first) << "in a datagram that is open";
    outbox.commit(now);
    EXPECT_EQ(outbox.open_since_ns(), kNever);
}

/// Nobody else writes it, but it is shared memory.
TEST_F(OutboxTest, refuses_a_record_beyond_the_bank_and_goes_on_behind_it) {
    const std::uint32_t value = 1;
    log.append(record_beyond_the_bank(), &value);
    EXPECT_TRUE(take(Outbox::Take::all));
    EXPECT_TRUE(batches().empty());
    EXPECT_EQ(ring->node(0).link.get(LinkCounter::records_refused), 1U);
    append({2});
    EXPECT_TRUE(take(Outbox::Take::all));
    EXPECT_EQ(batches().size(), 1U);
}

TEST_F(OutboxTest, a_delayed_write_holds_up_what_comes_after_it) {
    ASSERT_TRUE(put(1, 5'000));
    ASSERT_TRUE(put(2));
    outbox.commit(now);
    EXPECT_TRUE(batches().empty());
    EXPECT_EQ(outbox.due_ns(), now + 5'000);
    EXPECT_FALSE(outbox.is_completed());
    outbox.on_time(now + 5'000);
    ASSERT_EQ(batches().size(), 2U);
    EXPECT_EQ(batches()[0], (std::vector<std::uint32_t>{1}));
    EXPECT_EQ(batches()[1], (std::vector<std::uint32_t>{2}));
    EXPECT_TRUE(outbox.is_completed());
}

TEST_F(OutboxTest, notices_a_write_beyond_the_bank) {
    const std::uint32_t value = 1;
    EXPECT_BROKEN_WHERE_CHECKED(
        static_cast<void>(outbox.put(record_beyond_the_bank(), &value, now)));
}

TEST_F(OutboxTest, a_new_incarnation_begins_with_nothing) {
    append({1});
    commit_log();
    ASSERT_TRUE(put(1, 5'000));
    outbox.begin_incarnation();
    EXPECT_EQ(outbox.due_ns(), kNever);
    EXPECT_EQ(outbox.open_since_ns(), kNever);
    EXPECT_EQ(ring->board().completed[0].load(), log.head()) << "nobody waits for it";
}

}  // namespace
}  // namespace rmem::udp
