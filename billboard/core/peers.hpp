// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Who is there: joining, deaths and returns. Part of EndpointCore
/// (billboard/core/endpoint_core.hpp).
///
/// Two ranks a and b connect by three kinds of words, each with one writer:
///   incarnation(a)      a counts its lives
///   departed(a)         the life in which a left in good order
///   confirmed(a, b)     by b, in a's partition: the life of a that b receives from; or while b
///                       posts nothing to a, kFresh (b has just joined) or noticed(life of a), the
///                       life that b has just met, or whose end it has seen
/// b confirms a once it has taken over what a's former life had posted, and only when nothing can
/// come any more that a posted to b's former life: confirmed(b, a) is b's present life or says that
/// a has noticed it, and whatever a wrote before is there, too. To a life before which
/// none was announced nothing was posted, so kFresh will do; to a later one kFresh may be older
/// than what is on its way. a posts once confirmed.
///
/// Nobody talks to a new life by name before it was told of the former one's end: posting to it
/// opens only then, and that end waits in private memory behind the former life's messages and
/// before the new one's. BBP_ANY passes by it. Not confirming the new life until then would be
/// simpler, but would leave it without buffers (I3) until the last rank has named it, perhaps for
/// ever.

#include "billboard/core/endpoint_core.hpp"
#include "billboard/core/join_notice.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/marks.hpp"
#include "rmem/ring/node_board.hpp"

#include <fmt/format.h>

