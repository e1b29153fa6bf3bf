// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The relay's way to other nodes: frames as messages of class munet, of one rank of each node to
/// another.
///
/// A node's daemon is the first rank of the node. Nothing here waits: what the billboard does not
/// take at once is full.
/// Thread safety: one thread.

#include "ports/common/port_endpoint.hpp"
#include "ports/munet/relay.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace ports::munet {

class RMEM_API Network {
public:
    static constexpr std::int64_t kCheckNs =
        50'000'000;  ///< between looks at which of the others are alive

    /// The endpoint outlives it.
    Network(billboard::Endpoint& endpoint, unsigned nodes);

    /// The rank by which a node of such a ring takes part.
    [[nodiscard]] static unsigned rank_of(unsigned node, unsigned nodes, unsigned ranks) noexcept;
    unsigned nodes() const noexcept { return nodes_; }
    /// Bytes of a long message in a frame: so few that what waits for a node that stands still, all
    /// slots of its FIFO, leaves most of the partition to the others.
    [[nodiscard]] std::size_t chunk() const noexcept;

    [[nodiscard]] Edge::Sent send(unsigned node, std::span<const std::byte> head,
                                  std::span<const std::byte> data);
    /// Hands frames that have come to the relay, a bounded number. Whether there were any.
    [[nodiscard]] bool deliver_to(Relay& relay);
    /// Tells the relay of nodes that are not there any more, of those it deals with.
    void check(Relay& relay);
    /// The others have dropped this node, so its rank is over; a new one has to be opened.
    [[nodiscard]] bool is_over();

private:
    static constexpr unsigned kFramesPerLook = 32;

    const PortEndpoint<billboard::Class::munet> endpoint_;
    unsigned nodes_;
};

}  // namespace ports::munet
