// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/engine.hpp"

#include "rmem/base/marks.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/ring/delivery_board.hpp"
#include "rmem/ring/membership.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace rmem {

namespace {

constexpr std::int64_t kTickCanWaitNs = 5'000'000;

}  // namespace

// ---- Joining and leaving

RingEngine::RingEngine(Membership& member, const FaultPlan& faults, bool check_writers,
                       bool sees_each_write)
    : member_(member),
      own_(member),
      lock_(own_.ring, own_.node, own_.rank, member.incarnation()),
      wire_(own_, faults.wire),
      members_(own_, wire_),
      logs_(own_, wire_, members_),
      arrival_(own_, members_, check_writers),
      outward_(own_, members_, logs_, arrival_),
      transit_(own_, wire_, members_, logs_, arrival_, outward_),
      wants_each_write_(sees_each_write || check_writers || wire_.has_faults()) {
    if (!lock_.lock(Deadline::in(kDefaultJoinTimeoutNs))) {
        throw Error(
            Errc::timed_out,
            fmt::format(
                "the engine of node {} of ring '{}' is held by another process of the node, which "
                "makes no progress; if it is stopped, continue it (SIGCONT) or end it",
                own_.node, own_.config.name));
    }
    RankSlot& rank = own_.ring.rank(own_.rank);
    // relaxed is enough: taking in notes the change
    rank.wants_each_write.store(1, std::memory_order_relaxed);
    rank.needs_delivery.store(0, std::memory_order_relaxed);  // enough: as above
    const bool is_new = take_in(own_.ring, own_.node, own_.rank);
    RMEM_MARK("join.bank-copied");
    members_.look_at_all();
    own_.time.begin();
    restart();
    step(false, is_new ? EngineLogs::Which::all : EngineLogs::Which::undelivered);
    settle_in(own_.ring, own_.node, own_.rank, member.incarnation());
    want_each_write(wants_each_write_);
    lock_.unlock();
}

RingEngine::~RingEngine() {
    if (!member_.held() || !lock_.lock(Deadline::in(kLeaveNs))) return;
    take_out(own_.ring, own_.node, own_.rank);
    lock_.unlock();
}

/// Ranks that deliver look at it when they write next.
void RingEngine::want_each_write(bool wants) noexcept {
    // relaxed is enough: the change that is noted orders it
    own_.ring.rank(own_.rank).wants_each_write.store(wants ? 1 : 0, std::memory_order_relaxed);
    own_.ring.delivery().note_change();
}

/// Starts over from what this node's bank holds.
void RingEngine::restart() {
    own_.time.note_read(true);
    members_.forget_nodes();
    outward_.restart();
    transit_.restart();
    const std::int64_t oldest = logs_.restart();
    wire_.restart(members_.node_alive(), oldest);
}

void RingEngine::on_bound_violation(ViolationHook hook) {
    if (!lock_.lock(Deadline::in(kLeaveNs))) return;
    want_each_write(wants_each_write_ || hook);
    arrival_.set_hook(std::move(hook));
    lock_.unlock();
}

void RingEngine::on_race(RaceChecker::Report report) {
    if (!lock_.lock(Deadline::in(kLeaveNs))) return;
    arrival_.on_race(std::move(report));
    lock_.unlock();
}

// ---- Running

bool RingEngine::run(Caller caller) {
    return run_and_report(caller, false);
}

bool RingEngine::run_for_fifo() {
    return run_and_report(Caller::rank, true);
}

bool RingEngine::run_and_report(Caller caller, bool for_fifo) {
    if (!lock_.try_lock()) return false;
    step(for_fifo);
    if (caller == Caller::helper && arrival_.has_applied_any())
        own_.slot.link.add(LinkCounter::engine_takeovers);
    report_violations();
    return true;
}

bool RingEngine::run_and_deliver(std::uint64_t claimed_from, To to) {
    if (!lock_.try_lock()) return false;
    outward_.begin(claimed_from);
    step(false);
    outward_.end(to);
    report_violations();
    return true;
}

/// Lets go of the lock first.
void RingEngine::report_violations() {
    if (!arrival_.has_violations()) [[likely]] {
        return lock_.unlock();
    }
    const std::vector<BoundViolation> violations = arrival_.take_violations();
    const ViolationHook hook = arrival_.hook();
    lock_.unlock();
    for (const BoundViolation& violation : violations) hook(violation);
}

void RingEngine::step(bool for_fifo, EngineLogs::Which logs) noexcept {
    own_.time.begin();
    const std::int64_t now = own_.time.now();
    arrival_.begin_run();
    if (logs_.was_lapped()) restart();
    if (transit_.holds()) transit_.settle_held();
    logs_.find_news(logs);
    const bool takes_time = wire_.takes_time();
    if (takes_time) pass_by_wire(for_fifo);
    const std::int64_t instant_due = takes_time ? kNever : transit_.pass_at_once();
    const bool is_busy = takes_time ? logs_.has_flights() : instant_due != kNever;
    if (!takes_time) own_.time.note_read();
    // Not while a write is on its way, if it can wait: to look at members takes system calls.
    if (members_.is_tick_due(is_busy || for_fifo ? now - kTickCanWaitNs : now)) {
        members_.tick(
            now, [this](unsigned r) { return logs_.flights(r).empty() && !logs_.has_news(r); });
        wire_.tick(now);
    }
    if (arrival_.has_applied_any()) arrival_.wake_node();
    own_.time.end();
    next_due_ns_.set(takes_time ? transit_.next_due_ns() : instant_due);
    busy_.set(is_busy);
    logs_.note_idleness();
}

void RingEngine::pass_by_wire(bool for_fifo) {
    if (!logs_.news().empty() && logs_.peek_news()) {
        transit_.begin_turn(arrival_.is_watched());
        logs_.feed(
            [this](unsigned r, const LogReader::Entry& entry) { transit_.depart(r, entry); });
        transit_.end_turn();
    }
    own_.time.note_read();
    const std::int64_t end = own_.time.now() + (for_fifo ? 0 : 2 * kAwaitNs);
    do {
        transit_.let_come(own_.time.now());
    } while (!arrival_.has_any_arrived() && transit_.await(end));
    if (logs_.has_flights()) transit_.drop_if_idle();
    if (for_fifo) fifo_words_.set(transit_.look_at_fifo());
}

}  // namespace rmem
