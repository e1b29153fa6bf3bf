// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/joining.hpp"

#include "rmem/node.hpp"
#include "rmem/ring/ring.hpp"
#include "tests/support/child.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Joining : public ::testing::Test {
protected:
    /// A ring with no setting as by default.
    RingConfig made() const {
        RingConfig config = name.config(2, LinkKind::ring, 64 * 1024);
        config.ranks = 4;
        config.timing = parse_timing("scramnet-burst");
        config.bound_ns = 5'000;
        return config;
    }
    static std::shared_ptr<Ring> open(const RingConfig& config) {
        return Ring::open(config, Deadline::in(kPatienceNs));
    }
    /// As little as a program can be given.
    Environment told(unsigned rank) const {
        Environment environment;
        environment.ring = name.get();
        environment.rank = rank;
        return environment;
    }
    static Joined join(const Environment& environment) {
        return join_ring(
            environment, Deadline::in(kPatienceNs),
            [](const Environment& all, const RingConfig*) { return all.ring_config(); });
    }

    RingName name;
};

TEST_F(Joining, takes_from_a_ring_that_is_there_what_is_not_given) {
    const auto ring = open(made());
    const Joined joined = join(told(3));
    EXPECT_EQ(joined.ring->config().hash(), made().hash());
    EXPECT_EQ(joined.member.rank, 3U);
    EXPECT_EQ(joined.member.node, 1U);
}

TEST_F(Joining, joining_by_the_name_and_a_rank_alone_makes_a_node) {
    const auto ring = open(made());
    ::setenv("RMEM_RING", name.get().c_str(), 1);
    ::setenv("RMEM_RANK", "2", 1);
    {
        const Node node = Node::open(false);
        EXPECT_EQ(node.config().ranks, 4U);
        EXPECT_EQ(node.size(), 64U * 1024);
        EXPECT_TRUE(ring->is_alive(2));
    }
    ::unsetenv("RMEM_RING");
    ::unsetenv("RMEM_RANK");
}

TEST_F(Joining, takes_what_agrees) {
    const auto ring = open(made());
    Environment environment = told(0);
    environment.link = LinkKind::ring;
    environment.nodes = 2;
    environment.ranks = 4;
    environment.size = 64 * 1024;
    environment.timing = "scramnet-burst";
    environment.bound_ns = 5'000;
    EXPECT_EQ(join(environment).ring->config().hash(), made().hash());
}

