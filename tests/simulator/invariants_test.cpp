// SPDX-License-Identifier: Apache-2.0

/// The parts of the hunts and of the experiments notice when what their headers state does not
/// hold.

#include "simulator/bbp_hunt/ledger.hpp"
#include "simulator/mpi_hunt/model.hpp"
#include "simulator/paper/rounds.hpp"
#include "simulator/udp_hunt/world.hpp"
#include "tests/rmem/sim/world_fixture.hpp"
#include "tests/support/broken.hpp"

#include <array>

namespace simulator {

struct PlantedBug {
    static void deliver_later_ones(Network& network) { network.links_[1].newest = 99; }
};

namespace {

// ---- The network

TEST(NetworksDeathTest, check_that_a_link_is_mended_as_often_as_cut) {
    Network network(2, 1, {});
    network.cut(0, 1);
    network.mend(0, 1);
    EXPECT_BROKEN(network.mend(0, 1));
}

TEST(NetworksDeathTest, check_that_nothing_overtakes_on_a_fabric) {
    Network network(2, 1, {}, Network::Kind::fabric);
    network.post(0, std::array{std::byte{1}}, 0);
    PlantedBug::deliver_later_ones(network);
    EXPECT_BROKEN(static_cast<void>(network.take(1'000'000)));
}

// ---- The hunt on link udp

TEST(UdpLedgerDeathTest, checks_that_incarnations_are_newer_and_newer) {
    Findings findings;
    udp::Ledger ledger(2, 8, findings);
    ledger.next_value(0, 5, 0);
    ledger.next_value(1, 4, 4);
    EXPECT_BROKEN(ledger.next_value(0, 4, 1));
}

TEST(UdpLedgerDeathTest, checks_that_the_banks_are_those_of_all_nodes) {
    Findings findings;
    udp::Ledger ledger(2, 8, findings);
    const std::array<std::uint32_t, 8> bank{};
    EXPECT_BROKEN(ledger.check_quiet({bank}, true));
}

struct UdpWorldDeathTest : ::testing::Test {
    const udp::Scenario scenario = udp::Scenario::of_seed(1);
    const udp::HuntOptions options{};
    Findings findings;
    udp::World world{scenario, options, findings};
};

TEST_F(UdpWorldDeathTest, checks_that_a_host_starts_when_it_is_down) {
    world.start(0);
    EXPECT_BROKEN(world.host(0).start(world.now()));
}

TEST_F(UdpWorldDeathTest, checks_that_nothing_is_to_happen_in_the_past) {
    world.run_for(10);
    EXPECT_BROKEN(world.at(5, [] {}));
}

// ---- The hunt on the billboard

struct BbpDeathTest : ::testing::Test {
    const bbp::Scenario scenario = bbp::Scenario::of_seed(1);
    rmem::sim::World world{rmem::sim::small_world(RingScenario::kRanks)};
    Findings findings;
    bbp::LinkChecker link{world, findings};
    bbp::Ledger ledger{scenario, findings, link};
    const std::array<int, 1> dest = {1};
};

TEST_F(BbpDeathTest, ledgers_check_that_an_incarnation_follows_a_death) {
    ledger.starts(0);
    ledger.dies(0, false);
    ledger.starts(0);
    EXPECT_BROKEN(ledger.starts(0));
}

TEST_F(BbpDeathTest, ledgers_check_that_messages_have_numbers_of_their_own) {
    ledger.begins(0, dest, 2, 8);
    EXPECT_BROKEN(ledger.begins(0, dest, 2, 8));
}

TEST_F(BbpDeathTest, ledgers_check_that_a_call_ends_once) {
    ledger.begins(0, dest, 1, 8);
    ledger.ends(0, dest, 1, -1);
    EXPECT_BROKEN(ledger.ends(0, dest, 1, -1));
}

TEST_F(BbpDeathTest, checkers_of_the_link_check_that_writes_are_of_whole_words) {
    rmem::sim::Event event{};
    event.kind = rmem::sim::EventKind::stored;
    event.offset = 2;
    EXPECT_BROKEN(link.on_event(event));
}

// ---- The hunt on MPI's messages

struct ModelDeathTest : ::testing::Test {
    Findings findings;
    mpi::Model model{findings};
    mpi::Sent& sent = model.sends(0, 1, 8);
    mpi::Waiting &first = model.receives(1, 8), &second = model.receives(1, 8);
};

TEST_F(ModelDeathTest, checks_that_a_message_has_one_receive) {
    model.receives_claimed(sent, first);
    EXPECT_BROKEN(model.receives_claimed(sent, second));
}

TEST_F(ModelDeathTest, checks_that_a_receive_is_posted_once) {
    model.posts(first);
    EXPECT_BROKEN(model.posts(first));
}

TEST_F(ModelDeathTest, checks_that_what_is_claimed_is_unexpected) {
    EXPECT_BROKEN(model.claims(sent));
}

// ---- The paper

void broadcast_longer_than_the_period() {
    const Testbed testbed;
    Broadcasts broadcasts(testbed, {2, 1}, 100, 4, 1);
    run_bare(testbed, [&](rmem::sim::Process& me) {
        broadcasts.run(
            me, [&] { me.sleep(1000); }, [&] { me.sleep(10'000'000); }, [] {});
    });
}

TEST(BroadcastsDeathTest, check_that_each_is_over_before_the_next) {
    EXPECT_BROKEN(broadcast_longer_than_the_period());
}

}  // namespace
}  // namespace simulator
