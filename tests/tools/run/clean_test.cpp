// SPDX-License-Identifier: Apache-2.0
// `rmem clean`: removes what the dead have left, and nothing else.

#include "ports/munet/counter_board.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/ring.hpp"
#include "tests/support/tool.hpp"
#include "tests/support/users.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace rmem::test {
namespace {

using ports::munet::CounterBoard;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Clean, removes_a_ring_that_nobody_is_left_in) {
    const RingName name;
    leave_dead(name.config(), 0);
    ASSERT_TRUE(name.exists());
    expect_out(run_tool({"clean", name.get()}), 0, {"removed " + name.get()});
    EXPECT_FALSE(name.exists());
}

TEST(Clean, removes_all_nodes_that_this_host_has_of_a_ring) {
    const RingName name, another;
    for (const RingName* ring : {&name, &another}) {
        Child maker([&] {
            const auto first = open_ring(ring->config(2, LinkKind::udp), 0);
            const auto second = open_ring(ring->config(2, LinkKind::udp), 1);
            ::kill(::getpid(), SIGKILL);
        });
        ASSERT_EQ(maker.wait(), -SIGKILL);
        ASSERT_TRUE(Segment::open(ring->get() + "@1"));
    }
    expect_out(run_tool({"clean", name.get()}), 0,
               {"removed " + name.get() + "@0", "removed " + name.get() + "@1"});
    for (const char* node : {"@0", "@1"}) {
        EXPECT_TRUE(Segment::open(another.get() + node)) << "another ring's";
        EXPECT_FALSE(Segment::open(name.get() + node));
    }
    EXPECT_EQ(run_tool({"clean", another.get()}).code, 0);
}

TEST(Clean, keeps_a_ring_with_a_live_member_and_says_why) {
    const RingName name;
    const auto ring = open_ring(name.config());
    const Membership member(ring, {1, 1});
    for (const Arguments& forced : {Arguments{}, Arguments{"--force"}}) {
        expect_out(run_tool(concat({"clean", name.get()}, forced)), 1,
                   {"kept " + name.get() + ": 1 of its 2 ranks is alive"});
        EXPECT_TRUE(name.exists());
    }
}

TEST(Clean, removes_what_a_killed_user_has_left_if_root_asks) {
    if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
    const RingName name;
    Child bob([&] {
        become(kBob);
        const auto ring = open_ring(name.config());
        ::kill(::getpid(), SIGKILL);
    });
    ASSERT_EQ(bob.wait(), -SIGKILL);
    EXPECT_EQ(run_tool({"clean", name.get()}).code, 0);
    EXPECT_FALSE(name.exists());
}

TEST(Clean, removes_the_node_of_a_daemon_that_was_killed) {
    const RingName name;
    const RingConfig config = name.config(2, LinkKind::udp);
    Child daemon([&] {
        const auto ring = open_ring(config, 0);
        ring->board().kind = static_cast<std::uint32_t>(udp::EngineKind::daemon);
        ::kill(::getpid(), SIGKILL);
    });
    ASSERT_EQ(daemon.wait(), -SIGKILL);
    EXPECT_EQ(run_tool({"clean", name.get()}).code, 0) << "nobody waits for it";
    EXPECT_FALSE(Segment::exists(config.segment_name(0)));
}

TEST(Clean, keeps_a_ring_that_somebody_holds_without_a_rank) {
    const RingName name;
    const auto ring = open_ring(name.config());
    EXPECT_EQ(run_tool({"clean", name.get()}).code, 1);
    EXPECT_TRUE(name.exists());
}

TEST(Clean, cleaning_of_all_rings_removes_the_dead_only) {
    const RingName live, dead;
    const auto ring = open_ring(live.config());
    leave_dead(dead.config(), 0);
    // A dry run, because dead rings of other tests lie there as well.
    const auto report = run_tool({"clean", "--all", "--dry-run", "--json"}).json();
    for (const auto& found : report) {
        EXPECT_EQ(found["removed"], false);
        const std::string name = found.value("ring", "");  // not of MU-Net counters
        if (name == live.get()) {
            EXPECT_EQ(found["removable"], false);
        } else if (name == dead.get()) {
            EXPECT_EQ(found["removable"], true);
        }
    }
    EXPECT_TRUE(dead.exists()) << "a dry run removes nothing";
    const Ran ran = run_tool({"clean", live.get(), dead.get()});
    EXPECT_EQ(ran.code, 1) << "one was kept";
    EXPECT_FALSE(dead.exists());
    EXPECT_TRUE(live.exists());
}

