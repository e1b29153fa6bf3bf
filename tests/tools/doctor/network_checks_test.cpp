// SPDX-License-Identifier: Apache-2.0
// ctest: check
// What `rmem doctor` makes of a network's facts, and whether it finds the facts.

#include "tools/doctor/network_checks.hpp"

#include "rmem/link/udp/key_file.hpp"
#include "tests/support/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;
using tools::Finding;
using tools::Hearing;
using tools::HostInterface;
using tools::NetworkFacts;
using tools::Verdict;

constexpr udp::Ip kGroup = 0xef010203;
constexpr udp::Ip kHere = 0x0a000001, kThere = 0x0a000002;

HostInterface ethernet() {
    HostInterface one;
    one.name = "eth0";
    one.addresses = {kHere};
    one.is_up = one.has_carrier = one.does_multicast = true;
    one.mtu = 1500;
    return one;
}

HostInterface loop_back() {
    HostInterface one;
    one.name = "lo";
    one.addresses = {0x7f000001};
    one.is_up = one.has_carrier = one.is_loop_back = true;
    one.mtu = 65536;
    return one;
}

Hearing good_hearing() {
    Hearing hearing;
    hearing.heard = hearing.heard_longest = hearing.is_member = true;
    hearing.held = 2000;
    return hearing;
}

/// A host on which link udp has nothing to complain of.
NetworkFacts healthy() {
    NetworkFacts facts;
    facts.is_wanted = true;
    facts.endpoints.group = {kGroup, 7482};
    facts.interface_wanted = "eth0";
    facts.interfaces = {loop_back(), ethernet()};
    facts.routes = {{facts.endpoints.group, 0, kHere, 1500}};
    facts.hearing = good_hearing();
    facts.on_lo = good_hearing();
    facts.key_file = "rig.key";
    return facts;
}

HostInterface& eth0(NetworkFacts& facts) {
    return facts.interfaces.back();
}

Finding finding(const NetworkFacts& facts, const std::string& name) {
    for (const Finding& one : tools::judge_network(facts)) {
        if (one.name == name) return one;
    }
    ADD_FAILURE() << "no finding on " << name;
    return {};
}

void expect(const Finding& found, Verdict verdict, const std::string& what,
            const std::string& advice) {
    EXPECT_EQ(found.verdict, verdict) << found.name << ": " << found.found;
    EXPECT_THAT(found.found, HasSubstr(what));
    EXPECT_THAT(found.advice, HasSubstr(advice));
}

TEST(NetworkChecks, find_nothing_on_a_host_that_is_fine) {
    for (const Finding& one : tools::judge_network(healthy())) {
        EXPECT_EQ(one.verdict, Verdict::ok) << one.name << ": " << one.found;
        EXPECT_NE(one.found, "") << one.name;
    }
}

TEST(NetworkChecks, say_what_to_do_about_everything_that_is_wrong) {
    NetworkFacts facts;  // of a host without any network
    facts.is_wanted = true;
    facts.endpoints.group = {kGroup, 7482};
    facts.routes = {{facts.endpoints.group, ENETUNREACH, 0, 0}};
    facts.hearing = facts.on_lo = Hearing{};
    for (const Finding& one : tools::judge_network(facts)) {
        if (one.verdict != Verdict::ok) {
            EXPECT_NE(one.advice, "") << one.name;
        }
    }
}

TEST(NetworkChecks, only_warn_where_link_udp_is_not_asked_for) {
    NetworkFacts facts = healthy();
    facts.is_wanted = false;
    eth0(facts).is_up = false;
    expect(finding(facts, "interface"), Verdict::warn, "eth0 is down", "link udp only");
}

TEST(NetworkChecks, tell_what_nodes_of_this_host_refuse) {
    NetworkFacts facts = healthy();
    facts.refusals = {"node 1 of ring 'rig': 10.0.0.2 speaks with another key as node 0"};
    expect(finding(facts, "refusals"), Verdict::warn, "10.0.0.2 speaks with another key",
           "rmem info");
}

TEST(NetworkChecks, see_an_interface_that_is_missing_down_bare_or_without_multicast) {
    NetworkFacts facts = healthy();
    facts.interface_wanted = "eth7";
    expect(finding(facts, "interface"), Verdict::fail, "RMEM_INTERFACE is 'eth7'",
           "eth0 (10.0.0.1)");

    facts = healthy();
    eth0(facts).is_up = false;
    expect(finding(facts, "interface"), Verdict::fail, "eth0 is down", "ip link set eth0 up");

    facts = healthy();
    eth0(facts).addresses.clear();
    expect(finding(facts, "interface"), Verdict::fail, "no IPv4 address", "ip address add");

    facts = healthy();
    eth0(facts).does_multicast = false;
    expect(finding(facts, "interface"), Verdict::fail, "no multicast", "multicast on");

    facts = healthy();
    eth0(facts).has_carrier = false;
    expect(finding(facts, "interface"), Verdict::warn, "other end", "cable");
}

