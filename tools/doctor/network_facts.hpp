// SPDX-License-Identifier: Apache-2.0
#pragma once

/// This host's network, as link `udp` sees it: facts, which tools/doctor/network_checks.hpp judges.
///
/// Looking sends some datagrams on a free port of the ring's group, which this host's own sockets
/// are to hear, and leaves nothing behind. It never throws: what cannot be found out is empty,
/// zero, or a sentence in `problem`.
/// Thread safety: values; the functions share nothing. Units: bytes.

#include "rmem/link/carrier/endpoints.hpp"
#include "rmem/link/udp/protocol/format.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tools {

/// An interface of this host, up or down.
struct HostInterface {
    std::string name;
    std::vector<rmem::udp::Ip> addresses;
    bool is_up = false;
    bool has_carrier = false;  ///< the other end is there
    bool does_multicast = false;
    bool is_loop_back = false;
    std::size_t mtu = 0;         ///< 0: unknown
    std::string bridge;          ///< the one that it is, or is a port of; empty: none
    bool bridge_snoops = false;  ///< passes groups on only to ports that asked
    bool bridge_asks = false;    ///< is the querier that makes hosts ask again
};

/// How the host would send to an address.
struct Route {
    rmem::udp::Address to;
    int error = 0;                ///< errno; the rest counts if 0
    rmem::udp::Ip source = 0;     ///< the own address that it would bear
    std::size_t packet_most = 0;  ///< the MTU on the way, as far as the host knows it; 0: unknown
};

/// Two sockets of this host, as two nodes have them: does one hear the other?
struct Hearing {
    std::string problem;  ///< why there was no test; empty: there was one
    int send_error = 0;   ///< errno
    bool heard = false;   ///< a short datagram
    bool heard_longest = false;
    bool is_member = false;          ///< the kernel lists the group while a socket has joined it
    std::uint32_t held = 0;          ///< datagrams that the receive buffer takes
    std::string buffer_advice = {};  ///< of the socket; empty: it is large enough
};

struct NetworkFacts {
    bool is_wanted = false;          ///< RMEM_LINK is udp: what is wrong here ends a program
    std::string group_problem;       ///< RMEM_GROUP is no good; what follows from it is empty then
    std::string payload_problem;     ///< RMEM_PAYLOAD is no good
    rmem::udp::Endpoints endpoints;  ///< except for the interface
    std::string interface_wanted;    ///< RMEM_INTERFACE
    std::optional<unsigned> node;    ///< RMEM_NODE
    std::vector<HostInterface> interfaces;  ///< of this host
    std::vector<Route> routes;              ///< to the group, or to each node
    std::size_t payload = rmem::udp::kDefaultPayload;
    std::optional<Hearing> hearing;  ///< where the ring is to be; none: nothing to be tested
    Hearing on_lo;
    std::string key_file;     ///< RMEM_KEY_FILE
    std::string key_problem;  ///< what is wrong with that file
    bool is_insecure = false;
    /// What nodes of this host have heard of others within the last seconds, and refuse.
    std::vector<std::string> refusals;
};

/// The interface that multicast takes by RMEM_INTERFACE or the host's routes; null if none.
const HostInterface* used_interface(const NetworkFacts& facts);

NetworkFacts gather_network_facts();

}  // namespace tools
