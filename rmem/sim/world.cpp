// SPDX-License-Identifier: Apache-2.0
#include "rmem/sim/world.hpp"

#include "rmem/base/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rmem::sim {

namespace {

/// For heaps whose top is the least time, and of equal ones the first that was put in.
constexpr auto kLater = [](const auto& a, const auto& b) {
    return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.order > b.order;
};

/// A nanosecond later, if ever.
std::int64_t after(std::int64_t time_ns) {
    return time_ns == kNever ? time_ns : time_ns + 1;
}

/// How far processes may run, for as long as it exists.
class Limit {
public:
    Limit(std::int64_t& limit_ns, std::int64_t until_ns) : limit_ns_(limit_ns) {
        limit_ns_ = until_ns;
    }
    ~Limit() { limit_ns_ = kNever; }
    Limit(const Limit&) = delete;
    Limit& operator=(const Limit&) = delete;

private:
    std::int64_t& limit_ns_;
};

RingConfig simulated(RingConfig ring, const Topology& topology) {
    ring.link = LinkKind::sim;
    if (topology.rings > 1) ring.nodes = topology.nodes();
    return ring;
}

Topology topology_of(const WorldConfig& config) {
    return config.topology.rings > 1 ? config.topology
                                     : Topology{1, config.ring.nodes, config.topology.bridge_ns};
}

}  // namespace

Process* current_process() noexcept {
    return static_cast<Process*>(program_host());
}

World::World(WorldConfig config)
    : config_(std::move(config)),
      wire_(config_.ring.timing, topology_of(config_)),
      bound_ns_(config_.ring.bound_ns),
      flight_(topology_of(config_).nodes()) {
    check_from_now_on();
    config_.ring = simulated(config_.ring, config_.topology);
    if (config_.topology.rings <= 1) config_.ring.check();
    if (bound_ns_ == 0) bound_ns_ = wire_.bound_ns();
    nodes_.resize(config_.ring.nodes);
    for (Node& node : nodes_) {
        node.bank.resize(config_.ring.bank_bytes());
        if (nodes_.size() <= kMaxNodes) node.applied.resize(nodes_.size());
        node.link = std::make_unique<Counters>();
        node.propagation = std::make_unique<Histogram>();
    }
    ranks_.resize(config_.ring.ranks);
    for (unsigned r = 0; r < ranks(); ++r) {
        ranks_[r].node = static_cast<unsigned>(std::uint64_t{r} * nodes() / ranks());
        ranks_[r].link = std::make_unique<Counters>();
        ranks_[r].incarnation = config_.incarnations_before;
        ranks_[r].protocol = std::make_unique<Counters>();
        if (!config_.faults.writes.empty()) {
            ranks_[r].faults = std::make_unique<WriteFaults>(config_.faults, ranks_[r].node, r);
        }
    }
    schedule_wire_faults();
}

World::~World() {
    // Destructors of the processes' objects call into the world, so it must outlive them, and no
    // process may still run.
    for (Rank& rank : ranks_) {
        if (rank.process) rank.process->state_ = Process::State::dead;
        rank.process.reset();
    }
}

std::span<const World::Rank> World::ranks_of(unsigned node) const noexcept {
    const auto first_of = [this](std::uint64_t n) {
        return static_cast<std::size_t>((n * ranks() + nodes() - 1) / nodes());
    };
    return std::span(ranks_).subspan(first_of(node), first_of(node + 1ULL) - first_of(node));
}

void World::check_rank(unsigned rank) const {
    if (rank < ranks()) return;
    throw Error(Errc::bad_rank,
                fmt::format("there is no rank {} in a simulation of {}; give 0 to {}", rank,
                            ranks(), ranks() - 1));
}

void World::check_node(unsigned node) const {
    if (node < nodes()) return;
    throw Error(Errc::bad_rank,
                fmt::format("there is no node {} in a simulation of {}; give 0 to {}", node,
                            nodes(), nodes() - 1));
}