TEST(NetworkChecks, take_the_interface_by_its_address_and_by_the_route_too) {
    NetworkFacts facts = healthy();
    facts.interface_wanted = "10.0.0.1";
    EXPECT_EQ(finding(facts, "interface").verdict, Verdict::ok);
    facts.interface_wanted = "";
    expect(finding(facts, "interface"), Verdict::ok, "chosen by the host's routes", "");
    HostInterface second = ethernet();
    second.name = "eth1";
    second.addresses = {kThere};
    facts.interfaces.push_back(second);
    expect(finding(facts, "interface"), Verdict::ok, "eth0", "eth1");
}

TEST(NetworkChecks, need_a_route_where_no_interface_is_named) {
    NetworkFacts facts = healthy();
    facts.routes.front().error = ENETUNREACH;
    EXPECT_EQ(finding(facts, "route").verdict, Verdict::ok) << "the interface is named";
    facts.interface_wanted = "";
    expect(finding(facts, "route"), Verdict::fail, "no way to 239.1.2.3",
           "ip route add 239.0.0.0/8");
    facts.routes.front() = {facts.endpoints.group, 0, 0x7f000001, 65536};
    expect(finding(facts, "route"), Verdict::warn, "stays on this host", "RMEM_INTERFACE");
}

TEST(NetworkChecks, name_the_firewall_where_nothing_is_heard) {
    NetworkFacts facts = healthy();
    facts.hearing->heard = false;
    expect(finding(facts, "loop-back"), Verdict::fail, "do not hear each other on eth0",
           "nft list ruleset");
    facts.hearing->send_error = EPERM;
    expect(finding(facts, "loop-back"), Verdict::fail, "could not be sent", "firewall");
    facts = healthy();
    facts.on_lo.heard = false;
    expect(finding(facts, "lo"), Verdict::fail, "do not hear each other on lo", "firewall");
    facts = healthy();
    facts.hearing->heard_longest = false;
    expect(finding(facts, "loop-back"), Verdict::warn, "the longest are not", "mtu");
}

TEST(NetworkChecks, tell_of_memberships_and_of_bridges_that_forget_them) {
    NetworkFacts facts = healthy();
    expect(finding(facts, "igmp"), Verdict::ok, "joins the group on eth0", "querier");
    facts.hearing->is_member = false;
    expect(finding(facts, "igmp"), Verdict::fail, "/proc/net/igmp", "igmp_max_memberships");
    facts = healthy();
    eth0(facts).bridge = "br0";
    eth0(facts).bridge_snoops = true;
    expect(finding(facts, "igmp"), Verdict::warn, "bridge br0 snoops", "mcast_querier 1");
    eth0(facts).bridge_asks = true;
    expect(finding(facts, "igmp"), Verdict::ok, "is a querier", "");
}

TEST(NetworkChecks, compare_the_datagram_with_the_mtu) {
    NetworkFacts facts = healthy();
    EXPECT_EQ(finding(facts, "mtu").verdict, Verdict::ok) << "1472 and 28 are 1500";
    eth0(facts).mtu = 1499;
    expect(finding(facts, "mtu"), Verdict::warn, "in pieces", "RMEM_PAYLOAD=1468");
    eth0(facts).mtu = 1000;
    expect(finding(facts, "mtu"), Verdict::warn, "in pieces", "raise the MTU to 1500");
    eth0(facts).mtu = 9000;
    facts.payload = 8972;
    EXPECT_EQ(finding(facts, "mtu").verdict, Verdict::ok);
    facts.payload_problem = "RMEM_PAYLOAD is no good";
    EXPECT_EQ(finding(facts, "mtu").verdict, Verdict::fail);
}

TEST(NetworkChecks, pass_on_what_the_socket_says_of_its_buffer) {
    NetworkFacts facts = healthy();
    facts.hearing->buffer_advice = "sysctl -w net.core.rmem_max=8388608";
    facts.hearing->held = 36;
    expect(finding(facts, "receive-buffer"), Verdict::warn, "36 datagrams", "rmem_max");
}

TEST(NetworkChecks, want_a_key_where_others_may_hear) {
    NetworkFacts facts = healthy();
    EXPECT_EQ(finding(facts, "key").verdict, Verdict::ok);
    facts.key_problem = "others may read it";
    expect(finding(facts, "key"), Verdict::fail, "others may read it", "rmem key");
    facts.key_problem = facts.key_file = "";
    expect(finding(facts, "key"), Verdict::fail, "other hosts may hear", "RMEM_KEY_FILE");
    facts.is_insecure = true;
    expect(finding(facts, "key"), Verdict::warn, "RMEM_INSECURE", "RMEM_KEY_FILE");
    facts.is_insecure = false;
    facts.interface_wanted = "lo";
    expect(finding(facts, "key"), Verdict::ok, "stays on this host", "");
    facts = healthy();
    facts.key_file = "";
    facts.is_wanted = false;
    EXPECT_EQ(finding(facts, "key").verdict, Verdict::ok);
}

