// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/carrier/endpoints.hpp"

#include "rmem/base/environment_variable.hpp"
#include "rmem/link/carrier/unknown_host.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/multicast.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/udp.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

namespace rmem::udp {

namespace {

namespace asio = boost::asio;

constexpr const char* kGroupVariable = "RMEM_GROUP";
constexpr const char* kInterfaceVariable = "RMEM_INTERFACE";
constexpr const char* kGroupsLookLike =
    "give a multicast group and port, as in 239.1.2.3:7400, or the address of each node in order, "
    "as in 10.0.0.1:7400,10.0.0.2:7400";

template <class Problem = Error>
[[noreturn]] void refuse(const char* variable, const std::string& value, const std::string& why) {
    throw Problem(Errc::bad_environment, fmt::format("{} is '{}': {}", variable, value, why));
}

// ---- Addresses

/// One item of RMEM_GROUP, and all of it for the sentence when it is no good.
struct Item {
    const std::string& all;
    std::string text;

    template <class Problem = Error>
    [[noreturn]] void refuse(const std::string& why) const {
        udp::refuse<Problem>(kGroupVariable, all,
                             text == all ? why : fmt::format("in '{}' {}", text, why));
    }
};

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    std::size_t from = 0;
    for (std::size_t comma; (comma = text.find(',', from)) != std::string::npos; from = comma + 1) {
        parts.push_back(text.substr(from, comma - from));
    }
    parts.push_back(text.substr(from));
    return parts;
}

Ip ip_of(const Item& item, const std::string& host) {
    boost::system::error_code error;
    const auto literal = asio::ip::make_address_v4(host, error);
    if (!error) return literal.to_uint();
    asio::io_context context;
    asio::ip::udp::resolver resolver(context);
    const auto found = resolver.resolve(asio::ip::udp::v4(), host, "", error);
    if (error || found.empty()) {
        item.refuse<UnknownHost>(
            fmt::format("the host '{}' is not known ({}); give its IPv4 address", host,
                        error ? error.message() : "it has no IPv4 address"));
    }
    return found.begin()->endpoint().address().to_v4().to_uint();
}

std::uint16_t port_of(const Item& item, std::string_view digits) {
    std::uint16_t port = 0;
    const char* end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, port);
    if (error != std::errc{} || rest != end || port == 0) {
        item.refuse(fmt::format("the port is '{}'; give 1 to 65535", digits));
    }
    return port;
}

void check_is_usable(const Item& item, Ip ip) {
    if (ip == 0 || ip == INADDR_BROADCAST) {
        item.refuse(fmt::format("{} is no node's address; {}", to_text(ip), kGroupsLookLike));
    }
}

Address address_of(const Item& item) {
    const auto colon = item.text.rfind(':');
    if (colon == std::string::npos || colon == 0) {
        item.refuse(fmt::format("there is no address and port; {}", kGroupsLookLike));
    }
    const std::string host = item.text.substr(0, colon);
    if (host.find(':') != std::string::npos) {
        item.refuse(fmt::format("'{}' is no IPv4 address, which is what this link uses; {}", host,
                                kGroupsLookLike));
    }
    const std::uint16_t port = port_of(item, std::string_view(item.text).substr(colon + 1));
    const Ip ip = ip_of(item, host);
    check_is_usable(item, ip);
    return {ip, port};
}

std::vector<Address> addresses_of(const std::string& group) {
    std::vector<Address> addresses;
    for (const std::string& part : split(group)) addresses.push_back(address_of({group, part}));
    return addresses;
}

void check_fan_out(const std::string& group, const std::vector<Address>& addresses,
                   unsigned nodes) {
    if (addresses.size() != nodes) {
        refuse(
            kGroupVariable, group,
            fmt::format("{} {}, but the ring has {} nodes; {}", addresses.size(),
                        addresses.size() == 1 ? "address" : "addresses", nodes, kGroupsLookLike));
    }
    std::size_t of_this_host = 0;
    for (const Address& address : addresses) {
        if (is_multicast(address.ip)) {
            refuse(kGroupVariable, group,
                   fmt::format("{} is a multicast group, which stands alone; {}", to_text(address),
                               kGroupsLookLike));
        }
        if (std::count(addresses.begin(), addresses.end(), address) != 1) {
            refuse(kGroupVariable, group,
                   fmt::format("two nodes have the address {}; give each its own, by another port "
                               "on one host",
                               to_text(address)));
        }
        if (is_loop_back(address.ip)) ++of_this_host;
    }
    // As happens with names: a host often knows its own as 127.0.1.1.
    if (of_this_host != 0 && of_this_host != addresses.size()) {
        refuse(kGroupVariable, group,
               fmt::format("some of the addresses are of the loop-back interface, which other "
                           "hosts cannot reach: {}; give addresses of the network",
                           fmt::join(split(group), " ")));
    }
}

// ---- Interfaces

struct FreeInterfaces {
    void operator()(ifaddrs* list) const noexcept { ::freeifaddrs(list); }
};

/// Empty for an entry that is of no use here.
std::optional<Interface> interface_of(const ifaddrs& entry) {
    if (entry.ifa_addr == nullptr || entry.ifa_addr->sa_family != AF_INET) return std::nullopt;
    if ((entry.ifa_flags & IFF_UP) == 0) return std::nullopt;
    sockaddr_in address{};
    std::memcpy(&address, entry.ifa_addr, sizeof address);
    return Interface{entry.ifa_name, ntohl(address.sin_addr.s_addr),
                     (entry.ifa_flags & IFF_LOOPBACK) != 0, ::if_nametoindex(entry.ifa_name)};
}

