// SPDX-License-Identifier: Apache-2.0
// How long an engine rests when there is nothing to do, and what ends that.

#include "rmem/base/fence.hpp"
#include "rmem/link/udp/engine.hpp"
#include "rmem/ring/segment.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

namespace rmem::udp {

namespace {

constexpr std::int64_t kTurnNs = 200'000;             // for each node: what its turn may take
constexpr std::int64_t kNapNs = 50'000;               // the same, of its rest between two looks
constexpr unsigned kCrowd = 8;                        // nodes that join
constexpr std::int64_t kCountNs = 20'000'000;         // between counts of the nodes on this host
constexpr std::int64_t kCountFullNs = 1'000'000'000;  // where there were many last time
constexpr std::int64_t kBegunNs = 250'000;            // for a write without a commit

}  // namespace

std::int64_t Engine::due_ns() const noexcept {
    return std::min({core_.due_ns(), keep_due_ns(), exact_due_ns()});
}

/// What is not late by kTailNs without harm.
std::int64_t Engine::exact_due_ns() const noexcept {
    return std::min({core_.repair_due_ns(), outbox_.due_ns(), arrivals_.due_ns(), faults_.due_ns(),
                     carrier_->due_ns()});
}

/// The same for a thread that stands by: what the program has begun it mostly ends itself.
std::int64_t Engine::until_exact(std::int64_t now) noexcept {
    const std::int64_t until = std::max<std::int64_t>(exact_due_ns() - now, 0);
    return outbox_.is_committed() ? until : std::min(until, kBegunNs);
}

/// Where nothing has changed, the next heartbeat will do: unless there are clients, which may have
/// died, or not committed what they wrote.
std::int64_t Engine::keep_due_ns() const noexcept {
    return has_news_to_keep_ || outbox_.has_clients() ? next_keep_ns_ : kNever;
}

void Engine::rest(std::int64_t longest_ns) noexcept {
    std::int64_t wait = 0, turn = 0;
    {
        const std::lock_guard lock(mutex_);
        if (begin_rest()) wait = std::min(longest_ns, due_ns() - now_ns());
        turn = turn_ns_;
    }
    wait_for_news(wait, turn);
}

/// The rank has looked before this, and looks once more if a run has brought something since: by
/// itself, or a helper's, which has taken what would wake it.
void Engine::sleep(std::int64_t longest_ns) noexcept {
    const bool has_slept = has_slept_.get();
    has_slept_.set(true);
    sleeps_.set(true);
    std::int64_t wait = 0, turn = 0;
    {
        const std::lock_guard lock(mutex_);
        const std::int64_t now = now_ns();
        if (std::exchange(has_come_, false) && has_slept) nap_until_ns_.set(now + nap_ns(now));
        turn = turn_ns_ != 0 ? turn_ns_ : std::max<std::int64_t>(nap_until_ns_.get() - now, 0);
        const bool has_looked = !std::exchange(is_to_look_, false);
        if (begin_rest() && has_looked)
            wait = std::min(longest_ns, turn != 0 ? turn : due_ns() - now);
    }
    wait_for_news(wait, turn);
    sleeps_.set(false);
}

/// Of a rank that something has woken that it does not wait for: for so long no datagram does, and
/// what comes is taken together. None where each node of the host has a processor.
std::int64_t Engine::nap_ns(std::int64_t now) noexcept {
    if (outbox_.has_clients() || !is_host_full()) return 0;
    return std::clamp<std::int64_t>(exact_due_ns() - now, 0, kNapNs * nodes_here_);
}

/// With the lock taken once, since the program may wait for it with an answer.
void Engine::stand_in(std::int64_t least_ns) {
    std::int64_t wait = 0, turn = 0;
    {
        std::unique_lock lock(mutex_);
        const std::int64_t begin = now_ns();
        takes_ = Outbox::Take::of_clients;
        run_locked(begin);
        if (lacks_room_ || open_since_locked() <= begin - kLazyNs)
            take_locked(Outbox::Take::all, Leaving::all, begin);
        const std::int64_t now = now_ns();
        turn = turn_ns_;
        if (begin_rest()) {
            // A rank that has just written mostly writes again: without a bell, even where the time
            // of that write is older than this.
            const bool has_just_written = now - written_ns_ < kTailNs;
            wait = has_just_written ? kTailNs / 8 * 7 : std::max(due_ns() - now, kTailNs);
            // A program whose log is looked at rings no bell.
            wait = std::min(wait, least_ns != 0 ? least_ns : until_exact(now));
        }
        stands_by_until_ns_.set(now + wait);
        end_run(lock);
    }
    wait_for_news(wait, turn);
    stands_by_until_ns_.set(kNobody);
}

/// From now on who gives the engine work rings the bell. False: there is some.
bool Engine::begin_rest() noexcept {
    // relaxed is enough: the fence puts it before the look at the logs
    board_.asleep.fetch_add(1, std::memory_order_relaxed);
    if (outbox_.has_clients()) heavy_fence();
    return !outbox_.has_news(Outbox::Take::of_clients) && carrier_->may_sleep();
}

/// `turn_ns`: for so long no datagram ends it.
void Engine::wait_for_news(std::int64_t ns, std::int64_t turn_ns) noexcept {
    if (is_lost_.get()) {  // nothing comes, and what has the bell's number is the program's
        std::this_thread::sleep_for(std::chrono::nanoseconds(kRestNs));
    } else if (ns > 0) {
        std::array<pollfd, 2> fds{{{bell_.handle(), POLLIN, 0}, {carrier_->handle(), POLLIN, 0}}};
        const nfds_t looked_at = turn_ns == 0 ? 2 : 1;
        if (turn_ns != 0) ns = turn_ns;
        const timespec timeout = {ns / 1'000'000'000, ns % 1'000'000'000};
        ::ppoll(fds.data(), looked_at, &timeout, nullptr);
        if (fds[0].revents != 0) bell_.clear();
    }
    board_.asleep.fetch_sub(1, std::memory_order_relaxed);  // relaxed is enough: a bell too many
}

/// Where many start on few processors, to be woken by each datagram would take them all, and those
/// that are in would keep out the others: what comes is taken together, once in that time. 0: there
/// is no crowd.
std::int64_t Engine::turn_ns() noexcept {
    const unsigned joiners = is_member() ? std::min(core_.joiners(ran_ns_), kCrowd) : kCrowd;
    if (joiners == 0 || !is_host_full()) return 0;
    return kTurnNs * ring_.config().nodes * joiners / kCrowd;
}

/// Whether this host has fewer processors than nodes of the ring.
bool Engine::is_host_full() noexcept {
    if (ring_.config().nodes <= processors_allowed_) return false;
    if (ran_ns_ < count_next_ns_) return nodes_here_ > processors_allowed_;
    count_next_ns_ = ran_ns_ + (nodes_here_ > processors_allowed_ ? kCountFullNs : kCountNs);
    try {
        nodes_here_ = static_cast<unsigned>(Segment::list_of(ring_.config().name).size());
    } catch (const std::exception&) {  // no memory for the names: as if it were alone
        nodes_here_ = 1;
    }
    return nodes_here_ > processors_allowed_;
}

}  // namespace rmem::udp
