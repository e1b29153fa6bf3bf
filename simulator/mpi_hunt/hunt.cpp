// SPDX-License-Identifier: Apache-2.0
#include "simulator/mpi_hunt/hunt.hpp"

#include "billboard/counters.hpp"
#include "billboard/simulation.hpp"
#include "simulator/mpi_hunt/traffic.hpp"

#include <fmt/format.h>

#include <iterator>
#include <list>
#include <memory>
#include <utility>

namespace simulator::mpi {

using rmem::sim::EventKind;
using rmem::sim::RunEnd;
using rmem::sim::World;

namespace {

constexpr std::int64_t kMostVirtualNs = 20'000'000'000;

rmem::sim::WorldConfig world_config(const Scenario& scenario) {
    rmem::sim::WorldConfig config;
    config.ring.name = fmt::format("mpi-hunt-{}", scenario.seed);
    config.ring.nodes = config.ring.ranks = Scenario::kRanks;
    config.ring.user_bytes = 64;
    config.ring.timing = scenario.timing;
    config.host = scenario.host;
    return billboard::simulated(config, scenario.settings);
}

/// Counts what the link's faults have done.
class Counting final : public rmem::sim::Observer {
public:
    explicit Counting(Findings& findings) : findings_(findings) {}
    void on_event(const rmem::sim::Event& event) override {
        ++findings_.events;
        if (event.kind == EventKind::repeated) findings_.met(FaultKind::duplicate);
        if (event.kind == EventKind::delayed) findings_.met(FaultKind::delay);
    }

private:
    Findings& findings_;
};

/// A scenario on its way: injects the faults when their messages have been sent.
class Run {
public:
    Run(const Scenario& scenario, const HuntOptions& options)
        : scenario_(scenario),
          world_(world_config(scenario)),
          counting_(findings_),
          model_(findings_),
          traffic_(scenario, model_, findings_, options.mischief) {
        std::vector<rmem::sim::Observer*> all{&counting_};
        if (options.hash) all.push_back(&hash_);
        if (options.trace != nullptr) all.push_back(options.trace);
        has_hash_ = options.hash;
        observers_ = std::make_unique<rmem::sim::Observers>(std::move(all));
        world_.observe(observers_.get());
        traffic_.on_sent = [this] { inject_due(); };
        traffic_.more_to_come = [this] { return findings_.injected < scenario_.faults.size(); };
    }

    Findings to_end() {
        for (unsigned r = 0; r < Scenario::kRanks; ++r) {
            world_.start(r, [this](rmem::sim::Process& process) { traffic_.run(process); });
        }
        try {
            finish(world_.run(kMostVirtualNs));
        } catch (const std::exception& e) {
            findings_.violate(fmt::format("a program threw: {}", e.what()));
        }
        if (has_hash_) findings_.hash = hash_.value();
        return std::move(findings_);
    }

private:
    void inject_due() {
        while (next_fault_ < scenario_.faults.size() &&
               model_.sent() >= due_at(scenario_.faults[next_fault_])) {
            inject(scenario_.faults[next_fault_++]);
        }
    }
    /// With fewer messages, as much earlier.
    std::uint64_t due_at(const Fault& fault) const {
        return std::uint64_t{fault.at_message} * scenario_.messages / Scenario::kMessages;
    }

    void inject(Fault fault);
    void take_effect(const Fault& fault);
    void end_process(const Fault& fault);
    void pass_on(unsigned dead);
    void finish(RunEnd end);

    const Scenario& scenario_;
    Findings findings_;
    World world_;
    Counting counting_;
    rmem::sim::TraceHash hash_;
    bool has_hash_ = false;
    Model model_;
    Traffic traffic_;
    std::unique_ptr<rmem::sim::Observers> observers_;
    std::size_t next_fault_ = 0;
    std::list<Fault> waiting_;  ///< for an access of their targets
};

/// What would meet a dead rank meets the next one that lives.
void Run::inject(Fault fault) {
    while (!model_.is_alive(fault.target)) fault.target = (fault.target + 1) % Scenario::kRanks;
    const bool waits = fault.kind == FaultKind::stall || fault.kind == FaultKind::kill ||
                       fault.kind == FaultKind::fail_node;
    if (!waits) {
        ++findings_.injected;
        return take_effect(fault);
    }
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
    const std::int64_t end_ns = world_.now_ns() + fault.time_ns;
    switch (fault.kind) {
        case FaultKind::kill:
        case FaultKind::fail_node: return end_process(fault);
        case FaultKind::delay: return world_.delay_writes(target, fault.writes, fault.time_ns);
        case FaultKind::duplicate: return world_.repeat_writes(target, fault.writes);
        default: findings_.met(fault.kind);
    }
    switch (fault.kind) {
        case FaultKind::clog: return world_.delay_writes(target, fault.writes, fault.time_ns);
        case FaultKind::stall: return world_.stall(target, fault.time_ns);
        case FaultKind::deaf: return traffic_.deafen(target, end_ns);
        case FaultKind::stop:
            world_.stop(target);
            return world_.at(end_ns, [this, target] { world_.resume(target); });
        case FaultKind::cut_cable:
            world_.set_cable(0, target, false);
            return world_.at(end_ns, [this, target] { world_.set_cable(0, target, true); });
        default: return;
    }
}

/// Not the last two, so that there is traffic: they only lose the processor for a while.
void Run::end_process(const Fault& fault) {
    if (model_.alive() <= 2) {
        findings_.met(FaultKind::stall);
        return world_.stall(fault.target, fault.time_ns);
    }
    findings_.met(fault.kind);
    model_.dies(fault.target);
    traffic_.dies(fault.target);
    if (fault.kind == FaultKind::fail_node) {
        world_.fail_node(fault.target);
    } else {
        world_.kill(fault.target);
    }
    pass_on(fault.target);
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

void Run::finish(RunEnd end) {
    if (end != RunEnd::all_ended) findings_.violate("the programs did not come to an end");
    if (findings_.injected < scenario_.faults.size()) {
        findings_.violate(fmt::format("{} of {} faults took effect", findings_.injected,
                                      scenario_.faults.size()));
    }
    model_.check_end();
    for (unsigned r = 0; r < Scenario::kRanks; ++r) {
        if (world_.protocol_counters(r).get(billboard::Counter::corrupt) == 0) continue;
        model_.complain(r, "something corrupt was found on the board");
    }
}

}  // namespace

Findings run_scenario(const Scenario& scenario, const HuntOptions& options) {
    return Run(scenario, options).to_end();
}

Subject subject(const HuntOptions& options) {
    return subject_of<Scenario>("--mpi", Kinds::of<FaultKind, Sight>(),
                                "tests/simulator/mpi_seeds.txt", options);
}

}  // namespace simulator::mpi
