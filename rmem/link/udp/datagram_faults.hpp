// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Faults of the network on purpose (RMEM_FAULTS, rmem/wire/faults.hpp), at the node that receives:
/// it stands between the socket and the reader of datagrams.
///
///     while (auto datagram = faults.next(now); !datagram.empty()) core.on_datagram(datagram, now);
///     for (auto datagram : what the socket has)
///         if (faults.pass(datagram, now)) core.on_datagram(datagram, now);
///     …sleep until the socket has something or faults.due_ns()…
///
/// A datagram meets all faults of the plan that are for this node, its sender and the time, in the
/// plan's order, and each of them draws for it: lost if one of them drops it; else times by which
/// it is held add up, and each duplicate is one more copy. The sender is the origin that the header
/// names; what has no header of this link, or names no node, meets only the faults that are from
/// all nodes. The node's own datagrams, where multicast brings them back, meet none, and empty ones
/// neither.
///
/// Invariants: held datagrams come in the order of their times, then in that of their arrival; in
///   all they are at most kMaxHeld, and one more is dropped and counted (`overflowed`).
/// Reproducible: equal plans and equal datagrams at equal times give the same.
/// Thread safety: one thread at a time. Units: nanoseconds of any clock that does not go backwards,
/// the same one in all calls. Errors: none, except std::bad_alloc when there is no memory
/// to hold a datagram.

#include "rmem/base/time.hpp"
#include "rmem/wire/faults.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace rmem::udp {

class RMEM_API DatagramFaults {
public:
    static constexpr std::size_t kMaxHeld = 4096;
    struct Counts {
        std::array<std::uint64_t, kDatagramFaultKinds> hits{};  ///< datagrams that met this kind
        std::uint64_t overflowed = 0;  ///< copies dropped because too many are held

        std::uint64_t of(DatagramFault::Kind kind) const noexcept {
            return hits[static_cast<std::size_t>(kind)];
        }
        /// All faults done: for `faults_injected`.
        std::uint64_t injected() const noexcept;
    };

    /// `start_ns`: when this node started, what the plan's times count from.
    DatagramFaults(const FaultPlan& plan, std::uint32_t node, std::int64_t start_ns);

    /// No fault is for this node: pass() always says true.
    bool empty() const noexcept { return faults_.empty(); }

    /// True: it goes on now, perhaps with a bit of it flipped. False: it is lost, or comes by
    /// next(). What next() has is to be taken first, or it is overtaken.
    [[nodiscard]] bool pass(std::span<std::byte> datagram, std::int64_t now);

    /// A datagram whose time has come, or nothing. It stays until the next call of next().
    std::span<const std::byte> next(std::int64_t now);
    /// When next() has something; kNever: nothing is held.
    std::int64_t due_ns() const noexcept;

    const Counts& counts() const noexcept { return counts_; }

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    struct Active {
        DatagramFault fault;
        FaultChooser chooser;
    };
    /// What becomes of one datagram.
    struct Verdict {
        bool lost = false;
        bool corrupt = false;
        std::int64_t held_ns = 0;
    };

    bool concerns(const DatagramFault& fault, std::uint32_t origin,
                  std::int64_t now) const noexcept;
    Verdict judge(std::span<const std::byte> datagram, std::int64_t now);
    void hold(std::span<const std::byte> datagram, std::int64_t due);

    std::vector<Active> faults_;
    std::uint32_t node_;
    std::int64_t start_ns_;
    std::uint64_t random_;
    std::vector<std::int64_t> copies_;  // judge()'s: how much later than the first each comes
    std::uint64_t arrivals_ = 0;
    std::map<std::pair<std::int64_t, std::uint64_t>, std::vector<std::byte>> held_;  // due, arrival
    std::vector<std::byte> given_;  // what next() gave last
    Counts counts_;
};

}  // namespace rmem::udp
