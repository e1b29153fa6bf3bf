// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/network_facts.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/base/environment_variable.hpp"
#include "rmem/link/udp/engine_settings.hpp"
#include "rmem/link/udp/key_file.hpp"
#include "rmem/link/udp/socket.hpp"
#include "rmem/ring/config.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/segment.hpp"
#include "tools/doctor/checks.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tools {

namespace {

namespace udp = rmem::udp;

constexpr std::int64_t kHearNs = 300'000'000;
constexpr int kTries = 3;
constexpr std::size_t kShortBytes = 64;

sockaddr_in socket_address(const udp::Address& address) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(address.port);
    to.sin_addr.s_addr = htonl(address.ip);
    return to;
}

rmem::Descriptor plain_socket() {
    return rmem::Descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

/// The own address of a socket; nothing when it has none.
std::optional<udp::Address> own_address(int fd) {
    sockaddr_in own{};
    socklen_t size = sizeof own;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) return std::nullopt;
    return udp::Address{ntohl(own.sin_addr.s_addr), ntohs(own.sin_port)};
}

// ---- Interfaces

std::size_t mtu_of(const std::string& name) {
    const rmem::Descriptor asker = plain_socket();
    ifreq request{};
    name.copy(request.ifr_name, sizeof request.ifr_name - 1);
    if (::ioctl(asker.get(), SIOCGIFMTU, &request) != 0 || request.ifr_mtu < 0) return 0;
    return static_cast<std::size_t>(request.ifr_mtu);
}

void look_at_bridge(HostInterface& one) {
    const std::string folder = "/sys/class/net/" + one.name;
    std::error_code error;
    if (std::filesystem::exists(folder + "/bridge", error)) {
        one.bridge = one.name;
    } else {
        const auto target = std::filesystem::read_symlink(folder + "/brport/bridge", error);
        if (!error) one.bridge = target.filename();
    }
    if (one.bridge.empty()) return;
    const std::string settings = "/sys/class/net/" + one.bridge + "/bridge/";
    one.bridge_snoops = first_line(settings + "multicast_snooping") == "1";
    one.bridge_asks = first_line(settings + "multicast_querier") == "1";
}

/// An interface has an entry for each of its addresses, and one of its own.
std::vector<HostInterface> all_interfaces() {
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) return {};
    std::vector<HostInterface> all;
    for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
        const std::string name = entry->ifa_name;
        auto one = std::find_if(all.begin(), all.end(),
                                [&](const auto& other) { return other.name == name; });
        if (one == all.end()) {
            all.emplace_back().name = name;
            one = std::prev(all.end());
        }
        one->is_up = (entry->ifa_flags & IFF_UP) != 0;
        one->has_carrier = (entry->ifa_flags & IFF_RUNNING) != 0;
        one->does_multicast = (entry->ifa_flags & IFF_MULTICAST) != 0;
        one->is_loop_back = (entry->ifa_flags & IFF_LOOPBACK) != 0;
        if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
        sockaddr_in address{};
        std::memcpy(&address, entry->ifa_addr, sizeof address);
        one->addresses.push_back(ntohl(address.sin_addr.s_addr));
    }
    ::freeifaddrs(first);
    for (HostInterface& one : all) {
        one.mtu = mtu_of(one.name);
        look_at_bridge(one);
    }
    return all;
}

// ---- Routes

