// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the environment says of a node's way to the others on link fabric.
///
/// RMEM_GROUP      where the nodes find each other: the address of each node in order
///                 ("10.0.0.1:7400,10.0.0.2:7400"), a file with one of these on each line ("#"
///                 begins a remark), or a directory that all of them see, where each leaves its own
///                 address (rmem/link/fabric/bootstrap.hpp); unset: the nodes are all of this host
///                 and this user, and meet in kOwnDirectory
/// RMEM_PROVIDER   libfabric's provider: "net", "verbs;ofi_rxm", "shm", …; unset: the first that
///                 libfabric has for these addresses, over TCP the preferred one
///                 (rmem/link/fabric/provider.hpp)
/// RMEM_INTERFACE  with a directory: the interface, by name, address or network; unset: the
///                 provider's first
/// RMEM_TOPOLOGY   a file that says which nodes are near each other
///                 (rmem/link/fabric/topology.hpp)
///
/// Errors: `Error(bad_environment)` with a sentence that names the variable, what was found, what
/// to do.

#include "rmem/error.hpp"
#include "rmem/link/carrier/endpoints.hpp"
#include "rmem/link/fabric/topology.hpp"

#include <optional>
#include <string>
#include <vector>

namespace rmem::fabric {

/// With the user's number.
inline constexpr const char* kOwnDirectory = "/tmp/rmem-fabric-";

/// What ofi_rxm sends at once, with a mark before it: what is longer, only when the other end has
/// asked for it. A node's datagrams are no longer, unless RMEM_PAYLOAD says so.
inline constexpr std::size_t kEagerBytes = 16'376;

struct Settings {
    std::string provider;              ///< empty: libfabric's first
    std::vector<udp::Address> nodes;   ///< where each is; empty: the directory says
    std::string directory;             ///< empty: there is a list
    std::string interface;             ///< with a directory; empty: the provider's first
    std::optional<Topology> topology;  ///< none: each node sends to each

    /// Whether other hosts may hear these nodes, and speak to them.
    RMEM_API bool leave_host() const;
    /// For people: "4 nodes", "directory '/shared/rig'".
    RMEM_API std::string text() const;

    RMEM_API static Settings read(unsigned nodes);
};

}  // namespace rmem::fabric
