// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The subcommands of `rmem sim`, each in a file of its own name.

#include "tools/commands.hpp"

namespace tools {

void add_sim_paper(CLI::App& sim);
void add_sim_scale(CLI::App& sim);
void add_sim_hunt(CLI::App& sim);
void add_sim_replay(CLI::App& sim);

}  // namespace tools
