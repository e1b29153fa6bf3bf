// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How threads of an engine's process wait when it has nothing to do, and what ends that: a
/// datagram, or the bell that others of this host ring when they give it work.
///
/// Two threads may wait at a time, that of the rank that runs the engine, and its helper:
///   sleeps      the rank, in a call of its own. It looks once more if something was brought that
///               it has not looked at. One that was woken by what it does not wait for *naps*: for
///               a while no datagram wakes it, and what comes is taken together.
///   stands by   the helper, for a rank that computes. A thread that uses the engine meanwhile
///               wakes it, if it would sleep on for longer than kTailNs: what is due then is for it
///               to do.
/// Where many nodes join on a *full* host, which has fewer processors than nodes of the ring, what
/// comes is taken once in a *turn*: to be woken by each datagram would take all processors, and
/// those that are in would keep out the others.
///
/// Invariants: a thread gets up that has lain down. A turn takes no longer than kTurnNs for each
/// node of the ring.
/// Thread safety: what is the user's, the engine's; the rest any thread. begin() and wait() are one
/// thread's, the one after the other.
/// Units: nanoseconds.

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/fence.hpp"
#include "rmem/base/relaxed.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/waiting/bell.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <utility>

namespace rmem::udp {

/// Whether a host is crowded. Pure: who it is given to counts the nodes.
class Crowd {
public:
    static constexpr std::int64_t kTurnNs = 200'000;  ///< for each node: what its turn may take
    static constexpr std::int64_t kNapNs = 50'000;    ///< the same, of its rest between two looks
    static constexpr unsigned kMax = 8;               ///< nodes that join: more are as many

    /// `count`: the ring's nodes on this host, which takes long.
    Crowd(unsigned nodes, unsigned processors, std::function<unsigned()> count)
        : nodes_(nodes), processors_(processors), count_(std::move(count)) {}

    /// As many nodes join: the turn; 0: there is none.
    std::int64_t find_turn(unsigned joiners, std::int64_t now) {
        const unsigned counted = std::min(joiners, kMax);
        turn_ns_ = counted != 0 && is_full(now) ? kTurnNs * nodes_ * counted / kMax : 0;
        return turn_ns_;
    }
    std::int64_t turn_ns() const noexcept { return turn_ns_; }
    /// What has come is taken now, if there are no turns, or if the next has come.
    [[nodiscard]] bool take_turn(std::int64_t now) noexcept {
        if (turn_ns_ == 0) [[likely]]
            return true;
        RMEM_CHECK(turn_ns_ <= kTurnNs * nodes_);
        if (now < turn_until_ns_) return false;
        turn_until_ns_ = now + turn_ns_;
        return true;
    }
    /// How long a rank may nap; 0: not at all, since each node of the host has a processor.
    [[nodiscard]] std::int64_t nap_ns(std::int64_t now) {
        return is_full(now) ? kNapNs * nodes_here_ : 0;
    }

private:
    friend struct PlantedBug;                             ///< a test's, which a check finds
    static constexpr std::int64_t kCountNs = 20'000'000;  ///< between counts of the nodes here
    static constexpr std::int64_t kCountFullNs = 1'000'000'000;  ///< where there were many

    [[nodiscard]] bool is_full(std::int64_t now) {
        if (nodes_ <= processors_) return false;
        if (now >= count_next_ns_) {
            count_next_ns_ = now + (nodes_here_ > processors_ ? kCountFullNs : kCountNs);
            nodes_here_ = count_();
        }
        return nodes_here_ > processors_;
    }

    const unsigned nodes_, processors_;
    const std::function<unsigned()> count_;
    unsigned nodes_here_ = 1;
    std::int64_t count_next_ns_ = 0;
    std::int64_t turn_ns_ = 0;
    std::int64_t turn_until_ns_ = 0;
};

class Rest {
public:
    /// The longest time after a write in which no thread stands by. If its datagram is lost, and no
    /// other datagram wakes a thread, it is sent again after that time.
    static constexpr std::int64_t kTailNs = 4'000'000;

    /// Makes the bell.
    explicit Rest(Ring& ring)
        : board_(ring.board()), bell_(Bell::make(ring.segment_name(), ring.group())) {
        board_.asleep.store(0, std::memory_order_relaxed);  // relaxed is enough: a bell too many
    }

