// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/outbox.hpp"

#include "tests/support/broken.hpp"
#include "tests/support/child.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

namespace rmem::udp {
namespace {

constexpr std::int64_t kStep = 100;

/// What a node alone in its ring sends.
class Wire final : public CoreEdge {
public:
    explicit Wire(std::size_t bank_bytes) : bank_(bank_bytes) {}

    /// The words of the batch in each datagram that had one, in the order in which they left.
    std::vector<std::vector<std::uint32_t>> batches;

    void take(std::span<const std::byte> bytes) {
        Datagram datagram;
        ASSERT_EQ(read_datagram(bytes, 1, kDefaultPayload, datagram), Refusal::none);
        Sections sections;
        ASSERT_EQ(read_sections(datagram, sections), Refusal::none);
        for (const Section& section : sections) {
            if (section.type() != SectionType::batch) continue;
            auto& words = batches.emplace_back();
            for (const Record& record : Batch(section).records()) {
                for (std::size_t i = 0; i < record.place.words; ++i) {
                    words.push_back(record.words[i]);
                }
            }
        }
    }
    void apply(unsigned, const Batch&, std::int64_t) override {}
    void store(std::uint64_t, std::uint32_t) override {}
    std::span<const std::byte> bank() override { return bank_; }
    void clear_bank() override {}
    void has_joined(std::int64_t) override {}
    void was_dropped(std::int64_t) override {}
    void member_came(unsigned, std::int64_t) override {}
    void member_left(unsigned, std::int64_t) override {}

private:
    std::vector<std::byte> bank_;
};

class OutboxTest : public ::testing::Test {
protected:
    OutboxTest() {
        while (!core.is_member()) core.on_tick(now += kJoinNs);
        // relaxed is enough: there is one thread
        ring->board().membership_epoch.store(1, std::memory_order_relaxed);
        outbox.begin_incarnation();
        ring->board().opened[0].store(1);
        ring->rank(0).state.store(static_cast<std::uint32_t>(RankState::joined));
        outbox.find_programs();
    }

    static RingConfig config(const test::RingName& name) {
        RingConfig config = name.config(1, LinkKind::udp, 65536);
        config.ranks = 2;
        return config;
    }
    static CoreConfig core_config(const RingConfig& ring) {
        CoreConfig config;
        config.exchange.ring = 1;
        config.exchange.nodes = 1;
        config.exchange.incarnation = 1;
        config.exchange.bank_bytes = ring.bank_bytes();
        return config;
    }
    LogRecord record(std::size_t words, std::uint32_t delay_ns = 0) const {
        return {
            .written_ns = now, .words = static_cast<std::uint32_t>(words), .delay_ns = delay_ns};
    }
    /// Its words are in the bank.
    LogRecord record_in_bank(std::size_t words) const {
        LogRecord made = record(words);
        made.flags = LogRecord::kInBank;
        return made;
    }
    LogRecord record_beyond_the_bank() const {
        LogRecord made = record(1);
        made.offset = ring->config().bank_bytes();
        return made;
    }
    bool put(std::uint32_t value, std::uint32_t delay_ns = 0) {
        return outbox.put(record(1, delay_ns), &value, now);
    }
    /// Into the log of the program that runs the engine.
    void append(const std::vector<std::uint32_t>& words, std::uint32_t delay_ns = 0) {
        log.append(record(words.size(), delay_ns), words.data());
    }
    void commit_log() { ring->board().committed[0].store(log.head()); }
    bool take(Outbox::Take what, std::size_t datagrams = 1000) {
        const bool any = outbox.take(what, datagrams, now);
        outbox.commit(now);
        return any;
    }
    /// What has left.
    const std::vector<std::vector<std::uint32_t>>& batches() {
        core.outgoing().drain([this](const OutgoingDatagram& sent) { wire.take(sent.bytes); });
        return wire.batches;
    }
    static std::vector<std::uint32_t> some_words() {
        std::vector<std::uint32_t> words(10'000);
        std::iota(words.begin(), words.end(), 1);
        return words;
    }
    /// All that is committed, taken two datagrams at a time.
    std::vector<std::uint32_t> words_taken_in_parts() {
        batches();
        for (; outbox.take(Outbox::Take::committed, 2, now); ++takes) {
            most_datagrams = std::max(most_datagrams, core.outgoing().count());
            batches();
        }
        outbox.commit(now);
        std::vector<std::uint32_t> came;
        for (const auto& batch : batches()) came.insert(came.end(), batch.begin(), batch.end());
        return came;
    }

    unsigned takes = 0;
    std::size_t most_datagrams = 0;  ///< of one of these

    test::RingName name;
    std::shared_ptr<Ring> ring = Ring::open(config(name), Deadline::in(1'000'000'000), 0);
    std::int64_t now = 1;
    Authenticator authenticator;
    Wire wire{ring->config().bank_bytes()};
    Core core{core_config(ring->config()), authenticator, wire, now};
    Tap tap{*ring};
    Outbox outbox{*ring, 0, core, tap, 0};
    LogWriter log{ring->log(0)};
};

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
    Outbox of_second{*ring, 0, core, tap, 1};
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
    for (std::size_t i = 0; i + 1 < Outbox::kMostDelayed; ++i) ASSERT_TRUE(put(1, kDelayNs));
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
