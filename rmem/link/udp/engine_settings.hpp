// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What an engine of link udp or fabric is told: by the environment, or by tests.
///
/// RMEM_GROUP, RMEM_INTERFACE   where the nodes hear each other (rmem/link/carrier/endpoints.hpp)
///                              and, on link fabric, rmem/link/fabric/settings.hpp
/// RMEM_KEY_FILE                the ring's key (rmem/link/udp/key_file.hpp). Nodes that other hosts
///                              may hear need one,
/// RMEM_INSECURE                unless this is 1: then everybody on the network may write into the
///                              ring
/// RMEM_PAYLOAD                 bytes of the longest datagram that reaches this node; unset: as the
///                              MTU on the way to the others says; on link fabric the longest
/// RMEM_DEAD_TIMEOUT            a node without a word for this time counts as dead
/// RMEM_FAULTS                  what is to go wrong (rmem/wire/faults.hpp)
///
/// Errors: `Error(bad_environment)`, bad_key and bad_fault; the sentence names the variable and
/// what to do.

#include "rmem/link/carrier/carrier.hpp"
#include "rmem/link/carrier/endpoints.hpp"
#include "rmem/link/fabric/settings.hpp"
#include "rmem/link/udp/key_file.hpp"
#include "rmem/link/udp/protocol/core.hpp"
#include "rmem/ring/config.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/wire/faults.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace rmem::udp {

struct EngineSettings {
    Endpoints endpoints;                     ///< link udp
    std::optional<fabric::Settings> fabric;  ///< link fabric
    std::optional<MasterKey> key;
    std::size_t payload = kDefaultPayload;  ///< of the longest datagram that reaches this node
    std::int64_t dead_ns = kDeadNs;
    FaultPlan faults;

    /// Whether other hosts may hear this node, and speak to it.
    bool leave_host() const { return fabric ? fabric->leave_host() : endpoints.leave_host(); }
    /// For people: how the nodes hear each other.
    std::string way() const { return fabric ? fabric->text() : endpoints.text(); }

    RMEM_API static EngineSettings read(const RingConfig& config);
    /// What carries datagrams between the ring's node and the others.
    [[nodiscard]] RMEM_API std::unique_ptr<Carrier> make_carrier(const Ring& ring) const;
    /// What a core of that node is told that begins now; but not the key.
    [[nodiscard]] CoreConfig core_config(const Ring& ring, const Carrier& carrier) const;
};

/// RMEM_PAYLOAD, or what the way to the other nodes passes on in one piece.
RMEM_API std::size_t read_payload(const Endpoints& endpoints);

/// The ring's name and what all its nodes must agree on, for people: "ring 'wk': 2 nodes, …".
RMEM_API std::string about(const RingConfig& config);

/// What datagrams of a ring are told by from those of others: its name and all that its nodes must
/// agree on.
RMEM_API std::uint64_t ring_id(const RingConfig& config) noexcept;

}  // namespace rmem::udp
