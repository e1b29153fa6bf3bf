// SPDX-License-Identifier: Apache-2.0
// ctest: check tsan

/// Writers that bring their writes to the banks of others, when they are due.

#include "rmem/link/ring/memory.hpp"
#include "rmem/wire/timing.hpp"
#include "tests/rmem/link/ring/ring_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace rmem {
namespace {

using test::RingRank;
using test::still;
using test::TestRing;

constexpr unsigned kNodes = 3;
constexpr unsigned kLooker = 2;  // the node that nobody runs, and that does not write
constexpr std::uint32_t kLeast = 20, kMax = 5'000;
constexpr std::int64_t kTimeNs = 40'000'000, kMaxNs = 5'000'000'000;
constexpr std::int64_t kStuckNs = 500'000'000;

class RingDeliveryTime : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> profiles() {
    std::vector<std::string> names = timing_profile_names();
    std::erase_if(names, [](const auto& name) { return parse_timing(name).instant != 0; });
    return names;
}

/// A word's time on the wire when nothing else is on it.
std::uint32_t least_ns(const TimingProfile& profile, unsigned hops) {
    const std::uint64_t passing = (hops - 1) * profile.node_delay_ps + hops * profile.cable_ps;
    return static_cast<std::uint32_t>((profile.insertion_ps + packet_ps(profile, 1) + passing) /
                                      1000);
}

/// The time as a word on its way: the low half of the clock, and never 0.
std::uint32_t sent_at_word() {
    return static_cast<std::uint32_t>(now_ns()) | 1U;
}

/// What a node's program sees that only looks: how old new words of that writer are.
class Looker {
public:
    Looker(const TestRing& ring, unsigned node, unsigned writer)
        : word_(*reinterpret_cast<const std::atomic<std::uint32_t>*>(ring.ring()->bank(node) +
                                                                     writer * kLineBytes)) {}
    void look() {
        const std::uint32_t value = word_.load(std::memory_order_acquire);
        if (value == last_) return;
        youngest_ = std::min(youngest_, sent_at_word() + 1 - value);
        last_ = value;
        ++seen_;
    }
    /// What is there now was not brought by another.
    void skip() { last_ = word_.load(std::memory_order_acquire); }
    std::uint32_t youngest() const { return youngest_; }
    std::uint32_t seen() const { return seen_; }

private:
    const std::atomic<std::uint32_t>& word_;
    std::uint32_t last_ = 0, youngest_ = UINT32_MAX, seen_ = 0;
};

TEST_P(RingDeliveryTime, of_a_word_that_its_writer_brings_is_not_before_the_wires) {
    TestRing ring({.nodes = kNodes, .timing = GetParam()});
    RingRank a(ring, 0, still()), b(ring, 1, still()), c(ring, kLooker, still());
    for (unsigned r = 0; r < kNodes; ++r) ring.ring()->rank(r).needs_delivery = 1;
    test::allow_delivery(ring);
    const std::array<RingRank*, 2> writers{&a, &b};
    std::array<Looker, 2> others{Looker(ring, 0, 1), Looker(ring, 1, 0)};
    std::array<Looker, 2> looks{Looker(ring, kLooker, 0), Looker(ring, kLooker, 1)};
    std::atomic<unsigned> writing{2};
    std::atomic<bool> has_seen{false};
    const Deadline patience = Deadline::in(kMaxNs);
    std::vector<std::thread> threads;
    for (unsigned n = 0; n < 2; ++n) {
        threads.emplace_back([&, n] {
            const Deadline end = Deadline::in(kTimeNs);
            // Beside other programs it may take longer until something is brought, and looked at.
            const auto is_enough = [&](std::uint32_t i) {
                const bool is_over = i >= kMax || (i >= kLeast && end.passed(now_ns()));
                return is_over && (has_seen || patience.passed(now_ns()));
            };
            for (std::uint32_t i = 0; !is_enough(i); ++i) {
                writers[n]->wait_for_room(kWordBytes);
                writers[n]->memory.post_word(n * kLineBytes, sent_at_word());
                others[n].look();
            }
            --writing;
        });
    }
    std::uint32_t seen = 0;
    std::int64_t seen_ns = now_ns();
    while (writing != 0) {
        for (Looker& look : looks) look.look();
        has_seen = looks[0].seen() + looks[1].seen() != 0;
        if (seen != looks[0].seen() + looks[1].seen()) {
            seen = looks[0].seen() + looks[1].seen();
            seen_ns = now_ns();
        } else if (now_ns() - seen_ns > kStuckNs) {
            // Two writers that were put aside each leave out what the other lacks; the node's own
            // engine, which does not run here, would go on.
            c.memory.progress();
            for (Looker& look : looks) look.skip();
            seen_ns = now_ns();
        }
    }
    for (auto& thread : threads) thread.join();
    const TimingProfile profile = ring.config().timing;
    EXPECT_GE(others[0].youngest(), least_ns(profile, 2));
    EXPECT_GE(others[1].youngest(), least_ns(profile, 1));
    EXPECT_GE(looks[0].youngest(), least_ns(profile, 2));
    EXPECT_GE(looks[1].youngest(), least_ns(profile, 1));
    // That writers bring their writes is held by delivery_test.cpp.
    if (looks[0].seen() + looks[1].seen() == 0)
        GTEST_SKIP() << "other programs took the time in which a writer brings its writes";
}

INSTANTIATE_TEST_SUITE_P(On, RingDeliveryTime, ::testing::ValuesIn(profiles()),
                         test::profile_case_name);

}  // namespace
}  // namespace rmem
