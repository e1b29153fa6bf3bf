// SPDX-License-Identifier: Apache-2.0

/// What it costs an exchange that something is lost.

#include "tests/rmem/link/udp/protocol/exchange_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace rmem::udp {
namespace {

/// What it costs that one of 40 batches that leave at once does not reach some of the others.
struct Cost {
    ExchangeCounters counted;
    std::int64_t until_all_ns = 0;  ///< have all

    Cost(unsigned nodes, unsigned batch, const std::vector<unsigned>& deaf) {
        constexpr unsigned kBatches = 40;
        Hosts hosts(nodes);
        for (unsigned i = 0; i < 50 * nodes; ++i) hosts.send_word(i % nodes);  // know round trips
        EXPECT_TRUE(hosts.settle(1'000'000));
        for (const auto& host : hosts.all) counted = counted + host->exchange.counters();
        const ExchangeCounters before = std::exchange(counted, {});
        bool is_lost = false;
        hosts.is_cut = [&](unsigned from, unsigned to) {
            return is_lost && from == 0 && std::count(deaf.begin(), deaf.end(), to) != 0;
        };
        for (unsigned i = 1; i <= kBatches; ++i) {
            is_lost = i == batch;
            hosts.write_word(0, 0, i);
            hosts.collect();
        }
        is_lost = false;
        const std::int64_t begun = hosts.now;
        const auto have_all = [&] {
            return std::all_of(hosts.all.begin() + 1, hosts.all.end(),
                               [](const auto& host) { return host->bank[0] == kBatches; });
        };
        while (!have_all() && hosts.now - begun < 1'000'000) hosts.run(hosts.now + 1000);
        until_all_ns = hosts.now - begun;
        EXPECT_TRUE(hosts.settle(1'000'000));
        for (const auto& host : hosts.all) counted = counted + host->exchange.counters();
        counted.naks_sent -= before.naks_sent;
        counted.probes_sent -= before.probes_sent;
        counted.retransmissions_sent -= before.retransmissions_sent;
    }
};

TEST(Exchange, sends_each_batch_once_where_nothing_is_lost) {
    const Cost cost(4, 0, {});
    EXPECT_EQ(cost.counted.naks_sent, 0U);
    EXPECT_EQ(cost.counted.probes_sent + cost.counted.retransmissions_sent, 0U);
}

TEST(Exchange, retransmits_a_batch_that_one_lacks_within_two_round_trips_of_its_successor) {
    const Cost cost(4, 30, {2});
    EXPECT_EQ(cost.counted.naks_sent, 1U);
    EXPECT_EQ(cost.counted.retransmissions_sent, 1U);
    EXPECT_LE(cost.until_all_ns, 5'000 + 2 * 10'000);
}

TEST(Exchange, retransmits_the_last_batch_though_nothing_follows_it) {
    const Cost cost(3, 40, {1});
    EXPECT_EQ(cost.counted.probes_sent, 1U) << "which is the retransmission";
    EXPECT_EQ(cost.counted.retransmissions_sent, 0U);
    EXPECT_LE(cost.until_all_ns, kAckNs + kLeastRetransmitNs + 2 * 10'000) << "after an ack";
}

TEST(Exchange, gets_a_nak_from_one_of_those_who_lack_the_same) {
    const Cost cost(6, 20, {1, 2, 3, 4, 5});
    EXPECT_LE(cost.counted.naks_sent, 3U) << "nodes that hear the NAK before their turn send none";
    EXPECT_EQ(cost.counted.retransmissions_sent, 1U);
}

TEST(Exchange, asks_a_reliable_carrier_for_less_and_gets_what_a_broken_connection_took_along) {
    Hosts hosts(2, {}, 1, 64, true, {}, true);
    std::uint32_t word = 1;
    const auto write = [&] {
        hosts[0].write(word, 1, &word, hosts.now);
        hosts[0].commit(hosts.now);
        ++word;
        hosts.run(hosts.now + 1);  // it leaves
    };
    bool is_broken = true;
    hosts.is_cut = [&](unsigned from, unsigned) { return is_broken && from == 0; };
    write();  // lost
    is_broken = false;
    write();  // tells of it
    hosts.run(hosts.now + kReliableNakNs - 100'000);
    EXPECT_EQ(hosts[1].counters().naks_sent, 0U)
        << "a long message may come later than a short one";
    EXPECT_EQ(hosts[0].counters().probes_sent, 0U);
    EXPECT_EQ(hosts.all[1]->bank[1], 0U);
    hosts.run(hosts.now + 200'000);
    EXPECT_EQ(hosts[1].counters().naks_sent, 1U);
    EXPECT_EQ(hosts.all[1]->bank[1], 1U);
    EXPECT_EQ(hosts.all[1]->bank[2], 2U);
    is_broken = true;
    write();  // lost, and nothing comes after it
    is_broken = false;
    hosts.run(hosts.now + kReliableProbeNs - 1'000'000);
    EXPECT_EQ(hosts[0].counters().probes_sent, 0U);
    hosts.run(hosts.now + 2'000'000);
    EXPECT_EQ(hosts.all[1]->bank[3], 3U);
}

}  // namespace
}  // namespace rmem::udp
