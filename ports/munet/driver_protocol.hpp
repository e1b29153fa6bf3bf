// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a program and its node's daemon say to each other over a Unix socket (SOCK_SEQPACKET): the
/// ioctls of the paper's driver.
///
/// The program sends one Request and gets one Reply; a granted one brings the descriptor of the
/// endpoint's memory with it (SCM_RIGHTS). From then on a packet of one byte wakes the daemon, and
/// the end of the connection, by whatever cause, destroys the endpoint. There is no request that
/// names an endpoint, so no user can ask for another's.

#include "ports/munet/endpoint_memory.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <optional>
#include <string>

namespace ports::munet {

inline constexpr std::uint32_t kProtocolMagic = 0x4d554e31;  // "MUN1"
inline constexpr char kBell = 'w';

struct Request {
    std::uint32_t magic = kProtocolMagic;
    std::uint32_t version = 1;  ///< of this file and of endpoint_memory.hpp
    std::uint64_t send_bytes = 0;
    std::uint64_t receive_bytes = 0;
};

struct Reply {
    std::uint32_t magic = kProtocolMagic;
    std::int32_t error = 0;  ///< errno, 0: granted
    std::uint32_t node = 0;
    std::uint32_t endpoint = 0;
    Geometry geometry;
    std::uint32_t nodes = 1;
    std::uint64_t limit = 0;  ///< what the limit is that was met
};

/// /run/rmem, which root makes, so that the owner of a socket there is root or was let in by it.
inline constexpr const char* kRuntimeFolder = "/run/rmem";

/// RMEM_MUNET, [user@][path]: where the daemon listens, and whose it may be; a path that has an @
/// before its first slash is written as ./path.
struct SocketSetting {
    std::string user, path;
};
[[nodiscard]] RMEM_API SocketSetting socket_setting();

/// Where a node's daemon listens: at `path`, or where that is empty at a socket in /run/rmem with
/// the name of the ring (RMEM_RING, or without it one that is the same for all users) and the node;
/// in the user's own runtime directory where that is set and there is no /run/rmem, which root
/// makes.
[[nodiscard]] RMEM_API std::string socket_path(const std::string& path,
                                               const std::optional<std::string>& ring,
                                               unsigned node);

/// False when the path is too long for a socket.
[[nodiscard]] inline bool make_address(const std::string& path, sockaddr_un* address) {
    *address = {};
    address->sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address->sun_path) return false;
    path.copy(address->sun_path, path.size());
    return true;
}

}  // namespace ports::munet
