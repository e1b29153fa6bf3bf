// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/make_socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/udp.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/multicast.hpp>
#include <boost/asio/ip/udp.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace rmem::udp {

namespace {

namespace asio = boost::asio;
namespace multicast = asio::ip::multicast;

using AsioSocket = asio::ip::udp::socket;

constexpr unsigned kMaxHops = 255;

[[noreturn]] void fail(Errc code, const std::string& doing, int error, const std::string& advice) {
    throw Error(code, fmt::format("{}: {}{}{}", doing, std::strerror(error),
                                  advice.empty() ? "" : "; ", advice));
}

void need(const boost::system::error_code& error, const std::string& doing,
          const std::string& advice = "") {
    if (error) fail(Errc::system, doing, error.value(), advice);
}

asio::ip::udp::endpoint endpoint_of(const Address& address) {
    return {asio::ip::address_v4(address.ip), address.port};
}

void check_result(const SocketSettings& settings) {
    if (settings.hops > kMaxHops) {
        throw Error(
            Errc::invalid_argument,
            fmt::format("{} multicast hops are out of range (0 to {})", settings.hops, kMaxHops));
    }
    if (settings.endpoints.is_fan_out() && settings.node >= settings.endpoints.nodes.size()) {
        throw Error(Errc::bad_rank,
                    fmt::format("node {} has no address: RMEM_GROUP gives them for nodes 0 to {}",
                                settings.node, settings.endpoints.nodes.size() - 1));
    }
}

/// Two that share a port are two nodes on one host. Datagrams to the port come by the groups
/// joined alone (hear_joined_only()), or to an address of this host.
void bind_port(AsioSocket& socket, const Endpoints& endpoints) {
    boost::system::error_code error;
    socket.set_option(AsioSocket::reuse_address(true), error);
    need(error, "sharing the port of the group");
    socket.bind(endpoint_of({INADDR_ANY, endpoints.group.port}), error);
    need(error, fmt::format("binding the port of {}", endpoints.text()),
         "another program has the port for itself; give another one in RMEM_GROUP on all nodes");
}

/// Without this a socket also hears what other programs of the host have joined, and refuses it
/// later: hosts that do not know the option will do.
void hear_joined_only(AsioSocket& socket) {
    const int off = 0;
    static_cast<void>(
        ::setsockopt(socket.native_handle(), IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof off));
}

/// The interface by its number: what has its name or its address may be another later.
bool set_multicast(int fd, int option, Ip group, Ip own, unsigned interface) noexcept {
    ip_mreqn what{};
    what.imr_multiaddr.s_addr = htonl(group);
    what.imr_address.s_addr = htonl(own);
    what.imr_ifindex = static_cast<int>(interface);
    return ::setsockopt(fd, IPPROTO_IP, option, &what, sizeof what) == 0;
}

bool others_speak_in(unsigned group, const SocketSettings& settings) {
    for (unsigned n = group; n < settings.nodes; n += kGroups) {
        if (n != settings.node) return true;
    }
    return false;
}

void speak_to_groups(AsioSocket& socket, const SocketSettings& settings) {
    boost::system::error_code error;
    // So that nodes on one host hear each other.
    socket.set_option(multicast::enable_loopback(true), error);
    need(error, "turning multicast loop-back on");
    socket.set_option(multicast::hops(static_cast<int>(settings.hops)), error);
    need(error, fmt::format("setting the multicast hops to {}", settings.hops));
}

void bind_own_address(AsioSocket& socket, const Endpoints& endpoints, unsigned node) {
    const Address& own = endpoints.nodes[node];
    boost::system::error_code error;
    socket.bind(endpoint_of(own), error);
    if (error.value() == EADDRNOTAVAIL) {
        fail(Errc::bad_environment,
             fmt::format("RMEM_GROUP gives node {} the address {}", node, to_text(own)),
             EADDRNOTAVAIL, "this host has another one: correct RMEM_NODE or RMEM_GROUP");
    }
    need(error, fmt::format("binding node {}'s address {}", node, to_text(own)),
         error.value() == EADDRINUSE
             ? "is the node running already? Otherwise give it another port in RMEM_GROUP"
             : "");
}

void close_on_exec(int fd) {
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        fail(Errc::system, "keeping the socket from programs that are started", errno, "");
    }
}

