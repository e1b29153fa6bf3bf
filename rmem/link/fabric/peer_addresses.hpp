// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Where an endpoint's other nodes are, as the provider's vector has them: by the settings, or
/// found in the directory in which each publishes itself (rmem/link/fabric/bootstrap.hpp).
///
/// Thread safety: the endpoint's. Progress: find() looks into the directory, which may be one of
/// the network. Errors: the constructor throws `Error`; later nothing throws.
/// Units: nanoseconds.

#include "rmem/base/time.hpp"
#include "rmem/link/fabric/bootstrap.hpp"
#include "rmem/link/fabric/make_endpoint.hpp"
#include "rmem/link/fabric/outbound.hpp"

#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace rmem::fabric {

class PeerAddresses {
public:
    static constexpr std::int64_t kFindNs = 20'000'000;  ///< between looks into the directory
    static constexpr std::int64_t kLeastFindNs = 2'000'000;
    static constexpr std::int64_t kKeepNs = 500'000'000;  ///< for what is known, and for its own

    /// Publishes the endpoint's own. `vector`, `endpoint` and `outbound` outlive it; the latter is
    /// told of nodes that have moved, and knows which are not reached.
    PeerAddresses(const EndpointSettings& settings, const fi_info& info, fid_av& vector,
                  fid_ep& endpoint, Outbound& outbound);
    /// The own one is not there any more.
    void withdraw() noexcept;

    /// FI_ADDR_NOTAVAIL: it is not known.
    fi_addr_t operator[](unsigned peer) const noexcept { return peers_[peer]; }
    /// Where they are of IPv4.
    const std::vector<sockaddr_in>& addresses() const noexcept { return addresses_; }
    sockaddr_in own_address() const noexcept;
    /// Counts changes of where nodes are, or which process speaks.
    std::uint64_t moves() const noexcept { return moves_; }

    /// Looks for those that are not reached often, for the others now and then.
    void find(std::int64_t now) noexcept;
    std::int64_t due_ns() const noexcept { return find_next_ns_; }
    /// In a new incarnation a node may be elsewhere.
    void note_heard(unsigned peer, std::uint64_t incarnation) noexcept;

private:
    void set_address(unsigned peer, const Bootstrap::Name& name);

    const unsigned node_, nodes_;
    fid_av& vector_;
    Outbound& outbound_;
    std::optional<Bootstrap> bootstrap_;
    Bootstrap::Name own_name_;
    std::vector<Bootstrap::Name> names_;  ///< of each peer
    std::vector<sockaddr_in> addresses_;  ///< the same
    std::uint64_t moves_ = 0;             ///< changes of names_ and of heard_
    std::vector<fi_addr_t> peers_;
    std::vector<std::uint64_t> heard_;  ///< the incarnation of each peer that spoke last
    std::vector<bool> may_have_moved_;  ///< since its name was read
    std::int64_t found_ns_ = INT64_MIN / 2;
    std::int64_t find_next_ns_ = kNever, keep_next_ns_ = 0;
};

}  // namespace rmem::fabric
