// SPDX-License-Identifier: Apache-2.0
#include "rmem/udp/core.hpp"
#include "tests/rmem/udp/exchange_fixture.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace rmem::udp {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::size_t kShare = 128;  // words of each node's own

/// Nodes that come and go.
class Ring {
public:
    struct Node final : CoreEdge {
        Node(Ring& all, unsigned number, std::uint64_t life)
            : ring(all),
              id(number),
              words(kBankWords),
              core(config_of(number, all.nodes, life), all.authenticator, *this, all.now) {}

        void send(std::span<const std::byte> datagram) override { ring.post(id, datagram); }
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
                core.has_shown(origin, ring.now);
            }
        }
        std::uint64_t behind(unsigned origin) const override {
            const auto found = held.find(origin);
            return found == held.end() ? 0 : found->second.size();
        }
        void store(std::uint64_t index, std::uint32_t value) override { words.at(index) = value; }
        std::span<const std::byte> bank() const override { return std::as_bytes(std::span(words)); }
        void clear_bank() override { std::fill(words.begin(), words.end(), 0); }
        void has_joined(std::int64_t) override { ++joined; }
        void was_dropped(std::int64_t) override { ++dropped; }
        void member_came(unsigned node, std::int64_t) override { came.push_back(node); }
        void member_left(unsigned node, std::int64_t) override { left.push_back(node); }

        static CoreConfig config_of(unsigned number, unsigned count, std::uint64_t life) {
            CoreConfig config;
            config.exchange = Hosts::config_of(number, count, 64);
            config.exchange.incarnation = life;
            config.exchange.salt = life * 77 + number;
            config.seed = life * 1000 + number;
            config.dead_ns = 100 * kMillisecond;
            return config;
        }

        Ring& ring;
        const unsigned id;
        std::vector<std::uint32_t> words;
        bool holds_back = false;
        std::map<unsigned, std::vector<std::vector<std::byte>>> held;  ///< of each origin
        unsigned joined = 0, dropped = 0;
        std::vector<unsigned> came, left;
        Core core;
    };

    explicit Ring(unsigned count, const Weather& w = {}, std::uint64_t seed = 1)
        : nodes(count), weather(w), random(seed), authenticator(key_of_bytes(7)), all(count) {}

    Node& start(unsigned node) {
        // The clock on the wall; no two are equal.
        lives = std::max(lives + 1, static_cast<std::uint64_t>(now));
        all[node] = std::make_unique<Node>(*this, node, lives);
        return *all[node];
    }
    void kill(unsigned node) { all[node].reset(); }
    Node& operator[](unsigned node) { return *all[node]; }

    void post(unsigned from, std::span<const std::byte> datagram) {
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
            std::int64_t next = until;
            for (const auto& node : all) {
                if (node) next = std::min(next, node->core.due_ns());
            }
            if (!under_way.empty()) next = std::min(next, under_way.begin()->first);
            now = std::max(now, next);
            if (now >= until) return;
            while (!under_way.empty() && under_way.begin()->first <= now) {
                const auto [to, bytes] = std::move(under_way.begin()->second);
                under_way.erase(under_way.begin());
                if (all[to]) all[to]->core.on_datagram(bytes, now);
            }
            for (const auto& node : all) {
                if (node && node->core.due_ns() <= now) node->core.on_tick(now);
            }
        }
    }
    bool run_until(const std::function<bool()>& is_so, std::int64_t within) {
        for (const std::int64_t end = now + within; now < end;) {
            if (is_so()) return true;
            run(100'000);
        }
        return is_so();
    }

    /// All that run are members of one ring, with the same view, and have all of each other.
    bool is_whole() const {
        NodeSet running;
        for (const auto& node : all) {
            if (node) running.insert(node->id);
        }
        std::uint64_t life = 0;
        for (const auto& node : all) {
            if (!node) continue;
            if (life == 0) life = node->core.ring_life();
            const bool fits = node->core.is_member() && node->core.view() == running &&
                              node->core.ring_life() == life && node->core.is_idle();
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
    std::string describe() const {
        std::string text;
        for (const auto& node : all) {
            if (!node) continue;
            const Core& core = node->core;
            text += "\nnode " + std::to_string(node->id) + " life " +
                    std::to_string(core.incarnation()) +
                    (core.is_member() ? " member of " : " joining ") +
                    std::to_string(core.ring_life()) + (core.is_idle() ? " idle" : " busy") +
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
    SplitMix64 random;
    Authenticator authenticator;
    std::int64_t now = 1;
    std::uint64_t lives = 100;
    std::uint32_t values = 0;
    std::multimap<std::int64_t, std::pair<unsigned, std::vector<std::byte>>> under_way;
    std::vector<std::unique_ptr<Node>> all;
};

TEST(Core, alone_forms_a_ring) {
    Ring ring(3);
    Ring::Node& node = ring.start(1);
    EXPECT_FALSE(node.core.has_room(1)) << "nobody writes before it is a member";
    ASSERT_TRUE(ring.run_until([&] { return node.core.is_member(); }, 2 * kFormNs));
    EXPECT_GE(ring.now, kFormNs);
    EXPECT_EQ(node.joined, 1U);
    EXPECT_TRUE(node.core.has_room(1));
}

TEST(Core, started_together_with_others_is_in_one_ring_with_them) {
    for (const unsigned count : {2U, 3U, 6U, 8U}) {
        Ring ring(count);
        for (unsigned n = 0; n < count; ++n) ring.start(n);
        ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 1000 * kMillisecond)) << count;
        std::uint64_t formed = 0;
        for (unsigned n = 0; n < count; ++n) {
            formed += ring[n].core.counters().rings_formed;
            EXPECT_EQ(ring[n].joined, 1U);
            EXPECT_EQ(ring[n].came.size(), count - 1);
            EXPECT_EQ(ring[n].dropped, 0U);
        }
        EXPECT_EQ(formed, 1U);
    }
}

TEST(Core, that_comes_late_gets_the_bank_while_others_go_on_writing) {
    Ring ring(4, {.lost_percent = 3, .jitter_ns = 3000});
    for (unsigned n = 0; n < 3; ++n) ring.start(n);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 1000 * kMillisecond));
    const auto write = [&](unsigned times) {
        for (; times > 0; --times) {
            ring.write_something(static_cast<unsigned>(ring.random.below(3)));
            ring.run(5000);
        }
    };
    write(2000);
    Ring::Node& late = ring.start(3);
    std::uint64_t written = 0;
    while (!late.core.is_member()) {
        write(10);
        ASSERT_LT(written += 10, 20'000U);
    }
    EXPECT_GE(written, 10U);
    write(200);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 1000 * kMillisecond));
    ring.expect_equal_banks();
}

