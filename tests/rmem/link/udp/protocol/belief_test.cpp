// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/belief.hpp"

#include "tests/rmem/link/udp/protocol/exchange_fixture.hpp"

#include <gtest/gtest.h>

namespace rmem::udp {
namespace {

TEST(Belief, takes_no_datagram_twice_nor_one_of_a_former_incarnation) {
    Hosts hosts(2);
    hosts.write_word(0, 0, 1);
    ASSERT_TRUE(hosts.settle(1'000'000));
    const std::uint64_t taken = hosts[1].counters().datagrams_taken;
    hosts[1].on_datagram(hosts.sent().front(), hosts.now);
    EXPECT_EQ(hosts[1].counters().replayed, 1U);
    EXPECT_EQ(hosts[1].counters().datagrams_taken, taken);

    ExchangeConfig config = Hosts::config_of(0, 2, 64);
    config.incarnation = 99;
    Hosts::Host former(hosts, config);
    former.exchange.begin(1, 101, 1, hosts.now);
    const std::uint32_t value = 666;
    former.exchange.write(0, 1, &value, hosts.now);
    former.exchange.commit(hosts.now);
    hosts.run(hosts.now + 1'000'000);
    EXPECT_GE(hosts[1].counters().strangers, 1U);
    EXPECT_EQ(hosts.all[1]->bank[0], 1U);
}

/// All that two hosts say who believe each other, with a write by the first.
std::deque<std::vector<std::byte>> recorded_session() {
    Hosts hosts(2);
    hosts.sent().clear();
    hosts.introduce();
    hosts.write_word(0, 0, 666);
    EXPECT_TRUE(hosts.settle(1'000'000));
    return hosts.sent();
}

TEST(Belief, believes_no_incarnation_for_what_it_said_in_another_session) {
    const auto recorded = recorded_session();
    // A new incarnation of the one, and nobody there who is the other.
    ExchangeConfig config = Hosts::config_of(1, 2, 64);
    config.incarnation = config.first_incarnation = 500;
    config.seed = 77;
    Hosts hosts(2);
    hosts.sent().clear();
    Hosts::Host alone(hosts, config);
    for (int times = 0; times < 3; ++times) {
        for (const auto& datagram : recorded) {
            alone.exchange.on_datagram(datagram, hosts.now += 20'000'000);
            alone.exchange.send_greetings(0, hosts.now);
        }
    }
    EXPECT_EQ(alone.exchange.belief().believed(0), 0U);
    EXPECT_EQ(alone.exchange.counters().datagrams_taken, 0U);
    EXPECT_GT(alone.exchange.counters().strangers, 0U);
    EXPECT_TRUE(alone.applied.empty());
    EXPECT_EQ(alone.others, 0U) << "no section of a stranger is anybody's";
    EXPECT_GT(hosts.sent().size(), 0U) << "it is asked";
    EXPECT_LE(hosts.sent().size(), 3 * recorded.size());
}

TEST(Belief, takes_nothing_that_an_incarnation_had_sent_before_it_was_believed) {
    Hosts hosts(2);
    hosts.is_cut = [](unsigned, unsigned) { return true; };
    hosts.write_word(0, 0, 666);
    const std::vector<std::byte> held_back = hosts.sent().back();
    hosts.is_cut = [](unsigned, unsigned) { return false; };
    hosts[1].belief().doubt(0, 100);
    hosts[1].belief().greet(0, hosts.now += kGreetAgainNs);
    hosts.run(hosts.now + 40'000);
    ASSERT_EQ(hosts[1].belief().believed(0), 100U);
    hosts[1].on_datagram(held_back, hosts.now);
    EXPECT_TRUE(hosts.all[1]->applied.empty());
    EXPECT_EQ(hosts[1].counters().replayed, 1U);
}

TEST(Belief, believes_an_incarnation_again_only_for_a_new_answer) {
    Hosts hosts(2);
    hosts[1].belief().doubt(0, 100);
    hosts[1].belief().greet(0, hosts.now += kGreetAgainNs);
    hosts.run(hosts.now + 1'000'000);
    const auto greetings = hosts.sent();
    ASSERT_EQ(hosts[1].belief().believed(0), 100U);
    hosts[1].belief().doubt(0, 100);
    for (const auto& datagram : greetings) hosts[1].on_datagram(datagram, hosts.now);
    EXPECT_EQ(hosts[1].belief().believed(0), 0U);
    hosts[1].belief().greet(0, hosts.now += kGreetAgainNs);
    hosts.run(hosts.now + 1'000'000);
    EXPECT_EQ(hosts[1].belief().believed(0), 100U) << "it is there, and answers again";
}

TEST(Belief, takes_another_process_for_a_node_only_when_the_one_before_is_silent) {
    for (const std::uint64_t incarnation : {40U, 140U}) {  // its clock was set back; or was not
        Hosts hosts(2);
        ExchangeConfig config = Hosts::config_of(0, 2, 64);
        config.incarnation = config.first_incarnation = incarnation;
        const auto second = std::make_unique<Hosts::Host>(hosts, config);
        const auto speak = [&](std::int64_t for_ns) {
            for (const std::int64_t end = hosts.now + for_ns; hosts.now < end;) {
                second->exchange.belief().greet(1, hosts.now);
                second->exchange.send_greetings(0, hosts.now);
                hosts.run(hosts.now + 1'000'000);
                // What is for the number is heard by both.
                for (const auto& datagram : std::exchange(hosts.sent(), {})) {
                    second->exchange.on_datagram(datagram, hosts.now);
                }
            }
        };
        for (int i = 0; i < 10; ++i) {
            hosts[0].begin_other(hosts.now);
            hosts[0].send_other(hosts.now);
            speak(kNamesakeNs / 3);
        }
        EXPECT_EQ(hosts[1].belief().believed(0), 100U);
        speak(kNamesakeNs + 3 * kGreetAgainNs);
        EXPECT_EQ(hosts[1].belief().believed(0), incarnation);
    }
}

TEST(Belief, takes_nothing_from_a_node_with_another_key_or_none) {
    Hosts hosts(2), strangers(2), open(2, {}, 1, 64, false);
    strangers.authenticator = Authenticator(key_of_bytes(8));
    Hosts::Host stranger(strangers, Hosts::config_of(0, 2, 64));
    const std::uint64_t taken = hosts[1].counters().datagrams_taken;
    const std::uint32_t value = 666;
    stranger.exchange.write(0, 1, &value, 1);
    stranger.exchange.commit(1);
    hosts[1].on_datagram(strangers.sent().back(), hosts.now);
    EXPECT_EQ(hosts[1].counters().wrong_tag, 1U);
    open.write_word(0, 0, value);
    hosts[1].on_datagram(open.sent().back(), hosts.now);
    EXPECT_EQ(hosts[1].counters().unsigned_, 1U);
    open[1].on_datagram(strangers.sent().back(), open.now);
    EXPECT_EQ(open[1].counters().signed_, 1U);
    EXPECT_EQ(hosts.all[1]->bank[0], 0U);
    EXPECT_EQ(hosts[1].counters().datagrams_taken, taken);
}

}  // namespace
}  // namespace rmem::udp
