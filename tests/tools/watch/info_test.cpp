// SPDX-License-Identifier: Apache-2.0
// `rmem info` and `rmem list`.

#include "rmem/ring/node_slot.hpp"
#include "tests/support/tool.hpp"
#include "tests/support/users.hpp"
#include "tools/watch/port_counters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

nlohmann::json ring_in(const nlohmann::json& list, const std::string& name) {
    for (const auto& ring : list) {
        if (ring["name"] == name) return ring;
    }
    return {};
}

TEST(Info, tells_the_living_from_the_dead_and_the_departed) {
    const RingName name;
    const auto ring = open_ring(name.config(4));
    const Membership alive(ring, {0, 0});
    leave_dead(name.config(4), 1);
    { const Membership left(ring, {2, 2}); }

    const auto report = json_of("info", name.get());
    EXPECT_EQ(report["members"][0]["state"], "alive");
    EXPECT_EQ(report["members"][0]["pid"], ::getpid());
    EXPECT_EQ(report["members"][0]["incarnation"], 1);
    EXPECT_EQ(report["members"][1]["state"], "dead");
    EXPECT_EQ(report["members"][2]["state"], "left");
    EXPECT_EQ(report["members"][3]["state"], "absent");
    EXPECT_EQ(report["live_ranks"], 1);
    EXPECT_EQ(report["state"], "alive");

    expect_out(run_tool({"info", name.get()}), 0, {"1 of 4 ranks alive", "dead"});
}

TEST(Info, tells_the_stopped_from_the_running) {
    const RingName name;
    const auto ring = open_ring(name.config(4));
    Child other([&] {
        const Membership member(Ring::attach(name.get()), {0, 0});
        ::raise(SIGSTOP);
    });
    EXPECT_TRUE(eventually(
        [&] { return json_of("info", name.get())["members"][0]["state"] == "stopped"; }));
    ::kill(other.pid(), SIGCONT);
    EXPECT_EQ(other.wait(), 0);
}

TEST(Info, shows_counters_with_unit_and_meaning) {
    const RingName name;
    const auto ring = open_ring(name.config(4));
    const Membership member(ring, {0, 0});
    ring->rank(0).link.add(LinkCounter::writes_sent, 17);
    ring->node(2).link.add(LinkCounter::bound_violations, 3);

    const auto report = json_of("info", name.get());
    EXPECT_EQ(report["members"][0]["link_counters"]["writes_sent"], 17);
    EXPECT_EQ(report["nodes_seen"][2]["link_counters"]["bound_violations"], 3);
    EXPECT_EQ(report["counters"]["writes_sent"]["unit"], "writes");
    EXPECT_TRUE(report["members"][0]["protocol_counters"].contains("multicasts"));

    const Ran text = run_tool({"info", name.get()});
    expect_out(
        text, 0,
        {"rank 0     17  writes  writes_sent       writes handed to the link", "bound_violations"});
    EXPECT_THAT(text.out, Not(HasSubstr("flushes"))) << "zeros are left out";
}

TEST(Info, shows_counters_of_the_ports_that_a_rank_has_used) {
    const RingName name;
    const auto ring = open_ring(name.config(4));
    const Membership member(ring, {0, 0});
    EXPECT_FALSE(json_of("info", name.get()).contains("port_counters"));
    ring->rank(2).ports[ports::port_block(billboard::Class::dp)].add(
        ports::dp::Counter::dropped_full, 12);
    ring->rank(2).ports[ports::port_block(billboard::Class::fm)].add(FM_HANDLERS_ENTERED, 5);
    ring->rank(3).ports[ports::port_block(billboard::Class::gamma)].add(
        ports::gamma::Counter::barriers, 6);

    const auto report = json_of("info", name.get());
    const auto& members = report["members"];
    EXPECT_FALSE(members[0].contains("port_counters")) << "it has used none";
    EXPECT_EQ(members[2]["port_counters"]["dp"]["dropped_full"], 12);
    EXPECT_EQ(members[2]["port_counters"]["dp"]["written"], 0);
    EXPECT_EQ(members[2]["port_counters"]["fm"]["handlers_entered"], 5);
    EXPECT_FALSE(members[2]["port_counters"].contains("gamma"));
    EXPECT_EQ(members[3]["port_counters"]["gamma"]["barriers"], 6);
    EXPECT_EQ(report["port_counters"]["dp"]["dropped_full"]["unit"], "messages");
    EXPECT_FALSE(report["port_counters"].contains("munet"));
    EXPECT_FALSE(report.contains("munet")) << "there is no daemon";

    const Ran text = run_tool({"info", name.get()});
    expect_out(text, 0, {"rank 2, dp", "messages that found no room in their pool"});
    EXPECT_THAT(text.out, Not(HasSubstr("written")));
}

