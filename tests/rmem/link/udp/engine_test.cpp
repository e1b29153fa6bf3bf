// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/engine.hpp"

#include "rmem/link/udp/engine_helper.hpp"
#include "tests/support/child.hpp"
#include "tests/support/own_network.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace rmem::udp {
namespace {

constexpr std::int64_t kPatienceNs = 30'000'000'000;

/// Engines of a ring of two nodes with two ranks each.
class EngineTest : public ::testing::Test {
protected:
    EngineTest() {
        config.name = name.get();
        config.link = LinkKind::udp;
        config.nodes = 2;
        config.ranks = 4;
        config.user_bytes = 4096;
        test::stay_on_this_host(name.get());
        for (unsigned n = 0; n < 2; ++n) {
            rings[n] = Ring::open(config, Deadline::in(kPatienceNs), n);
        }
    }

    std::unique_ptr<Engine> start(unsigned node, std::optional<unsigned> rank) {
        const auto kind = rank ? EngineKind::program : EngineKind::daemon;
        auto engine =
            std::make_unique<Engine>(*rings[node], EngineSettings::read(config), kind, rank);
        engine->join(Deadline::in(kPatienceNs));
        return engine;
    }
    static bool post(Engine& engine, std::uint32_t value) {
        LogRecord record;
        record.words = 1;
        record.written_ns = now_ns();
        return engine.put(record, &value) && engine.commit(now_ns()).coalesces;
    }
    /// What is posted leaves no more by itself.
    static void post_until_coalescing(Engine& engine) {
        for (std::uint32_t i = 1; !post(engine, i); ++i) ASSERT_LT(i, 1'000'000U);
    }
    RosterEntry entry(unsigned at, unsigned rank) const {
        return Roster(*rings[at], at).entry(rank);
    }
    RankState state(unsigned at, unsigned rank) const {
        return static_cast<RankState>(rings[at]->rank(rank).state.load());
    }
    static bool eventually(Engine& runs, const std::function<bool()>& holds) {
        const Deadline deadline = Deadline::in(kPatienceNs);
        while (!holds()) {
            if (deadline.passed(now_ns())) return false;
            runs.run();
            runs.rest(1'000'000);
        }
        return true;
    }