/// Whether the host gives what came as a GSO batch in one piece; if not, it cuts them by itself.
void enable_gro(AsioSocket& socket) {
    const int on = 1;
    static_cast<void>(::setsockopt(socket.native_handle(), IPPROTO_UDP, UDP_GRO, &on, sizeof on));
}

}  // namespace

sockaddr_in to_socket_address(const Address& address) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(address.port);
    to.sin_addr.s_addr = htonl(address.ip);
    return to;
}

void use_groups(int fd, const SocketSettings& settings, const Interface& there,
                const Interface& before) {
    const Endpoints& endpoints = settings.endpoints;
    for (unsigned group = 0; group < kGroups; ++group) {
        if (!others_speak_in(group, settings)) continue;
        const Ip ip = endpoints.group_of(group).ip;
        if (before.index != 0) set_multicast(fd, IP_DROP_MEMBERSHIP, ip, 0, before.index);
        if (set_multicast(fd, IP_ADD_MEMBERSHIP, ip, there.ip, there.index)) continue;
        fail(Errc::system, fmt::format("joining {} on {}", to_text(ip), there.name), errno,
             errno == ENOBUFS
                 ? "allow more groups with `sysctl -w net.ipv4.igmp_max_memberships=20`"
                 : "see `rmem doctor`");
    }
    const bool is_named = endpoints.own_interface.has_value();
    if (!set_multicast(fd, IP_MULTICAST_IF, 0, is_named ? there.ip : 0, is_named ? there.index : 0))
        fail(Errc::system, fmt::format("choosing the interface of {}", endpoints.text()), errno,
             "");
}

/// The reactor that Boost.Asio gives each socket would be called for each datagram, so the socket
/// leaves it once it is made.
Descriptor make_socket(const SocketSettings& settings, Interface& joined) {
    check_result(settings);
    asio::io_context context;
    AsioSocket socket(context);
    boost::system::error_code error;
    socket.open(asio::ip::udp::v4(), error);
    need(error, "making a UDP socket");
    close_on_exec(socket.native_handle());
    socket.native_non_blocking(true, error);
    need(error, "making the socket non-blocking");
    const auto bytes = std::min<std::size_t>(settings.receive_buffer_bytes, INT_MAX / 2);
    socket.set_option(AsioSocket::receive_buffer_size(static_cast<int>(bytes)), error);
    need(error, "asking for a receive buffer");
    if (settings.endpoints.is_fan_out()) {
        bind_own_address(socket, settings.endpoints, settings.node);
    } else {
        hear_joined_only(socket);
        bind_port(socket, settings.endpoints);
        const Interface there = settings.endpoints.interface_now();
        use_groups(socket.native_handle(), settings, there, {});
        speak_to_groups(socket, settings);
        joined = there;
    }
    if (settings.gso) enable_gro(socket);
    return Descriptor(socket.release());
}

std::size_t granted_buffer(int fd) {
    int bytes = 0;
    socklen_t size = sizeof bytes;
    if (::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size) != 0) {
        fail(Errc::system, "asking for the size of the receive buffer", errno, "");
    }
    return static_cast<std::size_t>(bytes);
}

Descriptor hear_changes() noexcept {
    Descriptor changes(
        ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    sockaddr_nl all{};
    all.nl_family = AF_NETLINK;
    all.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE;
    if (::bind(changes.get(), reinterpret_cast<const sockaddr*>(&all), sizeof all) != 0) return {};
    return changes;
}

}  // namespace rmem::udp
