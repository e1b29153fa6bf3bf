// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The subcommands of `rmem sim`, each in a file of its own name.

#include "tools/commands.hpp"

namespace tools {

void add_sim_paper(cli::App& sim);
void add_sim_scale(cli::App& sim);
void add_sim_hunt(cli::App& sim);
void add_sim_replay(cli::App& sim);

}  // namespace tools
