// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/exchange.hpp"
#include "rmem/link/memory.hpp"
#include "tests/rmem/link/udp/protocol/exchange_fixture.hpp"

#include <gtest/gtest.h>

namespace rmem::udp {
namespace {

/// Each node writes to words of its own, that number of times, whenever there is room.
void write_much(Hosts& hosts, unsigned commits) {
    const auto nodes = static_cast<unsigned>(hosts.all.size());
    const std::size_t share = kBankWords / nodes;
    std::vector<unsigned> done(nodes);
    while (*std::min_element(done.begin(), done.end()) < commits) {
        ASSERT_LT(hosts.now, 600'000'000'000) << "it takes forever";
        for (unsigned n = 0; n < nodes; ++n) {
            if (done[n] == commits || !hosts[n].has_room(3 * 20)) continue;
            auto& bank = hosts.all[n]->bank;
            for (std::uint64_t records = hosts.random.below(3) + 1; records > 0; --records) {
                const std::size_t words = hosts.random.below(20) + 1;
                const std::size_t at = n * share + hosts.random.below(share - words);
                for (std::size_t i = 0; i < words; ++i) {
                    bank[at + i] = static_cast<std::uint32_t>(hosts.random.below(UINT32_MAX));
                }
                hosts[n].write(at, words, &bank[at], hosts.now);
            }
            hosts[n].commit(hosts.now);
            ++done[n];
        }
        hosts.run(hosts.now + static_cast<std::int64_t>(hosts.random.below(3000)) + 1);
    }
}

void expect_equal_banks(const Hosts& hosts) {
    for (const auto& host : hosts.all) EXPECT_EQ(host->bank, hosts.all.front()->bank);
}

TEST(Exchange, brings_a_write_to_all_others_in_one_datagram) {
    Hosts hosts(3);
    const std::uint32_t words[2] = {42, 43};
    hosts[1].write(10, 2, words, hosts.now);
    hosts[1].write(20, 1, words, hosts.now);
    EXPECT_TRUE(hosts.sent().empty()) << "not before the commit";
    hosts[1].commit(hosts.now);
    ASSERT_EQ(hosts.sent().size(), 1U);
    hosts.run(hosts.now + 6000);
    for (const unsigned n : {0U, 2U}) {
        EXPECT_EQ(hosts.all[n]->bank[10], 42U);
        EXPECT_EQ(hosts.all[n]->bank[11], 43U);
        EXPECT_EQ(hosts.all[n]->bank[20], 42U);
    }
    ASSERT_TRUE(hosts.settle(1'000'000));
    EXPECT_EQ(hosts[1].counters().probes_sent, 0U);
    EXPECT_EQ(hosts.sent().size(), 3U) << "the others' acknowledgements";
}

TEST(Exchange, an_exchange_that_is_asked_for_acks_gets_them_at_once) {
    for (const bool has_left : {false, true}) {
        Hosts hosts(2);
        const std::uint32_t word = 42;
        hosts[0].write(10, 1, &word, hosts.now);
        if (has_left) hosts[0].commit(hosts.now);
        hosts[0].ask_for_acks(hosts.now);
        hosts.run(hosts.now + 2 * hosts.weather.delay_ns + 1);
        EXPECT_TRUE(hosts[0].is_idle()) << "there and back, and no wait for something to ride on";
        EXPECT_EQ(hosts.all[1]->bank[10], 42U);
        const std::size_t sent = hosts.sent().size();
        hosts[0].ask_for_acks(hosts.now);
        EXPECT_EQ(hosts.sent().size(), sent) << "there is nothing to ask for";
    }
}

TEST(Exchange, what_is_to_be_acknowledged_at_once_asks_with_the_datagram_that_it_leaves_with) {
    Hosts hosts(2);
    const std::uint32_t word = 42;
    hosts[0].write(10, 1, &word, hosts.now);
    hosts[0].ask_at_once();
    EXPECT_TRUE(hosts.sent().empty());
    hosts[0].commit(hosts.now);
    hosts.run(hosts.now + 2 * hosts.weather.delay_ns + 1);
    EXPECT_TRUE(hosts[0].is_idle());
    EXPECT_EQ(hosts.sent().size(), 2U);
}

TEST(Exchange, an_exchange_of_two_that_answer_each_other_needs_no_datagram_but_the_messages) {
    Hosts hosts(2);
    for (std::uint32_t i = 1; i <= 100; ++i) {
        const unsigned n = i % 2;
        hosts.write_word(n, n, i);
        hosts.run(hosts.now + 5001);
        EXPECT_EQ(hosts.all[1 - n]->bank[n], i);
    }
    EXPECT_EQ(hosts.sent().size(), 100U);
    EXPECT_GE(hosts[0].round_trip(1).smoothed_ns(), 10'000);
    EXPECT_LE(hosts[0].round_trip(1).smoothed_ns(), 10'100);
}

TEST(Exchange, an_exchange_of_many_keeps_order_and_loses_nothing_in_any_weather) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        Random random(seed);
        Weather weather;
        weather.lost_percent = static_cast<unsigned>(random.below(21));
        weather.repeated_percent = static_cast<unsigned>(random.below(21));
        weather.corrupted_percent = static_cast<unsigned>(random.below(11));
        weather.jitter_ns = static_cast<std::int64_t>(random.below(20'000));
        Hosts hosts(static_cast<unsigned>(random.below(4)) + 2, weather, seed);
        write_much(hosts, 300);
        ASSERT_TRUE(hosts.settle(60'000'000'000)) << "seed " << seed;
        expect_equal_banks(hosts);
    }
}

TEST(Exchange, goes_on_where_it_was_when_a_cut_heals_that_went_one_way) {
    Hosts hosts(3);
    hosts.is_cut = [&](unsigned from, unsigned to) {
        return from == 0 && to == 2 && hosts.now > 100'000 && hosts.now < 40'000'000;
    };
    write_much(hosts, 500);
    ASSERT_TRUE(hosts.settle(1'000'000'000));
    expect_equal_banks(hosts);
    EXPECT_EQ(hosts.all[2]->applied[0], 500U);
}

TEST(Exchange, cuts_a_write_that_is_larger_than_a_datagram) {
    Hosts hosts(2);
    auto& bank = hosts.all[0]->bank;
    for (std::size_t i = 0; i < bank.size(); ++i) bank[i] = static_cast<std::uint32_t>(i * 7 + 1);
    ASSERT_TRUE(hosts[0].has_room(bank.size()));
    hosts[0].write(0, bank.size(), bank.data(), hosts.now);
    hosts[0].commit(hosts.now);
    ASSERT_TRUE(hosts.settle(10'000'000));
    expect_equal_banks(hosts);
    EXPECT_EQ(hosts[0].counters().batches_sent, 4U);
}

unsigned echoes_in(const std::vector<std::byte>& bytes) {
    Datagram datagram;
    Sections sections;
    EXPECT_EQ(read_datagram(bytes, kExchangeRing, kDefaultPayload, datagram), Refusal::none);
    EXPECT_EQ(read_sections(datagram, sections), Refusal::none);
    return static_cast<unsigned>(
        std::count_if(sections.begin(), sections.end(),
                      [](const Section& section) { return section.type() == SectionType::echo; }));
}

/// Each costs its reader more than a short message does.
TEST(Exchange, echoes_another_node_now_and_then_and_not_in_each_datagram) {
    Hosts hosts(2);
    const std::int64_t begun = hosts.now;
    for (int round = 0; round < 50; ++round) {
        hosts.send_word(0);
        hosts.send_word(1);
    }
    const std::int64_t intervals = (hosts.now - begun) / kEchoNs;
    unsigned echoes = 0;
    for (const auto& datagram : hosts.sent()) echoes += echoes_in(datagram);
    EXPECT_LE(echoes, 2 * (intervals + 1));
    EXPECT_GE(echoes, intervals);
    EXPECT_FALSE(hosts[0].round_trip(1).empty());
    EXPECT_FALSE(hosts[1].round_trip(0).empty());
}

/// Its words would come after the flag in front of them.
TEST(Exchange, cuts_no_write_as_short_as_a_flag_with_what_lies_behind_it) {
    constexpr std::size_t kWords = kLinePostWords;
    for (std::size_t room = 0; room < 2 * kWords; ++room) {
        Hosts hosts(2);
        const auto& bank = hosts.all[0]->bank;
        hosts[0].write(0, most_batch_words(kDefaultPayload) - room, bank.data(), hosts.now);
        hosts[0].write(kBankWords - kWords, kWords, bank.data(), hosts.now);
        hosts[0].commit(hosts.now);
        ASSERT_TRUE(hosts.settle(10'000'000));
        EXPECT_EQ(hosts.all[1]->places.back().words, kWords) << "with room for " << room;
    }
}

/// So that they can leave as a GSO batch, though one carries acknowledgements and the next does
/// not.
TEST(Exchange, makes_all_full_batches_equally_long) {
    Hosts hosts(3);
    hosts.send_word(1);
    hosts.sent().clear();
    const auto& bank = hosts.all[0]->bank;
    hosts[0].write(0, bank.size(), bank.data(), hosts.now);
    ASSERT_GE(hosts.sent().size(), 2U);
    for (const auto& datagram : hosts.sent()) EXPECT_EQ(datagram.size(), kDefaultPayload);
    hosts[0].commit(hosts.now);
    EXPECT_LT(hosts.sent().back().size(), kDefaultPayload) << "the last one is as long as needed";
}

std::size_t longest(const std::deque<std::vector<std::byte>>& sent) {
    std::size_t most = 0;
    for (const auto& datagram : sent) most = std::max(most, datagram.size());
    return most;
}

/// The longest datagram of those by which the node writes all of its bank.
std::size_t longest_of_all(Hosts& hosts, unsigned node) {
    hosts.sent().clear();
    hosts[node].write(0, kBankWords, hosts.all[node]->bank.data(), hosts.now);
    hosts[node].commit(hosts.now);
    EXPECT_TRUE(hosts.settle(50'000'000));
    return longest(hosts.sent());
}

TEST(Exchange, sends_datagrams_as_long_as_reach_all_receivers) {
    Hosts hosts(3, {}, 1, 64, true, {4000, 3000, 2000});
    hosts.show_lengths();
    for (const unsigned node : {0U, 1U})
        EXPECT_EQ(longest_of_all(hosts, node), kDefaultPayload) << "nothing longer came to node 2";
    EXPECT_EQ(longest_of_all(hosts, 2), 2000U) << "the others hear it";
    for (const unsigned node : {0U, 1U}) hosts[node].end(2, {}, hosts.now);
    EXPECT_EQ(longest_of_all(hosts, 0), 2000U) << "as node 2 had sent to node 1";
    EXPECT_EQ(longest_of_all(hosts, 1), 3000U);
    EXPECT_EQ(hosts.all[1]->bank, hosts.all[0]->bank);
}

TEST(Exchange, brings_what_was_composed_before_a_node_of_shorter_datagrams_came) {
    Hosts hosts(3, {}, 1, 64, true, {4000, 4000, 2000});
    hosts.show_lengths();
    hosts[0].end(2, {}, hosts.now);
    hosts.is_cut = [](unsigned, unsigned) { return true; };
    hosts.sent().clear();
    std::vector<std::uint32_t> words(900, 7);
    hosts[0].write(0, words.size(), words.data(), hosts.now);
    ASSERT_TRUE(hosts.sent().empty()) << "more is to come";
    EXPECT_EQ(hosts[0].admit(2, hosts.now), 2U) << "what has begun is for the others";
    EXPECT_GT(longest(hosts.sent()), 3000U);
    hosts.is_cut = [](unsigned, unsigned) { return false; };
    hosts[0].write(0, 1, words.data(), hosts.now);
    hosts[0].commit(hosts.now);
    for (const std::int64_t end = hosts.now + 50'000'000; hosts.now < end;) {
        hosts.run(hosts.now + 100'000);
        if (hosts[0].out().acked_by(1) == 2) break;
    }
    EXPECT_EQ(hosts[0].out().acked_by(1), 2U) << "it was sent again as long as it is";
    EXPECT_EQ(hosts.all[1]->bank[899], 7U);
}

/// One that a node of another make may send: own ones leave room for the head of a forwarded one.
TEST(Exchange, takes_no_batch_that_it_could_not_forward) {
    static_assert(kMaxBodyBytes + ForwardedBatch::kHeadBytes + kSectionHeadBytes + kEnvelopeBytes ==
                  kMaxPayload);
    InStream stream(1, 64, kMaxBodyBytes);
    const std::vector<std::byte> longest(kMaxBodyBytes + 1);
    EXPECT_EQ(stream.offer(1, longest, 0), InStream::Offer::too_large);
    EXPECT_EQ(stream.offer(1, std::span(longest).first(kMaxBodyBytes), 0), InStream::Offer::taken);

    Hosts hosts(2, {}, 1, 64, false);
    hosts.payloads.assign(2, kMaxPayload);
    std::vector<std::byte> body(kMaxBodyBytes + ForwardedBatch::kHeadBytes);
    store(body.data(), std::uint64_t{1});
    for (std::size_t at = Batch::kHeadBytes; at < body.size();) {
        const std::size_t words =
            std::min(kBankWords, (body.size() - at - Place::kBytes) / kWordBytes);
        Place{0, static_cast<std::uint16_t>(words)}.write(body.data() + at);
        at += Place::kBytes + words * kWordBytes;
    }
    std::vector<std::byte> buffer(kMaxPayload);
    DatagramWriter writer(buffer, kMaxPayload);
    writer.begin({TagKind::none, 0, kExchangeRing, 100, 0, 1'000'000});
    ASSERT_TRUE(writer.add_batch(body));
    hosts[1].on_datagram(writer.finish(), hosts.now);
    EXPECT_EQ(hosts[1].counters().outside, 1U);
    EXPECT_EQ(hosts[1].applied(0), 0U);
}

/// The interface says more than a switch behind it carries.
TEST(Exchange, believes_in_long_datagrams_when_one_has_come) {
    Hosts hosts(2, {}, 1, 64, true, {4000, 4000});
    EXPECT_EQ(longest_of_all(hosts, 0), kDefaultPayload);
    hosts[0].begin_other(hosts.now);
    hosts[0].send_other_at_length(hosts.now);
    EXPECT_EQ(longest(hosts.sent()), 4000U);
    hosts.run(hosts.now + 10'000);
    hosts.send_word(1);  // by which it says so
    EXPECT_EQ(longest_of_all(hosts, 0), 4000U);
    hosts.sent().clear();
    hosts[0].begin_other(hosts.now);
    hosts[0].send_other_at_length(hosts.now);
    EXPECT_LT(longest(hosts.sent()), kDefaultPayload) << "all know";
}

TEST(Exchange, sends_shorter_datagrams_where_receivers_hosts_have_little_room) {
    Hosts hosts(2, {}, 1, 64, true, {30'000, 30'000});
    hosts.show_lengths();
    EXPECT_EQ(hosts[0].payload(), 30'000U);
    hosts[0].set_window(8 * bytes_charged(7500));
    EXPECT_EQ(hosts[0].payload(), 7500U);
    hosts[0].set_window(0);
    EXPECT_EQ(bytes_charged(hosts[0].payload()), bytes_charged(kLeastPayload));
    EXPECT_TRUE(hosts[0].has_room(1));
    hosts[0].set_window(std::size_t{1} << 20);
    EXPECT_EQ(hosts[0].payload(), 30'000U);
}

TEST(Exchange, has_no_room_while_a_receiver_is_silent_and_room_again_without_it) {
    Hosts hosts(3, {}, 1, 8);
    hosts.is_cut = [](unsigned from, unsigned) { return from == 2; };
    std::uint32_t value = 0;
    while (hosts[0].has_room(1)) {
        ASSERT_LT(++value, 100U);
        hosts.write_word(0, 0, value);
        hosts.run(hosts.now + 100'000);
    }
    hosts.run(hosts.now + 50'000'000);
    EXPECT_FALSE(hosts[0].has_room(1));
    hosts[0].end(2, {}, hosts.now);
    EXPECT_TRUE(hosts[0].has_room(1));
    EXPECT_EQ(hosts.all[1]->bank[0], value);
}

TEST(Exchange, acknowledges_what_the_bank_has_and_not_what_is_deferred) {
    Hosts hosts(2, {}, 1, 8);
    Hosts::Host& slow = *hosts.all[1];
    std::uint32_t value = 0;
    while (hosts[0].has_room(1)) {
        ASSERT_LT(++value, 100U);
        hosts.write_word(0, 0, value);
        ++slow.not_published;
        hosts.run(hosts.now + 100'000);
    }
    EXPECT_EQ(hosts[1].applied(0), slow.not_published);
    EXPECT_EQ(hosts[1].published(0), 0U);
    EXPECT_EQ(hosts[0].out().acknowledged(), 0U) << "all came, nothing is in the bank";
    EXPECT_EQ(hosts[1].counters().acks_alone, 0U) << "it has nothing to say";
    slow.not_published = 3;
    hosts[1].has_published(0, hosts.now);
    hosts.run(hosts.now + 100'000);
    EXPECT_EQ(hosts[0].out().acknowledged(), hosts[0].out().newest() - 3);
    EXPECT_TRUE(hosts[0].has_room(1));
    slow.not_published = 0;
    hosts[1].has_published(0, hosts.now);
    EXPECT_TRUE(hosts.settle(100'000));
}

TEST(Exchange, acknowledges_at_once_when_a_quarter_of_the_window_is_open) {
    Hosts hosts(2, {}, 1, 64);
    for (unsigned i = 0; i < 64 / kAcksAWindow; ++i) {
        hosts.write_word(0, 0, 1);
    }
    const std::int64_t there_and_back = 12'000;
    static_assert(there_and_back < kAckNs);
    hosts.run(hosts.now + there_and_back);
    EXPECT_TRUE(hosts.is_idle());
}

TEST(Exchange, owes_no_acknowledgement_to_a_node_that_has_left) {
    Hosts hosts(2);
    hosts.send_word(0);
    EXPECT_NE(hosts[1].due_ns(), kNever);
    hosts[1].end(0, {}, hosts.now);
    EXPECT_EQ(hosts[1].due_ns(), kNever);
}

TEST(Exchange, takes_no_datagram_with_a_changed_bit_or_a_missing_end) {
    Hosts hosts(2);
    hosts.write_word(0, 0, 5);
    const std::vector<std::byte> good = hosts.sent().front();
    const std::uint64_t taken = hosts[1].counters().datagrams_taken;
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
        std::vector<std::byte> bytes = good;
        bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        hosts[1].on_datagram(bytes, hosts.now);
    }
    for (std::size_t size = 0; size < good.size(); ++size) {
        hosts[1].on_datagram(std::span(good).first(size), hosts.now);
    }
    EXPECT_EQ(hosts[1].counters().datagrams_taken, taken);
    EXPECT_EQ(hosts.all[1]->bank[0], 0U);
    hosts[1].on_datagram(good, hosts.now);
    EXPECT_EQ(hosts.all[1]->bank[0], 5U);
}

TEST(Exchange, applies_no_write_beyond_the_bank) {
    Hosts hosts(2);
    hosts.write_word(0, kBankWords, 5);
    hosts.run(hosts.now + 10'000);
    EXPECT_EQ(hosts[1].counters().outside, 1U);
    EXPECT_TRUE(hosts.all[1]->applied.empty());
}

}  // namespace
}  // namespace rmem::udp
