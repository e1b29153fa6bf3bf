// SPDX-License-Identifier: Apache-2.0
#include "simulator/hunt/hunt.hpp"

#include "billboard/counters.hpp"
#include "billboard/simulation.hpp"
#include "simulator/hunt/link_checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <list>
#include <memory>
#include <utility>

namespace simulator {

using rmem::sim::RunEnd;
using rmem::sim::World;

namespace {

constexpr std::int64_t kMostVirtualNs = 20'000'000'000;

rmem::sim::WorldConfig world_config(const Scenario& scenario) {
    rmem::sim::WorldConfig config;
    config.ring.name = fmt::format("hunt-{}", scenario.seed);
    config.ring.nodes = config.ring.ranks = Scenario::kRanks;
    config.ring.user_bytes = 64;
    config.ring.timing = scenario.timing;
    config.host = scenario.host;
    config.lives_before = scenario.lives_before;
    return billboard::simulated(config, scenario.settings);
}

/// A scenario on its way: injects the faults when their messages have been posted.
class Run {
public:
    Run(const Scenario& scenario, const HuntOptions& options)
        : scenario_(scenario),
          world_(world_config(scenario)),
          link_(world_, findings_),
          ledger_(scenario, findings_, link_),
          traffic_(
              scenario, ledger_, findings_,
              options.open ? options.open : [] { return billboard::Endpoint::open(); }),
          hash_(options.hash ? std::make_unique<rmem::sim::TraceHash>() : nullptr) {
        std::vector<rmem::sim::Observer*> all{&link_};
        if (hash_) all.push_back(hash_.get());
        if (options.trace != nullptr) all.push_back(options.trace);
        observers_ = std::make_unique<rmem::sim::Observers>(std::move(all));
        world_.observe(observers_.get());
        traffic_.on_posted = [this] { inject_due(); };
        traffic_.more_to_come = [this] {
            return findings_.injected < scenario_.faults.size() || absent_ != 0;
        };
    }

    Findings to_end() {
        for (unsigned r = 0; r < Scenario::kRanks; ++r) start(r);
        try {
            finish(world_.run(kMostVirtualNs));
        } catch (const std::exception& e) {
            findings_.violate(fmt::format("a program threw: {}", e.what()));
        }
        if (hash_) findings_.hash = hash_->value();
        return std::move(findings_);
    }

private:
    void start(unsigned rank) {
        world_.start(
            rank, [this](rmem::sim::Process& process) { traffic_.run(process); }, world_.now_ns());
    }
    void inject_due() {
        while (next_fault_ < scenario_.faults.size() &&
               ledger_.posted() >= due_at(scenario_.faults[next_fault_])) {
            inject(scenario_.faults[next_fault_++]);
        }
    }
    /// With fewer messages, as much earlier.
    std::uint64_t due_at(const Fault& fault) const {
        return std::uint64_t{fault.at_message} * scenario_.messages / Scenario::kMessages;
    }

    void inject(Fault fault);
    void take_effect(const Fault& fault);
    bool waits_for_access(FaultKind kind) const {
        return kind == FaultKind::stall || kind == FaultKind::kill || kind == FaultKind::fail_node;
    }
    unsigned alive_from(unsigned rank) const;
    void await_access(const Fault& fault);
    void end_process(const Fault& fault);
    void pass_on(unsigned dead);
    void bring_back(unsigned rank, bool with_node);
    void cut(const Fault& fault, bool both);
    void finish(RunEnd end);
    void collect_sights();