// ---- Processes

void World::start(unsigned r, Program program, std::int64_t at_ns) {
    check_rank(r);
    Rank& rank = ranks_[r];
    if (!has_ended(r)) {
        throw Error(
            Errc::rank_taken,
            fmt::format("rank {} of the simulation has a process already; kill it first, or "
                        "wait until it has ended",
                        r));
    }
    rank.process.reset(
        new Process(*this, r, rank.node, ++rank.starts, config_.stack_bytes, std::move(program)));
    Process& process = *rank.process;
    process.clock_ns_ = std::max(at_ns, now_ns_);
    tell(EventKind::started, static_cast<std::uint16_t>(rank.node), nullptr, process.clock_ns_, r,
         rank.starts);
    queue(process, process.clock_ns_);
    horizon_ns_ = std::min(horizon_ns_, process.clock_ns_);
}

bool World::has_ended(unsigned rank) const noexcept {
    const auto& process = ranks_[rank].process;
    return !process || process->state_ == Process::State::ended ||
           process->state_ == Process::State::dead;
}

void World::kill(unsigned r) {
    check_rank(r);
    if (has_ended(r)) return;
    Rank& rank = ranks_[r];
    if (rank.process.get() != running_) return end_process(rank, EventKind::killed);
    rank.process->state_ = Process::State::dead;
    rank.process->fiber_.suspend();  // forever
}

/// Of a process whose program has returned, or will not go on.
void World::end_process(Rank& rank, EventKind how) {
    Process& process = *rank.process;
    if (process.state_ == Process::State::parked) unpark(process);
    if (process.awaits_room_) std::erase(nodes_[rank.node].stalled, &process);
    const bool ended = how == EventKind::ended;
    process.state_ = ended ? Process::State::ended : Process::State::dead;
    tell(how, static_cast<std::uint16_t>(rank.node), nullptr, now_ns_, process.rank_);
    if (rank.held) let_go(process.rank_);
    rank.at_access.clear();
    rank.process.reset();
}

void World::let_go(unsigned r) {
    Rank& rank = ranks_[r];
    rank.held = false;
    rank.last_write = flight_.count_of(static_cast<std::uint16_t>(rank.node));
    note_liveness();
}

void World::stop(unsigned r) {
    check_rank(r);
    if (has_ended(r) || ranks_[r].process->stopped_) return;
    ranks_[r].process->stopped_ = true;
    tell(EventKind::stopped, static_cast<std::uint16_t>(ranks_[r].node), nullptr, now_ns_, r);
}

void World::resume(unsigned r) {
    check_rank(r);
    if (has_ended(r) || !ranks_[r].process->stopped_) return;
    Process& process = *ranks_[r].process;
    process.stopped_ = false;
    tell(EventKind::continued, static_cast<std::uint16_t>(ranks_[r].node), nullptr, now_ns_, r);
    if (!process.calls_.empty()) run_calls_soon(process);
    if (process.state_ != Process::State::running) {
        process.changes_seen_ = 2;  // its clock, too, goes on from now
        queue(process, std::max(process.clock_ns_, now_ns_));
    }
}

void World::stall(unsigned r, std::int64_t ns) {
    check_rank(r);
    if (has_ended(r)) return;
    Process& process = *ranks_[r].process;
    if (process.state_ == Process::State::running) return process.sleep(ns);
    stop(r);
    at(now_ns_ + ns, [this, r, incarnation = process.incarnation_] {
        if (!has_ended(r) && ranks_[r].process->incarnation_ == incarnation) resume(r);
    });
}

void World::at_access(unsigned r, std::uint64_t accesses, std::function<void()> action) {
    check_rank(r);
    Rank& rank = ranks_[r];
    if (has_ended(r)) return;
    Process& process = *rank.process;
    rank.at_access.emplace(process.accesses_ + std::max<std::uint64_t>(accesses, 1),
                           std::move(action));
    process.fault_at_access_ = rank.at_access.begin()->first;
}