    /// From now on others that give the engine work ring the bell; then it is to be looked whether
    /// there is some. `has_clients`: other programs may do so.
    void begin(bool has_clients) noexcept {
        // relaxed is enough: the fence puts it before the look at the logs
        board_.asleep.fetch_add(1, std::memory_order_relaxed);
        if (has_clients) heavy_fence();
    }
    /// Until the bell rings, or `handle` is readable, or that time is over. `turn`: if not 0, for
    /// that time, and no datagram ends it.
    void wait(std::int64_t ns, std::int64_t turn, int handle) noexcept {
        if (ns > 0) {
            if (turn != 0) ns = turn;
            const timespec timeout = {ns / 1'000'000'000, ns % 1'000'000'000};
            std::array<pollfd, 2> fds{
                {{bell_.handle(), POLLIN, 0}, {turn == 0 ? handle : -1, POLLIN, 0}}};
            ::ppoll(fds.data(), fds.size(), &timeout, nullptr);
            if (fds[0].revents != 0) bell_.clear();
        }
        // relaxed is enough: a bell too many
        board_.asleep.fetch_sub(1, std::memory_order_relaxed);
    }
    /// Ends a wait().
    void interrupt() const noexcept { bell_.ring(); }
    [[nodiscard]] bool has_bell() const noexcept { return bell_.is_ours(); }

    // ---- The rank
    bool sleeps() const noexcept { return sleeps_.get(); }
    /// It goes to sleep; returns whether it has slept in the same wait before.
    bool lie_down() noexcept {
        sleeps_.set(true);
        const bool has_slept = has_slept_.get();
        has_slept_.set(true);
        return has_slept;
    }
    void get_up() noexcept {
        RMEM_CHECK(sleeps());
        sleeps_.set(false);
    }
    /// Whether it has slept since this was asked last: its wait is over, and so is its nap.
    bool take_slept() noexcept {
        if (!has_slept_.get()) return false;
        has_slept_.set(false);
        nap_until_ns_.set(0);
        return true;
    }
    bool naps() const noexcept {
        const std::int64_t until = nap_until_ns_.get();
        return until != 0 && now_ns() < until;
    }
    void nap_until(std::int64_t until) noexcept { nap_until_ns_.set(until); }
    std::int64_t nap_ns(std::int64_t now) const noexcept {
        return std::max<std::int64_t>(nap_until_ns_.get() - now, 0);
    }

    // ---- The user
    /// Whether the rank has napped, or does: what has come is taken together.
    [[nodiscard]] bool take_nap(std::int64_t now) noexcept {
        const std::int64_t until = nap_until_ns_.get();
        if (until != 0 && until <= now) nap_until_ns_.set(0);
        return until != 0;
    }
    /// Something has come; and whether it has since this was asked last.
    void note_come() noexcept { has_come_ = true; }
    [[nodiscard]] bool take_come() noexcept { return std::exchange(has_come_, false); }
    /// The rank is to look at what was brought; and the same question.
    void call_to_look() noexcept {
        is_to_look_ = true;
        if (sleeps()) interrupt();
    }
    [[nodiscard]] bool take_call() noexcept { return std::exchange(is_to_look_, false); }

    // ---- The helper
    void stand_by_until(std::int64_t until) noexcept { stands_by_until_ns_.set(until); }
    void end_stand_by() noexcept { stands_by_until_ns_.set(kNobody); }
    /// Whether one that stands by has to be told that there is something to do from now on.
    [[nodiscard]] bool take_stand_by(std::int64_t now) noexcept {
        if (now + kTailNs >= stands_by_until_ns_.get()) return false;
        end_stand_by();
        return true;
    }

private:
    static constexpr std::int64_t kNobody = INT64_MIN;

    NodeBoard& board_;
    Bell bell_;
    Hint<bool> sleeps_{false};
    Hint<bool> has_slept_{false};
    bool has_come_ = false;               ///< something, since it slept
    bool is_to_look_ = false;             ///< before it sleeps
    Hint<std::int64_t> nap_until_ns_{0};  ///< 0: what has come then is taken
    Hint<std::int64_t> stands_by_until_ns_{kNobody};
};

}  // namespace rmem::udp
