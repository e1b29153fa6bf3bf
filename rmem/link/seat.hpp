// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A process's part of its rank: the membership, and, where each node has a bank of its own, the
/// link's memory, whose log has one writer.
///
/// A process may use the memory (Node::open) and send messages (bbp_init, the ports) as one rank.
/// Both sit in one seat then: whichever opens first takes it, the other joins it there, and the
/// rank leaves the ring when both have let go.
/// Thread safety: take() from any thread; the seat, between those who share it, is one thread's at
/// a time.
/// Errors: those of Membership and M.

#include "rmem/base/relaxed.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/ring/ring.hpp"

#include <atomic>
#include <memory>
#include <utility>

namespace rmem {

/// Users of the seat: one of each at most.
enum class SeatUse { node, messages };

/// Throws Error(invalid_argument).
[[noreturn]] RMEM_API void refuse_threads();

/// Of a link where a store is the transfer: each use has a memory of its own, which costs and keeps
/// nothing.
template <class M>
struct Seat {
    Seat(std::shared_ptr<typename M::Ring> ring, Member who, const typename M::Options&)
        : member(std::move(ring), who) {}

    typename M::Membership member;
    std::atomic<bool> is_used[2] = {};  ///< by SeatUse
};

template <class M>
requires M::kReplicated struct Seat<M> {
    Seat(std::shared_ptr<typename M::Ring> ring, Member who, const typename M::Options& options)
        : member(std::move(ring), who), memory(member, options) {}

    /// A library's thread takes messages in while the program is elsewhere: in the node's calls,
    /// for instance.
    void set_progress_thread(bool on) {
        // relaxed is enough: a use that begins at the same time looks at has_progress_thread
        if (on &&
            is_used[static_cast<std::size_t>(SeatUse::node)].load(std::memory_order_relaxed)) {
            refuse_threads();
        }
        has_progress_thread.set(on);
    }

    typename M::Membership member;
    std::atomic<bool> is_used[2] = {};
    Hint<bool> has_progress_thread = false;
    M memory;  // last: it uses the membership
};

/// The seats of this process, by ring and rank. A forked child has none.
RMEM_API std::shared_ptr<void> find_seat(const Ring& ring, unsigned rank);
RMEM_API void show_seat(const Ring& ring, unsigned rank, const std::shared_ptr<void>& seat);

/// This process's seat at the rank. A caller that takes one for a use that it has already gets what
/// Membership says to that.
template <class M>
std::shared_ptr<Seat<M>> take_seat(std::shared_ptr<Ring> ring, Member member,
                                   const typename M::Options& options, SeatUse use) {
    const auto index = static_cast<std::size_t>(use);
    const Ring& key = *ring;
    auto seat = std::static_pointer_cast<Seat<M>>(find_seat(key, member.rank));
    if constexpr (M::kReplicated) {
        if (seat && use == SeatUse::node && seat->has_progress_thread.get()) refuse_threads();
    }
    // (1) - this acquire-load synchronizes-with the release-store (2)
    if (!seat || seat->is_used[index].load(std::memory_order_acquire)) {
        seat = std::make_shared<Seat<M>>(std::move(ring), member, options);
        show_seat(seat->member.ring(), seat->member.rank(), seat);
    }
    // relaxed is enough: it tells others only to stay away
    seat->is_used[index].store(true, std::memory_order_relaxed);
    // Until this use lets go.
    return {seat.get(), [seat, index](Seat<M>*) mutable {
                // (2) - this release-store synchronizes-with the acquire-load (1)
                seat->is_used[index].store(false, std::memory_order_release);
                seat.reset();
            }};
}

/// The system regions of a ring that this process makes for its node, so that its messages find
/// theirs there. Nothing: it has no library that sends any.
using RegionsOf = RingConfig (*)(const Environment& environment);
RMEM_API void set_system_regions(RegionsOf regions) noexcept;
/// As `environment` says, with these.
RMEM_API RingConfig config_to_make(const Environment& environment);

}  // namespace rmem
