// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Nodes that exchange datagrams over a network with weather, in a time of its own.

#include "rmem/base/random.hpp"
#include "rmem/link/udp/protocol/exchange.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace rmem::udp {

struct Weather {
    unsigned lost_percent = 0;
    unsigned repeated_percent = 0;
    unsigned corrupted_percent = 0;
    std::int64_t delay_ns = 5'000;
    std::int64_t jitter_ns = 0;
};

inline constexpr std::uint64_t kExchangeRing = 0x1234;
inline constexpr std::size_t kBankWords = 1024;

inline MasterKey key_of_bytes(unsigned value) {
    std::array<std::byte, MasterKey::kBytes> bytes{};
    bytes.fill(static_cast<std::byte>(value));
    return MasterKey(bytes);
}

/// Nodes that are all members from the beginning.
class Hosts {
public:
    struct Host final : ExchangeEdge {
        Host(Hosts& all, const ExchangeConfig& config)
            : hosts(all),
              id(config.node),
              bank(kBankWords),
              exchange(config, all.authenticator, *this, outgoing) {
            hosts.speakers.push_back(this);
        }
        ~Host() override { std::erase(hosts.speakers, this); }
        Host(const Host&) = delete;
        Host& operator=(const Host&) = delete;

        void apply(unsigned origin, const Batch& batch, std::int64_t) override {
            EXPECT_EQ(batch.sequence(), ++applied[origin])
                << "node " << origin << " at node " << id;
            for (const Record& record : batch.records()) {
                places.push_back(record.place);
                for (std::size_t i = 0; i < record.place.words; ++i) {
                    bank.at(record.place.index + i) = record.words[i];
                }
            }
        }
        void on_section(const Header&, const Section&, std::int64_t) override { ++others; }
        std::uint64_t behind(unsigned) const override { return not_published; }

        Hosts& hosts;
        const unsigned id;
        std::vector<std::uint32_t> bank;
        std::map<unsigned, std::uint64_t> applied;
        std::vector<Place> places;  ///< of all that was applied
        unsigned others = 0;
        std::uint64_t not_published = 0;  ///< batches of each other node
        Outgoing outgoing;
        Exchange exchange;
    };

    explicit Hosts(unsigned count, const Weather& w = {}, std::uint64_t seed = 1,
                   std::uint32_t window = 64, bool with_key = true,
                   std::vector<std::size_t> payloads_of_each = {}, bool is_reliable = false)
        : weather(w), random(seed), payloads(std::move(payloads_of_each)) {
        payloads.resize(count, kDefaultPayload);
        if (with_key) authenticator = Authenticator(key_of_bytes(7));
        for (unsigned n = 0; n < count; ++n) {
            ExchangeConfig config = config_of(n, count, window, payloads[n]);
            config.is_reliable = is_reliable;
            all.push_back(std::make_unique<Host>(*this, config));
        }
        introduce();
        for (unsigned n = 0; n < count; ++n) {
            for (unsigned other = 0; other < count; ++other) {
                if (other != n)
                    all[n]->exchange.begin(other, 100 + other, all[other]->exchange.admit(n, now),
                                           now);
            }
        }
    }

