// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Nodes with cores that come and go, stand still, and are heard or not, in a time of their own.

#include "rmem/link/udp/protocol/core.hpp"
#include "tests/rmem/link/udp/protocol/exchange_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rmem::udp {

inline constexpr std::int64_t kMillisecond = 1'000'000;
inline constexpr std::size_t kShare = 128;  // words of each node's own

/// Nodes that come and go.
class Ring {
public:
    struct Node final : CoreEdge {
        Node(Ring& all, unsigned number, std::uint64_t incarnation)
            : ring(all),
              id(number),
              words(kBankWords),
              core(config_of(number, all.nodes, incarnation, all.payload), all.authenticator, *this,
                   all.now) {
            ring.speakers.push_back(this);
        }
        ~Node() override {
            collect();
            std::erase(ring.speakers, this);
        }
        Node(const Node&) = delete;
        Node& operator=(const Node&) = delete;

        /// What it has filled is on its way.
        void collect() {
            core.outgoing().drain([&](const OutgoingDatagram& datagram) {
                if (datagram.to == OutgoingDatagram::To::namesakes) {
                    ring.to_namesakes.emplace_back(datagram.bytes.begin(), datagram.bytes.end());
                } else {
                    ring.post(id, datagram.bytes);
                }
            });
        }
        void apply(unsigned origin, const Batch& batch, std::int64_t) override {
            if (holds_back && core.view().contains(origin)) {
                const auto body = batch.body();
                held[origin].emplace_back(body.begin(), body.end());
            } else {
                show(batch);
            }
        }
        void show(const Batch& batch) {
            for (const Record& record : batch.records()) {
                for (std::size_t i = 0; i < record.place.words; ++i) {
                    words.at(record.place.index + i) = record.words[i];
                }
            }
        }
        void show_held() {
            for (auto& [origin, batches] : held) {
                for (const auto& body : batches) show(Batch(body));
                batches.clear();
                core.has_published(origin, ring.now);
            }
        }
        std::uint64_t behind(unsigned origin) const override {
            const auto found = held.find(origin);
            return found == held.end() ? 0 : found->second.size();
        }
        void store(std::uint64_t index, std::uint32_t value) override { words.at(index) = value; }
        bool hand_over_all(std::int64_t) override { return hands_over; }
        std::span<const std::byte> bank() override { return std::as_bytes(std::span(words)); }
        bool is_blank(std::uint64_t, std::size_t) override { return began_blank; }
        void clear_bank() override { std::fill(words.begin(), words.end(), 0); }
        void has_joined(std::int64_t) override { ++joined; }
        void was_dropped(std::int64_t) override { ++dropped; }
        void member_came(unsigned node, std::int64_t) override { came.push_back(node); }
        void member_left(unsigned node, std::int64_t) override { left.push_back(node); }

        void on_odd(Odd odd, const Header&, std::string_view) override {
            if (odd == Odd::namesake) ++namesakes;
        }

        static CoreConfig config_of(unsigned number, unsigned count, std::uint64_t incarnation,
                                    std::size_t payload = kDefaultPayload) {
            CoreConfig config;
            config.exchange = Hosts::config_of(number, count, 64, payload);
            config.exchange.incarnation = incarnation;
            config.exchange.salt = incarnation * 77 + number;
            config.seed = incarnation * 1000 + number;
            config.dead_ns = 100 * kMillisecond;
            return config;
        }

        Ring& ring;
        const unsigned id;
        std::vector<std::uint32_t> words;
        bool holds_back = false, hands_over = true;
        bool began_blank = false;  ///< all words were zeros, and that is known
        std::map<unsigned, std::vector<std::vector<std::byte>>> held;  ///< of each origin
        unsigned joined = 0, dropped = 0, namesakes = 0;
        std::vector<unsigned> came, left;
        Core core;
    };

    explicit Ring(unsigned count, const Weather& w = {}, std::uint64_t seed = 1)
        : nodes(count), weather(w), random(seed), authenticator(key_of_bytes(7)), all(count) {}

