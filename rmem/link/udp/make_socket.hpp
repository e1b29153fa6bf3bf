// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How a node's socket is set up (rmem/link/udp/socket.hpp), once, and again where the network has
/// changed.
///
/// Thread safety: distinct sockets are independent. Errors: `Error`, whose sentence names the
/// variable to change.

#include "rmem/base/descriptor.hpp"
#include "rmem/link/carrier/endpoints.hpp"

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>

namespace rmem::udp {

/// Multicast datagrams stay on the own network.
inline constexpr unsigned kDefaultHops = 1;
/// What is asked for. The host grants at most net.core.rmem_max, and doubles it.
inline constexpr std::size_t kReceiveBufferBytes = std::size_t{8} << 20;
/// A buffer that holds this number of 1472 bytes is not called small: they fill a gigabit's line
/// for 12 ms, and a receiver may be away for that time.
inline constexpr std::uint32_t kEnoughDatagrams = 1024;

struct SocketSettings {
    Endpoints endpoints;
    unsigned node = 0;             ///< this node
    unsigned nodes = 1;            ///< of the ring
    unsigned hops = kDefaultHops;  ///< routers that pass multicast on, plus one
    std::size_t receive_buffer_bytes = kReceiveBufferBytes;
    bool gso = true;  ///< off: for tests that want the host to be one that knows none
};

/// Bound, and in the others' groups; `joined`: where these are, if there are any.
[[nodiscard]] Descriptor make_socket(const SocketSettings& settings, Interface& joined);
/// Joins the others' groups there, and speaks there if the settings name an interface. Where those
/// of before are left is no error: they may have gone with their interface.
void use_groups(int fd, const SocketSettings& settings, const Interface& there,
                const Interface& before);
/// Bytes of the receive buffer.
std::size_t granted_buffer(int fd);
/// To be told by the host of interfaces, addresses and routes that come and go. Where it tells
/// nobody, what is refused says it later.
[[nodiscard]] Descriptor hear_changes() noexcept;
sockaddr_in to_socket_address(const Address& address);

}  // namespace rmem::udp
