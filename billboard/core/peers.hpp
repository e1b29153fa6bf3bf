// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What this rank knows of the others, and they of it: joining, deaths, returns, leaving.
///
/// Two ranks a and b connect by three kinds of words, each with one writer:
///   incarnation(a)      the number of a's present incarnation
///   departed(a)         the incarnation in which a left in good order
///   confirmed(a, b)     by b, in a's partition: the incarnation of a that b receives from; or
///                       while b posts nothing to a, kFresh (b has just joined, or has never been
///                       there) or noticed(n), n the incarnation of a that b has just met, or
///                       whose end it has seen
/// b confirms a once it has taken over the messages of a's former incarnation, and only when none
/// can come any more that a posted to b's former one: confirmed(b, a) is b's present incarnation
/// or says that a has noticed it, and all that a wrote before is there, too. Nothing was posted to
/// the first incarnation before it was announced, so kFresh will do; for a later one kFresh may be
/// older than messages on their way. a posts once confirmed.
///
/// A rank is told of the former incarnation's end before it talks to the new one by name: posting
/// to it opens only then, and the end waits in private memory after the former incarnation's
/// messages and before the new one's. BBP_ANY passes by it. Not confirming the new incarnation
/// until then would be simpler, but would leave it without buffers (I3) until the last rank has
/// named it, perhaps forever.
///
/// Invariants
///   (I1) A rank posts to s only while s's confirmation word for it holds its own incarnation.
///   (I2) A rank confirms s only when s is fresh or has confirmed it, after it has taken over all
///        that s's former incarnation had posted: so nothing is read by a slot number or a flag
///        that meant another message.
///   (I3) A restarted rank writes no buffer until every live peer has confirmed it (may_post_data).
///   (I5) While BBP_EPEER of a rank that is back is due, its former incarnation's end is among the
///        messages set aside, before all of its new one, and nothing is posted to that.
/// Told of a rank's end: AbortsDue and the board at once (mark_gone); the messages set aside and in
/// parts when its next incarnation is met (take_over), or it is given up. Views are asked first.
/// Progress: looks at others are paid by calls that wait, and by try calls now and then.
/// Thread safety: one thread.

#include "billboard/core/aborts_due.hpp"
#include "billboard/core/own_rank.hpp"
#include "billboard/core/reassembly.hpp"
#include "billboard/core/set_aside.hpp"
#include "billboard/core/views.hpp"
#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/marks.hpp"
#include "rmem/ring/join_notice.hpp"
#include "rmem/ring/waiting/awaiting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace billboard {

inline constexpr std::uint32_t kFresh = 0;
constexpr std::uint32_t noticed(std::uint32_t incarnation) {
    return incarnation | 0x80000000;
}
inline constexpr unsigned kPeersPerCheck = 8;  ///< liveness costs a system call each

template <class Own>
class Peers {
public:
    Peers(Own& own, SetAside& aside, Reassembly<Own>& reassembly, AbortsDue& aborts_due,
          const Views<Own>& views)
        : own_(own),
          aside_(aside),
          reassembly_(reassembly),
          aborts_due_(aborts_due),
          views_(views),
          peers_(own.ranks) {}

    // ---- This rank
    /// Begins its next incarnation. The other words that a rank begins with are written between
    /// this and join().
    void begin();
    /// Shows it, and waits for the others. Throws Error(timed_out).
    void join(Deadline deadline);
    [[nodiscard]] bool is_first_incarnation() const noexcept { return incarnation_ == 1; }
    /// Whether leave() is still to be called. In a forked child it is not.
    [[nodiscard]] bool is_in() const noexcept { return !left_ && own_.member.held(); }
    void leave() noexcept;

    // ---- As last seen
    [[nodiscard]] std::uint32_t incarnation(unsigned s) const { return peers_[s].incarnation; }
    [[nodiscard]] bool is_connected(unsigned s) const { return peers_[s].tx_open; }
    /// Dead or left; what it had posted may still be there.
    [[nodiscard]] bool is_gone(unsigned s) const { return peers_[s].gone; }
    /// Whether its last incarnation that is over ended by leaving.
    [[nodiscard]] bool has_left(unsigned s) const { return peers_[s].left; }
    /// Whether s has given this rank up, though it is alive: then s may have used the buffers of
    /// its messages again.
    [[nodiscard]] bool is_given_up_by(unsigned s) const noexcept;

    /// Counts what this rank has learned of incarnations.
    [[nodiscard]] std::uint32_t met() const noexcept { return met_; }

