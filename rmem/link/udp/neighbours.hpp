// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The other nodes of this host. Where they run, as their boards say: a datagram is handled by the
/// processor that has sent it, so a thread that takes it there is woken without a call from one
/// processor to another.
///
/// A node of another host, or of another view of /dev/shm, is not known. One that has a new
/// incarnation is looked for again.
/// Thread safety: one user. Progress: the kAskedToLook-th question for an incarnation opens its
/// segment, which takes 0.2 ms, too much for a node that is heard seldom; others are two loads.
/// Trust: a board says an incarnation, which must be the one met, and a number.

#include "rmem/ring/ring.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rmem::udp {

class RMEM_API Neighbours {
public:
    static constexpr unsigned kAskedToLook = 8;

    explicit Neighbours(const Ring& ring);

    /// The processor on which that node, which was heard, has sent last; -1: not known.
    [[nodiscard]] int processor_of(unsigned node) noexcept;

private:
    struct Neighbour {
        std::uint64_t incarnation = 0;  ///< that was met; 0: none
        unsigned asked = 0;             ///< for it, up to kAskedToLook
        std::shared_ptr<Ring> ring;     ///< null: it was not looked for, or is not on this host
    };

    void look_for(unsigned node, Neighbour& neighbour) const noexcept;

    const Ring& ring_;
    std::vector<Neighbour> neighbours_;  ///< of each node
};

/// How many they are: for a rank that waits (rmem/ring/waiting/waiting.hpp).
class RMEM_API HostCompany {
public:
    using Rings = std::map<std::string, std::shared_ptr<const Ring>>;  ///< by their segments

    explicit HostCompany(const Ring& ring) : ring_(ring) {}

    /// When members have come or gone, but not for each of a crowd: whether there are more ranks
    /// here than processors.
    void look(Waiter& waiter, std::int64_t now) noexcept;
    bool has_looked() const noexcept { return has_looked_; }
    /// A rank that leaves looks for nobody any more.
    void end() noexcept { next_ns_ = kNever; }

private:
    const Ring& ring_;
    std::uint64_t members_seen_ = 0;
    std::int64_t next_ns_ = 0;
    bool has_looked_ = false;
    Rings rings_;  ///< kept mapped: to map one takes 0.2 ms
};

}  // namespace rmem::udp