namespace billboard {

inline constexpr std::uint32_t kFresh = 0xffffffff;
constexpr std::uint32_t noticed(std::uint32_t incarnation) {
    return incarnation | 0x80000000;
}
inline constexpr unsigned kPeersPerCheck = 8;  ///< liveness costs a system call each

template <class M, template <class> class BoardOf>
EndpointCore<M, BoardOf>::EndpointCore(std::shared_ptr<rmem::Seat<M>> seat,
                                       const Settings& settings, Deadline deadline,
                                       const typename M::Options& options)
    : seat_(std::move(seat)),
      member_(seat_->member),
      geometry_(member_.ring().config(), settings.board),
      memory_(memory_of(*seat_, options)),
      settings_(settings),
      me_(member_.rank()),
      ranks_(member_.ring().config().ranks),
      board_(memory_, geometry_, me_),
      buffers_(geometry_.data_bytes()),
      peers_(ranks_),
      counters_(member_.slot().protocol),
      barrier_counts_(1 + kBarrierIds, kFirstCount),
      barrier_pending_(1 + kBarrierIds, false),
      barrier_members_(kBarrierIds) {
    for (unsigned r = 0; r < ranks_; ++r) everybody_.push_back(static_cast<int>(r));
    join(deadline);
}

template <class M, template <class> class BoardOf>
EndpointCore<M, BoardOf>::~EndpointCore() {
    leave();
}

template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::join(Deadline deadline) {
    // While the process keeps the rank for its node, messages may begin again.
    const std::uint32_t former = memory_.load(geometry_.incarnation(me_));
    const std::uint32_t incarnation = incarnation_ = std::max(member_.incarnation(), former + 1);
    is_first_ = former == 0;
    for (unsigned s = 0; s < ranks_; ++s) {
        if (s != me_) memory_.post_word(geometry_.confirmed(s, me_), kFresh);
    }
    for (unsigned i = 0; i < kJoinedGroups; ++i) memory_.post_word(geometry_.group_hash(me_, i), 0);
    // A returning rank resumes from the others' count; otherwise they would wait for it forever. A
    // rank that never joined has no count: its words are 0, which is also what counts come to by
    // wrapping.
    for (std::size_t i = 0; i < barrier_counts_.size(); ++i) {
        for (unsigned s = 0; incarnation > 1 && s < ranks_; ++s) {
            if (memory_.load(geometry_.incarnation(s)) == 0) continue;
            const std::uint32_t theirs = memory_.load(barrier_word(s, i));
            if (static_cast<std::int32_t>(theirs - barrier_counts_[i]) > 0) {
                barrier_counts_[i] = theirs;
            }
        }
        memory_.post_word(barrier_word(me_, i), barrier_counts_[i]);
    }
    RMEM_MARK("join.words-written");
    memory_.post_word(geometry_.incarnation(me_), incarnation);
    memory_.commit();
    peers_[me_].incarnation = incarnation;
    connect(me_);
    data_open_ = incarnation == 1;
    const auto missing = [this] {
        std::string ranks;
        for (unsigned s = 0; s < ranks_; ++s) {
            if (!peers_[s].gone && !peers_[s].tx_open) ranks += fmt::format(" {}", s);
        }
        return ranks;
    };
    JoinNotice notice(rmem::now_ns());
    const int result = wait_for(deadline, [&]() -> int {
        if constexpr (requires { memory_.check_epoch(); }) memory_.check_epoch();
        // Whether they live is looked at now and then, by wait_for: of many ranks each asks after
        // many.
        for (unsigned s = 0; s < ranks_; ++s) see(s);
        if (!settings_.awaits_others || all_joined()) return BBP_OK;
        if (notice.is_due(rmem::now_ns()))
            notice.tell(me_, member_.ring().config().name, missing());
        return BBP_EAGAIN;
    });
    if (result == BBP_OK) return;
    std::string heard;  // of others that the node refuses
    if constexpr (requires { member_.ring().board().notice; }) {
        if (member_.ring().config().is_remote()) heard = member_.ring().board().notice.text();
    }
    throw rmem::Error(
        rmem::Errc::timed_out,
        fmt::format("rank {} of ring '{}' waited for ranks{} of {}, which have not come; {}", me_,
                    member_.ring().config().name, missing(), ranks_,
                    heard.empty() ? "start them too, with the same RMEM_RING, or allow more time "
                                    "(RMEM_JOIN_TIMEOUT)"
                                  : heard));
}

/// All have been seen; and in a rank's first life, all have opened (later ones open as they
/// notice).
template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::all_joined() const {
    for (const Peer& p : peers_) {
        if (p.gone) continue;
        if (p.incarnation == 0) return false;
        if (incarnation_ == 1 && !p.tx_open && !p.peer_due) return false;
    }
    return true;
}

/// Looks at what s says of itself, and takes the next step of the connection. Whether it may be
/// dead.
template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::see(unsigned s) {
    Peer& p = peers_[s];
    if (s == me_) return false;
    if (incarnation_is_over()) {
        if (!p.gone) mark_gone(s, Counter::peers_dead);
        return false;
    }
    const std::uint32_t incarnation = memory_.load(geometry_.incarnation(s));
    if (incarnation == 0) return false;
    if (incarnation != p.incarnation) {
        meet(s, incarnation);
        return false;
    }
    if (p.gone) return false;
    if (!p.rx_open || !p.tx_open) connect(s);
    if (!has_departed(s)) return true;
    mark_gone(s, Counter::peers_left);
    return false;
}

/// The same, and whether it lives.
template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::refresh(unsigned s) {
    if (!see(s) || memory_.is_alive(s)) return;
    mark_gone(s, why_gone(s));  // it may have left in good order between the two looks
}

/// Whether this rank has lost its node. The bank may be a later life's, in which nobody knows of
/// it: all are dead to it, and come back to an endpoint that opens anew.
template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::incarnation_is_over() const {
    if constexpr (kMayLoseNode) return memory_.is_over();
    return false;
}

/// s has a life that this rank has not seen yet.
template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::meet(unsigned s, std::uint32_t incarnation) {
    Peer& p = peers_[s];
    if (p.incarnation != 0) {
        if (!p.gone) mark_gone(s, why_gone(s));
        if (p.views != 0) return;  // its former data is still being read: (I2) later
        take_over(s);
        count(Counter::peers_returned);
        if (p.peer_due) aside_.push_end(s);
    }
    p.incarnation = incarnation;
    p.gone = p.rx_open = p.tx_open = false;
    connect(s);
    if (p.rx_open || incarnation == 1) return;
    memory_.post_word(geometry_.confirmed(s, me_), noticed(incarnation));
    memory_.commit();
    memory_.notify(s);
}

template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::connect(unsigned s) {
    Peer& p = peers_[s];
    const std::uint32_t mine = incarnation_;
    const std::uint32_t epoch = mine + p.incarnation;
    const std::uint32_t theirs = s == me_ ? mine : memory_.load(geometry_.confirmed(me_, s));
    // It may be the word of a life that began since s's was read, and must not count as the
    // former's. Each life writes its number first, so if it is, the number has changed.
    if (s != me_ && memory_.load(geometry_.incarnation(s)) != p.incarnation) return;
    const bool is_quiet =
        theirs == mine || theirs == noticed(mine) || (theirs == kFresh && is_first_);
    if (!p.rx_open && is_quiet) {
        board_.open_rx(s, epoch);
        RMEM_MARK("connect.receiving-open");
        memory_.post_word(geometry_.confirmed(s, me_), p.incarnation);
        memory_.commit();
        memory_.notify(s);
        p.rx_open = true;
    }
    if (!p.tx_open && p.rx_open && theirs == mine && !p.peer_due) {
        board_.open_tx(s, epoch);
        RMEM_MARK("connect.sending-open");
        p.tx_open = true;
        memory_.commit();
    }
}

/// Whether the life of s that this rank knows has left in good order.
template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::has_departed(unsigned s) const {
    return memory_.load(geometry_.departed(s)) == peers_[s].incarnation;
}

template <class M, template <class> class BoardOf>
Counter EndpointCore<M, BoardOf>::why_gone(unsigned s) const {
    return has_departed(s) ? Counter::peers_left : Counter::peers_dead;
}

/// Nothing more comes from s's present life. What it has posted stays to be received.
template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::mark_gone(unsigned s, Counter why) {
    Peer& p = peers_[s];
    p.gone = true;
    p.left = why == Counter::peers_left;
    p.peer_due = true;
    p.tx_open = false;
    set_abort_due(s, false);
    board_.close(s);
    count(why);
    // It may live, where the network is cut: this word comes to it before anything else that is put
    // where its messages are.
    if constexpr (kMayLoseNode)
        memory_.post_word(geometry_.confirmed(s, me_), noticed(p.incarnation));
}

template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::is_given_up_by(unsigned s) const noexcept {
    // While it is not open, the word may be of a new life that has met this rank, and has posted
    // nothing yet.
    return s != me_ && peers_[s].tx_open &&
           memory_.load(geometry_.confirmed(me_, s)) == noticed(incarnation_);
}

template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::give_up(unsigned s) {
    if (!peers_[s].gone) mark_gone(s, Counter::peers_dead);
    stop_gathering(peers_[s]);
    close_incarnation(s);
}

/// Takes nothing of that life of s any more: where the network was cut, something may still come.
template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::close_incarnation(unsigned s) {
    board_.close_rx(s);
    peers_[s].rx_open = false;
}

/// Tells that s has gone, and takes nothing of that life any more.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::end_incarnation(unsigned s) {
    close_incarnation(s);
    return tell_gone(s);
}