    // ---- Looks
    /// Looks at what s says of itself, and takes the next step of the connection. Whether it may
    /// be dead. No system call.
    bool see(unsigned s);
    /// The next step of the connection with s, and whether it is alive.
    void refresh(unsigned s);
    /// The same of some of all, in turn.
    void check();
    /// Whether s is dead or has left, and has not come back since.
    [[nodiscard]] bool is_still_gone(unsigned s);
    [[nodiscard]] bool others_are_gone();
    /// Whether s can be posted to, if it has room; not while BBP_EPEER is due.
    [[nodiscard]] bool may_post_to(unsigned s);
    /// (I3)
    [[nodiscard]] bool may_post_data();

    // ---- Ends
    /// BBP_EPEER, with the sentence for it.
    [[nodiscard]] int gone_error(unsigned s) const;
    /// The same, after which nothing of s is due any more.
    [[nodiscard]] int tell_gone(unsigned s);
    /// The same of the former incarnation whose end comes next among the messages set aside.
    [[nodiscard]] int tell_former_end(unsigned s);
    /// Tells that s has gone, and takes nothing of that incarnation any more.
    [[nodiscard]] int end_incarnation(unsigned s);
    /// Takes s for dead because it has given this rank up, and nothing of it any more.
    void give_up(unsigned s);

    /// Tries until `attempt` gives something else than BBP_EAGAIN or the deadline passes:
    /// BBP_ETIMEDOUT, to which the caller adds its sentence. Between looks at the peers, of which
    /// `awaited` is one each time if it is a rank, it tries only when `worth_trying` says so: that
    /// is the spinning loop.
    template <class Attempt, class Worth>
    [[nodiscard]] int wait_for(const int& awaited, Deadline deadline, Attempt&& attempt,
                               Worth&& worth_trying);
    template <class Attempt>
    [[nodiscard]] int wait_for(const int& awaited, Deadline deadline, Attempt&& attempt) {
        return wait_for(awaited, deadline, attempt, [] { return true; });
    }

private:
    struct Peer {
        std::uint32_t incarnation = 0;  ///< 0: never seen
        bool rx_open = false;
        bool tx_open = false;
        bool gone = false;
        bool left = false;
        bool peer_due = false;  ///< BBP_EPEER is still to be reported, once: gone or (I5)
    };

    bool all_joined() const;
    std::string missing() const;
    std::string heard() const;
    void meet(unsigned s, std::uint32_t incarnation);
    void connect(unsigned s);
    bool has_departed(unsigned s) const;
    Counter why_gone(unsigned s) const;
    void mark_gone(unsigned s, Counter why);
    void take_over(unsigned s);
    bool incarnation_is_over() const;
    void close_incarnation(unsigned s);
    void count_half(unsigned s);
    bool has_confirmed(unsigned s) const;
    bool is_sound(unsigned s) const;

    Own& own_;
    SetAside& aside_;
    Reassembly<Own>& reassembly_;
    AbortsDue& aborts_due_;
    const Views<Own>& views_;
    std::uint32_t incarnation_ =
        0;  ///< of this rank's messages: 1 the first, more each time that they begin
    std::uint32_t met_ = 0;
    unsigned next_check_ = 0;
    bool data_open_ = false;  ///< (I3)
    bool is_first_ = false;   ///< no incarnation of this rank was announced before
    bool left_ = false;
    bool gathers_ = false;  ///< commits are its caller's
    std::vector<Peer> peers_;
};

template <class Own>
void Peers<Own>::begin() {
    // While the process keeps the rank for its node, messages may begin again.
    const std::uint32_t former = own_.memory.load(own_.geometry.incarnation(own_.me));
    incarnation_ = std::max(own_.member.incarnation(), former + 1);
    is_first_ = former == 0;
    if (is_first_) return;  // the words are as the ring was made
    for (unsigned s = 0; s < own_.ranks; ++s) {
        if (s != own_.me) own_.memory.post_word(own_.geometry.confirmed(s, own_.me), kFresh);
    }
}

