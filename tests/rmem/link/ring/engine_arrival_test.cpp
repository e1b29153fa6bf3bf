// SPDX-License-Identifier: Apache-2.0
// ctest: tsan apart
#include "rmem/link/ring/engine.hpp"
#include "tests/support/broken.hpp"
#include "tests/support/test_ring.hpp"

#include <atomic>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

namespace rmem {

struct PlantedBug {
    /// A write was stored, and the model says nothing of it.
    static void store_what_never_comes(RingEngine& engine) {
        engine.arrival_.ahead_.at_ns = 1;
        engine.run();
    }
    /// What a run that waited until then would store as soon as it is due.
    static std::optional<EngineArrival::Coming> prepare(RingEngine& engine, std::int64_t until_ns) {
        EngineArrival::Coming coming;
        if (!engine.transit_.prepare(coming, until_ns)) return std::nullopt;
        return coming;
    }
};

namespace {

using test::RingRank;
using test::still;
using test::TestRing;

TEST(RingEngineArrival, a_write_is_never_early_in_the_bank) {
    TestRing ring({.timing = "scramnet-burst"});
    RingRank a(ring, 0, still()), b(ring, 1, still());
    std::atomic<bool> ends{false};
    std::thread engine([&] {
        while (!ends) b.memory.engine().run();
    });
    for (int i = 0; i < 5'000; ++i) {
        const std::uint32_t sent = static_cast<std::uint32_t>(now_ns());
        const std::uint32_t before = b.memory.load(0);
        a.memory.post_word(0, sent);
        while (b.memory.load(0) == before && sent != before) {
        }
        EXPECT_GE(static_cast<std::uint32_t>(now_ns()) - sent, 546U);
    }
    ends = true;
    engine.join();
}

TEST(RingEngineArrival, a_run_waits_for_what_is_nearly_due) {
    TestRing ring({.timing = "scramnet-burst", .slower = 100});
    RingRank a(ring, 0, still()), b(ring, 1, still());
    RingEngine& engine = b.memory.engine();
    std::uint32_t value = 0;
    for (int waits = 0; waits < 20;) {
        a.memory.post_word(0, ++value);
        engine.run();
        const std::int64_t due = engine.next_due_ns();
        std::int64_t now = 0;
        while (due != kNever && (now = now_ns()) < due - RingEngine::kAwaitNs + 50) {
        }
        // A host that takes the processor just now makes it a run like any other.
        waits += due != kNever && now < due ? 1 : 0;
        engine.run();
        ASSERT_TRUE(due == kNever || engine.next_due_ns() != due);
        b.await(0, value);
    }
}

TEST(RingEngineArrival, the_write_that_comes_next_is_ready_before_it_is_due) {
    // It is under way for longer than a host may keep us from looking.
    TestRing ring({.timing = "scramnet-burst", .slower = 100'000});
    RingRank a(ring, 0, still()), b(ring, 1, still());
    RingEngine& engine = b.memory.engine();
    const std::vector<std::uint32_t> words{7, 8, 9};
    a.memory.write(64, words.data(), 12);
    const std::int64_t end = now_ns() + 10'000'000'000;
    EXPECT_FALSE(PlantedBug::prepare(engine, end)) << "it has not been seen";
    a.memory.engine().run();
    EXPECT_FALSE(PlantedBug::prepare(a.memory.engine(), end)) << "its writer does not wait for it";
    const auto ready = [&] { return PlantedBug::prepare(engine, end); };
    while (!ready() && now_ns() < end) engine.run();
    ASSERT_TRUE(ready());
    EXPECT_EQ(ready()->node, 1U);
    EXPECT_EQ(ready()->record.offset, 64U);
    EXPECT_EQ(ready()->record.words, 3U);
    EXPECT_EQ(std::memcmp(ready()->words.data(), words.data(), 12), 0);
    EXPECT_FALSE(PlantedBug::prepare(engine, ready()->due_ns - 1));
    auto& claim = ring.ring()->log(0).header().deliverer;
    claim = a.member.incarnation();
    EXPECT_FALSE(ready()) << "its writer brings it";
    claim = 0;
    ring.slot(1).applied[0] = a.memory.engine().written_in_all();
    EXPECT_FALSE(ready()) << "it is there";
}

TEST(RingEngineArrivalDeathTest, checks_that_what_is_stored_comes) {
    TestRing ring({.timing = "scramnet-burst"});
    RingRank a(ring, 0, still());
    RingEngine engine(a.member, {}, false);
    EXPECT_BROKEN_WHERE_CHECKED(PlantedBug::store_what_never_comes(engine));
}

}  // namespace
}  // namespace rmem
