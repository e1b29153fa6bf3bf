// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node's endpoint on a fabric, and a rank's way past the ring, for those who need not know
/// libfabric (rmem/link/fabric/endpoint.hpp, fabric_memory.hpp).
///
/// Errors: Endpoint's; `Error(no_fabric)` also where this library was built without the link.

#include "rmem/link/carrier/carrier.hpp"
#include "rmem/link/fabric/settings.hpp"
#include "rmem/link/far_memory.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rmem::fabric {

struct EndpointSettings {
    Settings fabric;
    std::string ring;    ///< its name
    unsigned node = 0;   ///< this node
    unsigned nodes = 1;  ///< of the ring
};
RMEM_API std::unique_ptr<udp::Carrier> make_endpoint(const EndpointSettings& settings);

/// A network past the ring.
struct FarWay {
    std::string provider;  ///< libfabric's name of it; empty: a way over TCP
    std::string ip;        ///< of this host, where others reach it; empty: the provider's first
};
/// Of a rank whose long messages go there.
struct FarSettings {
    std::function<std::optional<FarWay>()> find_way;  ///< nothing: they go over the ring
    unsigned ranks = 1;                               ///< of the ring
    std::function<bool(unsigned rank)> is_elsewhere;  ///< whether it is of another node, and there
    std::function<void(const std::string& sentence)> told;
};
/// Null: this library was built without libfabric.
std::unique_ptr<FarMemory> make_far_memory(FarSettings settings);

/// What this host offers, for people.
struct Offer {
    std::string provider, fabric, domain;
    std::string lack;  ///< to carry a ring; empty: nothing
    std::size_t inject_bytes = 0;
};
/// Each provider, fabric and domain once, in libfabric's order; none: libfabric has no provider of
/// that name. Throws Error(no_fabric) where there is no libfabric.
RMEM_API std::vector<Offer> offers(const std::string& provider = "");

}  // namespace rmem::fabric