    const Scenario& scenario_;
    Findings findings_;
    World world_;
    LinkChecker link_;
    Ledger ledger_;
    Traffic traffic_;
    std::unique_ptr<rmem::sim::TraceHash> hash_;
    std::unique_ptr<rmem::sim::Observers> observers_;
    std::size_t next_fault_ = 0;
    std::list<Fault> waiting_;  ///< for an access of their targets
    unsigned absent_ = 0;       ///< ranks that will be started again
};

/// What would meet a dead rank meets the next one that lives.
void Run::inject(Fault fault) {
    fault.target = alive_from(fault.target);
    if (waits_for_access(fault.kind)) return await_access(fault);
    ++findings_.injected;
    take_effect(fault);
}

unsigned Run::alive_from(unsigned rank) const {
    unsigned r = rank;
    for (unsigned i = 0; i < Scenario::kRanks && !ledger_.is_alive(r); ++i) {
        r = (r + 1) % Scenario::kRanks;
    }
    return r;
}

void Run::await_access(const Fault& fault) {
    waiting_.push_back(fault);
    const auto place = std::prev(waiting_.end());
    world_.at_access(fault.target, fault.accesses, [this, place] {
        const Fault due = *place;
        waiting_.erase(place);
        ++findings_.injected;
        take_effect(due);
    });
}

void Run::take_effect(const Fault& fault) {
    const unsigned target = fault.target;
    switch (fault.kind) {
        case FaultKind::kill:
        case FaultKind::fail_node: return end_process(fault);
        case FaultKind::delay: return world_.delay_writes(target, fault.writes, fault.time_ns);
        case FaultKind::duplicate: return world_.repeat_writes(target, fault.writes);
        case FaultKind::cut_cable: return cut(fault, false);
        case FaultKind::cut_link: return cut(fault, true);
        default: findings_.met(fault.kind);
    }
    switch (fault.kind) {
        case FaultKind::clog: return world_.delay_writes(target, fault.writes, fault.time_ns);
        case FaultKind::lose: return world_.lose_writes(target, fault.writes);
        case FaultKind::stall: return world_.stall(target, fault.time_ns);
        case FaultKind::slow_reader:
            return traffic_.starve(target, world_.now_ns() + fault.time_ns);
        case FaultKind::stop:
            world_.stop(target);
            return world_.at(world_.now_ns() + fault.time_ns,
                             [this, target] { world_.resume(target); });
        default: return;
    }
}

/// Not the last two, so that there is traffic: they only lose the processor for a while.
void Run::end_process(const Fault& fault) {
    unsigned alive = 0;
    for (unsigned r = 0; r < Scenario::kRanks; ++r) alive += ledger_.is_alive(r) ? 1U : 0U;
    if (alive <= 2) {
        findings_.met(FaultKind::stall);
        return world_.stall(fault.target, fault.time_ns);
    }
    const bool with_node = fault.kind == FaultKind::fail_node;
    ledger_.dies(fault.target, with_node);
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

/// What waited for an access of a process that is dead now.
void Run::pass_on(unsigned dead) {
    std::list<Fault> left;
    for (auto it = waiting_.begin(); it != waiting_.end();) {
        const auto next = std::next(it);
        if (it->target == dead) left.splice(left.end(), waiting_, it);
        it = next;
    }
    for (const Fault& fault : left) inject(fault);
}

void Run::bring_back(unsigned rank, bool with_node) {
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

void Run::cut(const Fault& fault, bool both) {
    findings_.met(fault.kind);
    const auto set = [this, node = fault.target, both](bool up) {
        world_.set_cable(0, node, up);
        if (both) world_.set_cable(1, node, up);
    };
    set(false);
    world_.at(world_.now_ns() + fault.time_ns, [set] { set(true); });
}

void Run::finish(RunEnd end) {
    if (end != RunEnd::all_ended) {
        findings_.violate(end == RunEnd::stuck
                              ? "all programs wait for each other, and nothing can happen any more"
                              : "the programs did not come to an end");
    }
    if (findings_.injected < scenario_.faults.size()) {
        findings_.violate(fmt::format("{} of {} faults took effect", findings_.injected,
                                      scenario_.faults.size()));
    }
    ledger_.check_settled();
    if (end == RunEnd::all_ended) link_.check_quiet();
    collect_sights();
}

void Run::collect_sights() {
    using billboard::Counter;
    for (unsigned r = 0; r < Scenario::kRanks; ++r) {
        const auto& counters = world_.protocol_counters(r);
        findings_.saw(Sight::collected, counters.get(Counter::collections));
        findings_.saw(Sight::fifo_full, world_.counter(r, rmem::LinkCounter::back_pressure));
        findings_.saw(Sight::barrier_passed, counters.get(Counter::barriers));
        // They start 32 below zero.
        if (counters.get(Counter::buffers_posted) > 32) findings_.saw(Sight::numbers_wrapped);
        const std::uint32_t life = scenario_.lives_before + ledger_.life(r);
        if (life / 256 != (scenario_.lives_before + 1) / 256) findings_.saw(Sight::epochs_wrapped);
        if (counters.get(Counter::corrupt) != 0) {
            ledger_.complain_of(r, "something corrupt was found on the board");
        }
    }
}

}  // namespace

Findings run_scenario(const Scenario& scenario, const HuntOptions& options) {
    return Run(scenario, options).to_end();
}

Subject billboard_subject(OpenEndpoint open) {
    HuntOptions options;
    options.open = std::move(open);
    return subject_of<Scenario>("--link ring", Kinds::of<FaultKind, Sight>(),
                                "tests/simulator/seeds.txt", options);
}

}  // namespace simulator
