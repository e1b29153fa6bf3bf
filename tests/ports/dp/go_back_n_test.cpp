// SPDX-License-Identifier: Apache-2.0
// The Go-Back-N layer in a model: a network that loses, and a receiver whose pool is full at times.
#include "ports/dp/go_back_n.hpp"

#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

namespace ports::dp {
namespace {

constexpr std::int64_t kUs = 1000, kMs = 1'000'000;

std::vector<std::byte> numbered(std::uint32_t i) {
    std::vector<std::byte> bytes(4);
    std::memcpy(bytes.data(), &i, 4);
    return bytes;
}

struct Loss {
    double data, acks;
    std::int64_t delay_ns;
    unsigned pool;  ///< messages that the receiver has room for
};

/// Both ends, and what is between them. Time goes on by events.
class Model {
public:
    Model(Loss loss, unsigned seed, std::uint32_t first = 0)
        : loss_(loss), random_(seed), first_(first), sender_(7, first), receiver_(first) {}

    /// Until that number was delivered, or it has gone on for too long.
    void run(std::uint32_t messages) {
        while (taken_ < messages && now_ < 300'000 * kMs) {
            while (pushed_ < messages && sender_.has_room()) sender_.push(numbered(pushed_++));
            send();
            receiver_reads();
            step();
            if (sender_.is_broken()) return;
        }
    }
    std::uint32_t taken() const { return taken_; }
    std::int64_t now() const { return now_; }
    unsigned sent_again() const { return again_; }
    std::size_t most_window() const { return most_window_; }
    GoBackNSender& sender() { return sender_; }

private:
    struct Event {
        bool is_data;
        std::uint32_t sequence;
        bool gap;
    };
    bool lost(double share) { return std::uniform_real_distribution<>(0, 1)(random_) < share; }
    void send() {
        while (const auto* message = sender_.to_send()) {
            const std::uint32_t sequence = sender_.sequence_to_send();
            std::uint32_t number = 0;
            std::memcpy(&number, message->data(), 4);
            ASSERT_EQ(first_ + number, sequence);
            if (sender_.sent(now_)) ++again_;
            if (!lost(loss_.data)) at_.emplace(now_ + loss_.delay_ns, Event{true, sequence, false});
        }
        most_window_ = std::max(most_window_, sender_.window());
    }
    void receiver_reads() {
        if (pool_ != 0 && random_() % 2 == 0) --pool_;
        if (receiver_.is_blocked() && pool_ <= loss_.pool / 2) receiver_.has_room_again();
        if (receiver_.owes_ack() || receiver_.gap()) acknowledge();
    }
    void acknowledge() {
        if (!lost(loss_.acks)) {
            at_.emplace(now_ + loss_.delay_ns, Event{false, receiver_.awaited(), receiver_.gap()});
        }
        receiver_.acknowledged();
    }
    void step() {
        const std::int64_t tick = sender_.next_tick_ns();
        std::int64_t next = now_ + 20 * kUs;  // the receiver looks
        if (!at_.empty()) next = std::min(next, at_.begin()->first);
        now_ = std::max(now_, std::min(next, tick));
        sender_.on_tick(now_);
        while (!at_.empty() && at_.begin()->first <= now_) {
            const Event event = at_.begin()->second;
            at_.erase(at_.begin());
            event.is_data ? on_data(event.sequence) : on_ack(event);
        }
    }
    void on_ack(const Event& event) { sender_.on_ack(event.sequence, event.gap, now_); }
    void on_data(std::uint32_t sequence) {
        if (receiver_.on_message(sender_.generation(), sequence) !=
            GoBackNReceiver::Verdict::deliver) {
            return;
        }
        if (pool_ >= loss_.pool) return receiver_.refused();
        ASSERT_EQ(sequence, first_ + taken_) << "once, and in order";
        ++taken_;
        ++pool_;
        receiver_.delivered();
        if (receiver_.owes_ack_now()) acknowledge();
    }