TEST(Core, gives_a_bank_that_is_behind_the_streams_as_what_it_is) {
    Ring ring(3);
    ring.start(0);
    ring.start(1);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 1000 * kMillisecond));
    ring[0].holds_back = true;
    for (int i = 0; i < 20; ++i) ring.write_something(1);
    ring.run(kMillisecond);
    ASSERT_EQ(ring[0].behind(1), 20U);
    Ring::Node& late = ring.start(2);
    ring.run(50 * kMillisecond);
    EXPECT_FALSE(late.core.is_member()) << "the bank given lacks what came before the admission";
    ring[0].holds_back = false;
    ring[0].show_held();
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 1000 * kMillisecond));
    ring.expect_equal_banks();
}

TEST(Core, notices_that_another_is_dead_and_takes_it_in_again_as_a_new_life) {
    Ring ring(3);
    for (unsigned n = 0; n < 3; ++n) ring.start(n);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 1000 * kMillisecond));
    for (int i = 0; i < 50; ++i) {
        ring.write_something(2);
        ring.run(20'000);
    }
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 100 * kMillisecond));
    ring.kill(2);
    while (ring[0].core.has_room(8)) ring.write_something(0);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 200 * kMillisecond));
    EXPECT_EQ(ring[0].left, std::vector<unsigned>{2});
    EXPECT_TRUE(ring[0].core.has_room(8)) << "the dead hold nobody up";
    Ring::Node& again = ring.start(2);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 1000 * kMillisecond));
    EXPECT_EQ(again.words, ring[0].words);
    EXPECT_NE(again.words[2 * kShare + 1] | again.words[2 * kShare + 60], 0U) << "its own, too";
}

TEST(Core, that_comes_back_at_once_is_known_to_have_been_away) {
    Ring ring(3);
    for (unsigned n = 0; n < 3; ++n) ring.start(n);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 1000 * kMillisecond));
    ring.kill(1);
    ring.start(1);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 1000 * kMillisecond));
    EXPECT_EQ(ring[0].left, std::vector<unsigned>{1});
    EXPECT_EQ(ring[0].came, (std::vector<unsigned>{1, 2, 1}));
}

TEST(Core, on_the_higher_side_of_a_cut_that_was_too_long_joins_again) {
    Ring ring(4);
    for (unsigned n = 0; n < 4; ++n) ring.start(n);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 1000 * kMillisecond));
    bool is_cut = true;
    ring.is_cut = [&](unsigned from, unsigned to) { return is_cut && from / 2 != to / 2; };
    for (int i = 0; i < 400; ++i) {
        ring.write_something(static_cast<unsigned>(i % 4));
        ring.run(kMillisecond);
    }
    EXPECT_EQ(ring[0].core.view().size(), 2U);
    EXPECT_EQ(ring[3].core.view().size(), 2U);
    is_cut = false;
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 2000 * kMillisecond));
    EXPECT_EQ(ring[0].dropped + ring[1].dropped, 0U);
    EXPECT_EQ(ring[2].dropped, 1U);
    EXPECT_EQ(ring[3].dropped, 1U);
    ring.expect_equal_banks();
}

