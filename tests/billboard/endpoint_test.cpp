// SPDX-License-Identifier: Apache-2.0

/// An endpoint's time and descriptors, which each link has of its own or not at all.

#include "billboard/endpoint.hpp"
#include "billboard/bbp.h"
#include "billboard/simulation.hpp"
#include "rmem/base/clock.hpp"
#include "tests/support/child.hpp"
#include "tests/support/endpoint_pair.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <tuple>

namespace billboard {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

/// Runs a program as the only process of a simulated world.
void simulate(const rmem::sim::Program& program) {
    rmem::RingConfig ring;
    ring.name = "simulated";
    ring.user_bytes = 4096;
    Settings settings = paper_settings();
    settings.board.data_bytes = 4096;
    rmem::sim::WorldConfig config;
    config.ring = ring;
    rmem::sim::World world(simulated(config, settings));
    world.start(0, program, 1000);
    ASSERT_EQ(world.run(), rmem::sim::RunEnd::all_ended);
}

TEST(Deadline, lies_so_long_after_its_start_or_never) {
    EXPECT_EQ(Deadline::after(100, 20).at_ns, 120);
    EXPECT_EQ(Deadline::after(100, kMax - 101).at_ns, kMax - 1);
    EXPECT_TRUE(Deadline::after(100, kMax - 99).is_never());
    EXPECT_TRUE(Deadline::after(0, kMax).is_never());
}

TEST(Endpoint, an_endpoint_on_a_real_link_counts_from_the_hosts_clock_and_may_have_no_time_or_all) {
    const rmem::test::RingName name;
    const auto pair = test::open_pair(name.get(), 4096);
    const std::int64_t before = rmem::now_ns();
    const std::int64_t at = pair.sender->deadline_in(5'000'000'000).at_ns;
    EXPECT_GE(at, before + 5'000'000'000);
    EXPECT_LE(at, rmem::now_ns() + 5'000'000'000);
    for (const std::int64_t ns : {std::int64_t{0}, std::int64_t{-1}, -kMax})
        EXPECT_EQ(pair.sender->deadline_in(ns).at_ns, Deadline::now().at_ns);
    EXPECT_TRUE(pair.sender->deadline_in(kMax).is_never());
}

TEST(Endpoint, a_guest_of_a_node_has_none) {
    const rmem::test::RingName name;
    const auto [ring, settings] = test::ring_of_two(name.get(), 4096);
    const rmem::Member guest{rmem::Member::kGuest, 0};
    const auto open = [&, &ring = ring, &settings = settings] {
        static_cast<void>(Endpoint::open(ring, guest, settings, test::patience()));
    };
    EXPECT_THAT(rmem::test::refused(rmem::Errc::bad_rank, open),
                ::testing::HasSubstr("no messages"));
}

TEST(Endpoint, an_endpoint_that_does_not_await_the_others_sends_to_them_once_they_have_come) {
    const rmem::test::RingName name;
    const auto [ring, settings] = test::ring_of_two(name.get(), 4096);
    Settings alone = settings;
    alone.awaits_others = false;
    const auto first = Endpoint::open(ring, {0, 0}, alone, test::patience());
    EXPECT_EQ(first->send(1, "early", 6, Deadline::now()), BBP_EAGAIN);
    EXPECT_EQ(first->probe(BBP_ANY, nullptr), BBP_EAGAIN);
    EXPECT_EQ(first->probe(1, nullptr), BBP_EAGAIN) << "not yet here is not gone";
    const auto second = Endpoint::open(ring, {1, 1}, alone, test::patience());
    const Deadline end = test::patience();
    while (first->send(1, "late", 5, Deadline::now()) == BBP_EAGAIN) {
        std::ignore = second->available(BBP_ANY);  // connects as it looks
        ASSERT_FALSE(end.passed(rmem::now_ns()));
    }
    char text[8] = {};
    EXPECT_EQ(second->recv(0, text, sizeof text, nullptr, end), 0);
    EXPECT_STREQ(text, "late");
}

TEST(Endpoint, an_endpoint_on_a_simulated_link_counts_from_its_process_own_clock) {
    simulate([](rmem::sim::Process& process) {
        const auto endpoint = Endpoint::open();
        process.sleep(70'000);
        EXPECT_GE(process.now_ns(), 71'000);
        EXPECT_EQ(endpoint->deadline_in(500).at_ns, process.now_ns() + 500);
        EXPECT_EQ(endpoint->deadline_in(0).at_ns, Deadline::now().at_ns);
        EXPECT_TRUE(endpoint->deadline_in(kMax).is_never());
    });
}

TEST(Endpoint, an_endpoint_of_a_simulated_link_has_no_descriptor_and_says_what_to_do) {
    simulate([](rmem::sim::Process&) {
        ASSERT_EQ(bbp_init(nullptr, nullptr), BBP_OK) << bbp_last_error();
        EXPECT_EQ(bbp_fd(), BBP_EINVAL);
        EXPECT_THAT(bbp_last_error(), ::testing::HasSubstr("ring 'simulated'"));
        EXPECT_THAT(bbp_last_error(), ::testing::HasSubstr("bbp_recv_for"));
        EXPECT_EQ(bbp_finalize(), BBP_OK);
    });
}

}  // namespace
}  // namespace billboard
