// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node's endpoint on a fabric, for those who need not know libfabric
/// (rmem/link/fabric/endpoint.hpp).
///
/// Errors: Endpoint's; `Error(no_fabric)` also where this library was built without the link.

#include "rmem/link/fabric/settings.hpp"
#include "rmem/link/udp/carrier.hpp"

#include <memory>
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