TEST(Core, that_nobody_hears_any_more_learns_that_it_was_dropped) {
    Ring ring(3);
    for (unsigned n = 0; n < 3; ++n) ring.start(n);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 1000 * kMillisecond));
    bool is_cut = true;
    ring.is_cut = [&](unsigned from, unsigned) { return is_cut && from == 1; };
    ring.run(300 * kMillisecond);
    EXPECT_EQ(ring[1].dropped, 1U);
    // Nobody answers it, so all that it hears might be recorded: it forms a ring, which does not stand.
    is_cut = false;
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 2000 * kMillisecond));
    EXPECT_EQ(ring[0].dropped + ring[2].dropped, 0U);
    ring.expect_equal_banks();
}

TEST(Core, that_formed_a_ring_because_it_heard_nobody_joins_the_older_one) {
    Ring ring(3);
    for (unsigned n = 1; n < 3; ++n) ring.start(n);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 1000 * kMillisecond));
    ring.write_something(1);
    const std::vector<std::uint32_t> written = ring[1].words;
    bool is_cut = true;
    ring.is_cut = [&](unsigned from, unsigned to) { return is_cut && (from == 0 || to == 0); };
    ring.start(0);
    ASSERT_TRUE(ring.run_until([&] { return ring[0].core.is_member(); }, 2 * kFormNs));
    is_cut = false;
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 2000 * kMillisecond));
    EXPECT_EQ(ring[0].words, written);
    EXPECT_EQ(ring[0].dropped, 1U);
    EXPECT_EQ(ring[1].dropped + ring[2].dropped, 0U);
}

TEST(Core, that_hears_a_member_again_that_it_gave_up_while_joining_begins_anew) {
    Ring ring(3);
    for (unsigned n = 0; n < 2; ++n) ring.start(n);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 1000 * kMillisecond));
    // The sponsor is not heard, so it goes on joining; then the other member is not heard, either.
    bool hears_0 = false, hears_1 = true;
    ring.is_cut = [&](unsigned from, unsigned to) {
        return to == 2 && (from == 0 ? !hears_0 : !hears_1);
    };
    ring.start(2);
    const auto write_for = [&](unsigned milliseconds) {
        for (; milliseconds > 0; --milliseconds) {
            ring.write_something(1);
            ring.run(kMillisecond);
        }
    };
    write_for(30);
    EXPECT_TRUE(ring[2].core.exchange().takes(1));
    hears_1 = false;
    write_for(150);
    EXPECT_FALSE(ring[2].core.exchange().takes(1));
    hears_0 = hears_1 = true;
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 2000 * kMillisecond))
        << ring.describe();
    ring.expect_equal_banks();
}

TEST(Core, that_has_writes_of_a_ring_that_is_gone_takes_the_new_ones_bank) {
    Ring ring(3);
    for (unsigned n = 0; n < 2; ++n) ring.start(n);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 1000 * kMillisecond));
    bool is_cut = true;
    ring.is_cut = [&](unsigned from, unsigned to) { return is_cut && from == 0 && to == 2; };
    ring.start(2);
    ring.run(20 * kMillisecond);
    for (int i = 0; i < 20; ++i) {
        ring.write_something(1);
        ring.run(kMillisecond);
    }
    EXPECT_FALSE(ring[2].core.is_member());
    EXPECT_NE(ring[2].words, std::vector<std::uint32_t>(kBankWords));
    ring.kill(0);
    ring.kill(1);
    is_cut = false;
    ring.start(0);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 2000 * kMillisecond));
    ring.expect_equal_banks();
}

TEST(Core, that_has_given_up_a_member_is_given_what_another_goes_on_hearing) {
    Ring ring(3);
    for (unsigned n = 0; n < 3; ++n) ring.start(n);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 1000 * kMillisecond));
    ring.is_cut = [&](unsigned from, unsigned to) { return from + to == 3; };
    const auto write_for = [&](unsigned milliseconds) {
        for (; milliseconds > 0; --milliseconds) {
            ring.write_something(2);
            ring.run(kMillisecond);
        }
    };
    write_for(400);
    EXPECT_FALSE(ring[1].core.view().contains(2));
    EXPECT_TRUE(ring[0].core.view().contains(2));
    EXPECT_EQ(ring[1].words, ring[0].words) << "it is given what the other hears";
    EXPECT_EQ(ring[1].dropped, 0U);
    write_for(400);
    EXPECT_EQ(ring[2].dropped, 1U) << "of two that do not hear each other the lower one stands";
    ring.kill(2);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 2000 * kMillisecond));
    EXPECT_EQ(ring[0].dropped, 0U);
    ring.expect_equal_banks();
}

