// SPDX-License-Identifier: Apache-2.0
#include "simulator/hunt/ring_run.hpp"

#include "billboard/core/counters.hpp"
#include "billboard/simulation.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace simulator {

using rmem::sim::RunEnd;

namespace {

constexpr std::int64_t kMaxVirtualNs = 20'000'000'000;

rmem::sim::WorldConfig world_config(const std::string& name, const RingScenario& scenario) {
    rmem::sim::WorldConfig config;
    config.ring.name = name;
    config.ring.nodes = config.ring.ranks = RingScenario::kRanks;
    config.ring.user_bytes = 64;
    config.ring.timing = scenario.timing;
    config.host = scenario.host;
    config.incarnations_before = scenario.incarnations_before;
    return billboard::simulated(config, scenario.settings);
}

bool waits_for_access(FaultKind kind) {
    return kind == FaultKind::stall || kind == FaultKind::kill || kind == FaultKind::fail_node;
}

}  // namespace

RingRun::RingRun(const std::string& ring_name, const RingScenario& scenario,
                 std::vector<Fault> faults)
    : faults_(std::move(faults)), world_(world_config(ring_name, scenario)) {}

void RingRun::observe(rmem::sim::Observer& own, const RingOptions& options) {
    std::vector<rmem::sim::Observer*> all{&own};
    if (options.hash) {
        hash_ = std::make_unique<rmem::sim::TraceHash>();
        all.push_back(hash_.get());
    }
    if (options.trace != nullptr) all.push_back(options.trace);
    observers_ = std::make_unique<rmem::sim::Observers>(std::move(all));
    world_.observe(observers_.get());
}

Findings RingRun::to_end() {
    for (unsigned r = 0; r < kRanks; ++r) start(r);
    try {
        finish(world_.run(kMaxVirtualNs));
    } catch (const std::exception& e) {
        findings_.violate(fmt::format("a program threw: {}", e.what()));
    }
    if (hash_) findings_.hash = hash_->value();
    return std::move(findings_);
}

void RingRun::start(unsigned rank) {
    world_.start(
        rank, [this](rmem::sim::Process& process) { run(process); }, world_.now_ns());
}

// ---- Faults

void RingRun::inject_due(std::uint64_t posted) {
    while (next_fault_ < faults_.size() && posted >= faults_[next_fault_].at_message) {
        inject(faults_[next_fault_++]);
    }
}

void RingRun::inject(Fault fault) {
    for (unsigned i = 0; i < kRanks && !is_alive(fault.target); ++i) {
        fault.target = (fault.target + 1) % kRanks;
    }
    if (waits_for_access(fault.kind)) return await_access(fault);
    ++findings_.injected;
    take_effect(fault);
}

void RingRun::await_access(const Fault& fault) {
    waiting_.push_back(fault);
    const auto place = std::prev(waiting_.end());
    world_.at_access(fault.target, fault.accesses, [this, place] {
        const Fault due = *place;
        waiting_.erase(place);
        ++findings_.injected;
        take_effect(due);
    });
}

void RingRun::take_effect(const Fault& fault) {
    const unsigned target = fault.target;
    const std::int64_t end_ns = world_.now_ns() + fault.time_ns;
    switch (fault.kind) {
        case FaultKind::kill:
        case FaultKind::fail_node: return end_process(fault);
        // The world reports each write that these hit.
        case FaultKind::delay: return world_.delay_writes(target, fault.writes, fault.time_ns);
        case FaultKind::duplicate: return world_.repeat_writes(target, fault.writes);
        default: findings_.met(fault.kind);
    }
    switch (fault.kind) {
        case FaultKind::clog: return world_.delay_writes(target, fault.writes, fault.time_ns);
        case FaultKind::lose: return world_.lose_writes(target, fault.writes);
        case FaultKind::cut_cable: return cut(fault, false);
        case FaultKind::cut_link: return cut(fault, true);
        case FaultKind::stall: return world_.stall(target, fault.time_ns);
        case FaultKind::slow_reader:
        case FaultKind::deaf: return distract(fault.kind, target, end_ns);
        case FaultKind::stop:
            world_.stop(target);
            return world_.at(end_ns, [this, target] { world_.resume(target); });
        default: return;
    }
}

void RingRun::end_process(const Fault& fault) {
    unsigned alive = 0;
    for (unsigned r = 0; r < kRanks; ++r) alive += is_alive(r) ? 1U : 0U;
    if (alive <= 2) {
        findings_.met(FaultKind::stall);
        return world_.stall(fault.target, fault.time_ns);
    }
    const bool with_node = fault.kind == FaultKind::fail_node;
    dies(fault.target, with_node);
    findings_.met(fault.kind);
    if (with_node) {
        world_.fail_node(fault.target);
    } else {
        world_.kill(fault.target);
    }
    pass_on(fault.target);
    if (!fault.comes_back) return;
    ++absent_;
    world_.at(world_.now_ns() + fault.time_ns,
              [this, rank = fault.target, with_node] { bring_back(rank, with_node); });
}

/// Faults that waited for an access of a process that is dead now.
void RingRun::pass_on(unsigned dead) {
    std::list<Fault> left;
    for (auto it = waiting_.begin(); it != waiting_.end();) {
        const auto next = std::next(it);
        if (it->target == dead) left.splice(left.end(), waiting_, it);
        it = next;
    }
    for (const Fault& fault : left) inject(fault);
}

void RingRun::bring_back(unsigned rank, bool with_node) {
    const auto restart = [this, rank] {
        --absent_;
        findings_.met(FaultKind::restart);
        start(rank);
    };
    if (with_node) {
        world_.join_node(rank, restart);
    } else {
        restart();
    }
}

void RingRun::cut(const Fault& fault, bool both) {
    const auto set = [this, node = fault.target, both](bool up) {
        world_.set_cable(0, node, up);
        if (both) world_.set_cable(1, node, up);
    };
    set(false);
    world_.at(world_.now_ns() + fault.time_ns, [set] { set(true); });
}

// ---- The end

void RingRun::finish(RunEnd end) {
    if (end != RunEnd::all_ended) {
        findings_.violate(end == RunEnd::stuck
                              ? "all programs wait for each other, and nothing can happen any more"
                              : "the programs did not come to an end");
    }
    if (findings_.injected < faults_.size()) {
        findings_.violate(
            fmt::format("{} of {} faults took effect", findings_.injected, faults_.size()));
    }
    check_end(end == RunEnd::all_ended);
    for (unsigned r = 0; r < kRanks; ++r) {
        if (world_.protocol_counters(r).get(billboard::Counter::corrupt) == 0) continue;
        complain(r, "something corrupt was found on the board");
    }
}

}  // namespace simulator