    Node& start(unsigned node) {
        // The clock on the wall; no two are equal.
        last_incarnation = std::max(last_incarnation + 1, static_cast<std::uint64_t>(now));
        all[node] = std::make_unique<Node>(*this, node, last_incarnation);
        return *all[node];
    }
    void kill(unsigned node) { all[node].reset(); }
    /// It does nothing until then, but its socket takes what comes.
    void pause(unsigned node, std::int64_t until_ns) {
        paused[node] = until_ns;
        if (until_ns <= now) held_by_socket[node] = 0;
    }
    bool is_paused(unsigned node) const {
        const auto found = paused.find(node);
        return found != paused.end() && now < found->second;
    }
    /// Somebody sends to all what was sent.
    void play(const std::vector<std::byte>& datagram) {
        const unsigned origin = Header::read(datagram.data()).origin;
        for (const auto& node : all) {
            if (node && node->id != origin) node->core.on_datagram(datagram, now);
        }
    }
    Node& operator[](unsigned node) { return *all[node]; }

    void collect() {
        for (Node* node : speakers) node->collect();
    }
    void post(unsigned from, std::span<const std::byte> datagram) {
        if (records) recorded.emplace_back(datagram.begin(), datagram.end());
        for (unsigned to = 0; to < nodes; ++to) {
            if (to == from || random.below(100) < weather.lost_percent || is_cut(from, to))
                continue;
            const unsigned copies = random.below(100) < weather.repeated_percent ? 2 : 1;
            for (unsigned i = 0; i < copies; ++i) {
                const auto jitter = static_cast<std::int64_t>(
                    random.below(static_cast<std::uint64_t>(weather.jitter_ns) + 1));
                under_way.emplace(
                    now + weather.delay_ns + jitter,
                    std::make_pair(to, std::vector<std::byte>(datagram.begin(), datagram.end())));
            }
        }
    }