TEST_F(Joining, names_the_setting_that_differs_with_both_values_and_no_other) {
    const auto ring = open(made());
    const struct {
        std::function<void(Environment&)> set;
        const char* says;
    } kCases[] = {
        {[](Environment& e) { e.link = LinkKind::direct; },
         "RMEM_LINK is ring there and direct here"},
        {[](Environment& e) { e.nodes = 4; }, "RMEM_NODES is 2 there and 4 here"},
        {[](Environment& e) { e.ranks = 3; }, "RMEM_RANKS is 4 there and 3 here"},
        {[](Environment& e) { e.size = std::size_t{2} << 20; },
         "RMEM_SIZE is 64K (65536 bytes) there and 2M (2097152 bytes) here"},
        {[](Environment& e) { e.timing = "gt200"; },
         "RMEM_TIMING is scramnet-burst there and gt200 here"},
        {[](Environment& e) { e.bound_ns = 7'000; }, "RMEM_BOUND is 5us there and 7us here"},
    };
    for (const auto& differing : kCases) {
        Environment environment = told(0);
        differing.set(environment);
        const std::string sentence = refused(Errc::config_mismatch, [&] { join(environment); });
        EXPECT_THAT(sentence, HasSubstr(name.get()));
        EXPECT_THAT(sentence, HasSubstr(differing.says));
        const auto first = sentence.find(" there and ");
        EXPECT_EQ(sentence.find(" there and ", first + 1), std::string::npos) << sentence;
    }
}

TEST_F(Joining, names_all_settings_that_differ) {
    const auto ring = open(made());
    Environment environment = told(0);
    environment.size = 4096;
    environment.bound_ns = 7'000;
    const std::string sentence = refused(Errc::config_mismatch, [&] { join(environment); });
    EXPECT_THAT(sentence, HasSubstr("RMEM_SIZE is"));
    EXPECT_THAT(sentence, HasSubstr("RMEM_BOUND is"));
}

TEST_F(Joining, joining_of_a_rank_outside_the_ring_says_how_many_it_has) {
    const auto ring = open(made());
    const std::string sentence = refused(Errc::bad_rank, [&] { join(told(9)); });
    EXPECT_THAT(sentence, HasSubstr("4 ranks and 2 nodes"));
}

TEST_F(Joining, makes_the_ring_of_the_own_settings_where_none_is) {
    Environment environment = told(1);
    environment.ranks = 2;
    environment.size = 8192;
    const Joined joined = join(environment);
    EXPECT_EQ(joined.ring->config().ranks, 2U);
    EXPECT_EQ(joined.ring->config().user_bytes, 8192U);
    EXPECT_EQ(joined.ring->config().link, LinkKind::direct);
}

TEST_F(Joining, learns_nothing_from_a_ring_that_only_the_dead_have_left_behind) {
    staying([&](const auto& stay) {
        const auto ring = open(made());
        stay();
    }).kill();
    const Joined joined = join(told(0));
    EXPECT_EQ(joined.ring->config().ranks, 1U);
    EXPECT_EQ(joined.ring->config().link, LinkKind::direct);
}

TEST_F(Joining, finds_its_nodes_segment_of_a_ring_over_several_hosts) {
    RingConfig config = made();
    config.link = LinkKind::udp;
    const auto first = Ring::open(config, Deadline::in(kPatienceNs), 0);
    const auto second = Ring::open(config, Deadline::in(kPatienceNs), 1);
    EXPECT_EQ(join(told(0)).ring->segment_name(), name.get() + "@0");
    const Joined joined = join(told(3));
    EXPECT_EQ(joined.ring->segment_name(), name.get() + "@1");
    EXPECT_EQ(joined.member.node, 1U);
}

TEST_F(Joining, joining_of_two_rings_of_one_name_prefers_that_on_the_link_that_is_given) {
    RingConfig remote = made();
    remote.link = LinkKind::udp;
    const auto here = open(made());
    const auto apart = Ring::open(remote, Deadline::in(kPatienceNs), 0);
    Environment environment = told(0);
    environment.link = LinkKind::udp;
    EXPECT_EQ(join(environment).ring->config().link, LinkKind::udp);
    environment.link = LinkKind::ring;
    EXPECT_EQ(join(environment).ring->config().link, LinkKind::ring);
}

TEST_F(Joining, starts_again_when_another_makes_the_ring_meanwhile) {
    // The wish is asked between the look for a ring and the making of one: just then another makes
    // it.
    std::shared_ptr<Ring> other;
    unsigned asked = 0;
    const Joined joined = join_ring(told(0), Deadline::in(kPatienceNs),
                                    [&](const Environment& all, const RingConfig*) {
                                        const RingConfig wish = all.ring_config();
                                        if (++asked == 1) other = open(made());
                                        return wish;
                                    });
    EXPECT_EQ(joined.ring->config().hash(), made().hash());
}

TEST_F(Joining, joining_a_ring_of_memory_alone_tells_so_a_program_that_needs_room_for_messages) {
    RingConfig memory = made();
    const auto ring = open(memory);
    memory.system_bytes = 4096;
    memory.system_hash = 7;
    const std::string sentence = refused(Errc::version_mismatch, [&] { open(memory); });
    EXPECT_THAT(sentence, HasSubstr("memory alone"));
    EXPECT_THAT(sentence, Not(HasSubstr("0x")));
}

TEST_F(Joining, is_refused_where_the_monotonic_clock_is_another) {
    const auto ring = open(made());
    SharedValue<std::atomic<bool>> has_one;
    run_in_child([&] {
        if (::unshare(CLONE_NEWTIME) != 0) return;
        *has_one = true;
        std::ofstream("/proc/self/timens_offsets") << "monotonic 1000 0" << std::endl;
        Child inside([&] {
            const auto join = [this] { open(made()); };
            EXPECT_THAT(refused(Errc::config_mismatch, join), HasSubstr("another time namespace"));
            EXPECT_NO_THROW(Ring::observe(name.get())) << "to look is no harm";
        });
        EXPECT_EQ(inside.wait(), 0);
    });
    if (!*has_one) GTEST_SKIP() << "this host gives no time namespaces";
}

TEST_F(Joining, joining_of_a_ring_that_is_not_there_names_those_that_are) {
    const auto ring = open(made());
    const std::string nearly = name.get() + "x";
    const std::string sentence = refused(Errc::no_such_ring, [&] { Ring::observe(nearly); });
    EXPECT_THAT(sentence, HasSubstr("did you mean '" + name.get() + "'?"));
    const std::string at_node =
        refused(Errc::no_such_ring, [&] { Ring::observe(name.get() + "@1"); });
    EXPECT_THAT(at_node, HasSubstr("call it '" + name.get() + "'"));
    EXPECT_THAT(at_node, Not(HasSubstr("rmem run --ring")));
}

}  // namespace
}  // namespace rmem::test
