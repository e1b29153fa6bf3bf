// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Where the nodes of a ring hear each other: RMEM_GROUP and RMEM_INTERFACE.
///
/// RMEM_GROUP      "239.1.2.3:7400", a multicast group and port that all nodes are given; or, where
///                 multicast is not available, an address for each node in order,
///                 "10.0.0.1:7400,10.0.0.2:7400": each datagram is then sent to each other node by
///                 itself (fan-out). Host names will do.
/// RMEM_INTERFACE  where multicast leaves and enters: an interface's name ("eth0"), its address, or
///                 the network ("10.0.0.0/24") that this is of, which all hosts can be given;
///                 unset: the one that the host's routes name. Fan-out ignores it, as addresses say
///                 enough.
///
/// A node speaks in a group of its own and joins those of the others, so that the host does not
/// give it its own datagrams back. With the group given these are the kGroups groups of one block,
/// 239.1.2.0/28 here: node 0 speaks in the one given, node 1 in the next one, and so on in a
/// circle. Nodes further than kGroups apart share one. (Linux lets a socket join 20.)
///
/// All of it is IPv4. Nodes of several rings may share groups: their datagrams name their ring.
///
/// Thread safety: plain values; reading them asks the host, and its name server where names are
/// given.
/// Errors: `Error(bad_environment)` with a sentence that names the variable, what was found, what
/// to do.

#include "rmem/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rmem::udp {

/// Of the range that networks keep to themselves (239/8).
inline constexpr const char* kDefaultGroup = "239.1.2.3:7482";

/// That the nodes of a ring speak in. A power of two.
inline constexpr unsigned kGroups = 16;

/// An IPv4 address, the first byte the highest.
using Ip = std::uint32_t;

struct Address {
    Ip ip = 0;
    std::uint16_t port = 0;
    friend bool operator==(const Address&, const Address&) = default;
};

constexpr bool is_multicast(Ip ip) noexcept {
    return ip >> 28 == 0xe;
}
constexpr bool is_loop_back(Ip ip) noexcept {
    return ip >> 24 == 127;
}

/// "127.0.0.1"; "127.0.0.1:7401".
RMEM_API std::string to_text(Ip ip);
RMEM_API std::string to_text(const Address& address);

/// An interface of this host.
struct Interface {
    std::string name;
    Ip ip = 0;
    bool is_loop_back = false;
    unsigned index = 0;  ///< the host's number; one that is made again gets another
    friend bool operator==(const Interface&, const Interface&) = default;
};

/// Those that are up and have an address.
RMEM_API std::vector<Interface> interfaces();
/// Whether RMEM_INTERFACE means the one of this name and address: by either, or by its network.
[[nodiscard]] RMEM_API bool is_named(const std::string& name, Ip ip, const std::string& wanted);

struct Endpoints {
    Address group;                           ///< multicast; no address: fan-out
    std::optional<Interface> own_interface;  ///< multicast only; none: as the host's routes say
    std::string wanted;                      ///< RMEM_INTERFACE, by which own_interface was found
    std::vector<Address> nodes;              ///< fan-out: the address of each node

    friend bool operator==(const Endpoints&, const Endpoints&) = default;
    bool is_fan_out() const noexcept { return group.ip == 0; }

    /// Multicast only: where the node speaks.
    Address group_of(unsigned node) const noexcept {
        constexpr Ip kInBlock = kGroups - 1;
        return {(group.ip & ~kInBlock) | ((group.ip + node) & kInBlock), group.port};
    }

    /// Whether other hosts may hear these nodes, and speak to them: not where all is loop-back.
    /// Where the host's routes decide, they may.
    RMEM_API bool leave_host() const noexcept;

    /// Multicast only: where it leaves and enters by now, as addresses, interfaces and routes come
    /// and go. Asks the host. Throws where there is none.
    RMEM_API Interface interface_now() const;

    /// Bytes of the longest that reaches all nodes in one piece, as far as the host knows the way;
    /// none: it knows none. Asks the host.
    RMEM_API std::optional<std::size_t> longest_datagram() const;

    /// For people: "group 239.1.2.3:7400 on lo (127.0.0.1)", "fan-out to 3 nodes".
    RMEM_API std::string text() const;

    /// From the environment, for a ring of `nodes` nodes.
    RMEM_API static Endpoints read(unsigned nodes);
    /// The same from values given; empty: unset.
    RMEM_API static Endpoints parse(const std::string& group, const std::string& interface,
                                    unsigned nodes);
};

}  // namespace rmem::udp
