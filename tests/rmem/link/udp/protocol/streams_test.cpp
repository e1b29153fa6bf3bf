// SPDX-License-Identifier: Apache-2.0

/// One sender's stream to several receivers over a network that loses, repeats, reorders and
/// delays.

#include "rmem/base/random.hpp"
#include "rmem/link/udp/protocol/in_stream.hpp"
#include "rmem/link/udp/protocol/out_stream.hpp"
#include "tests/rmem/link/udp/protocol/batch_fixture.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace rmem::udp {
namespace {

constexpr std::uint32_t kWindow = 64;
constexpr unsigned kSender = 9;

struct Weather {
    unsigned lost_percent = 0;
    unsigned repeated_percent = 0;
    std::int64_t delay_ns = 10'000;
    std::int64_t jitter_ns = 0;
};

/// What travels: a batch (answering: at once), acks and NAKs.
struct Parcel {
    enum class Kind { batch, ack, nak } kind;
    unsigned from = 0, to = 0;
    std::uint64_t a = 0, b = 0;
    std::vector<std::byte> body;
};

class Network {
public:
    Network(unsigned receivers, const Weather& weather, std::uint64_t seed)
        : weather_(weather), random_(seed), out_(kWindow, kMostBytes) {
        RetransmitTimes times;
        times.round_trip_ns = 2 * weather.delay_ns + weather.jitter_ns;
        times.deviation_ns = weather.jitter_ns / 2;
        out_.set_times(times);
        for (unsigned r = 0; r < receivers; ++r) {
            in_.emplace_back(out_.admit(r), kWindow, kMostBytes);
            in_.back().set_times(times, r);
            taken_.push_back(0);
        }
    }

    /// Sends that number of batches, as fast as the window allows; true when all have all in time.
    bool run(std::uint64_t batches, std::int64_t most_ns) {
        for (now_ = 0; now_ < most_ns; now_ = next_time()) {
            while (!parcels_.empty() && parcels_.begin()->first <= now_) {
                const Parcel parcel = std::move(parcels_.begin()->second);
                parcels_.erase(parcels_.begin());
                deliver(parcel);
            }
            while (out_.newest() < batches && out_.has_room(1, kMostBytes)) send_next();
            send_again();
            if (out_.newest() == batches && out_.is_idle()) return true;
        }
        return false;
    }

    OutStream& out() { return out_; }
    const std::vector<std::uint64_t>& taken() const { return taken_; }
    std::uint64_t batches_sent() const { return sent_; }
    std::uint64_t naks() const { return naks_; }
    std::int64_t now() const { return now_; }
    /// Lets the named batch be lost once on its way to this receiver.
    void lose_once(std::uint64_t sequence, unsigned receiver) {
        to_lose_[{sequence, receiver}] = 1;
    }

private:
    std::int64_t next_time() {
        std::int64_t next = out_.probe_due_ns();
        for (const InStream& in : in_) next = std::min(next, in.nak_due_ns());
        if (!parcels_.empty()) next = std::min(next, parcels_.begin()->first);
        return std::max(next, now_ + 1);
    }

    void post(const Parcel& parcel) {
        if (random_.below(100) < weather_.lost_percent) return;
        const unsigned copies = random_.below(100) < weather_.repeated_percent ? 2 : 1;
        for (unsigned i = 0; i < copies; ++i) {
            const std::uint64_t jitter =
                random_.below(static_cast<std::uint64_t>(weather_.jitter_ns) + 1);
            parcels_.emplace(now_ + weather_.delay_ns + static_cast<std::int64_t>(jitter), parcel);
        }
    }

    void multicast(std::uint64_t sequence, bool answer) {
        ++sent_;
        const auto kept = out_.body(sequence);
        for (unsigned r = 0; r < in_.size(); ++r) {
            if (auto it = to_lose_.find({sequence, r}); it != to_lose_.end() && it->second != 0) {
                --it->second;
                continue;
            }
            post({Parcel::Kind::batch,
                  kSender,
                  r,
                  sequence,
                  answer ? 1U : 0U,
                  {kept.begin(), kept.end()}});
        }
    }
    void send_next() {
        out_.add(body_of(out_.next_sequence()), now_);
        multicast(out_.newest(), false);
    }
    void send_again() {
        while (const auto sequence = out_.next_retransmission(now_)) multicast(*sequence, false);
        if (const auto sequence = out_.probe(now_)) multicast(*sequence, true);
        for (unsigned r = 0; r < in_.size(); ++r) {
            in_[r].send_naks(now_, [&](std::uint64_t first, std::uint64_t count) {
                ++naks_;
                for (unsigned to = 0; to <= in_.size(); ++to) {
                    if (to == r) continue;
                    const unsigned target = to == in_.size() ? kSender : to;
                    post({Parcel::Kind::nak, r, target, first, count, {}});
                }
            });
        }
    }