template <class Own>
void Peers<Own>::join(Deadline deadline) {
    RMEM_MARK("join.words-written");
    own_.memory.post_word(own_.geometry.incarnation(own_.me), incarnation_);
    own_.memory.commit();
    peers_[own_.me].incarnation = incarnation_;
    connect(own_.me);
    data_open_ = is_first_incarnation();
    rmem::JoinNotice notice(rmem::now_ns());
    const int result = wait_for(BBP_ANY, deadline, [&]() -> int {
        if constexpr (requires { own_.memory.check_epoch(); }) own_.memory.check_epoch();
        // One datagram for all that it meets at a time: each goes to all nodes. Whether they live
        // is looked at now and then, by wait_for: of many ranks each asks after many.
        gathers_ = true;
        for (unsigned s = 0; s < own_.ranks; ++s) see(s);
        gathers_ = false;
        own_.memory.commit();
        if (!own_.settings.awaits_others || all_joined()) return BBP_OK;
        if (notice.is_due(rmem::now_ns()))
            notice.tell(own_.me, own_.member.ring().config().name, "ranks" + missing() + heard());
        return BBP_EAGAIN;
    });
    if (result == BBP_OK) {  // the last to come: others may sleep until somebody says so
        for (unsigned s = 0; s < own_.ranks; ++s) own_.memory.notify(s);
        return;
    }
    throw rmem::Error(
        rmem::Errc::timed_out,
        fmt::format("rank {} of ring '{}' waited for ranks{} of {}, which have not come; start "
                    "them too, with the same RMEM_RING, or allow more time (RMEM_JOIN_TIMEOUT){}",
                    own_.me, own_.member.ring().config().name, missing(), own_.ranks, heard()));
}

/// Of others that the node refuses.
template <class Own>
std::string Peers<Own>::heard() const {
    if constexpr (requires { heard_of_others(own_.member.ring()); })
        return heard_of_others(own_.member.ring());
    return {};
}

template <class Own>
std::string Peers<Own>::missing() const {
    std::string ranks;
    for (unsigned s = 0; s < own_.expected; ++s) {
        if (!peers_[s].gone && !peers_[s].tx_open) ranks += fmt::format(" {}", s);
    }
    return ranks;
}

/// All have been seen; and in a rank's first incarnation, all have opened (later ones open as they
/// notice).
template <class Own>
bool Peers<Own>::all_joined() const {
    for (unsigned s = 0; s < own_.expected; ++s) {
        const Peer& p = peers_[s];
        if (p.gone) continue;
        if (p.incarnation == 0) return false;
        if (is_first_incarnation() && !p.tx_open && !p.peer_due) return false;
    }
    return true;
}