/// Moves what s's former life had posted to private memory, before its words mean something else.
/// The dead post no more than they have buffers or slots; who goes on posting is not what it says
/// it is.
template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::take_over(unsigned s) {
    Peer& p = peers_[s];
    Arrival a;
    for (unsigned looks = kMostLooks; looks > 0 && p.rx_open && board_.peek(s, a); --looks) {
        if (a.corrupt) {
            drop(s, a, Counter::corrupt);
        } else if (!a.is_inline && a.descriptor.part == Part::filling && !is_filled(s, a)) {
            drop(s, a, Counter::halves_dropped);
        } else if (!set_aside(s, a)) {
            drop(s, a, Counter::halves_dropped);
        }
        RMEM_MARK("return.one-taken-over");
    }
    board_.close_rx(s);
    RMEM_MARK("return.taken-over");
    p.rx_open = false;
    if (p.gathering) count(Counter::halves_dropped);
    stop_gathering(p);
}

template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::check_peers() {
    count(Counter::peer_checks);
    for (unsigned i = 0; i < std::min(ranks_, kPeersPerCheck); ++i) {
        refresh(next_check_);
        next_check_ = next_check_ + 1 == ranks_ ? 0 : next_check_ + 1;
    }
}

/// Whether s is dead or has left, and has not come back since.
template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::is_gone(unsigned s) {
    if (peers_[s].gone) refresh(s);
    return peers_[s].gone;
}

template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::others_gone() {
    for (unsigned s = 0; s < ranks_; ++s) {
        if (s != me_ && !is_gone(s)) return false;
    }
    return ranks_ > 1;
}

/// (I3): in a later life, buffers wait until nobody can still read the former life's.
template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::data_open() {
    if (data_open_) [[likely]]
        return true;
    for (unsigned s = 0; s < ranks_; ++s) {
        refresh(s);
        const Peer& p = peers_[s];
        if (s != me_ && !p.gone && p.incarnation != 0 && !has_confirmed(s)) return false;
    }
    return data_open_ = true;
}

template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::has_confirmed(unsigned s) const {
    return memory_.load(geometry_.confirmed(me_, s)) == incarnation_;
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::tell_gone(unsigned s) {
    peers_[s].peer_due = false;
    aside_.erase_end(s);
    return gone_error(s);
}

/// BBP_EPEER, with the sentence for it.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::gone_error(unsigned s) {
    return fail(BBP_EPEER,
                fmt::format("rank {} of ring '{}' {}", s, member_.ring().config().name,
                            !peers_[s].gone  ? "was gone and has come back: what its former self "
                                               "did not read is lost; go on with the new one"
                            : peers_[s].left ? "has left; start it again to go on with it"
                                             : "has died; start it again to go on with it"));
}

template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::leave() noexcept {
    if (left_ || !member_.held()) return;  // a forked child leaves for nobody
    left_ = true;
    wake_fd_.reset();
    // What has been taken must be told, or senders wait for a rank that has gone.
    for (unsigned s = 0; s < ranks_; ++s) {
        if (peers_[s].rx_open) board_.tell(s);
    }
    RMEM_MARK("leave.told");
    memory_.post_word(geometry_.departed(me_), incarnation_);
    memory_.commit();
    RMEM_MARK("leave.departed");
    for (unsigned s = 0; s < ranks_; ++s) memory_.notify(s);
}

}  // namespace billboard