/// A socket is given an address as if to send there; nothing is sent.
Route route_to(const udp::Address& to) {
    Route route;
    route.to = to;
    const rmem::Descriptor asker = plain_socket();
    const sockaddr_in address = socket_address(to);
    if (::connect(asker.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        route.error = errno;
        return route;
    }
    route.source = own_address(asker.get()).value_or(udp::Address{}).ip;
    int mtu = 0;
    socklen_t size = sizeof mtu;
    if (::getsockopt(asker.get(), IPPROTO_IP, IP_MTU, &mtu, &size) == 0 && mtu > 0) {
        route.packet_most = static_cast<std::size_t>(mtu);
    }
    return route;
}

std::vector<Route> all_routes(const udp::Endpoints& endpoints) {
    if (!endpoints.is_fan_out()) return {route_to(endpoints.group)};
    std::vector<Route> routes;
    for (const udp::Address& node : endpoints.nodes) routes.push_back(route_to(node));
    return routes;
}

// ---- Hearing

/// A port that no socket of this host has; 0 if there is none.
std::uint16_t free_port() {
    const rmem::Descriptor asker = plain_socket();
    const sockaddr_in any = socket_address({});
    if (::bind(asker.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) return 0;
    return own_address(asker.get()).value_or(udp::Address{}).port;
}

/// Whether /proc/net/igmp lists the group: a line for each device, below it one for each of its
/// groups, whose address is printed as it lies in memory.
bool is_listed(udp::Ip group, const std::string& interface) {
    std::ifstream list("/proc/net/igmp");
    const std::string wanted = fmt::format("{:08X}", htonl(group));
    std::string device;
    for (std::string line; std::getline(list, line);) {
        std::istringstream words(line);
        std::string first, second;
        words >> first >> second;
        if (!line.empty() && line.front() != '\t') device = second;
        if (first == wanted && (interface.empty() || device == interface)) return true;
    }
    return false;
}

/// Whether `ear` gets the very datagram, which is sent again now and then: each may be lost.
bool hears(udp::Socket& mouth, udp::Socket& ear, std::span<const std::byte> datagram) {
    for (int i = 0; i < kTries; ++i) {
        if (!mouth.send(datagram)) return false;
        const rmem::Deadline end = rmem::Deadline::in(kHearNs / kTries);
        while (ear.wait(end)) {
            for (const auto heard : ear.receive()) {
                if (std::equal(heard.begin(), heard.end(), datagram.begin(), datagram.end()))
                    return true;
            }
        }
    }
    return false;
}

/// Bytes that no other program on this network sends.
std::vector<std::byte> own_datagram(std::size_t bytes) {
    std::vector<std::byte> datagram(bytes);
    const std::string words = fmt::format("rmem doctor {} {}", ::getpid(), rmem::now_ns());
    std::memcpy(datagram.data(), words.data(), std::min(words.size(), bytes));
    return datagram;
}

Hearing test_hearing(udp::Ip group, const std::optional<udp::Interface>& interface,
                     std::size_t payload) {
    Hearing result;
    udp::SocketSettings settings;
    settings.nodes = 2;
    settings.endpoints.group = {group, free_port()};
    settings.endpoints.own_interface = interface;
    try {
        udp::Socket mouth(settings);
        settings.node = 1;
        udp::Socket ear(settings);
        result.held = ear.datagrams_held();
        result.buffer_advice = ear.buffer_advice();
        result.is_member = is_listed(group, interface ? interface->name : "");
        result.heard = hears(mouth, ear, own_datagram(kShortBytes));
        result.heard_longest = result.heard && hears(mouth, ear, own_datagram(payload));
        result.send_error = mouth.counters().last_error;
    } catch (const rmem::Error& error) {
        result.problem = error.what();
    }
    return result;
}

Hearing test_lo(const NetworkFacts& facts) {
    for (const HostInterface& one : facts.interfaces) {
        if (!one.is_loop_back || !one.is_up || one.addresses.empty()) continue;
        const udp::Ip group = facts.endpoints.is_fan_out() ? 0xef010203 : facts.endpoints.group.ip;
        return test_hearing(group, udp::Interface{one.name, one.addresses.front(), true},
                            facts.payload);
    }
    Hearing none;
    none.problem = "the loop-back interface is down or has no address: `ip link set lo up`";
    return none;
}

/// Where the ring is to be, unless that is nowhere, or lo, which is tested anyway.
std::optional<Hearing> test_ring(const NetworkFacts& facts) {
    if (facts.endpoints.is_fan_out() || !facts.group_problem.empty()) return std::nullopt;
    const HostInterface* used = used_interface(facts);
    if (used != nullptr && used->is_loop_back) return std::nullopt;
    if (used == nullptr || !used->is_up || used->addresses.empty()) {
        Hearing none;
        none.problem = "no test without an interface that is up and has an address";
        return none;
    }
    std::optional<udp::Interface> interface;
    if (!facts.interface_wanted.empty()) {
        interface = udp::Interface{used->name, used->addresses.front(), false};
    }
    return test_hearing(facts.endpoints.group.ip, interface, facts.payload);
}

// ---- Settings

/// As many as RMEM_GROUP has addresses, where nobody says how many there are.
unsigned nodes_of(const rmem::Environment& environment, const std::string& group) {
    if (environment.nodes) return *environment.nodes;
    return static_cast<unsigned>(std::count(group.begin(), group.end(), ',')) + 1;
}

/// With the interface, if there is one of that name.
udp::Endpoints endpoints_wanted(const NetworkFacts& facts, const std::string& group) {
    try {
        const auto nodes = static_cast<unsigned>(facts.endpoints.nodes.size());
        return udp::Endpoints::parse(group, facts.interface_wanted, std::max(nodes, 1U));
    } catch (const rmem::Error&) {  // another finding says so
        return facts.endpoints;
    }
}

void read_settings(NetworkFacts& facts) {
    const rmem::Environment environment = rmem::Environment::read();
    facts.is_wanted = environment.link == rmem::LinkKind::udp;
    facts.node = environment.node;
    facts.interface_wanted = rmem::environment_text("RMEM_INTERFACE");
    facts.is_insecure = rmem::environment_text("RMEM_INSECURE") == "1";
    const std::string group = rmem::environment_text("RMEM_GROUP");
    try {
        facts.endpoints = udp::Endpoints::parse(group, "", nodes_of(environment, group));
    } catch (const rmem::Error& error) {
        facts.group_problem = error.what();
    }
    try {
        facts.payload = udp::read_payload(endpoints_wanted(facts, group));
    } catch (const rmem::Error& error) {
        facts.payload_problem = error.what();
    }
    facts.key_file = rmem::environment_text("RMEM_KEY_FILE");
    if (facts.key_file.empty()) return;
    try {
        udp::read_key(facts.key_file);
    } catch (const rmem::Error& error) {
        facts.key_problem = error.what();
    }
}

/// Of the nodes on this host that run now.
std::vector<std::string> all_refusals() {
    std::vector<std::string> all;
    for (const std::string& segment : rmem::Segment::list()) {
        try {
            const auto ring = rmem::Ring::observe(segment);
            if (!ring->config().is_remote() || !ring->has_engine()) continue;
            const std::string text = ring->board().notice.text();
            if (!text.empty())
                all.push_back(fmt::format("node {} of ring '{}': {}", ring->own_node(),
                                          ring->config().name, text));
        } catch (const rmem::Error&) {  // gone, or half-made: another check's finding
            continue;
        }
    }
    return all;
}

}  // namespace

NetworkFacts gather_network_facts() {
    NetworkFacts facts;
    read_settings(facts);
    facts.interfaces = all_interfaces();
    if (facts.group_problem.empty()) facts.routes = all_routes(facts.endpoints);
    facts.hearing = test_ring(facts);
    facts.on_lo = test_lo(facts);
    facts.refusals = all_refusals();
    return facts;
}

}  // namespace tools
