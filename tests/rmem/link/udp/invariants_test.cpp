// SPDX-License-Identifier: Apache-2.0

/// The parts of the engine notice when what their headers state does not hold.

#include "rmem/link/udp/datagram_faults.hpp"
#include "rmem/link/udp/rest.hpp"
#include "tests/rmem/link/udp/outbox_fixture.hpp"
#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <array>

namespace rmem::udp {

struct PlantedBug {
    static void hold_too_many(DatagramFaults& faults) {
        while (faults.held_.size() <= DatagramFaults::kMaxHeld) {
            faults.held_.try_emplace({0, faults.arrivals_++});
        }
    }
    static void take_for_ever(Crowd& crowd) { crowd.turn_ns_ = kNever; }
    static void write_roster(Outbox& outbox) { outbox.write_roster(0, {true, 0, 1}, 1); }
};

namespace {

TEST(DatagramFaultsDeathTest, check_that_no_more_are_held_than_may_be) {
    DatagramFaults faults(FaultPlan::parse("hold:by=1s", 4, LinkKind::udp), 0, 0);
    std::array<std::byte, kHeaderBytes + kTagBytes> datagram{};
    EXPECT_BROKEN(PlantedBug::hold_too_many(faults); static_cast<void>(faults.pass(datagram, 0)));
}

TEST(CrowdDeathTest, checks_that_turns_come_to_an_end) {
    Crowd crowd(16, 4, [] { return 16U; });
    EXPECT_BROKEN(PlantedBug::take_for_ever(crowd); static_cast<void>(crowd.take_turn(0)));
}

TEST(RestDeathTest, checks_that_only_who_has_lain_down_gets_up) {
    test::RingName name;
    const auto ring = Ring::open(name.config(2, LinkKind::udp), Deadline::in(1'000'000'000), 0);
    Rest rest(*ring);
    EXPECT_BROKEN(rest.get_up());
}

TEST_F(OutboxTest, checks_that_no_rank_is_on_the_roster_before_its_node_is_a_member) {
    Core joiner(core_config(ring->config()), authenticator, wire, now);
    Outbox its(*ring, joiner, tap, roster, 0);
    EXPECT_BROKEN(PlantedBug::write_roster(its));
}

}  // namespace
}  // namespace rmem::udp
