// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/outbox.hpp"

#include "tests/support/broken.hpp"
#include "tests/support/child.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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
    }

    static RingConfig config(const std::string& name) {
        RingConfig config;
        config.name = name;
        config.nodes = config.ranks = 1;
        config.link = LinkKind::udp;
        config.user_bytes = 65536;
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
    bool put(std::uint32_t value, std::uint32_t delay_ns = 0) {
        LogRecord record;
        record.words = 1;
        record.written_ns = now;
        record.delay_ns = delay_ns;
        return outbox.put(record, &value, now);
    }
    void send(std::uint32_t value) {
        now += kStep;
        ASSERT_TRUE(put(value));
        outbox.commit(now);
    }
    /// What has left.
    const std::vector<std::vector<std::uint32_t>>& batches() {
        core.outgoing().drain([this](const OutgoingDatagram& sent) { wire.take(sent.bytes); });
        return wire.batches;
    }
    std::uint32_t send_until_loaded(std::uint32_t value = 0) {
        while (!outbox.coalescer().coalesces()) send(++value);
        return value;
    }

    test::RingName name;
    std::shared_ptr<Ring> ring = Ring::open(config(name.get()), Deadline::in(1'000'000'000), 0);
    std::int64_t now = 1;
    Authenticator authenticator;
    Wire wire{ring->config().bank_bytes()};
    Core core{core_config(ring->config()), authenticator, wire, now};
    Tap tap{*ring};
    Outbox outbox{*ring, 0, core, tap};
};

TEST_F(OutboxTest, a_commit_leaves_at_once_with_all_that_was_put) {
    ASSERT_TRUE(put(1) && put(2));
    EXPECT_TRUE(batches().empty());
    outbox.commit(now);
    ASSERT_EQ(batches().size(), 1U);
    EXPECT_EQ(batches()[0], (std::vector<std::uint32_t>{1, 2}));
    EXPECT_EQ(outbox.due_ns(), kNever);
}

TEST_F(OutboxTest, takes_a_block_of_any_length_in_order) {
    std::vector<std::uint32_t> words(10'000), came;
    std::iota(words.begin(), words.end(), 1);
    LogRecord record;
    record.words = static_cast<std::uint32_t>(words.size());
    record.written_ns = now;
    const auto bytes = std::as_bytes(std::span(words));
    EXPECT_EQ(outbox.put_some(record, bytes.data()), words.size());
    outbox.commit(now);
    for (const auto& batch : batches()) came.insert(came.end(), batch.begin(), batch.end());
    EXPECT_EQ(came, words);
}

TEST_F(OutboxTest, takes_of_a_block_what_there_is_room_for_and_says_how_much) {
    constexpr std::uint32_t kDelayNs = 1'000'000;
    for (std::size_t i = 0; i + 1 < Outbox::kMostDelayed; ++i) ASSERT_TRUE(put(1, kDelayNs));
    const std::vector<std::uint32_t> words(10'000, 7);
    LogRecord record;
    record.words = static_cast<std::uint32_t>(words.size());
    record.written_ns = now;
    record.delay_ns = 2 * kDelayNs;
    const auto bytes = std::as_bytes(std::span(words));
    const std::size_t taken = outbox.put_some(record, bytes.data());
    EXPECT_GT(taken, 0U);
    EXPECT_LT(taken, words.size());
    EXPECT_EQ(outbox.put_some(record, bytes.data()), 0U);
    outbox.on_time(now + kDelayNs);
    ASSERT_FALSE(batches().empty());
    outbox.on_time(now + 2 * kDelayNs);
    std::size_t sevens = 0;
    for (const auto& batch : batches())
        sevens += static_cast<std::size_t>(std::count(batch.begin(), batch.end(), 7U));
    EXPECT_EQ(sevens, taken);
}

TEST_F(OutboxTest, what_is_not_committed_leaves_after_a_while) {
    ASSERT_TRUE(put(1));
    EXPECT_EQ(outbox.due_ns(), now + kLazyNs);
    outbox.on_time(now + kLazyNs - 1);
    EXPECT_TRUE(batches().empty());
    outbox.on_time(now + kLazyNs);
    EXPECT_EQ(batches().size(), 1U);
}

TEST_F(OutboxTest, a_program_that_only_sends_fills_datagrams_after_a_few) {
    const std::uint32_t first_open = send_until_loaded();
    EXPECT_EQ(first_open, kLoad);
    EXPECT_EQ(batches().size(), kLoad - 1);
    for (std::uint32_t i = 1; i < 100; ++i) send(first_open + i);
    EXPECT_EQ(batches().size(), kLoad - 1) << "100 words fit a datagram, and it is not yet due";
    outbox.on_time(outbox.due_ns());
    ASSERT_EQ(batches().size(), kLoad);
    ASSERT_EQ(batches().back().size(), 100U);
    EXPECT_EQ(batches().back().front(), first_open);
    EXPECT_EQ(batches().back().back(), first_open + 99);
    EXPECT_FALSE(outbox.coalescer().coalesces());
}

TEST_F(OutboxTest, no_commit_keeps_back_what_has_waited_long_enough) {
    send_until_loaded();
    now = outbox.due_ns();
    const std::size_t before = batches().size();
    ASSERT_TRUE(put(77));
    outbox.commit(now);
    EXPECT_EQ(batches().size(), before + 1);
    EXPECT_EQ(batches().back().back(), 77U);
}

TEST_F(OutboxTest, what_waits_for_more_leaves_when_the_program_waits) {
    const std::uint32_t last = send_until_loaded();
    const std::size_t before = batches().size();
    outbox.send_coalesced(now);
    ASSERT_EQ(batches().size(), before + 1);
    EXPECT_EQ(batches().back(), (std::vector<std::uint32_t>{last}));
    outbox.send_coalesced(now);
    EXPECT_EQ(batches().size(), before + 1);
}

TEST_F(OutboxTest, what_is_committed_on_wait_leaves_when_the_program_waits_and_once) {
    ASSERT_TRUE(put(1));
    outbox.commit_on_wait();
    EXPECT_TRUE(batches().empty()) << "an answer may take it along";
    outbox.send_coalesced(now);
    ASSERT_EQ(batches().size(), 1U);
    EXPECT_EQ(batches()[0], (std::vector<std::uint32_t>{1}));
    outbox.commit_on_wait();
    EXPECT_FALSE(outbox.coalescer().coalesces()) << "nothing was put since";
    outbox.send_coalesced(now);
    EXPECT_EQ(batches().size(), 1U);
}

TEST_F(OutboxTest, what_is_committed_on_wait_rides_on_the_answer_or_leaves_after_a_while) {
    ASSERT_TRUE(put(1));
    outbox.commit_on_wait();
    send(2);
    ASSERT_EQ(batches().size(), 1U);
    EXPECT_EQ(batches()[0], (std::vector<std::uint32_t>{1, 2}));
    EXPECT_FALSE(outbox.coalescer().coalesces());
    ASSERT_TRUE(put(3));
    outbox.commit_on_wait();
    EXPECT_EQ(outbox.due_ns(), now + kLazyNs);
    outbox.on_time(now + kLazyNs);
    EXPECT_EQ(batches().size(), 2U);
    EXPECT_FALSE(outbox.coalescer().coalesces());
}

TEST_F(OutboxTest, messages_that_are_answered_are_never_kept_back) {
    for (std::uint32_t i = 0; i < 1000; ++i) {
        const unsigned burst = 1 + i % (kLoad / 2);
        for (unsigned k = 0; k < burst; ++k) send(i);
        EXPECT_FALSE(outbox.coalescer().coalesces()) << i;
        outbox.send_coalesced(now += kStep);
    }
}

TEST_F(OutboxTest, load_is_forgotten_in_silence) {
    send_until_loaded();
    outbox.send_coalesced(now);
    now += kQuietNs;
    send(5);
    EXPECT_FALSE(outbox.coalescer().coalesces());
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
    LogRecord record;
    record.words = 1;
    record.offset = ring->config().bank_bytes();
    const std::uint32_t value = 1;
    EXPECT_BROKEN_WHERE_CHECKED(static_cast<void>(outbox.put(record, &value, now)));
}

TEST_F(OutboxTest, a_new_incarnation_begins_with_nothing) {
    send_until_loaded();
    ASSERT_TRUE(put(1, 5'000));
    outbox.begin_incarnation();
    EXPECT_FALSE(outbox.coalescer().coalesces());
    EXPECT_EQ(outbox.due_ns(), kNever);
}

}  // namespace
}  // namespace rmem::udp
