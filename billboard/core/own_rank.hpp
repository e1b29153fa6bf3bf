// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What all parts of an endpoint use: this rank's place in the ring, its memory and its board.
///
/// A part is a class template on it, and has a reference to it. Only EndpointCore has it by value,
/// so that the expected cases of sending and receiving find memory and board at fixed places.
/// The board is written to by Peers (connections), Posting and Reassembly, Taking, Views (what is
/// received); the memory's words by the part that has the word's geometry in its header.
/// Thread safety: one thread.

#include "billboard/boards/arrival.hpp"
#include "billboard/boards/layout.hpp"
#include "billboard/core/counters.hpp"
#include "billboard/core/far.hpp"
#include "billboard/endpoint.hpp"
#include "billboard/errors.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/link/seat.hpp"

#include <fmt/format.h>

#include <bitset>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace billboard {

template <class M, template <class> class BoardOf>
struct OwnRank {
    using Memory = M;
    using Board = BoardOf<M>;
    using RankSet = std::bitset<rmem::kMaxRanks>;
    static constexpr bool kIsSimulated = rmem::is_simulated<M>;  ///< there checks cost nothing
    /// Its node may be dropped by the others, or lose its engine.
    static constexpr bool kMayLoseNode = requires(const M& memory) { memory.has_bank(); };

    OwnRank(std::shared_ptr<rmem::Seat<M>> sits, const Settings& set,
            const typename M::Options& options);

    void count(Counter id, std::uint64_t n = 1) noexcept { counters.add(id, n); }
    unsigned after(unsigned rank) const noexcept { return rank + 1 == ranks ? 0 : rank + 1; }
    unsigned before(unsigned rank) const noexcept { return (rank == 0 ? ranks : rank) - 1; }

    /// What a call that does not wait says when there is nothing, or no room.
    [[nodiscard]] int not_now() noexcept {
        memory.give_way();
        return BBP_EAGAIN;
    }
    /// Before a message is posted.
    void look_before_post() {
        if constexpr (rmem::CommitsOnWait<M>) {
            memory.progress_to_post();
        } else {
            memory.progress();
        }
    }
    /// That a message was taken leaves with the answer, if there is one, where a datagram of its
    /// own would cost as much.
    void commit_taken() {
        if constexpr (rmem::CommitsOnWait<M>) {
            memory.commit_on_wait();
        } else {
            memory.commit();
        }
    }
    const std::byte* bytes_of(unsigned s, const Arrival& a) const {
        return a.is_inline ? a.payload
                           : memory.data(geometry.data(s) + a.descriptor.offset, a.length);
    }
    static Part part_of(const Arrival& a) { return a.is_inline ? Part::whole : a.descriptor.part; }
    /// Whether its bytes are there: not, while they are being written or read.
    bool is_filled(unsigned s, const Arrival& a) const {
        const Part part = part_of(a);
        return part != Part::offered &&
               (part != Part::filling || memory.load(geometry.filled(s, a.buffer)) >= a.length);
    }
    void drop(unsigned s, const Arrival& a, Counter why);
    /// Whether this rank reads past the ring, or is read from.
    [[nodiscard]] bool is_far_busy() const noexcept {
        return M::kReplicated && far_uses.count != 0;
    }
    /// A step of a wait; a short one where nothing would end it.
    [[nodiscard]] rmem::Step wait(Deadline deadline) {
        if (is_far_busy()) [[unlikely]]
            return wait_for_far(deadline);
        return memory.wait(deadline);
    }
    /// That they are ranks of the ring, each named once.
    [[nodiscard]] int check_ranks(std::span<const int> named) const;

    std::shared_ptr<rmem::Seat<M>> seat;
    typename M::Membership& member;
    Geometry geometry;
    std::conditional_t<M::kReplicated, M&, M> memory;
    Settings settings;
    unsigned me;
    unsigned ranks;
    unsigned expected;  ///< how many ranks, from 0 on, are the job's
    Board board;
    rmem::Counters& counters;
    std::unique_ptr<rmem::FarMemory> far;  ///< null: all messages go over the ring
    FarUses far_uses;
    FarPatience far_patience;

private:
    [[nodiscard]] rmem::Step wait_for_far(Deadline deadline);
    static decltype(memory) memory_of(rmem::Seat<M>& seat, const typename M::Options& options) {
        if constexpr (M::kReplicated) {
            return seat.memory;
        } else {
            return M(seat.member, options);
        }
    }
};

template <class M, template <class> class BoardOf>
OwnRank<M, BoardOf>::OwnRank(std::shared_ptr<rmem::Seat<M>> sits, const Settings& set,
                             const typename M::Options& options)
    : seat(std::move(sits)),
      member(seat->member),
      geometry(member.ring().config(), set.board),
      memory(memory_of(*seat, options)),
      settings(set),
      me(member.rank()),
      ranks(member.ring().config().ranks),
      expected(settings.await.expected(ranks, me)),
      board(memory, geometry, me),
      counters(member.slot().protocol) {}

template <class M, template <class> class BoardOf>
void OwnRank<M, BoardOf>::drop(unsigned s, const Arrival& a, Counter why) {
    board.take(s, a);
    if (!a.is_inline && a.buffer < kBuffers) board.acknowledge(s, a.buffer);
    count(why);
}

template <class M, template <class> class BoardOf>
rmem::Step OwnRank<M, BoardOf>::wait_for_far(Deadline deadline) {
    const std::int64_t now = memory.now_ns();
    std::int64_t sleep = far_patience.sleep_ns(now);
    if constexpr (kIsSimulated) sleep = std::max<std::int64_t>(sleep, 1);  // else no time passes
    if (sleep == 0 && !deadline.passed(now)) {
        memory.progress();
        memory.give_way();
        return rmem::Step::poll;
    }
    const Deadline look = Deadline::after(now, sleep);
    const rmem::Step step = memory.wait(deadline.at_ns < look.at_ns ? deadline : look);
    return step != rmem::Step::expired || deadline.passed(memory.now_ns()) ? step
                                                                           : rmem::Step::poll;
}

template <class M, template <class> class BoardOf>
int OwnRank<M, BoardOf>::check_ranks(std::span<const int> named) const {
    RankSet seen;
    for (const int rank : named) {
        if (rank < 0 || static_cast<unsigned>(rank) >= ranks) {
            return fail(BBP_ERANK,
                        fmt::format("there is no rank {} in ring '{}', which has ranks 0 to {}",
                                    rank, member.ring().config().name, ranks - 1));
        }
        if (seen[static_cast<unsigned>(rank)]) {
            return fail(BBP_EINVAL,
                        fmt::format("rank {} is named twice; name each receiver once", rank));
        }
        seen[static_cast<unsigned>(rank)] = true;
    }
    return BBP_OK;
}

}  // namespace billboard