TEST(Info, shows_percentiles_of_propagation_and_lateness) {
    const RingName name;
    const auto ring = open_ring(name.config(4));
    for (int i = 0; i < 99; ++i) ring->node(1).propagation.record(800);
    ring->node(1).propagation.record(1'000'000);

    const auto times = json_of("info", name.get())["nodes_seen"][1]["propagation_ns"];
    EXPECT_EQ(times["count"], 100);
    EXPECT_NEAR(times["p50"].get<double>(), 800, 50);
    EXPECT_EQ(times["max"], 1'000'000);
    EXPECT_THAT(run_tool({"info", name.get()}).out, HasSubstr("propagation"));
}

TEST(Info, shows_a_ring_that_only_the_dead_have_left) {
    RingName name;
    name.may_be_left();
    leave_dead(name.config(4), 3);
    const auto report = json_of("info", name.get());
    EXPECT_EQ(report["state"], "dead");
    EXPECT_EQ(report["members"][3]["state"], "dead");
    EXPECT_EQ(ring_in(run_tool({"list", "--json"}).json(), name.get())["state"], "dead");
    EXPECT_TRUE(name.exists()) << "looking removes nothing";
}

TEST(Info, says_that_there_is_no_such_ring) {
    expect_err(run_tool({"info", "no-such-ring"}), 1, {"[no-such-ring]"});
}

TEST(List, lists_rings_and_what_is_none) {
    const RingName good;
    RingName broken;
    broken.may_be_left();
    const auto ring = open_ring(good.config(4));
    std::ofstream(Segment::object_name(broken.get())) << std::string(8192, 'x');

    const auto list = run_tool({"list", "--json"}).json();
    EXPECT_EQ(ring_in(list, good.get())["state"], "alive");
    EXPECT_EQ(ring_in(list, good.get())["ranks"], 4);
    EXPECT_EQ(ring_in(list, broken.get())["state"], "broken");
    EXPECT_THAT(ring_in(list, broken.get())["problem"].get<std::string>(),
                HasSubstr("[foreign-segment]"));
    EXPECT_THAT(run_tool({"list"}).out, HasSubstr(good.get()));
}

// ---- A host with many users

/// A ring of Bob's, a folder, and a ring of Alice's, the user who looks.
class ManyUsers : public ::testing::Test {
protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
        for (RingName* name : {&bobs_, &folder_, &alices_}) name->may_be_left();
        bob_ = std::make_unique<Child>([&] {
            become(kBob);
            hold(bobs_);
        });
        alice_ = std::make_unique<Child>([&] {
            become(kAlice);
            hold(alices_);
        });
        ASSERT_TRUE(eventually([&] { return held_->load() == 2; }));
        ASSERT_EQ(::mkdir(Segment::object_name(folder_.get()).c_str(), 0755), 0);
    }
    void TearDown() override { std::filesystem::remove(Segment::object_name(folder_.get())); }

    void hold(const RingName& name) const {
        const auto ring = open_ring(name.config(4));
        ++*held_;
        ::pause();
    }
    void as_alice(const std::function<void()>& looks) const {
        Child alice([&] {
            become(kAlice);
            if (::access(RMEM_TOOL, X_OK) == 0) looks();
        });
        EXPECT_EQ(alice.wait(), 0);
    }

    RingName bobs_, folder_, alices_;

private:
    const SharedValue<std::atomic<int>> held_;
    std::unique_ptr<Child> bob_, alice_;
};

TEST_F(ManyUsers, are_told_from_each_other_by_list) {
    as_alice([&] {
        const Ran ran = run_tool({"list", "--json"});
        EXPECT_EQ(ran.code, 0) << ran.err;
        const auto list = ran.json();
        EXPECT_EQ(ring_in(list, alices_.get())["state"], "alive");
        EXPECT_EQ(ring_in(list, bobs_.get())["state"], "not yours");
        EXPECT_EQ(ring_in(list, bobs_.get())["owner"], "65502");
        const Ran text = run_tool({"list"});
        EXPECT_THAT(text.out, ::testing::ContainsRegex(bobs_.get() + " +not yours .*\\(65502\\)"));
        EXPECT_EQ(run_tool({"info", bobs_.get()}).code, 1);
    });
    const auto list = run_tool({"list", "--json"}).json();  // root may look at all
    EXPECT_EQ(ring_in(list, bobs_.get())["state"], "alive");
    EXPECT_EQ(ring_in(list, folder_.get())["state"], "broken");
}

TEST_F(ManyUsers, see_their_own_only_ring_in_top) {
    as_alice([&] {
        const Ran ran = run_tool({"top", "--once", "--interval", "1ms", "--json"});
        EXPECT_EQ(ran.code, 0) << ran.err;
        EXPECT_EQ(ran.json()["name"], alices_.get());
    });
}

TEST_F(ManyUsers, are_not_bothered_by_each_others_rings_in_clean) {
    as_alice([&] {
        const Ran ran = run_tool({"clean"});
        expect_out(ran, 0, {"kept " + alices_.get(), "left alone: "});
        EXPECT_THAT(ran.out, Not(HasSubstr(bobs_.get())));
        EXPECT_THAT(ran.out, Not(HasSubstr("Permission")));
        expect_out(run_tool({"clean", bobs_.get()}), 1, {"user 65502"});
    });
}

}  // namespace
}  // namespace rmem::test
