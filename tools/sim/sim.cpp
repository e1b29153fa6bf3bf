// SPDX-License-Identifier: Apache-2.0
// `rmem sim`: the same library in virtual time.

#include "tools/sim/sim.hpp"

namespace tools {

namespace {

constexpr const char* kSimExamples = R"(
Examples:
  rmem sim paper                        the 1999 paper's numbers beside the simulation's
  rmem sim paper --figure 4 --data      one of its figures as columns
  rmem sim scale                        multicast and barrier on more and more nodes
  rmem sim hunt --seeds 1000            random traffic under random trouble, checked
  rmem sim replay 42 --trace            one of these seeds, event by event

Each has its own --help. Equal command lines give equal output, on every machine.
Exit codes: 0 done, 1 failed, 2 wrong command line.)";

}  // namespace

void add_sim(cli::App& app) {
    cli::App* sim = app.add_subcommand(kSim.word, kSim.description);
    sim->footer(kSimExamples);
    sim->require_subcommand(1);
    for (const auto add : {add_sim_paper, add_sim_scale, add_sim_hunt, add_sim_replay}) add(*sim);
}

}  // namespace tools
