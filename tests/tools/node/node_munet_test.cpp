// SPDX-License-Identifier: Apache-2.0
// ctest: check
// `rmem node --munet`: MU-Net for a host alone, and between nodes on each link.

#include "ports/munet/munet.h"
#include "tests/support/munet_daemon.hpp"
#include "tests/support/own_network.hpp"
#include "tests/support/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

class NodeMunet : public ::testing::Test {
protected:
    std::string socket(unsigned node) const {
        return "/tmp/" + name_.get() + "-" + std::to_string(node) + ".sock";
    }
    void use(unsigned node) const {
        ::setenv("RMEM_MUNET", socket(node).c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    }
    std::unique_ptr<Tool> start(unsigned node, const Arguments& further) const {
        const Arguments words = {
            "node",           "--munet",    "--ring", name_.get(), "--node", std::to_string(node),
            "--munet-socket", socket(node), "--size", "64K"};
        return start_tool(concat(words, further), "MU-Net at ");
    }
    /// Messages of all kinds from a program at node 0 to one at node 1 and back.
    void talk() const {
        use(1);
        const MuEndpoint there;
        use(0);
        const MuEndpoint here;
        EXPECT_EQ(there.address().node, 1);
        EXPECT_EQ(here.address().node, 0);
        for (unsigned i = 0; i < 50; ++i) {
            std::vector<char> text(i * 40, static_cast<char>(i)), back(3000);
            mu_addr_t from{};
            ASSERT_EQ(mu_send_DMA(here, there.address(), text.data(), text.size()), 0)
                << mu_last_error();
            ASSERT_EQ(mu_await(there, back.data(), back.size(), &from),
                      static_cast<int>(text.size()));
            ASSERT_EQ(mu_send(there, from, back.data(), text.size()), 0) << mu_last_error();
            ASSERT_EQ(mu_await(here, back.data(), back.size(), &from),
                      static_cast<int>(text.size()));
            back.resize(text.size());
            ASSERT_EQ(back, text);
        }
    }

    RingName name_;
};

TEST_F(NodeMunet, serves_a_host_alone) {
    const auto node = start(0, {});
    use(0);
    const MuEndpoint a, b;
    EXPECT_EQ(mu_send_number(a, b.address(), 7), 0);
    EXPECT_EQ(mu_number(b), 7U);
}

TEST_F(NodeMunet, shows_what_happened_to_rmem_info) {
    const auto node = start(0, {});
    use(0);
    const MuEndpoint a;
    a.expect_works();
    EXPECT_EQ(mu_send_number(a, {0, 200}, 7), -ECONNREFUSED);
    const std::string board = name_.get() + "@0";
    EXPECT_TRUE(eventually([&] { return run_tool({"info", "--munet", board}).says("created"); }));
    expect_out(run_tool({"info", "--munet", board}), 0, {"refused"});
    const auto json = run_tool({"info", "--munet", "--json", board}).json();
    EXPECT_EQ(json["active"], 1);
    EXPECT_EQ(json["endpoints"][0]["counters"][0]["value"], 1);
    EXPECT_EQ(run_tool({"info", "--munet", "nobody@0"}).code, 1);
}

TEST_F(NodeMunet, shows_its_ring_what_happened_in_info_top_and_metrics) {
    const Arguments ring = {"--nodes", "2", "--link", "direct"};
    const auto first = start(0, ring), second = start(1, ring);
    talk();
    const auto value = [](const nlohmann::json& counters, const std::string& name) {
        for (const auto& counter : counters)
            if (counter["name"] == name) return counter["value"].get<std::uint64_t>();
        return std::uint64_t{0};
    };
    nlohmann::json info;
    EXPECT_TRUE(eventually([&] {  // the daemons look at the clock now and then
        info = json_of("info", name_.get());
        return info.contains("port_counters") && info["munet"].size() == 2 &&
               value(info["munet"][1]["counters"], "destroyed") == 1;
    })) << info;
    EXPECT_GT(info["members"][1]["port_counters"]["munet"]["sent"], 50);
    EXPECT_TRUE(run_tool({"info", name_.get()}).says("MU-Net daemon " + name_.get() + "@1: "));
    const auto top =
        run_tool({"top", name_.get(), "--once", "--interval", "10ms", "--json"}).json();
    EXPECT_EQ(top["nodes"][1]["munet"]["endpoints"], 0);
    EXPECT_THAT(top["events"].dump(), ::testing::HasSubstr("\"kind\":\"munet\""));
    expect_out(run_tool({"metrics", name_.get()}), 0,
               {"rmem_munet_up{ring=\"" + name_.get() + "\",node=\"1\"} 1\n", "endpoint=\"0\"} "});
    second->signal(SIGKILL);
    second->wait();
    EXPECT_TRUE(run_tool({"info", name_.get()}).says(" (has ended)"));
    const auto third = start(1, ring);  // takes the place of the dead one's files
}

TEST_F(NodeMunet, is_not_shown_to_a_later_ring_of_the_name_once_it_has_ended) {
    const auto ring = open_ring(name_.config(1));
    const auto node = start(0, {});
    EXPECT_TRUE(json_of("info", name_.get()).contains("munet"));
    node->signal(SIGKILL);
    node->wait();
    EXPECT_FALSE(json_of("info", name_.get()).contains("munet"));
    EXPECT_FALSE(run_tool({"metrics", name_.get()}).says("rmem_munet"));
    const auto next = start(0, {});  // takes the place of the dead one's files
}

TEST_F(NodeMunet, keeps_to_the_limits_it_is_given) {
    const auto node =
        start(0, {"--munet-memory", "128K", "--munet-endpoints", "2", "--munet-senders", "1"});
    use(0);
    mu_endpoint_t *a = mu_create(0, 4096), *b = mu_create(0, 4096), *c = nullptr;
    EXPECT_EQ(mu_create_endpoint(&c, 0, 4096), -EDQUOT);
    EXPECT_EQ(mu_send_number(a, mu_own(b), 7), 0);
    EXPECT_EQ(mu_send_number(b, mu_own(b), 7), -EUSERS);
    mu_destroy_endpoint(a);
    EXPECT_TRUE(eventually([&] { return mu_create_endpoint(&c, 0, 4096) == 0; }));
    mu_destroy_endpoint(c);
    EXPECT_EQ(mu_create_endpoint(&c, 0, 131072), -EDQUOT);
    mu_destroy_endpoint(b);
}

TEST_F(NodeMunet, connects_nodes_on_links_of_a_host) {
    for (const char* link : {"direct", "ring"}) {
        const Arguments ring = {"--nodes", "2", "--link", link};
        const auto first = start(0, ring), second = start(1, ring);
        talk();
    }
}

TEST_F(NodeMunet, connects_nodes_on_link_udp_beside_the_engine) {
    const Arguments ring = {"--nodes",     "2", "--ranks", "4", "--group", own_group(name_.get()),
                            "--interface", "lo"};
    const auto first = start(0, ring), second = start(1, ring);
    talk();
    first->signal(SIGTERM);
    EXPECT_EQ(first->wait().code, 0) << first->err();
    // Its rank has left before its engine ended: it is not taken for dead.
    const auto peers = [&](const char* what) {
        const auto info = json_of("info", name_.get() + "@1");
        return info["members"][2]["protocol_counters"][what].get<int>();
    };
    EXPECT_TRUE(eventually([&] { return peers("peers_left") + peers("peers_dead") != 0; }));
    EXPECT_EQ(peers("peers_left"), 1);
}

TEST_F(NodeMunet, tells_programs_when_the_other_node_ends) {
    const Arguments ring = {"--nodes", "2", "--link", "direct"};
    const auto first = start(0, ring);
    auto second = start(1, ring);
    use(1);
    mu_endpoint_t* there = mu_create();
    const mu_addr_t to = mu_own(there);
    use(0);
    mu_endpoint_t* here = mu_create();
    ASSERT_EQ(mu_send_number(here, to, 1), 0);
    EXPECT_EQ(mu_number(there), 1U);  // or it is met below, after the end
    second->signal(SIGKILL);
    second.reset();
    int result = 0;
    mu_set_timeout(here, 100'000'000);
    EXPECT_TRUE(eventually([&] {
        result = mu_send_number(here, to, 1);
        return result != 0 && result != -ETIMEDOUT;
    }));
    EXPECT_EQ(result, -ECONNRESET) << mu_last_error();
    EXPECT_EQ(mu_recv(there, nullptr, 0, nullptr), -EAGAIN);
    mu_destroy_endpoint(there);
    second = start(1, ring);
    use(1);
    there = mu_create();
    EXPECT_TRUE(eventually([&] { return mu_send_number(here, mu_own(there), 5) == 0; }))
        << mu_last_error();
    EXPECT_EQ(mu_number(there), 5U);
    mu_destroy_endpoint(here);
    mu_destroy_endpoint(there);
}

TEST_F(NodeMunet, takes_part_again_after_the_others_have_dropped_its_node) {
    ::setenv("RMEM_DEAD_TIMEOUT", "500ms", 1);  // NOLINT(concurrency-mt-unsafe)
    const Arguments ring = {"--nodes", "2", "--group", own_group(name_.get()), "--interface", "lo"};
    const auto first = start(0, ring), second = start(1, ring);
    ::unsetenv("RMEM_DEAD_TIMEOUT");  // NOLINT(concurrency-mt-unsafe)
    use(1);
    const MuEndpoint there;
    use(0);
    const MuEndpoint here;
    mu_set_timeout(here, 100'000'000);
    const auto sends = [&](int expected) {
        return eventually([&] { return mu_send_number(here, there.address(), 1) == expected; });
    };
    EXPECT_TRUE(sends(0)) << mu_last_error();
    second->signal(SIGSTOP);
    EXPECT_TRUE(sends(-ECONNRESET)) << mu_last_error();
    second->signal(SIGCONT);
    // A message sent before the end is lost, or comes; this comes.
    EXPECT_TRUE(eventually([&] {
        std::uint32_t number = 0;
        mu_send_number(here, there.address(), 2);
        while (mu_recv(there, &number, sizeof number, nullptr) >= 0 && number != 2) {
        }
        return number == 2;
    })) << mu_last_error();
    const Ran info = run_tool({"info", "--munet", name_.get() + "@1"});
    EXPECT_THAT(info.out, ::testing::ContainsRegex("node +rejoined +[1-9]"));
}

}  // namespace
}  // namespace rmem::test