    test::RingName name;
    RingConfig config;
    std::array<std::shared_ptr<Ring>, 2> rings;
};

// ---- What is refused is told

TEST_F(EngineTest, tells_of_another_key_and_where_it_is) {
    const auto with_key = [&](unsigned node, std::byte value) {
        EngineSettings settings = EngineSettings::read(config);
        std::array<std::byte, MasterKey::kBytes> bytes{};
        bytes.fill(value);
        settings.key = MasterKey(bytes);
        return std::make_unique<Engine>(*rings[node], std::move(settings), EngineKind::daemon,
                                        std::nullopt);
    };
    const auto one = with_key(0, std::byte{1}), other = with_key(1, std::byte{2});
    EXPECT_TRUE(eventually(*one, [&] {
        other->run();
        return rings[0]->board().notice.text().find("127.0.0.1 speaks with another key") !=
               std::string::npos;
    }));
}

TEST_F(EngineTest, tells_of_other_settings_those_of_both) {
    rings[1].reset();
    RingConfig wider = config;
    wider.user_bytes = 8192;
    rings[1] = Ring::open(wider, Deadline::in(kPatienceNs), 1);
    const auto start_alone = [&](unsigned node, const RingConfig& its) {
        return std::make_unique<Engine>(*rings[node], EngineSettings::read(its), EngineKind::daemon,
                                        std::nullopt);
    };
    const auto one = start_alone(0, config), other = start_alone(1, wider);
    EXPECT_TRUE(eventually(*one, [&] {
        other->run();
        const std::string text = rings[0]->board().notice.text();
        return text.find("8192 bytes") != std::string::npos &&
               text.find("4096 bytes") != std::string::npos;
    }));
}

// ---- The roster

TEST_F(EngineTest, takes_ranks_of_its_nodes_former_incarnation_off_the_roster) {
    const auto first = start(0, 0);
    EngineHelper helper(*first);
    helper.set_always(true);
    auto former = start(1, 2);
    former->enroll(2, 7, true);
    ASSERT_TRUE(eventually(*former, [&] { return state(0, 2) == RankState::elsewhere; }));
    former.reset();  // without a word of its rank: so ends who is killed
    ASSERT_TRUE(test::eventually([&] { return state(0, 2) == RankState::lost; }));
    EXPECT_TRUE(entry(0, 2).joined) << "its word stands in all banks";

    const auto next = start(1, 3);
    EXPECT_TRUE(eventually(*next, [&] { return !entry(0, 2).joined; }));
    EXPECT_EQ(entry(0, 2).incarnation, 7U) << "the next one comes after it";
    EXPECT_TRUE(test::eventually([&] { return state(0, 2) == RankState::left; }));
}

TEST_F(EngineTest, says_at_once_who_has_come_and_who_has_gone) {
    const auto first = start(0, 0);
    EngineHelper helper(*first);
    helper.set_always(true);
    const auto second = start(1, 2);
    second->enroll(2, 1, true);
    EXPECT_TRUE(eventually(*second, [&] { return state(0, 2) == RankState::elsewhere; }));
    second->enroll(2, 1, false);
    EXPECT_TRUE(eventually(*second, [&] { return state(0, 2) == RankState::left; }));
    EXPECT_FALSE(entry(0, 2).joined);
}

// ---- Load

TEST_F(EngineTest, the_engine_lets_several_commits_share_a_datagram_under_load) {
    const auto engine = start(0, 0);
    constexpr std::uint64_t kCommits = 5'000;
    const std::uint64_t before = engine->socket().counters().sent;
    for (std::uint32_t i = 0; i < kCommits; ++i) {
        if (!engine->has_room(4)) engine->run();
        post(*engine, i);
    }
    engine->run(Leaving::all);
    EXPECT_LT(engine->socket().counters().sent - before, kCommits / 2);
    EXPECT_TRUE(engine->is_completed());
}

TEST_F(EngineTest, the_engine_leaves_nothing_open_in_a_run_for_a_waiting_program) {
    const auto engine = start(0, 0);
    bool has_left_some = false;
    for (int round = 0; round < 50; ++round) {
        post_until_coalescing(*engine);
        engine->run(Leaving::what_is_due);
        has_left_some = has_left_some || engine->coalesces();
        post_until_coalescing(*engine);
        engine->run(Leaving::all);
        EXPECT_FALSE(engine->coalesces());
    }
    EXPECT_TRUE(has_left_some) << "for who goes on sending it waits for more";
}

/// The helper may send what is open at any time between the question and the write.
TEST_F(EngineTest, has_the_room_that_it_granted_also_when_what_was_open_has_left) {
    ::setenv("RMEM_DEAD_TIMEOUT", "60s", 1);
    const auto engine = start(0, 0);
    std::unique_ptr<Engine> silent;  // from when it has joined, so nothing is acknowledged
    {
        EngineHelper helper(*engine);
        helper.set_always(true);
        silent = start(1, 2);
    }
    ::unsetenv("RMEM_DEAD_TIMEOUT");
    std::uint32_t posted = 0;
    while (engine->has_room(4)) {
        ASSERT_LT(++posted, 10'000'000U) << "nobody has anything of it";
        if (posted % 40 == 0) engine->run(Leaving::all);
        LogRecord record;
        record.words = 1;
        record.written_ns = now_ns();
        ASSERT_TRUE(engine->put(record, &posted)) << "after " << posted;
        engine->commit(now_ns());
    }
}

/// The program is not away, so the helper takes nothing over; but it may compute before it calls
/// again.
TEST_F(EngineTest, is_polled_actively_by_its_helper_while_something_is_open) {
    const auto engine = start(0, 0);
    EngineHelper helper(*engine);
    unsigned rounds_without_takeover = 0;
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 10; ++i) {
            helper.attend();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        const std::uint64_t before = helper.takeovers();
        post_until_coalescing(*engine);
        helper.watch_actively();
        const Deadline deadline = Deadline::in(kPatienceNs);
        while (engine->coalesces()) {
            helper.attend();
            ASSERT_FALSE(deadline.passed(now_ns())) << "nobody has sent it";
            std::this_thread::yield();
        }
        if (helper.takeovers() == before) ++rounds_without_takeover;
    }
    EXPECT_GT(rounds_without_takeover, 0U) << "more are none when the test is itself kept waiting";
}

}  // namespace
}  // namespace rmem::udp
