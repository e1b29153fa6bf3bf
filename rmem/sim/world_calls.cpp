// SPDX-License-Identifier: Apache-2.0

/// The effects of an arrival in the node's processes: interrupts, and calls that they asked for.

#include "rmem/sim/world.hpp"

#include <algorithm>
#include <utility>

namespace rmem::sim {

// ---- Calls in the name of a process, as a thread of it would make them

void World::call(Process& process, std::function<void()> action) {
    process.calls_.push_back(std::move(action));
    run_calls_soon(process);
}

void World::run_calls_soon(const Process& process) {
    at(now_ns_, [this, rank = process.rank_, incarnation = process.incarnation_] {
        run_calls(rank, incarnation);
    });
}

/// Any of them may end the process.
void World::run_calls(unsigned rank, unsigned incarnation) {
    for (;;) {
        Process* process = ranks_[rank].process.get();
        if (process == nullptr || process->incarnation_ != incarnation) return;
        if (process->stopped_ || process->calls_.empty()) return;
        const auto action = std::move(process->calls_.front());
        process->calls_.pop_front();
        action();
    }
}

// ---- Interrupts

void World::raise_interrupts(Node& node, unsigned id, const WriteInFlight& write,
                             std::int64_t now) {
    const std::uint64_t raised =
        node.interrupts->raise(write.origin, write.offset, write.data, write.interrupts);
    node.link->add(LinkCounter::interrupts_raised, raised);
    if (raised == 0) return;
    for (Process* process : node.parked) {
        if (!process->awaits_interrupt_ || process->stopped_) continue;
        if (now < process->queued_for_ns_) queue(*process, now);
    }
    for (const Rank& rank : ranks_of(id)) {
        if (rank.process && rank.process->on_interrupt_) call_on_interrupt(*rank.process);
    }
}

std::optional<Interrupt> World::take_interrupt(Process& process) {
    Node& node = nodes_[process.node_];
    if (!node.interrupts) return std::nullopt;
    const auto taken = node.interrupts->take(process.rank_);
    if (taken) node.link->add(LinkCounter::interrupts_lost, taken->missed);
    return taken;
}

void World::call_on_interrupt(Process& process) {
    call(process, [this, &process] {
        const auto& interrupts = nodes_[process.node_].interrupts;
        const auto callback = process.on_interrupt_;  // a copy: it may ask for another one
        if (!callback || !interrupts) return;
        const auto taken = take_interrupt(process);
        if (!taken) return;
        if (interrupts->pending(process.rank_)) call_on_interrupt(process);
        callback(*taken);
    });
}

// ---- The bound

void World::call_on_violation(unsigned id, const WriteInFlight& write, std::int64_t propagation) {
    for (const Rank& rank : ranks_of(id)) {
        Process* process = rank.process.get();
        if (process == nullptr || !process->on_violation_) continue;
        const BoundViolation violation{write.origin, write.offset, write.stored_ns, propagation,
                                       false};
        call(*process, [process, violation] {
            if (const auto callback = process->on_violation_) callback(violation);
        });
    }
}

}  // namespace rmem::sim