    void run(std::int64_t for_ns) {
        const std::int64_t until = now + for_ns;
        while (now < until) {
            collect();
            std::int64_t next = until;
            for (const auto& node : all) {
                if (node && !is_paused(node->id)) next = std::min(next, node->core.due_ns());
            }
            for (const auto& [node, until_ns] : paused) {
                if (until_ns > now) next = std::min(next, until_ns);
            }
            if (!under_way.empty()) next = std::min(next, under_way.begin()->first);
            now = std::max(now, next);
            if (now >= until) return;
            while (!under_way.empty() && under_way.begin()->first <= now) {
                const auto [to, bytes] = std::move(under_way.begin()->second);
                under_way.erase(under_way.begin());
                if (all[to] && is_paused(to)) {
                    if (++held_by_socket[to] <= socket_room)
                        under_way.emplace(paused[to], std::make_pair(to, bytes));
                } else if (all[to]) {
                    all[to]->core.on_datagram(bytes, now);
                    collect();
                }
            }
            for (const auto& node : all) {
                if (node && !is_paused(node->id) && node->core.due_ns() <= now)
                    node->core.on_tick(now);
            }
            collect();
        }
    }
    bool run_until(const std::function<bool()>& is_so, std::int64_t within) {
        for (const std::int64_t end = now + within; now < end;) {
            if (is_so()) return true;
            run(100'000);
        }
        return is_so();
    }

    bool becomes_whole(std::int64_t within = 1000 * kMillisecond) {
        return run_until([this] { return is_whole(); }, within);
    }
    void expect_to_become_whole_with_equal_banks() {
        EXPECT_TRUE(becomes_whole()) << describe();
        expect_equal_banks();
    }
    bool becomes_member(unsigned node, std::int64_t within = 2 * kFormNs) {
        return run_until([&] { return all[node]->core.is_member(); }, within);
    }
    /// Nodes 0 to `count` - 1 start, and become one ring.
    void start_ring(unsigned count) {
        for (unsigned node = 0; node < count; ++node) start(node);
        EXPECT_TRUE(becomes_whole()) << count << describe();
    }
    void mend_all() {
        is_cut = [](unsigned, unsigned) { return false; };
    }

    /// All that run are members of one ring, with the same view, and have all of each other.
    bool is_whole() const {
        NodeSet running;
        for (const auto& node : all) {
            if (node) running.insert(node->id);
        }
        std::uint64_t incarnation = 0;
        for (const auto& node : all) {
            if (!node) continue;
            if (incarnation == 0) incarnation = node->core.ring_incarnation();
            const bool fits = node->core.is_member() && node->core.view() == running &&
                              node->core.ring_incarnation() == incarnation && node->core.is_idle();
            if (!fits) return false;
        }
        return true;
    }
    /// A member writes somewhere in its own share, if it has room.
    void write_something(unsigned node) {
        if (!all[node] || !all[node]->core.has_room(8)) return;
        const std::size_t at = node * kShare + random.below(kShare - 8);
        const std::size_t words = random.below(8) + 1;
        for (std::size_t i = 0; i < words; ++i) all[node]->words[at + i] = ++values;
        all[node]->core.write(at, words, &all[node]->words[at], now);
        all[node]->core.commit(now);
    }
    void write_for(unsigned milliseconds, std::initializer_list<unsigned> writers) {
        for (; milliseconds > 0; --milliseconds) {
            for (const unsigned node : writers) write_something(node);
            run(kMillisecond);
        }
    }
    /// Of those that run, these have been dropped, once, and no others.
    void expect_dropped(std::initializer_list<unsigned> nodes_dropped) const {
        for (const auto& node : all) {
            if (!node) continue;
            const bool was_dropped =
                std::count(nodes_dropped.begin(), nodes_dropped.end(), node->id);
            EXPECT_EQ(node->dropped, was_dropped ? 1U : 0U) << "node " << node->id;
        }
    }
    std::string describe() const {
        std::string text;
        for (const auto& node : all) {
            if (!node) continue;
            const Core& core = node->core;
            text += "\nnode " + std::to_string(node->id) + " incarnation " +
                    std::to_string(core.incarnation()) +
                    (core.is_member() ? " member of " : " joining ") +
                    std::to_string(core.ring_incarnation()) + (core.is_idle() ? " idle" : " busy") +
                    ", view";
            core.view().for_each([&](unsigned n) { text += " " + std::to_string(n); });
            text += ", takes";
            for (unsigned n = 0; n < nodes; ++n) {
                if (core.exchange().takes(n))
                    text +=
                        " " + std::to_string(n) + "@" + std::to_string(core.exchange().applied(n));
            }
            text += ", sent " + std::to_string(core.exchange().out().newest()) + " acknowledged " +
                    std::to_string(core.exchange().out().acknowledged()) + ", receivers";
            core.exchange().out().receivers().for_each([&](unsigned n) {
                text += " " + std::to_string(n) + "@" +
                        std::to_string(core.exchange().out().acked_by(n));
            });
        }
        return text;
    }
    void expect_equal_banks() const {
        const Node* first = nullptr;
        for (const auto& node : all) {
            if (!node) continue;
            if (first == nullptr) first = node.get();
            const auto [here, there] =
                std::mismatch(node->words.begin(), node->words.end(), first->words.begin());
            EXPECT_EQ(here, node->words.end())
                << "nodes " << node->id << " and " << first->id << " at word "
                << here - node->words.begin() << ": " << *here << " and " << *there;
        }
    }

    const unsigned nodes;
    std::function<bool(unsigned, unsigned)> is_cut = [](unsigned, unsigned) { return false; };
    Weather weather;
    Random random;
    Authenticator authenticator;
    std::int64_t now = 1;
    std::uint64_t last_incarnation = 100;
    std::uint32_t values = 0;
    std::multimap<std::int64_t, std::pair<unsigned, std::vector<std::byte>>> under_way;
    std::map<unsigned, std::int64_t> paused;
    std::map<unsigned, unsigned> held_by_socket;  ///< of those
    unsigned socket_room = UINT_MAX;              ///< then they lose what comes
    std::size_t payload = kDefaultPayload;        ///< of all nodes
    bool records = false;
    std::vector<std::vector<std::byte>> recorded, to_namesakes;
    std::vector<Node*> speakers;  ///< all that speak
    std::vector<std::unique_ptr<Node>> all;
};

/// All of whose nodes have started.
class WholeRing : public Ring {
public:
    explicit WholeRing(unsigned count) : Ring(count) { start_ring(count); }
};

}  // namespace rmem::udp