TEST(NetworkChecks, ask_of_fan_out_the_addresses_and_the_ways_to_them) {
    NetworkFacts facts = healthy();
    facts.endpoints = {};
    facts.endpoints.nodes = {{kHere, 7400}, {kThere, 7400}};
    facts.interface_wanted = "";
    facts.hearing.reset();
    facts.routes = {{facts.endpoints.nodes[0], 0, kHere, 65536},
                    {facts.endpoints.nodes[1], 0, kHere, 1400}};
    facts.node = 0;
    EXPECT_EQ(finding(facts, "interface").verdict, Verdict::ok);
    EXPECT_EQ(finding(facts, "route").verdict, Verdict::ok);
    EXPECT_EQ(finding(facts, "igmp").verdict, Verdict::ok);
    expect(finding(facts, "mtu"), Verdict::warn, "to 10.0.0.2:7400", "RMEM_PAYLOAD=1372");
    facts.node = 1;
    expect(finding(facts, "interface"), Verdict::fail, "node 1 the address 10.0.0.2", "RMEM_NODE");
    facts.routes[1].error = EHOSTUNREACH;
    expect(finding(facts, "route"), Verdict::fail, "no way to 10.0.0.2", "ip route");
}

TEST(NetworkChecks, say_that_the_group_is_no_good_before_all_else) {
    NetworkFacts facts = healthy();
    facts.group_problem = "RMEM_GROUP is 'x'";
    expect(finding(facts, "group"), Verdict::fail, "RMEM_GROUP is 'x'", "RMEM_GROUP");
}

// ---- On this host

/// The report of `rmem doctor --json` in a shell that has run `before`, in namespaces of its own if
/// so asked: they end with it.
nlohmann::json report_of(const std::string& settings, const std::string& before = "",
                         bool apart = false) {
    const std::string file = testing::TempDir() + "/doctor-" + std::to_string(::getpid());
    const std::string script = before + (before.empty() ? "" : " && ") + "env " + settings +
                               " " RMEM_TOOL " doctor --json";
    const std::string command =
        (apart ? "unshare -nm sh -c '" + script + "'" : script) + " >" + file + " 2>/dev/null";
    static_cast<void>(std::system(command.c_str()));  // NOLINT: our own words; one thread
    std::ifstream in(file);
    auto report = nlohmann::json::parse(in, nullptr, false);
    std::filesystem::remove(file);
    return report;
}

nlohmann::json in_report(const nlohmann::json& report, const std::string& name) {
    if (report.is_object()) {
        for (const auto& one : report["findings"]) {
            if (one["name"] == name) return one;
        }
    }
    ADD_FAILURE() << "no finding on " << name;
    return {{"verdict", ""}, {"found", ""}, {"advice", ""}};
}

class NetworkDoctor : public testing::Test {
protected:
    /// Skips without root and network namespaces.
    static bool has_namespaces() {
        return std::system(
                   "unshare -nm ip link add v0 type veth peer name v1 "  // NOLINT: one thread
                   ">/dev/null 2>&1") == 0;
    }
    /// `ip` commands in a host of its own with lo and v0, whose other end is v1.
    static nlohmann::json apart(const std::string& commands, const std::string& settings) {
        return report_of("RMEM_LINK=udp " + settings,
                         "mount -t sysfs sys /sys && ip link set lo up && "
                         "ip link add v0 type veth peer name v1 && ip link set v1 up && " +
                             commands,
                         true);
    }
};

TEST_F(NetworkDoctor, finds_that_a_ring_on_lo_works) {
    const auto report = report_of("RMEM_LINK=udp RMEM_INTERFACE=lo");
    for (const char* name :
         {"group", "interface", "route", "loop-back", "lo", "igmp", "mtu", "key"}) {
        EXPECT_EQ(in_report(report, name)["verdict"], "ok") << in_report(report, name)["found"];
    }
    EXPECT_THAT(in_report(report, "lo")["found"].get<std::string>(), HasSubstr("hear each other"));
}

TEST_F(NetworkDoctor, finds_settings_that_are_no_good) {
    const auto report = report_of(
        "RMEM_LINK=udp RMEM_INTERFACE=no-such0 RMEM_PAYLOAD=7 RMEM_KEY_FILE=/no/such/key");
    EXPECT_EQ(in_report(report, "interface")["verdict"], "fail");
    EXPECT_EQ(in_report(report, "mtu")["verdict"], "fail");
    EXPECT_EQ(in_report(report, "key")["verdict"], "fail");
    EXPECT_EQ(in_report(report_of("RMEM_LINK=udp RMEM_GROUP=here"), "group")["verdict"], "fail");
}

