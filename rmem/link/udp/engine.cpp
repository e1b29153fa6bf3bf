// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace rmem::udp {

namespace {

constexpr std::int64_t kRestNs = 1'000'000;  // between looks while it joins

}  // namespace

Engine::Engine(Ring& ring, EngineSettings settings, EngineKind kind,
               std::optional<unsigned> own_rank)
    : ring_(ring), rest_(ring), work_(ring, std::move(settings), kind, own_rank, rest_) {}

void Engine::join(Deadline deadline) {
    static_cast<void>(work_.find_turn());
    while (!is_member()) {
        run();
        if (is_member()) return;
        if (deadline.passed(now_ns())) {
            const std::string odd = ring_.board().notice.text();
            throw Error(
                Errc::timed_out,
                fmt::format("node {} found no way into ring '{}' ({})", ring_.own_node(),
                            ring_.config().name,
                            !odd.empty() ? odd
                            : work_.carrier().counters().last_error != 0
                                ? std::strerror(work_.carrier().counters().last_error)
                                : "no member answered; `rmem doctor` looks for what is wrong with "
                                  "the network"));
        }
        const std::int64_t turn = work_.find_turn();
        if (turn == 0) {
            rest(kRestNs);
        } else {
            std::this_thread::sleep_for(std::chrono::nanoseconds(turn));
        }
    }
}

// ---- Running

void Engine::run() {
    std::unique_lock lock(mutex_);
    const std::int64_t now = now_ns();
    work_.run(Outbox::Take::committed, now);
    const bool is_stood_by = rest_.take_stand_by(now);
    end_run(lock);
    if (is_stood_by) [[unlikely]]
        rest_.interrupt();
}

/// Gives the lock back, and calls who wants to hear of what the run has found.
void Engine::end_run(std::unique_lock<SpinThenSleep>& lock) {
    const std::vector<BoundViolation> violations = work_.take_violations();
    const ViolationHook hook = violations.empty() ? ViolationHook() : hook_;
    lock.unlock();
    if (!hook) return;
    for (const BoundViolation& violation : violations) hook(violation);
}

std::int64_t Engine::take(Leaving leaving, std::int64_t now) {
    std::unique_lock lock(mutex_);
    work_.take(Outbox::Take::committed, leaving, now);
    work_.end_serving(now);
    const std::int64_t open_since = work_.departures().open_since_ns();
    if (rest_.take_stand_by(now)) [[unlikely]] {
        lock.unlock();
        rest_.interrupt();
    }
    return open_since;
}

bool Engine::has_room(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    return work_.has_room(bytes);
}

void Engine::take_all() {
    std::unique_lock lock(mutex_);
    const std::int64_t begin = now_ns();
    work_.run(Outbox::Take::committed, begin);  // what has come may have made room
    work_.take(Outbox::Take::all, Leaving::all, begin);
    end_run(lock);
}

void Engine::leave_some() {
    std::unique_lock lock(mutex_);
    if (rest_.take_stand_by(now_ns())) [[unlikely]] {
        lock.unlock();
        rest_.interrupt();
    }
}

std::int64_t Engine::open_since_ns() {
    const std::lock_guard lock(mutex_);
    return work_.departures().open_since_ns();
}

void Engine::take_and_ask() {
    const std::lock_guard lock(mutex_);
    const std::int64_t now = now_ns();
    work_.take(Outbox::Take::committed, Leaving::what_is_full, now);
    work_.ask_for_acks(now);  // and the rest leaves
}

void Engine::on_bound_violation(ViolationHook hook) {
    const std::lock_guard lock(mutex_);
    hook_ = std::move(hook);
}

// ---- Waiting

void Engine::rest(std::int64_t longest_ns) noexcept {
    std::int64_t wait = 0, turn = 0;
    {
        const std::lock_guard lock(mutex_);
        if (begin_rest()) wait = std::min(longest_ns, work_.due_ns() - now_ns());
        turn = work_.turn_ns();
    }
    wait_for_news(wait, turn);
}

/// The rank has looked before this, and looks once more if a run has brought something since: by
/// itself, or a helper's, which has taken what would wake it.
void Engine::sleep(std::int64_t longest_ns) noexcept {
    const bool has_slept = rest_.lie_down();
    std::int64_t wait = 0, turn = 0;
    {
        const std::lock_guard lock(mutex_);
        const std::int64_t now = now_ns();
        if (rest_.take_come() && has_slept) rest_.nap_until(now + work_.nap_ns(now));
        turn = work_.turn_ns() != 0 ? work_.turn_ns() : rest_.nap_ns(now);
        const bool has_looked = !rest_.take_call();
        if (begin_rest() && has_looked)
            wait = std::min(longest_ns, turn != 0 ? turn : work_.due_ns() - now);
    }
    wait_for_news(wait, turn);
    rest_.get_up();
}

/// With the lock taken once, since the program may wait for it with an answer.
void Engine::stand_in(std::int64_t least_ns) {
    std::int64_t wait = 0, turn = 0;
    {
        std::unique_lock lock(mutex_);
        const std::int64_t begin = now_ns();
        work_.run(Outbox::Take::of_clients, begin);
        if (work_.departures().lacks_room() ||
            work_.departures().open_since_ns() <= begin - kLazyNs)
            work_.take(Outbox::Take::all, Leaving::all, begin);
        const std::int64_t now = now_ns();
        turn = work_.turn_ns();
        if (begin_rest()) {
            // A rank that has just written mostly writes again: without a bell, even where the time
            // of that write is older than this.
            const bool has_just_written = now - work_.departures().written_ns() < kTailNs;
            wait = has_just_written ? kTailNs / 8 * 7 : std::max(work_.due_ns() - now, kTailNs);
            // A program whose log is looked at rings no bell.
            wait = std::min(wait, least_ns != 0 ? least_ns : work_.until_exact(now));
        }
        rest_.stand_by_until(now + wait);
        end_run(lock);
    }
    wait_for_news(wait, turn);
    rest_.end_stand_by();
}

/// From now on who gives the engine work rings the bell. False: there is some.
bool Engine::begin_rest() noexcept {
    rest_.begin(work_.has_clients());
    return work_.may_rest();
}

/// `turn`: for so long no datagram ends it.
void Engine::wait_for_news(std::int64_t ns, std::int64_t turn) noexcept {
    const bool is_lost = work_.departures().is_closed();
    rest_.wait(is_lost ? 0 : ns, turn, work_.carrier().handle());
    // Nothing comes, and what has the bell's number is the program's.
    if (is_lost) std::this_thread::sleep_for(std::chrono::nanoseconds(kRestNs));
}

}  // namespace rmem::udp
