// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The connections of a provider over TCP, so that a thread can sleep until something comes.
///
/// libfabric tells of that by a descriptor, too, but then looks at each connection by epoll, which
/// makes every look and every packet slower (docs/design/fabric-link.md). Without it nothing says
/// which sockets are the provider's: they are found among the process's descriptors, as those whose
/// own port is the endpoint's, or whose other end is the address of a node.
///
/// They are looked for until kSettleNs after the last change of what is known of the other nodes:
/// until then, and where none is found, a sleeper must look by itself now and then.
///
/// Thread safety: one thread at a time; others may wait for the epoll descriptor.
/// Progress: no call waits. Errors: what cannot be looked at is no connection.
/// Units: nanoseconds. Source: epoll_ctl(2), getpeername(2), proc(5).

#include "rmem/error.hpp"

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace rmem::fabric {

class RMEM_API Connections {
public:
    static constexpr std::int64_t kSettleNs = 200'000'000;
    static constexpr std::int64_t kFindNs = 5'000'000;  ///< between looks, at least

    /// `epoll` becomes readable when one of them is, or has ended; it stays the caller's.
    explicit Connections(int epoll) noexcept : epoll_(epoll) {}

    /// Whether all that are likely to be there wake a sleeper. `changes` counts those of what is
    /// known; `own` is the endpoint's address, `peers` those of the others.
    [[nodiscard]] bool are_watched(std::uint64_t changes, const sockaddr_in& own,
                                   std::span<const sockaddr_in> peers, std::int64_t now) noexcept;
    std::size_t count() const noexcept { return count_; }

private:
    void find(const sockaddr_in& own, std::span<const sockaddr_in> peers);

    const int epoll_;
    std::size_t count_ = 0;
    std::uint64_t changes_ = UINT64_MAX;
    std::int64_t changed_ns_ = 0, found_ns_ = INT64_MIN / 2;
};

}  // namespace rmem::fabric
