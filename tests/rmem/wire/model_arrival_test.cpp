// SPDX-License-Identifier: Apache-2.0
// What the model tells of arrivals before they come.
#include "rmem/base/random.hpp"
#include "rmem/wire/model.hpp"
#include "tests/rmem/wire/model_fixture.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace rmem {
namespace {

TEST(WireModel, an_arrival_is_told_in_advance_as_it_will_come) {
    constexpr std::uint16_t kNodes = 5, kHere = 2, kOrigin = 4;
    for (const char* profile : {"scramnet-burst", "scramnet-burst-plus", "gt200"}) {
        Bench b(profile, kNodes);
        Random random(11);
        std::optional<WireOutcome> told;
        std::size_t tellings = 0;
        std::int64_t now = 0;
        const auto is_meant = [&](const WireOutcome& o) {
            return o.kind == Kind::arrived && (o.node == kHere || o.origin == kOrigin);
        };
        for (int round = 0; round < 20'000; ++round) {
            now += static_cast<std::int64_t>(random.below(400));
            if (round == 9'000) b.model.set_alive(1, false, now + 150);
            if (round == 12'000) b.model.set_alive(1, true, now + 150);
            if (round % 4 == 0) {
                const auto origin = static_cast<std::uint16_t>(random.below(kNodes));
                b.write(origin, now, 4 * (1 + static_cast<std::uint32_t>(random.below(8))));
            }
            const std::int64_t until = now + 400;
            b.outcomes.clear();
            b.advance(now);
            if (told && told->time_ns <= now) {
                EXPECT_EQ(b.time_of(Kind::arrived, told->node, told->tag), told->time_ns);
                told.reset();
            }
            if (!told) {
                told = b.model.next_arrival(kHere, kOrigin, until);
                if (!told) continue;
                EXPECT_TRUE(is_meant(*told));
                EXPECT_LE(told->time_ns, until);
                ++tellings;
            }
        }
        EXPECT_GT(tellings, 500U) << profile;
    }
}

TEST(WireModel, no_arrival_is_told_behind_a_fault) {
    Bench b("scramnet-burst", 3);
    const std::uint64_t tag = b.write(0, 0);
    b.advance(100);
    ASSERT_TRUE(b.model.next_arrival(1, 1, 547));
    EXPECT_EQ(b.model.next_arrival(1, 1, 547)->tag, tag);
    EXPECT_FALSE(b.model.next_arrival(1, 1, 546)) << "it is not asked for";
    EXPECT_FALSE(b.model.next_arrival(2, 1, 800)) << "it is not under way to there";
    b.model.set_alive(1, false, 500);
    EXPECT_FALSE(b.model.next_arrival(1, 1, 547));
    b.drain();
    EXPECT_EQ(b.arrival(1, tag), -1);
}

}  // namespace
}  // namespace rmem