/// Outside of the process, which the action may kill.
void World::run_access_actions(Process& process) {
    auto& actions = ranks_[process.rank_].at_access;
    while (!actions.empty() && actions.begin()->first <= process.accesses_) {
        at(process.clock_ns_, [this, r = process.rank_, incarnation = process.incarnation_,
                               action = std::move(actions.begin()->second)] {
            if (!has_ended(r) && ranks_[r].process->incarnation_ == incarnation) action();
        });
        actions.erase(actions.begin());
    }
    process.fault_at_access_ = actions.empty() ? UINT64_MAX : actions.begin()->first;
    settle(process);
}

// ---- Time

void World::at(std::int64_t time_ns, std::function<void()> action) {
    if (!action) return;
    timers_.push_back({std::max(time_ns, now_ns_), ++order_, std::move(action)});
    std::push_heap(timers_.begin(), timers_.end(), kLater);
    horizon_ns_ = std::min(horizon_ns_, timers_.front().time_ns);
}

/// Replaces the entry that it has in the queue.
void World::queue(Process& process, std::int64_t time_ns) {
    process.queued_as_ = ++order_;
    process.queued_for_ns_ = time_ns;
    ready_.push_back({time_ns, process.queued_as_, process.rank_});
    std::push_heap(ready_.begin(), ready_.end(), kLater);
}

std::int64_t World::next_ready_ns() {
    while (!ready_.empty() && !is_due(ready_.front())) drop_first_ready();
    return ready_.empty() ? kNever : ready_.front().time_ns;
}

/// Not when its process has died, is queued otherwise by now, or has been stopped.
bool World::is_due(const Ready& entry) const noexcept {
    const Process* process = ranks_[entry.rank].process.get();
    return process != nullptr && process->queued_as_ == entry.order && !process->stopped_;
}

World::Ready World::drop_first_ready() {
    const Ready first = ready_.front();
    std::pop_heap(ready_.begin(), ready_.end(), kLater);
    ready_.pop_back();
    Process* process = ranks_[first.rank].process.get();
    if (process != nullptr && process->queued_as_ == first.order) process->queued_as_ = 0;
    return first;
}

std::int64_t World::next_timer_ns() const noexcept {
    return timers_.empty() ? kNever : timers_.front().time_ns;
}

std::int64_t World::next_ns() {
    return std::min({next_ready_ns(), next_timer_ns(), wire_.next_time_ns()});
}

/// Lets happen what is due before the running process, or at its time: timers and arrivals here or
/// with the scheduler, other processes after a switch.
void World::settle(Process& process) {
    if (is_left_over(process)) return;
    while (!catch_up(process)) suspend(process);
}

/// As settle, but false when the scheduler must go on first; it comes back to the process in time.
bool World::catch_up(Process& process) {
    const std::int64_t clock = process.clock_ns_;
    if (clock > limit_ns_) return put_off(process);
    for (;;) {
        const std::int64_t others = next_ready_ns();
        const std::int64_t timers = next_timer_ns();
        const std::int64_t wire = wire_.next_time_ns();
        if (wire <= std::min(clock, others) && wire < timers) {
            advance_wire(wire);
        } else if (others < clock || timers <= clock) {
            return put_off(process);
        } else if (process.stopped_) {
            process.state_ = Process::State::ready;
            process.queued_as_ = 0;
            return false;
        } else {
            horizon_ns_ = std::min({wire, timers, after(others), after(limit_ns_)});
            now_ns_ = std::max(now_ns_, clock);
            return true;
        }
    }
}

/// It goes on when nothing is due before it.
bool World::put_off(Process& process) {
    queue(process, process.clock_ns_);
    process.state_ = Process::State::ready;
    return false;
}

void World::suspend(Process& process) {
    process.fiber_.suspend();
}

