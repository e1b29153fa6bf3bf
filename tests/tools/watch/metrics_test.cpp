// SPDX-License-Identifier: Apache-2.0
// `rmem metrics`, and `rmem node --metrics`.

#include "tests/support/own_network.hpp"
#include "tests/support/tool.hpp"
#include "tests/tools/watch/http_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;

/// The port of the first "http://127.0.0.1:PORT/metrics" in a text.
std::uint16_t port_in(const std::string& text) {
    const std::string before = "http://127.0.0.1:";
    const auto at = text.find(before);
    return at == std::string::npos
               ? std::uint16_t{0}
               : static_cast<std::uint16_t>(std::stoul(text.substr(at + before.size())));
}

TEST(Metrics, are_served_at_the_port_that_the_first_line_says) {
    const RingName name;
    auto ring = open_ring(name.config());
    auto member = std::make_unique<Membership>(ring, Member{1, 1});
    ring->rank(1).link.add(LinkCounter::writes_sent, 42);
    Tool metrics({"metrics", name.get(), "--port", "0"});
    ASSERT_TRUE(metrics.prints("/metrics\n")) << metrics.err();
    const std::uint16_t port = port_in(metrics.out());
    EXPECT_THAT(answer_to(kGetMetrics, port),
                HasSubstr("rmem_link_writes_sent_total{ring=\"" + name.get() +
                          "\",node=\"1\",rank=\"1\"} 42\n"));
    member.reset();
    ring.reset();
    EXPECT_THAT(answer_to(kGetMetrics, port),
                HasSubstr("rmem_ring_up{ring=\"" + name.get() + "\"} 0\n"));
    metrics.signal(SIGTERM);
    EXPECT_EQ(metrics.wait().code, 0);
}

TEST(Metrics, are_printed_where_no_port_is_given) {
    const RingName name;
    const auto ring = open_ring(name.config());
    expect_out(run_tool({"metrics", name.get()}), 0,
               {"rmem_ring_up{ring=\"" + name.get() + "\"} 1\n"});
}

TEST(Metrics, say_what_is_wrong_with_a_ring_port_or_address) {
    expect_err(run_tool({"metrics", "no-such-ring", "--port", "0"}), 1, {"[no-such-ring]"});
    const RingName name;
    const auto ring = open_ring(name.config());
    expect_err(run_tool({"metrics", name.get(), "--port", "0", "--metrics-address", "nowhere"}), 1,
               {"'nowhere' is not an address"});
    EXPECT_EQ(run_tool({"metrics", name.get(), "--port", "65536"}).code, 2);
}

TEST(Metrics, metrics_of_a_node_are_served_by_its_daemon) {
    const RingName name;
    Tool node({"node", "--ring", name.get(), "--node", "0", "--nodes", "2", "--size", "64K",
               "--group", own_group(name.get()), "--interface", "lo", "--metrics", "0"});
    ASSERT_TRUE(node.prints("in ring '")) << node.err();
    const std::string answer = answer_to(kGetMetrics, port_in(node.err()));
    EXPECT_THAT(answer, HasSubstr("rmem_udp_engine_up{ring=\"" + name.get() + "\",node=\"0\"} 1"));
    EXPECT_THAT(answer,
                HasSubstr("rmem_udp_incarnations_total{ring=\"" + name.get() + "\",node=\"0\"} 1"));
    node.signal(SIGTERM);
    EXPECT_EQ(node.wait().code, 0);
}

TEST(Metrics, metrics_of_a_node_that_cannot_have_the_port_keep_it_from_starting) {
    const RingName name;
    expect_err(run_tool({"node", "--ring", name.get(), "--node", "0", "--nodes", "2", "--interface",
                         "lo", "--metrics", "0", "--metrics-address", "192.0.2.1"}),
               1, {"metrics cannot be served at 192.0.2.1"});
    EXPECT_FALSE(Segment::open(name.get() + "@0"));
}

}  // namespace
}  // namespace rmem::test