    Loss loss_;
    std::mt19937 random_;
    std::uint32_t first_;
    GoBackNSender sender_;
    GoBackNReceiver receiver_;
    std::multimap<std::int64_t, Event> at_;
    std::int64_t now_ = 1;
    std::uint32_t pushed_ = 0, taken_ = 0;
    unsigned again_ = 0, pool_ = 0;
    std::size_t most_window_ = 0;
};

TEST(GoBackN, delivers_all_once_and_in_order_whatever_is_lost) {
    const struct {
        double lost;
        unsigned pool, seeds;
        std::uint32_t first;
    } cases[] = {{0, 1000, 40, 0},   {0.01, 1000, 40, 0}, {0.1, 1000, 40, 0},
                 {0.2, 1000, 40, 0}, {0, 3, 20, 0},       {0.1, 5, 1, 0U - 100}};
    for (const auto& [lost, pool, seeds, first] : cases) {
        for (unsigned seed = 1; seed <= seeds; ++seed) {
            SCOPED_TRACE(testing::Message() << "seed " << seed << ", losses " << lost << ", pool "
                                            << pool << ", from " << first << " on");
            Model model({lost, lost, 10 * kUs, pool}, seed, first);
            model.run(500);
            ASSERT_EQ(model.taken(), 500U);
            ASSERT_EQ(model.sent_again() == 0, lost == 0 && pool == 1000) << "only what was lost";
        }
    }
}

TEST(GoBackN, widens_its_window_while_round_trips_stay_short) {
    Model model({0, 0, 100 * kUs, 1000}, 1);
    model.run(2000);
    EXPECT_GT(model.most_window(), 4 * GoBackNSender::kFirstWindow);
    EXPECT_LE(model.most_window(), GoBackNSender::kMaxWindow);
}

TEST(GoBackN, has_patience_by_the_round_trips_it_has_measured) {
    Model near({0, 0, 50 * kUs, 1000}, 1), far({0, 0, 5 * kMs, 1000}, 1);
    EXPECT_EQ(near.sender().patience_ns(), GoBackNSender::kFirstPatienceNs);
    near.run(300);
    far.run(300);
    EXPECT_LT(near.sender().patience_ns(), 2 * kMs);
    EXPECT_GT(far.sender().patience_ns(), 10 * kMs);
}

TEST(GoBackN, gives_a_receiver_up_that_never_answers_and_waits_longer_each_time) {
    GoBackNSender sender(1);
    sender.push(numbered(0));
    std::int64_t now = 0, last = 0;
    unsigned times = 0;
    for (; !sender.is_broken() && times < 100; ++times) {
        ASSERT_NE(sender.to_send(), nullptr);
        sender.sent(now);
        const std::int64_t wait = sender.next_tick_ns() - now;
        EXPECT_TRUE(wait >= last || wait == GoBackNSender::kMaxPatienceNs);
        last = wait;
        now += wait;
        EXPECT_TRUE(sender.on_tick(now));
    }
    EXPECT_EQ(times, GoBackNSender::kMaxSilences);
}

TEST(GoBackN, has_patience_again_from_each_answer_on) {
    GoBackNSender sender(1);
    for (std::uint32_t i = 0; i < 2; ++i) sender.push(numbered(i));
    while (sender.to_send() != nullptr) sender.sent(0);
    sender.on_ack(1, false, 50 * kUs);
    EXPECT_EQ(sender.next_tick_ns(), 50 * kUs + sender.patience_ns());
}

TEST(GoBackN, begins_again_at_the_gap_before_its_patience_ends) {
    GoBackNSender sender(1);
    for (std::uint32_t i = 0; i < 4; ++i) sender.push(numbered(i));
    while (sender.to_send() != nullptr) sender.sent(0);
    sender.on_ack(1, true, 10 * kUs);
    ASSERT_NE(sender.to_send(), nullptr);
    EXPECT_EQ(sender.sequence_to_send(), 1U);
}

TEST(GoBackN, takes_no_answer_that_cannot_be) {
    GoBackNSender sender(1);
    sender.push(numbered(0));
    sender.sent(0);
    sender.on_ack(2, false, 1);
    sender.on_ack(~0U, true, 1);
    EXPECT_FALSE(sender.is_idle());
    EXPECT_EQ(sender.to_send(), nullptr);
    sender.on_ack(1, false, 1);
    EXPECT_TRUE(sender.is_idle());
}

TEST(GoBackN, a_new_generation_begins_at_its_first_message) {
    GoBackNReceiver receiver;
    for (std::uint32_t i = 0; i < 3; ++i) {
        ASSERT_EQ(receiver.on_message(1, i), GoBackNReceiver::Verdict::deliver);
        receiver.delivered();
    }
    EXPECT_EQ(receiver.on_message(2, 3), GoBackNReceiver::Verdict::unknown);
    EXPECT_EQ(receiver.on_message(2, 0), GoBackNReceiver::Verdict::deliver);
}

TEST(GoBackN, halves_its_window_once_for_a_loss_that_several_acks_tell) {
    GoBackNSender sender(1);
    for (std::uint32_t i = 0; i < 4; ++i) sender.push(numbered(i));
    for (const std::int64_t now : {10 * kUs, 20 * kUs, 30 * kUs}) {
        while (sender.to_send() != nullptr) sender.sent(now);
        sender.on_ack(1, true, now + 5 * kUs);
    }
    EXPECT_EQ(sender.window(), GoBackNSender::kFirstWindow / 2);
}

TEST(GoBackN, measures_no_round_trip_by_the_answer_to_a_repetition) {
    GoBackNSender sender(1);
    sender.push(numbered(0));
    sender.sent(0);
    const std::int64_t later = sender.next_tick_ns();
    EXPECT_TRUE(sender.on_tick(later));
    sender.sent(later);
    sender.on_ack(1, false, later + 10 * kUs);
    EXPECT_TRUE(sender.is_idle());
    EXPECT_EQ(sender.patience_ns(), 2 * GoBackNSender::kFirstPatienceNs);
}

TEST(GoBackN, answers_a_repetition_and_tells_each_gap_once) {
    GoBackNReceiver receiver;
    const auto deliver = [&receiver](std::uint32_t sequence) {
        ASSERT_EQ(receiver.on_message(1, sequence), GoBackNReceiver::Verdict::deliver);
        receiver.delivered();
    };
    deliver(0);
    receiver.acknowledged();
    EXPECT_EQ(receiver.on_message(1, 0), GoBackNReceiver::Verdict::old);
    EXPECT_TRUE(receiver.owes_ack_now()) << "its ack was lost";
    receiver.acknowledged();
    for (const std::uint32_t missing : {1U, 2U}) {
        EXPECT_EQ(receiver.on_message(1, missing + 1), GoBackNReceiver::Verdict::gap);
        EXPECT_TRUE(receiver.gap());
        receiver.acknowledged();
        EXPECT_EQ(receiver.on_message(1, missing + 2), GoBackNReceiver::Verdict::gap);
        EXPECT_FALSE(receiver.gap());
        deliver(missing);
        receiver.acknowledged();
    }
}

TEST(GoBackNDeathTest, checks_that_no_more_is_kept_than_the_window_holds) {
    GoBackNSender sender(7);
    EXPECT_BROKEN(for (std::uint32_t i = 0; i <= sender.window(); ++i) sender.push(numbered(i)));
}

TEST(GoBackNDeathTest, checks_that_only_what_is_kept_was_sent) {
    GoBackNSender sender(7);
    EXPECT_BROKEN(sender.sent(0));
}

TEST(GoBackNDeathTest, checks_that_nothing_is_delivered_before_its_sender_is_known) {
    GoBackNReceiver receiver;
    EXPECT_BROKEN(receiver.delivered());
}

}  // namespace
}  // namespace ports::dp