TEST(Core, applies_nothing_of_a_node_of_another_ring_that_it_met_while_that_joined) {
    Ring ring(3);
    for (unsigned n = 0; n < 2; ++n) ring.start(n);
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 1000 * kMillisecond));
    ring.write_something(0);
    // It meets one member, and then its joins are heard, but it hears nobody; and it is not heard while it forms a ring.
    bool is_heard = true;
    const std::int64_t met_ns = ring.now + kMillisecond;
    ring.is_cut = [&](unsigned from, unsigned to) {
        const bool is_meeting = from == 1 && to == 2 && ring.now < met_ns;
        return from + to != 1 && !(is_heard && from == 2 && to == 1) && !is_meeting;
    };
    ring.start(2);
    ring.run(kFormNs - 5 * kMillisecond);
    EXPECT_TRUE(ring[1].core.exchange().takes(2));
    is_heard = false;
    ASSERT_TRUE(ring.run_until([&] { return ring[2].core.is_member(); }, 10 * kMillisecond));
    is_heard = true;
    for (int i = 0; i < 5; ++i) ring.write_something(2);
    ring.run(5 * kMillisecond);
    EXPECT_EQ(ring[1].words, ring[0].words);
    ring.run(2 * kStatusNs);
    EXPECT_FALSE(ring[1].core.exchange().takes(2)) << "the older ring stands";
    ring.is_cut = [](unsigned, unsigned) { return false; };
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 2000 * kMillisecond));
    EXPECT_EQ(ring[0].dropped + ring[1].dropped, 0U);
    ring.expect_equal_banks();
}

TEST(Core, that_took_a_stream_without_being_heard_is_told_again_from_where_it_counts) {
    Ring ring(2);
    bool hears_0 = true, hears_1 = true;
    ring.is_cut = [&](unsigned, unsigned to) { return to == 0 ? !hears_1 : !hears_0; };
    ring.start(0);
    ASSERT_TRUE(ring.run_until([&] { return ring[0].core.is_member(); }, 2 * kFormNs));
    ring.start(1);
    for (int i = 0; i < 1000 && !ring[0].core.exchange().takes(1); ++i) {
        ring.run(1000);
        // It has greeted, and does not hear that it was admitted.
        hears_0 = ring[1].core.counters().joins_sent < 2;
    }
    ASSERT_TRUE(ring[0].core.exchange().takes(1));
    for (int i = 0; i < 5; ++i) ring.write_something(0);
    EXPECT_FALSE(ring[1].core.exchange().takes(0));
    hears_0 = true;
    ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 2000 * kMillisecond))
        << ring.describe();
    ring.expect_equal_banks();
}

TEST(Core, with_others_ends_whole_and_with_equal_banks_whatever_happened) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        SplitMix64 dice(seed * 7919);
        Weather weather;
        weather.lost_percent = static_cast<unsigned>(dice.below(16));
        weather.repeated_percent = static_cast<unsigned>(dice.below(16));
        weather.jitter_ns = static_cast<std::int64_t>(dice.below(20'000));
        const auto count = static_cast<unsigned>(dice.below(4)) + 2;
        Ring ring(count, weather, seed);
        unsigned cut_from = count, cut_to = count;  // one way
        std::uint64_t side = 0;                     // these nodes and the others are apart
        ring.is_cut = [&](unsigned from, unsigned to) {
            return (from == cut_from && to == cut_to) || ((side >> from ^ side >> to) & 1U) != 0;
        };
        for (unsigned n = 0; n < count; ++n) ring.start(n);
        for (int step = 0; step < 600; ++step) {
            const auto node = static_cast<unsigned>(dice.below(count));
            switch (dice.below(60)) {
                case 0: ring.kill(node); break;
                case 1:
                case 2:
                    if (!ring.all[node]) ring.start(node);
                    break;
                case 3: cut_from = node, cut_to = static_cast<unsigned>(dice.below(count)); break;
                case 4: cut_from = count; break;
                case 5: side = dice.below(1U << count); break;
                case 6:
                case 7: side = 0; break;
                default: ring.write_something(node);
            }
            ring.run(static_cast<std::int64_t>(dice.below(4'000'000)));
        }
        cut_from = count;
        side = 0;
        for (unsigned n = 0; n < count; ++n) {
            if (!ring.all[n]) ring.start(n);
        }
        ASSERT_TRUE(ring.run_until([&] { return ring.is_whole(); }, 20'000 * kMillisecond))
            << "seed " << seed << ring.describe();
        ring.expect_equal_banks();
    }
}

}  // namespace
}  // namespace rmem::udp