void World::park(Process& process, std::int64_t until_ns) {
    nodes_[process.node_].parked.push_back(&process);
    process.state_ = Process::State::parked;
    process.changes_seen_ = 0;
    process.queued_as_ = 0;
    process.queued_for_ns_ = kNever;
    if (until_ns != kNever) queue(process, std::max(until_ns, process.clock_ns_));
    suspend(process);
    settle(process);
}

void World::unpark(Process& process) {
    auto& parked = nodes_[process.node_].parked;
    parked.erase(std::find(parked.begin(), parked.end(), &process));
}

bool World::step() {
    return step_until(kNever);
}

/// One event, when there is one until then.
bool World::step_until(std::int64_t until_ns) {
    const std::int64_t ready = next_ready_ns();
    const std::int64_t timer = next_timer_ns();
    const std::int64_t wire = wire_.next_time_ns();
    const std::int64_t next = std::min({ready, timer, wire});
    if (next > until_ns || next == kNever) return false;
    if (timer == next) {
        run_timer();
    } else if (wire == next) {
        advance_wire(wire);
    } else {
        run_process();
    }
    return true;
}

void World::run_timer() {
    now_ns_ = std::max(now_ns_, timers_.front().time_ns);
    std::pop_heap(timers_.begin(), timers_.end(), kLater);
    const Timer timer = std::move(timers_.back());
    timers_.pop_back();
    timer.action();
}

void World::advance_wire(std::int64_t time_ns) {
    now_ns_ = std::max(now_ns_, time_ns);
    wire_.advance(time_ns, [this](const WireOutcome& outcome) { on_outcome(outcome); });
}

void World::run_process() {
    const Ready first = drop_first_ready();
    Rank& rank = ranks_[first.rank];
    Process& process = *rank.process;
    if (process.state_ == Process::State::parked) unpark(process);
    process.clock_ns_ = std::max(process.clock_ns_, first.time_ns);
    // Later loads of the same poll see changes made meanwhile; no load may be before them.
    if (process.changes_seen_ > 1) process.clock_ns_ = std::max(process.clock_ns_, now_ns_);
    process.changes_seen_ = 0;
    process.state_ = Process::State::running;
    now_ns_ = std::max(now_ns_, process.clock_ns_);
    horizon_ns_ = process.clock_ns_;  // its first access looks who is next
    if (process.awaits_room_) {
        // Mostly there is still none when it was to look; that takes no switch.
        const bool is_next = process.clock_ns_ == first.time_ns || catch_up(process);
        if (!is_next || !has_room(process)) return;
    }

    const auto enter = [&](Process* now_running) {
        process.exchange_states();
        running_ = now_running;
        set_program_host(now_running);
    };
    enter(&process);
    try {
        process.fiber_.resume();
    } catch (...) {
        enter(nullptr);
        end_process(rank, EventKind::killed);
        throw;
    }
    enter(nullptr);
    if (process.state_ == Process::State::dead) {
        end_process(rank, EventKind::killed);
    } else if (process.fiber_.ended()) {
        end_process(rank, EventKind::ended);
    }
}

RunEnd World::run(std::int64_t until_ns) {
    const Limit limit(limit_ns_, until_ns);
    while (step_until(until_ns)) {
    }
    if (next_ns() != kNever) return RunEnd::out_of_time;
    for (unsigned r = 0; r < ranks(); ++r) {
        if (!has_ended(r)) return RunEnd::stuck;
    }
    return RunEnd::all_ended;
}

bool World::is_quiet() const noexcept {
    return wire_.next_time_ns() == kNever;
}

const char* World::variable(const Process& process, const char* name) const noexcept {
    if (const auto own = process.variables_.find(name); own != process.variables_.end()) {
        return own->second ? own->second->c_str() : nullptr;
    }
    const auto it = config_.environment.find(name);
    return it == config_.environment.end() ? nullptr : it->second.c_str();
}

}  // namespace rmem::sim