template <class Own>
bool Peers<Own>::see(unsigned s) {
    Peer& p = peers_[s];
    if (s == own_.me) return false;
    if (incarnation_is_over()) {
        if (!p.gone) mark_gone(s, Counter::peers_dead);
        return false;
    }
    const std::uint32_t incarnation = own_.memory.load(own_.geometry.incarnation(s));
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

/// The same, and whether it is alive.
template <class Own>
void Peers<Own>::refresh(unsigned s) {
    if (!see(s) || own_.memory.is_alive(s)) return;
    mark_gone(s, why_gone(s));  // it may have left in good order between the two looks
}

/// Whether this rank has lost its node. The bank may be a later incarnation's, in which it is
/// unknown: all are dead to it, and come back to an endpoint that opens again.
template <class Own>
bool Peers<Own>::incarnation_is_over() const {
    if constexpr (Own::kMayLoseNode) return own_.memory.is_over();
    return false;
}

/// s has an incarnation that this rank has not seen yet.
template <class Own>
void Peers<Own>::meet(unsigned s, std::uint32_t incarnation) {
    Peer& p = peers_[s];
    if (p.incarnation != 0) {
        if (!p.gone) mark_gone(s, why_gone(s));
        if (views_.has(s)) return;  // its former data is still being read: (I2) later
        take_over(s);
        own_.count(Counter::peers_returned);
        if (p.peer_due) aside_.push_end(s);
    }
    p.incarnation = incarnation;
    ++met_;
    p.gone = p.rx_open = p.tx_open = false;
    connect(s);
    if (p.rx_open || incarnation == 1) return;
    own_.memory.post_word(own_.geometry.confirmed(s, own_.me), noticed(incarnation));
    own_.memory.commit();
    own_.memory.notify(s);
}

template <class Own>
void Peers<Own>::connect(unsigned s) {
    Peer& p = peers_[s];
    const std::uint32_t mine = incarnation_;
    const std::uint32_t epoch = mine + p.incarnation;
    const std::uint32_t theirs =
        s == own_.me ? mine : own_.memory.load(own_.geometry.confirmed(own_.me, s));
    // It may be the word of an incarnation that began since s's was read, and must not count as the
    // former's. Each writes its number first, so if it is, the number has changed.
    if (s != own_.me && own_.memory.load(own_.geometry.incarnation(s)) != p.incarnation) return;
    const bool is_quiet =
        theirs == mine || theirs == noticed(mine) || (theirs == kFresh && is_first_);
    if (!p.rx_open && is_quiet) own_.board.clear(s, epoch);  // s has taken over what it wants
    if (!p.rx_open && is_quiet && own_.board.is_clear(s, epoch)) {
        own_.board.open_rx(s, epoch);
        RMEM_MARK("connect.receiving-open");
        own_.memory.post_word(own_.geometry.confirmed(s, own_.me), p.incarnation);
        if (!gathers_) own_.memory.commit();
        own_.memory.notify(s);
        p.rx_open = true;
    }
    if (!p.tx_open && p.rx_open && theirs == mine && !p.peer_due) {
        own_.board.open_tx(s, epoch);
        RMEM_MARK("connect.sending-open");
        p.tx_open = true;
        if (!gathers_) own_.memory.commit();
    }
    RMEM_CHECK(is_sound(s));
}

/// Whether the incarnation of s that this rank knows has left in good order.
template <class Own>
bool Peers<Own>::has_departed(unsigned s) const {
    return own_.memory.load(own_.geometry.departed(s)) == peers_[s].incarnation;
}

template <class Own>
Counter Peers<Own>::why_gone(unsigned s) const {
    return has_departed(s) ? Counter::peers_left : Counter::peers_dead;
}

/// Nothing more comes from s's present incarnation. Its posted messages stay to be received.
template <class Own>
void Peers<Own>::mark_gone(unsigned s, Counter why) {
    Peer& p = peers_[s];
    p.gone = true;
    p.left = why == Counter::peers_left;
    p.peer_due = true;
    p.tx_open = false;
    aborts_due_.set(s, false);
    own_.board.close(s);
    own_.count(why);
    // It may live, where the network is cut: this word comes to it before anything else that is put
    // where its messages are.
    if constexpr (Own::kMayLoseNode)
        own_.memory.post_word(own_.geometry.confirmed(s, own_.me), noticed(p.incarnation));
    RMEM_CHECK(is_sound(s));
}

template <class Own>
bool Peers<Own>::is_given_up_by(unsigned s) const noexcept {
    // While it is not open, the word may be of a new incarnation that has met this rank, and has
    // posted nothing yet.
    return s != own_.me && peers_[s].tx_open &&
           own_.memory.load(own_.geometry.confirmed(own_.me, s)) == noticed(incarnation_);
}

template <class Own>
void Peers<Own>::give_up(unsigned s) {
    if (!peers_[s].gone) mark_gone(s, Counter::peers_dead);
    reassembly_.stop(s);
    close_incarnation(s);
}

/// Takes nothing of that incarnation of s any more: after a cut something may still come.
template <class Own>
void Peers<Own>::close_incarnation(unsigned s) {
    own_.board.close_rx(s);
    peers_[s].rx_open = false;
    RMEM_CHECK(is_sound(s));
}

/// What is still there is a message in whose middle its sender has died.
template <class Own>
void Peers<Own>::count_half(unsigned s) {
    if constexpr (Own::Board::kFollows) {
        if (peers_[s].rx_open && own_.board.has_next(s)) own_.count(Counter::halves_dropped);
    }
}

/// What holds of s after each step: it is posted to only while it is received from and nothing of
/// it is due (I1); a former incarnation's end is due while it is set aside (I5).
template <class Own>
bool Peers<Own>::is_sound(unsigned s) const {
    const Peer& p = peers_[s];
    return (!p.tx_open || (p.rx_open && !p.gone && !p.peer_due)) &&
           (!aside_.has_end(s) || p.peer_due);
}

template <class Own>
int Peers<Own>::end_incarnation(unsigned s) {
    count_half(s);
    close_incarnation(s);
    return tell_gone(s);
}

/// Moves the messages of s's former incarnation to private memory, before its words mean something
/// else. The dead post no more than they have buffers or slots; a sender that goes on posting is
/// not what it says it is.
template <class Own>
void Peers<Own>::take_over(unsigned s) {
    Peer& p = peers_[s];
    Arrival a;
    unsigned looks = kMaxLooks<typename Own::Board>;
    for (; looks > 0 && p.rx_open && own_.board.peek(s, a); --looks) {
        if (a.corrupt) {
            own_.drop(s, a, Counter::corrupt);
        } else if (!own_.is_filled(s, a)) {
            own_.drop(s, a, Counter::halves_dropped);
        } else if (!reassembly_.set_aside(s, a)) {
            own_.drop(s, a, Counter::halves_dropped);
        }
        RMEM_MARK("return.one-taken-over");
    }
    count_half(s);
    own_.board.close_rx(s);
    RMEM_MARK("return.taken-over");
    p.rx_open = false;
    reassembly_.drop(s);
}

template <class Own>
void Peers<Own>::check() {
    own_.count(Counter::peer_checks);
    for (unsigned i = 0; i < std::min(own_.ranks, kPeersPerCheck); ++i) {
        refresh(next_check_);
        next_check_ = own_.after(next_check_);
    }
}

template <class Own>
bool Peers<Own>::is_still_gone(unsigned s) {
    if (peers_[s].gone) refresh(s);
    return peers_[s].gone;
}

template <class Own>
bool Peers<Own>::others_are_gone() {
    for (unsigned s = 0; s < own_.ranks; ++s) {
        if (s != own_.me && !is_still_gone(s)) return false;
    }
    return own_.ranks > 1;
}

template <class Own>
bool Peers<Own>::may_post_to(unsigned s) {
    const Peer& p = peers_[s];
    if (!p.tx_open) refresh(s);
    return !p.gone && !p.peer_due;
}

/// In a later incarnation, buffers wait until nobody can still read the former one's.
template <class Own>
bool Peers<Own>::may_post_data() {
    if (data_open_) [[likely]]
        return true;
    for (unsigned s = 0; s < own_.ranks; ++s) {
        refresh(s);
        const Peer& p = peers_[s];
        if (s != own_.me && !p.gone && p.incarnation != 0 && !has_confirmed(s)) return false;
    }
    return data_open_ = true;
}

template <class Own>
bool Peers<Own>::has_confirmed(unsigned s) const {
    return own_.memory.load(own_.geometry.confirmed(own_.me, s)) == incarnation_;
}

template <class Own>
int Peers<Own>::tell_gone(unsigned s) {
    peers_[s].peer_due = false;
    aside_.erase_end(s);
    RMEM_CHECK(is_sound(s));
    return gone_error(s);
}

template <class Own>
int Peers<Own>::tell_former_end(unsigned s) {
    const int told = tell_gone(s);
    peers_[s].peer_due = peers_[s].gone;  // the one after it may have ended, too
    return told;
}

template <class Own>
int Peers<Own>::gone_error(unsigned s) const {
    return fail(
        BBP_EPEER,
        fmt::format("rank {} of ring '{}' {}", s, own_.member.ring().config().name,
                    !peers_[s].gone  ? "has come back as a new incarnation: messages that the "
                                       "former one did not read are lost; send to the new one"
                    : peers_[s].left ? "has left; start it again to exchange more messages"
                                     : "has died; start it again to exchange more messages"));
}

template <class Own>
void Peers<Own>::leave() noexcept {
    left_ = true;
    // What has been taken must be told, or senders wait for a rank that has gone.
    for (unsigned s = 0; s < own_.ranks; ++s) {
        if (peers_[s].rx_open) own_.board.tell(s);
    }
    RMEM_MARK("leave.told");
    own_.memory.post_word(own_.geometry.departed(own_.me), incarnation_);
    own_.memory.commit();
    RMEM_MARK("leave.departed");
    for (unsigned s = 0; s < own_.ranks; ++s) own_.memory.notify(s);
}

template <class Own>
template <class Attempt, class Worth>
int Peers<Own>::wait_for(const int& awaited, Deadline deadline, Attempt&& attempt,
                         Worth&& worth_trying) {
    int result = attempt();
    if (result != BBP_EAGAIN) return result;
    if (is_try(deadline)) return own_.not_now();
    own_.memory.begin_wait();
    if (own_.is_far_busy()) own_.far_patience.begin(own_.memory.now_ns());
    while (result == BBP_EAGAIN) {
        rmem::Step step;
        do {
            step = own_.wait(deadline);
            if (own_.is_far_busy()) [[unlikely]]
                reassembly_.progress_far();
        } while (step == rmem::Step::poll && !worth_trying());
        if (step == rmem::Step::check_peers) [[unlikely]] {
            if (awaited >= 0) refresh(static_cast<unsigned>(awaited));
            check();
        }
        result = attempt();
        if (step == rmem::Step::expired && result == BBP_EAGAIN) result = BBP_ETIMEDOUT;
    }
    own_.memory.end_wait();
    return result;
}

}  // namespace billboard
