// SPDX-License-Identifier: Apache-2.0
#include "bench/ports/instructions.hpp"

#include "bench/ports/systems.hpp"

#include <map>

namespace bench {

namespace {

template <class System>
[[gnu::noinline]] void counted_send(System& system, unsigned times) {
    for (unsigned i = 0; i < times; ++i) system.send(System::kSmall);
}
template <class System>
[[gnu::noinline]] void counted_receive(System& system, unsigned times) {
    for (unsigned i = 0; i < times; ++i) system.receive(System::kSmall);
}

template <class System>
void take_turns(RankContext& rank, const InstructionPlan& plan) {
    System system(rank);
    checked(bbp_barrier());
    for (unsigned i = 0; i < 2 * plan.rounds; ++i) {
        const bool sends = rank.rank == i % 2;
        if (sends) counted_send(system, plan.turn);
        checked(bbp_barrier());
        if (!sends) counted_receive(system, plan.turn);
    }
    checked(bbp_barrier());
}

using Body = void (*)(RankContext&, const InstructionPlan&);
const std::map<std::string, Body> kBodies = {
    {"bbp", take_turns<Billboard>}, {"fm4", take_turns<Fm4>},     {"fm1", take_turns<Fm1>},
    {"fm2", take_turns<Fm2>},       {"gamma", take_turns<Gamma>}, {"dp", take_turns<Dp>}};

}  // namespace

std::vector<std::string> systems_counted() {
    std::vector<std::string> names;
    for (const auto& [name, body] : kBodies) names.push_back(name);
    return names;
}

void run_counted(const GroupOptions& options, const InstructionPlan& plan) {
    Results results;
    const Body body = kBodies.at(plan.system);
    run_ranks(options, results, [&](RankContext& rank) { body(rank, plan); });
}

}  // namespace bench
