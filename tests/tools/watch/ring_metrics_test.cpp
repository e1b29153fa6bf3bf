// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/ring_metrics.hpp"

#include "tools/watch/port_counters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RingSample sample_of(rmem::LinkKind link) {
    RingSample sample;
    sample.exists = sample.has_members = true;
    sample.config.name = "rig";
    sample.config.nodes = sample.config.ranks = 2;
    sample.config.link = link;
    sample.bound_ns = 50'000;
    sample.ranks.resize(2);
    sample.ranks[0].state = "alive";
    sample.ranks[0].link.assign(static_cast<std::size_t>(rmem::LinkCounter::count_), 5);
    sample.nodes.resize(2);
    sample.nodes[0].state = NodeState::up;
    sample.nodes[0].is_here = true;
    sample.nodes[0].link.assign(static_cast<std::size_t>(rmem::LinkCounter::count_), 1'000'000);
    if (link == rmem::LinkKind::udp) {
        sample.nodes[0].engine.emplace().runs = true;
        sample.nodes[0].engine->membership_epoch = 3;
        sample.nodes[0].engine->peers = {{1, 4, 20'000, -1}};
    }
    return sample;
}

TEST(RingMetrics, are_text_that_prometheus_reads) {
    const std::regex help("# HELP rmem_[a-z_]+ .+"), type("# TYPE (rmem_[a-z_]+) [a-z]+");
    const std::regex value("(rmem_[a-z_]+)\\{[a-z]+=\"[^\"]*\"(,[a-z]+=\"[^\"]*\")*\\} [0-9.e+-]+");
    std::set<std::string> types;
    std::istringstream text(metrics_of("rig", sample_of(rmem::LinkKind::udp)));
    std::string family;
    for (std::string line; std::getline(text, line);) {
        std::smatch found;
        if (std::regex_match(line, help)) continue;
        if (std::regex_match(line, found, type)) {
            family = found[1];
            EXPECT_TRUE(types.insert(family).second) << "twice: " << line;
            continue;
        }
        ASSERT_TRUE(std::regex_match(line, found, value)) << line;
        EXPECT_TRUE(found[1].str().starts_with(family)) << line;
    }
    EXPECT_GT(types.size(), 70U);
}

TEST(RingMetrics, tell_apart_what_a_rank_and_a_node_count) {
    const std::string text = metrics_of("rig", sample_of(rmem::LinkKind::ring));
    EXPECT_THAT(text, HasSubstr("rmem_link_writes_sent_total{ring=\"rig\",node=\"0\",rank=\"0\"} "
                                "5\nrmem_link_writes_sent_total{ring=\"rig\",node=\"0\"} 1000000"));
    EXPECT_THAT(text, Not(HasSubstr("rank=\"1\""))) << "it has never come";
    EXPECT_THAT(text, Not(HasSubstr("rmem_udp_")));
    EXPECT_THAT(text, HasSubstr("rmem_link_late_max_seconds{ring=\"rig\",node=\"0\"} 0.001"));
    EXPECT_THAT(text, HasSubstr("# TYPE rmem_link_late_max_seconds gauge"));
    EXPECT_THAT(text, HasSubstr("rmem_bound_seconds{ring=\"rig\"} 5e-05"));
}

TEST(RingMetrics, tell_of_the_engine_and_whom_it_hears) {
    const std::string text = metrics_of("rig", sample_of(rmem::LinkKind::udp));
    EXPECT_THAT(text, HasSubstr("rmem_udp_engine_up{ring=\"rig\",node=\"0\"} 1"));
    EXPECT_THAT(text, HasSubstr("rmem_udp_incarnations_total{ring=\"rig\",node=\"0\"} 2"));
    EXPECT_THAT(text, HasSubstr("rmem_udp_refused_replayed_total{ring=\"rig\",node=\"0\"} 0"));
    EXPECT_THAT(text, HasSubstr("round_trip_seconds{ring=\"rig\",node=\"0\",peer=\"1\"} 2e-05"));
    EXPECT_THAT(text, Not(HasSubstr("clock_error_seconds{"))) << "it is not known";
    EXPECT_THAT(text, HasSubstr("rmem_node_up{ring=\"rig\",node=\"1\"} 0"));
}

TEST(RingMetrics, tell_of_a_port_what_ranks_count_that_have_used_it) {
    RingSample sample = sample_of(rmem::LinkKind::direct);
    const std::string without = metrics_of("rig", sample);
    for (const char* port : {"rmem_fm_", "rmem_gamma_", "rmem_dp_", "rmem_munet_"})
        EXPECT_THAT(without, Not(HasSubstr(port)));
    sample.ranks[1].state = "dead";
    sample.ranks[0].ports[0].assign(FM_COUNTERS, 3);
    const std::string text = metrics_of("rig", sample);
    EXPECT_THAT(text, HasSubstr("# TYPE rmem_fm_handlers_entered_total counter\n"
                                "rmem_fm_handlers_entered_total{ring=\"rig\",node=\"0\",rank="
                                "\"0\"} 3\n# HELP"))
        << "and nothing of rank 1";
    EXPECT_THAT(text, Not(HasSubstr("rmem_dp_")));
}

TEST(RingMetrics, tell_of_munet_what_daemons_and_their_endpoints_count) {
    RingSample sample = sample_of(rmem::LinkKind::direct);
    MunetSample& daemon = sample.nodes[1].munet.emplace();
    daemon.runs = true;
    daemon.active = 2;
    daemon.node = {5, 3, 0, 0, 0, 0, 0, 9};
    daemon.endpoints[17].assign(static_cast<std::size_t>(ports::munet::Counter::count_), 4);
    sample.ranks[0].ports[3].assign(static_cast<std::size_t>(ports::munet::Counter::count_), 8);
    const std::string text = metrics_of("rig", sample);
    EXPECT_THAT(text, HasSubstr("rmem_munet_up{ring=\"rig\",node=\"1\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("rmem_munet_endpoints{ring=\"rig\",node=\"1\"} 2\n"));
    EXPECT_THAT(text, HasSubstr("rmem_munet_backlog_frames{ring=\"rig\",node=\"1\"} 9\n"));
    EXPECT_THAT(text, HasSubstr("rmem_munet_node_created_total{ring=\"rig\",node=\"1\"} 5\n"));
    EXPECT_THAT(text, Not(HasSubstr("backlog_total"))) << "it is no sum";
    EXPECT_THAT(
        text,
        HasSubstr("rmem_munet_sent_total{ring=\"rig\",node=\"0\",rank=\"0\"} 8\n"
                  "rmem_munet_sent_total{ring=\"rig\",node=\"1\",endpoint=\"17\"} 4\n# HELP"));
}

TEST(RingMetrics, tell_that_there_is_no_ring) {
    EXPECT_EQ(metrics_of("rig", {}),
              "# HELP rmem_ring_up 1 while there is a ring of this name here\n"
              "# TYPE rmem_ring_up gauge\n"
              "rmem_ring_up{ring=\"rig\"} 0\n");
}

}  // namespace
}  // namespace tools