    /// Each sends a datagram as long as it may, and then says what has come.
    void show_lengths() {
        for (int round = 0; round < 2; ++round) {
            for (const auto& host : all) {
                host->exchange.begin_other(now);
                host->exchange.send_other_at_length(now);
            }
            run(now + 100'000);
        }
        sent().clear();
    }

    /// All believe each other.
    void introduce() {
        const Weather weather_then = std::exchange(weather, Weather{});
        for (const auto& host : all) {
            for (unsigned other = 0; other < all.size(); ++other) {
                if (other != host->id) host->exchange.belief().greet(other, now);
            }
        }
        run(now + 1'000'000);
        sent().clear();
        weather = weather_then;
    }

    static ExchangeConfig config_of(unsigned node, unsigned count, std::uint32_t window,
                                    std::size_t payload = kDefaultPayload) {
        ExchangeConfig config;
        config.node = static_cast<std::uint16_t>(node);
        config.nodes = count;
        config.ring = kExchangeRing;
        config.incarnation = config.first_incarnation = 100 + node;
        config.seed = node + 1;
        config.salt = 55 * node;
        config.bank_bytes = kBankWords * kWordBytes;
        config.most_batches = window;
        config.payload = payload;
        return config;
    }

    Exchange& operator[](unsigned node) { return all[node]->exchange; }

    /// In a datagram of its own.
    void write_word(unsigned node, std::size_t at, std::uint32_t value) {
        all[node]->exchange.write(at, 1, &value, now);
        all[node]->exchange.commit(now);
    }

    /// Until all have it, and before anybody must acknowledge it.
    void send_word(unsigned node) {
        write_word(node, node, 1);
        run(now + 6000);
    }

    /// All datagrams.
    std::deque<std::vector<std::byte>>& sent() {
        collect();
        return sent_;
    }
    void collect() {
        for (Host* host : speakers) {
            host->outgoing.drain(
                [&](const OutgoingDatagram& datagram) { post(host->id, datagram.bytes); });
        }
    }
    void post(unsigned from, std::span<const std::byte> datagram) {
        sent_.emplace_back(datagram.begin(), datagram.end());
        for (unsigned to = 0; to < all.size(); ++to) {
            if (to == from || random.below(100) < weather.lost_percent) continue;
            if (is_cut(from, to) || datagram.size() > payloads[to]) continue;
            const unsigned copies = random.below(100) < weather.repeated_percent ? 2 : 1;
            for (unsigned i = 0; i < copies; ++i) {
                std::vector<std::byte> bytes = sent_.back();
                if (random.below(100) < weather.corrupted_percent) {
                    bytes[random.below(bytes.size())] ^= std::byte{0x10};
                }
                const auto jitter = static_cast<std::int64_t>(
                    random.below(static_cast<std::uint64_t>(weather.jitter_ns) + 1));
                under_way.emplace(now + weather.delay_ns + jitter, std::make_pair(to, bytes));
            }
        }
    }

    /// Lets happen what is due until then, or until nothing is open any more.
    void run(std::int64_t until) {
        while (now < until) {
            collect();
            std::int64_t next = until;
            for (const auto& host : all) {
                next = std::min({next, host->exchange.due_ns(), host->exchange.belief().due_ns()});
            }
            if (!under_way.empty()) next = std::min(next, under_way.begin()->first);
            now = std::max(now, next);
            if (now >= until) return;
            while (!under_way.empty() && under_way.begin()->first <= now) {
                const auto [to, bytes] = std::move(under_way.begin()->second);
                under_way.erase(under_way.begin());
                all[to]->exchange.on_datagram(bytes, now);
                collect();
            }
            for (const auto& host : all) {
                if (host->exchange.belief().due_ns() <= now) host->exchange.send_greetings(0, now);
                if (host->exchange.due_ns() <= now) host->exchange.on_tick(now);
                collect();
            }
        }
    }
    bool is_idle() const {
        return std::all_of(all.begin(), all.end(),
                           [](const auto& host) { return host->exchange.is_idle(); });
    }
    /// True when all is acknowledged in time.
    bool settle(std::int64_t within) {
        for (const std::int64_t end = now + within; now < end && !is_idle();) run(now + 10'000);
        return is_idle();
    }

    std::function<bool(unsigned, unsigned)> is_cut = [](unsigned, unsigned) { return false; };
    Weather weather;
    Random random;
    std::vector<std::size_t> payloads;  ///< of the longest datagram that reaches each
    Authenticator authenticator;
    std::vector<Host*> speakers;  ///< all that speak
    std::vector<std::unique_ptr<Host>> all;
    std::multimap<std::int64_t, std::pair<unsigned, std::vector<std::byte>>> under_way;
    std::int64_t now = 1;

private:
    std::deque<std::vector<std::byte>> sent_;
};

/// The parts of node 0's exchange.
struct Parts {
    struct Edge final : ExchangeEdge {
        void apply(unsigned, const Batch&, std::int64_t) override {}
        void on_section(const Header&, const Section&, std::int64_t) override {}
    };

    Edge edge;
    Authenticator authenticator;
    ExchangeOwn own{Hosts::config_of(0, 2, 8), edge, {}};
    OutStream out{8, kMaxBodyBytes};
    Belief belief{own, authenticator};
    Peers peers{own, out, belief};
    EndedStreams ended{own.config, peers};
};

}  // namespace rmem::udp