std::string list_of(const std::vector<Interface>& all) {
    std::vector<std::string> texts;
    for (const Interface& one : all) {
        texts.push_back(fmt::format("{} ({})", one.name, to_text(one.ip)));
    }
    return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

Interface find_interface(const std::string& wanted) {
    const std::vector<Interface> all = interfaces();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Interface& one) {
        return is_named(one.name, one.ip, wanted);
    });
    if (found != all.end()) return *found;
    const bool exists = ::if_nametoindex(wanted.c_str()) != 0;
    refuse(kInterfaceVariable, wanted,
           fmt::format("{}; those that are up and have an IPv4 address: {}",
                       exists ? "this interface is down (`ip link set … up`) or has no IPv4 address"
                              : "no interface here has this name, address or network",
                       list_of(all)));
}

}  // namespace

std::string to_text(Ip ip) {
    return fmt::format("{}.{}.{}.{}", ip >> 24, ip >> 16 & 0xff, ip >> 8 & 0xff, ip & 0xff);
}

std::string to_text(const Address& address) {
    return fmt::format("{}:{}", to_text(address.ip), address.port);
}

bool is_named(const std::string& name, Ip ip, const std::string& wanted) {
    boost::system::error_code error;
    const auto network = asio::ip::make_network_v4(wanted, error);
    if (error) return name == wanted || to_text(ip) == wanted;
    return asio::ip::network_v4(asio::ip::address_v4(ip), network.prefix_length()).canonical() ==
           network.canonical();
}

std::vector<Interface> interfaces() {
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) {
        throw Error(Errc::system,
                    fmt::format("asking for the host's interfaces: {}", std::strerror(errno)));
    }
    const std::unique_ptr<ifaddrs, FreeInterfaces> list(first);
    std::vector<Interface> found;
    for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
        if (auto one = interface_of(*entry)) found.push_back(std::move(*one));
    }
    return found;
}

namespace {

constexpr int kIpHeaderBytes = 28;  ///< IPv4's and UDP's

/// A socket is given an address as if to send there; nothing is sent.
boost::system::error_code aim(asio::ip::udp::socket& asker, const Address& to,
                              const std::optional<Interface>& interface) {
    boost::system::error_code error;
    asker.open(asio::ip::udp::v4(), error);
    if (!error && interface) {
        asker.set_option(
            asio::ip::multicast::outbound_interface(asio::ip::address_v4(interface->ip)), error);
    }
    if (!error) asker.connect({asio::ip::address_v4(to.ip), to.port}, error);
    return error;
}

std::optional<std::size_t> longest_datagram_to(const Address& to,
                                               const std::optional<Interface>& interface) {
    asio::io_context context;
    asio::ip::udp::socket asker(context);
    const auto error = aim(asker, to, interface);
    int mtu = 0;
    socklen_t size = sizeof mtu;
    if (error || ::getsockopt(asker.native_handle(), IPPROTO_IP, IP_MTU, &mtu, &size) != 0 ||
        mtu <= kIpHeaderBytes)
        return std::nullopt;
    return static_cast<std::size_t>(mtu - kIpHeaderBytes);
}

}  // namespace

Interface Endpoints::interface_now() const {
    if (own_interface) return find_interface(wanted.empty() ? own_interface->name : wanted);
    asio::io_context context;
    asio::ip::udp::socket asker(context);
    boost::system::error_code error = aim(asker, group, std::nullopt);
    asio::ip::address source;
    if (!error) source = asker.local_endpoint(error).address();
    const std::vector<Interface> all = interfaces();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Interface& one) {
        return source == asio::ip::address_v4(one.ip);
    });
    if (error || found == all.end()) {
        throw Error(Errc::bad_environment,
                    fmt::format("the host has no route to {}; name an interface in {}, or `ip "
                                "route add 239.0.0.0/8 dev INTERFACE`",
                                to_text(group.ip), kInterfaceVariable));
    }
    return *found;
}

bool Endpoints::leave_host() const noexcept {
    if (!is_fan_out()) return !own_interface || !own_interface->is_loop_back;
    return !std::all_of(nodes.begin(), nodes.end(),
                        [](const Address& node) { return is_loop_back(node.ip); });
}

std::optional<std::size_t> Endpoints::longest_datagram() const {
    if (!is_fan_out()) return longest_datagram_to(group, own_interface);
    std::optional<std::size_t> least;
    for (const Address& node : nodes) {
        const auto most = longest_datagram_to(node, std::nullopt);
        if (most) least = std::min(*most, least.value_or(*most));
    }
    return least;
}

std::string Endpoints::text() const {
    if (is_fan_out()) return fmt::format("fan-out to {} nodes", nodes.size());
    if (!own_interface) return fmt::format("group {}", to_text(group));
    return fmt::format("group {} on {} ({})", to_text(group), own_interface->name,
                       to_text(own_interface->ip));
}

Endpoints Endpoints::read(unsigned nodes) {
    return parse(environment_text(kGroupVariable), environment_text(kInterfaceVariable), nodes);
}

Endpoints Endpoints::parse(const std::string& group, const std::string& interface, unsigned nodes) {
    const std::vector<Address> addresses = addresses_of(group.empty() ? kDefaultGroup : group);
    Endpoints endpoints;
    if (addresses.size() == 1 && is_multicast(addresses.front().ip)) {
        endpoints.group = addresses.front();
        endpoints.wanted = interface;
        if (!interface.empty()) endpoints.own_interface = find_interface(interface);
    } else {
        check_fan_out(group, addresses, nodes);
        endpoints.nodes = addresses;
    }
    return endpoints;
}

}  // namespace rmem::udp
