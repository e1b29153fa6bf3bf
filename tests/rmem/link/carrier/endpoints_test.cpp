// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/carrier/endpoints.hpp"

#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

namespace rmem::udp {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Ip kLoopBack = 0x7f000001;

/// The sentence with which it is refused.
std::string refusal(const std::string& group, const std::string& interface = "",
                    unsigned nodes = 2) {
    return test::refused(Errc::bad_environment, [&] { Endpoints::parse(group, interface, nodes); });
}

std::optional<Interface> loop_back() {
    const auto all = interfaces();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [](const Interface& one) { return one.ip == kLoopBack; });
    return found == all.end() ? std::nullopt : std::optional(*found);
}

TEST(Endpoints, nothing_set_is_the_default_group_where_the_routes_lead) {
    const auto endpoints = Endpoints::parse("", "", 3);
    EXPECT_FALSE(endpoints.is_fan_out());
    EXPECT_EQ(to_text(endpoints.group), kDefaultGroup);
    EXPECT_FALSE(endpoints.own_interface);
    EXPECT_TRUE(endpoints.leave_host());
}

TEST(Endpoints, come_from_the_environment) {
    ASSERT_EQ(::setenv("RMEM_GROUP", "127.0.0.1:7401,127.0.0.1:7402", 1), 0);
    const auto endpoints = Endpoints::read(2);
    ASSERT_EQ(::unsetenv("RMEM_GROUP"), 0);
    EXPECT_EQ(endpoints.text(), "fan-out to 2 nodes");
    EXPECT_EQ(to_text(Endpoints::read(2).group), kDefaultGroup);
}

TEST(Endpoints, each_node_speaks_in_a_group_of_the_block_in_a_circle) {
    const auto group = [](const char* given, unsigned node) {
        return to_text(Endpoints::parse(given, "", 256).group_of(node));
    };
    EXPECT_EQ(group("239.1.2.3:7400", 0), "239.1.2.3:7400");
    EXPECT_EQ(group("239.1.2.3:7400", 12), "239.1.2.15:7400");
    EXPECT_EQ(group("239.1.2.3:7400", 13), "239.1.2.0:7400");
    EXPECT_EQ(group("239.1.2.3:7400", 15), "239.1.2.2:7400");
    EXPECT_EQ(group("239.1.2.3:7400", 16), "239.1.2.3:7400");
    EXPECT_EQ(group("239.255.255.255:7400", 1), "239.255.255.240:7400");
}

TEST(Endpoints, a_multicast_address_is_a_group) {
    const auto endpoints = Endpoints::parse("239.1.2.3:7400", "", 2);
    EXPECT_EQ(endpoints.group, (Address{0xef010203, 7400}));
    EXPECT_EQ(endpoints.text(), "group 239.1.2.3:7400");
    EXPECT_TRUE(endpoints.leave_host());
}

TEST(Endpoints, other_addresses_are_the_nodes_in_order) {
    const auto endpoints = Endpoints::parse("10.0.0.2:7400,10.0.0.1:7401", "", 2);
    EXPECT_TRUE(endpoints.is_fan_out());
    EXPECT_THAT(endpoints.nodes, ElementsAre(Address{0x0a000002, 7400}, Address{0x0a000001, 7401}));
    EXPECT_TRUE(endpoints.leave_host());
}

TEST(Endpoints, loop_back_addresses_do_not_leave_the_host) {
    EXPECT_FALSE(Endpoints::parse("127.0.0.1:7401,127.1.2.3:7401", "", 2).leave_host());
    EXPECT_TRUE(Endpoints::parse("128.0.0.1:7401,128.0.0.2:7401", "", 2).leave_host());
}

TEST(Endpoints, the_loop_back_interface_has_a_name_and_an_address) {
    const auto expected = loop_back();
    if (!expected) GTEST_SKIP() << "the loop-back interface is down";
    for (const std::string& wanted : {expected->name, std::string("127.0.0.1")}) {
        const auto endpoints = Endpoints::parse("239.1.2.3:7400", wanted, 2);
        EXPECT_EQ(endpoints.own_interface, expected);
        EXPECT_FALSE(endpoints.leave_host());
        EXPECT_EQ(endpoints.text(), "group 239.1.2.3:7400 on " + expected->name + " (127.0.0.1)");
    }
}

