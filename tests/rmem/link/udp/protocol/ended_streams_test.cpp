// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/ended_streams.hpp"

#include "tests/rmem/link/udp/protocol/exchange_fixture.hpp"

#include <gtest/gtest.h>

namespace rmem::udp {
namespace {

/// Each says what it has of the dead, as its statuses do.
void say_what_has_ended(Hosts& hosts, std::initializer_list<unsigned> nodes) {
    for (const unsigned n : nodes) {
        hosts[n].ended().add_to(hosts[n].begin_other(hosts.now), hosts.now);
        hosts[n].send_other(hosts.now);
    }
    hosts.run(hosts.now + 50'000'000);
}

TEST(EndedStreams, gets_from_the_other_survivor_what_a_dead_node_could_tell_only_that_one) {
    Hosts hosts(3);
    hosts.is_cut = [](unsigned from, unsigned to) { return from == 0 && to == 2; };
    hosts.write_word(0, 3, 7);
    hosts.run(hosts.now + 6000);
    hosts.is_cut = [](unsigned from, unsigned to) { return from == 0 || to == 0; };
    NodeSet survivors;
    for (const unsigned n : {1U, 2U}) survivors.insert(n);
    for (const unsigned n : {1U, 2U}) hosts[n].end(0, survivors, hosts.now);
    EXPECT_EQ(hosts.all[2]->bank[3], 0U);
    EXPECT_FALSE(hosts[1].ended().is_completed(0, hosts.now));
    say_what_has_ended(hosts, {1, 2});
    EXPECT_EQ(hosts.all[2]->bank[3], 7U);
    EXPECT_EQ(hosts[1].counters().forwarded, 1U);
    say_what_has_ended(hosts, {1, 2});
    for (const unsigned n : {1U, 2U}) EXPECT_TRUE(hosts[n].ended().is_completed(0, hosts.now));
}

TEST(EndedStreams, knows_who_has_more_of_a_dead_node_than_it_could_get) {
    Hosts hosts(3);
    hosts.is_cut = [](unsigned from, unsigned to) { return from == 0 && to == 2; };
    hosts.write_word(0, 3, 7);
    hosts.run(hosts.now + 6000);
    hosts.is_cut = [](unsigned, unsigned) { return true; };
    hosts[2].end(0, {}, hosts.now);
    hosts.run(hosts.now + 500'000'000);
    hosts.is_cut = [](unsigned from, unsigned to) { return from == 0 || to == 0; };
    hosts[1].end(0, {}, hosts.now);
    EXPECT_TRUE(hosts[2].ended().differs_from().empty());
    say_what_has_ended(hosts, {1});
    EXPECT_TRUE(hosts[2].ended().differs_from().contains(1));
    EXPECT_EQ(hosts.all[2]->bank[3], 0U);
    hosts[2].end(1, {}, hosts.now);
    EXPECT_TRUE(hosts[2].ended().differs_from().empty());
}

}  // namespace
}  // namespace rmem::udp