TEST_F(NetworkDoctor, finds_a_key_file_that_others_may_read) {
    const std::string file = testing::TempDir() + "/doctor-key-" + std::to_string(::getpid());
    udp::write_new_key(file);
    const std::string settings = "RMEM_LINK=udp RMEM_INTERFACE=lo RMEM_KEY_FILE=" + file;
    EXPECT_EQ(in_report(report_of(settings), "key")["verdict"], "ok");
    std::filesystem::permissions(file, std::filesystem::perms::others_read,
                                 std::filesystem::perm_options::add);
    EXPECT_EQ(in_report(report_of(settings), "key")["verdict"], "fail");
    std::filesystem::remove(file);
}

TEST_F(NetworkDoctor, finds_what_is_wrong_with_another_host) {
    if (!has_namespaces()) GTEST_SKIP() << "network namespaces need root, and unshare and ip";
    const std::string up = "ip link set v0 up && ip address add 10.9.0.1/24 dev v0";
    const std::string by_name = "RMEM_INTERFACE=v0 RMEM_INSECURE=1";

    const auto good = apart(up, by_name);
    for (const char* name : {"interface", "route", "loop-back", "lo", "igmp", "mtu"}) {
        EXPECT_EQ(in_report(good, name)["verdict"], "ok") << in_report(good, name)["found"];
    }
    EXPECT_EQ(in_report(good, "key")["verdict"], "warn");

    const auto down = apart("ip address add 10.9.0.1/24 dev v0", by_name);
    EXPECT_THAT(in_report(down, "interface")["found"].get<std::string>(), HasSubstr("v0 is down"));
    EXPECT_EQ(in_report(down, "loop-back")["verdict"], "fail");
    EXPECT_EQ(in_report(down, "lo")["verdict"], "ok");

    const auto bare = apart("ip link set v0 up", by_name);
    EXPECT_THAT(in_report(bare, "interface")["found"].get<std::string>(),
                HasSubstr("no IPv4 address"));

    const auto no_route = apart(up, "RMEM_INSECURE=1");
    EXPECT_EQ(in_report(no_route, "route")["verdict"], "fail");

    const std::string mtu_1400 = up + " && ip link set v0 mtu 1400";
    EXPECT_THAT(in_report(apart(mtu_1400, by_name), "mtu")["found"].get<std::string>(),
                HasSubstr("datagrams are of 1372"));
    const auto small = apart(mtu_1400, by_name + " RMEM_PAYLOAD=1472");
    EXPECT_THAT(in_report(small, "mtu")["advice"].get<std::string>(),
                HasSubstr("RMEM_PAYLOAD=1372"));

    const auto routed = apart(up + " && ip route add 239.0.0.0/8 dev v0", "");
    EXPECT_EQ(in_report(routed, "route")["verdict"], "ok") << in_report(routed, "route")["found"];
    EXPECT_EQ(in_report(routed, "loop-back")["verdict"], "ok");
    EXPECT_EQ(in_report(routed, "key")["verdict"], "fail");
}

TEST_F(NetworkDoctor, finds_a_bridge_that_forgets_and_a_firewall_that_drops) {
    if (!has_namespaces()) GTEST_SKIP() << "network namespaces need root, and unshare and ip";
    const std::string settings = "RMEM_INTERFACE=br0 RMEM_INSECURE=1";
    const std::string bridge =
        "ip link add br0 type bridge && ip link set v0 master br0 && ip link set v0 up && "
        "ip link set br0 up && ip address add 10.9.0.1/24 dev br0";
    EXPECT_EQ(in_report(apart(bridge, settings), "igmp")["verdict"], "warn");
    EXPECT_EQ(in_report(apart(bridge + " && ip link set br0 type bridge mcast_querier 1", settings),
                        "igmp")["verdict"],
              "ok");
    if (std::system("unshare -n nft add table ip t >/dev/null 2>&1") != 0) {  // NOLINT: one thread
        GTEST_SKIP() << "the firewall needs nft";
    }
    const std::string wall =
        "nft add table ip t && nft add chain ip t in \"{ type filter hook input priority 0; }\" && "
        "nft add rule ip t in udp dport 1-65535 drop";
    const auto walled = apart(bridge + " && " + wall, settings);
    EXPECT_EQ(in_report(walled, "loop-back")["verdict"], "fail");
    EXPECT_THAT(in_report(walled, "loop-back")["advice"].get<std::string>(), HasSubstr("firewall"));
    EXPECT_EQ(in_report(walled, "lo")["verdict"], "fail");
}

}  // namespace
}  // namespace rmem::test