TEST(Clean, removes_what_a_killed_maker_left_half_written) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{8192}}) {
        const RingName name;
        std::ofstream(Segment::object_name(name.get())) << std::string(bytes, '\0');
        EXPECT_EQ(run_tool({"clean", name.get()}).code, 0) << bytes;
        EXPECT_FALSE(name.exists());
    }
}

TEST(Clean, keeps_what_its_maker_is_still_at) {
    const RingName name;
    std::ofstream(Segment::object_name(name.get())) << std::string(8192, '\0');
    const auto segment = Segment::open(name.get());
    const auto making = segment->try_lock(0);
    ASSERT_TRUE(making.has_value());
    EXPECT_EQ(run_tool({"clean", name.get(), "--force"}).code, 1);
    EXPECT_TRUE(name.exists());
    Segment::remove(name.get());
}

TEST(Clean, removes_a_dead_ring_of_another_version) {
    const RingName name;
    leave_dead(name.config(), 0);
    {
        const auto segment = Segment::open(name.get());
        reinterpret_cast<SegmentHeader*>(segment->data())->version = kSegmentVersion + 1;
    }
    EXPECT_EQ(run_tool({"clean", name.get()}).code, 0);
    EXPECT_FALSE(name.exists());
}

TEST(Clean, keeps_what_is_no_ring_unless_forced) {
    const RingName name;
    std::ofstream(Segment::object_name(name.get())) << std::string(8192, 'x');
    expect_out(run_tool({"clean", name.get()}), 1, {"[foreign-segment]"});
    EXPECT_TRUE(name.exists());
    const Ran forced = run_tool({"clean", name.get(), "--force"});
    EXPECT_EQ(forced.code, 0);
    EXPECT_EQ(forced.out, "removed " + name.get() + ": it is no ring, and nobody uses it\n");
    EXPECT_FALSE(name.exists());
}

TEST(Clean, removes_the_counters_that_a_killed_munet_daemon_has_left) {
    const RingName name;
    const std::string board = name.get() + "@1";
    Child daemon([&] {
        const CounterBoard shown(board);
        ::kill(::getpid(), SIGKILL);
    });
    ASSERT_EQ(daemon.wait(), -SIGKILL);
    const auto is_there = [&] {
        const auto all = CounterBoard::list();
        return std::find(all.begin(), all.end(), board) != all.end();
    };
    const auto report = run_tool({"clean", name.get(), "--dry-run", "--json"}).json();
    EXPECT_EQ(report[0]["munet"], board);
    EXPECT_EQ(report[0]["removable"], true);
    EXPECT_TRUE(is_there()) << "a dry run removes nothing";
    expect_out(run_tool({"clean", name.get()}), 0, {"removed MU-Net counters " + board});
    EXPECT_FALSE(is_there());
}

TEST(Clean, keeps_the_counters_of_a_live_munet_daemon) {
    const RingName name;
    CounterBoard shown(name.get() + "@0");
    shown.begin();
    expect_out(run_tool({"clean", name.get()}), 1, {"kept MU-Net counters " + name.get() + "@0"});
    EXPECT_NE(CounterBoard::observe(name.get() + "@0"), nullptr);
}

TEST(Clean, says_that_there_is_no_such_ring) {
    const Ran ran = run_tool({"clean", "no-such-ring"});
    EXPECT_EQ(ran.code, 3);
    EXPECT_THAT(ran.out, StartsWith("this host has no ring 'no-such-ring'"));
    EXPECT_THAT(ran.out, Not(HasSubstr("kept")));
}

}  // namespace
}  // namespace rmem::test
