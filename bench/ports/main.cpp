// SPDX-License-Identifier: Apache-2.0
#include "bench/ports/instructions.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

int main(int argc, char** argv) {
    CLI::App app("The ports beside the billboard");
    bench::GroupOptions options;
    bench::InstructionPlan plan;
    CLI::App& counted = *app.add_subcommand("instructions", "");
    counted.add_option("--system", plan.system)->check(CLI::IsMember(bench::systems_counted()));
    counted.add_option("--rounds", plan.rounds);
    counted.add_option("--turn", plan.turn);
    app.require_subcommand(1);
    CLI11_PARSE(app, argc, argv);
    try {
        bench::run_counted(options, plan);
    } catch (const std::exception& e) {
        fmt::print(stderr, "ports-bench: {}\n", e.what());
        return 1;
    }
    return 0;
}
