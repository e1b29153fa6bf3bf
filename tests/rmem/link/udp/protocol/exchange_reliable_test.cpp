// SPDX-License-Identifier: Apache-2.0
#include "tests/rmem/link/udp/protocol/exchange_fixture.hpp"

#include <gtest/gtest.h>

namespace rmem::udp {
namespace {

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