TEST(Endpoints, know_what_their_interface_carries_in_one_piece) {
    const auto lo = loop_back();
    if (!lo) GTEST_SKIP() << "the loop-back interface is down";
    std::size_t mtu = 0;
    std::ifstream("/sys/class/net/" + lo->name + "/mtu") >> mtu;
    mtu = std::min<std::size_t>(mtu, 65'535);  // as an IPv4 packet
    EXPECT_EQ(Endpoints::parse("239.1.2.3:7400", lo->name, 2).longest_datagram(), mtu - 28);
    EXPECT_EQ(Endpoints::parse("127.0.0.1:7401,127.1.2.3:7401", "", 2).longest_datagram(),
              mtu - 28);
}

TEST(Endpoints, an_interface_is_meant_by_its_name_its_address_or_its_network) {
    constexpr Ip kIp = 0x0a000102;
    for (const char* wanted : {"eth0", "10.0.1.2", "10.0.1.0/24", "10.0.1.7/24", "10.0.0.0/16"}) {
        EXPECT_TRUE(is_named("eth0", kIp, wanted)) << wanted;
    }
    for (const char* wanted : {"eth1", "10.0.1.3", "10.0.2.0/24", "10.0.1.0", "10.0.1.0/33", ""}) {
        EXPECT_FALSE(is_named("eth0", kIp, wanted)) << wanted;
    }
    const auto expected = loop_back();
    if (!expected) GTEST_SKIP() << "the loop-back interface is down";
    EXPECT_EQ(Endpoints::parse("239.1.2.3:7400", "127.0.0.0/8", 2).own_interface, expected);
}

TEST(Endpoints, another_interface_leaves_the_host) {
    for (const Interface& one : interfaces()) {
        if (one.is_loop_back) continue;
        EXPECT_TRUE(Endpoints::parse("239.1.2.3:7400", one.name, 2).leave_host());
        return;
    }
    GTEST_SKIP() << "this host has only the loop-back interface";
}

TEST(Endpoints, host_names_are_looked_up) {
    const auto endpoints = Endpoints::parse("localhost:7401,localhost:7402", "", 2);
    EXPECT_FALSE(endpoints.leave_host());
    EXPECT_THAT(refusal("no-such-host.invalid:7400,10.0.0.1:7400"),
                AllOf(HasSubstr("RMEM_GROUP"), HasSubstr("'no-such-host.invalid'"),
                      HasSubstr("give its IPv4 address")));
}

TEST(Endpoints, an_address_needs_a_port) {
    EXPECT_THAT(refusal("239.1.2.3"),
                AllOf(HasSubstr("RMEM_GROUP is '239.1.2.3'"), HasSubstr("239.1.2.3:7400")));
    EXPECT_THAT(refusal("10.0.0.1:7400,10.0.0.2"), HasSubstr("in '10.0.0.2' there is no"));
    for (const std::string port : {"", "0", "65536", "-1", "http", "74 00", "7400x"}) {
        EXPECT_THAT(refusal("239.1.2.3:" + port),
                    AllOf(HasSubstr("the port is '" + port + "'"), HasSubstr("1 to 65535")));
    }
    EXPECT_THAT(refusal(":7400"), HasSubstr("no address and port"));
    EXPECT_THAT(refusal("10.0.0.1:7400,"), HasSubstr("no address and port"));
}

TEST(Endpoints, addresses_that_no_node_can_have_are_refused) {
    EXPECT_THAT(refusal("0.0.0.0:7400", "", 1), HasSubstr("0.0.0.0 is no node's address"));
    EXPECT_THAT(refusal("255.255.255.255:7400", "", 1), HasSubstr("is no node's address"));
    EXPECT_THAT(refusal("[ff02::1]:7400"), HasSubstr("'[ff02::1]' is no IPv4 address"));
}

TEST(Endpoints, each_node_has_one_address_of_its_own) {
    EXPECT_THAT(refusal("10.0.0.1:7400,10.0.0.2:7400", "", 3),
                HasSubstr("2 addresses, but the ring has 3 nodes"));
    EXPECT_THAT(refusal("10.0.0.1:7400"), HasSubstr("1 address, but the ring has 2 nodes"));
    EXPECT_THAT(refusal("10.0.0.1:7400,10.0.0.1:7400"),
                HasSubstr("two nodes have the address 10.0.0.1:7400"));
}

TEST(Endpoints, a_group_does_not_stand_among_addresses) {
    EXPECT_THAT(refusal("239.1.2.3:7400,10.0.0.1:7400"),
                HasSubstr("239.1.2.3:7400 is a multicast group, which stands alone"));
}

TEST(Endpoints, loop_back_addresses_do_not_mix_with_others) {
    EXPECT_THAT(refusal("127.0.1.1:7400,10.0.0.1:7400"),
                AllOf(HasSubstr("loop-back"), HasSubstr("give addresses of the network")));
}

TEST(Endpoints, an_unknown_interface_is_refused_with_those_there_are) {
    const auto loop = loop_back();
    for (const char* wanted : {"no-such-if", "127.9.9.9"}) {
        EXPECT_THAT(refusal("", wanted), AllOf(HasSubstr("RMEM_INTERFACE is '"), HasSubstr(wanted),
                                               HasSubstr(loop ? loop->name + " (127" : "none")));
    }
}

}  // namespace
}  // namespace rmem::udp