    void deliver(const Parcel& p) {
        if (p.to == kSender) {
            if (p.kind == Parcel::Kind::ack) {
                out_.on_ack(p.from, p.a, now_);
            } else {
                out_.on_nak(p.a, p.b, now_);
            }
        } else if (p.kind == Parcel::Kind::nak) {
            in_[p.to].on_other_nak(p.a, p.b, now_);
        } else {
            take(p);
        }
    }

    void take(const Parcel& p) {
        InStream& in = in_[p.to];
        const std::uint64_t before = in.applied();
        ASSERT_LE(p.body.size(), kMostBytes);
        in.offer(p.a, p.body, now_);
        while (const auto body = in.take()) {
            const std::uint64_t expected = ++taken_[p.to];
            const auto right = body_of(expected);
            ASSERT_EQ(in.applied(), expected);
            ASSERT_EQ(std::vector<std::byte>(body->begin(), body->end()), right);
        }
        if (in.applied() != before || p.b != 0) {
            post({Parcel::Kind::ack, p.to, kSender, in.applied(), 0, {}});
        }
    }

    Weather weather_;
    Random random_;
    OutStream out_;
    std::vector<InStream> in_;
    std::vector<std::uint64_t> taken_;
    std::multimap<std::int64_t, Parcel> parcels_;
    std::map<std::pair<std::uint64_t, unsigned>, int> to_lose_;
    std::uint64_t sent_ = 0, naks_ = 0;
    std::int64_t now_ = 0;
};

TEST(Streams, streams_on_a_good_network_send_each_batch_once_and_no_nak) {
    Network network(3, {}, 1);
    ASSERT_TRUE(network.run(1000, 1'000'000'000));
    EXPECT_EQ(network.taken(), (std::vector<std::uint64_t>{1000, 1000, 1000}));
    EXPECT_EQ(network.batches_sent(), 1000U);
    EXPECT_EQ(network.naks(), 0U);
}

TEST(Streams, bring_each_batch_once_and_in_order_through_any_weather) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        Random random(seed);
        Weather weather;
        weather.lost_percent = static_cast<unsigned>(random.below(31));
        weather.repeated_percent = static_cast<unsigned>(random.below(31));
        weather.jitter_ns = static_cast<std::int64_t>(random.below(40'000));
        const auto receivers = static_cast<unsigned>(random.below(5)) + 1;
        Network network(receivers, weather, seed);
        ASSERT_TRUE(network.run(500, 60'000'000'000)) << "seed " << seed;
        EXPECT_EQ(network.taken(), std::vector<std::uint64_t>(receivers, 500)) << "seed " << seed;
    }
}

TEST(Streams, retransmit_a_batch_that_one_receiver_lacks_within_two_round_trips_of_its_successor) {
    Network network(4, {}, 1);
    network.lose_once(30, 2);
    ASSERT_TRUE(network.run(60, 1'000'000'000));
    // The window lets all 60 go at once: one way, the NAK, the answer, the last ack.
    EXPECT_EQ(network.batches_sent(), 61U);
    EXPECT_EQ(network.naks(), 1U);
    EXPECT_LE(network.now(), 10'000 + 3 * 20'000);
}

TEST(Streams, retransmit_the_last_batch_though_nothing_follows_it) {
    Network network(2, {}, 1);
    network.lose_once(40, 1);
    ASSERT_TRUE(network.run(40, 1'000'000'000));
    EXPECT_EQ(network.batches_sent(), 41U) << "the probe is the retransmission";
    EXPECT_LE(network.now(), kLeastRetransmitNs + 2 * 20'000);
}

TEST(Streams, get_a_nak_from_one_of_those_who_lack_the_same) {
    Network network(5, {}, 1);
    for (unsigned r = 0; r < 5; ++r) network.lose_once(20, r);
    ASSERT_TRUE(network.run(50, 1'000'000'000));
    EXPECT_EQ(network.batches_sent(), 51U);
    EXPECT_LE(network.naks(), 3U) << "nodes that hear the NAK before their turn send none";
}

}  // namespace
}  // namespace rmem::udp
