// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The subcommands of `rmem`. Each is one function in a file of its own name; it adds itself to the
/// command line, and runs from there.
///
/// A command that is done returns; `end_with` ends one with another exit code. What goes wrong is
/// thrown as `rmem::Error`, which main() prints.

#include <CLI/CLI.hpp>

namespace tools {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  ///< the sentence on stderr says what and why
inline constexpr int kExitUsage = 2;   ///< the command line cannot be read

[[noreturn]] inline void end_with(int exit_code) {
    throw CLI::RuntimeError(exit_code);
}

void add_run(CLI::App& app);
void add_make(CLI::App& app);
void add_peek(CLI::App& app);
void add_poke(CLI::App& app);
void add_dump(CLI::App& app);
void add_watch(CLI::App& app);
void add_info(CLI::App& app);
void add_list(CLI::App& app);
void add_clean(CLI::App& app);
void add_doctor(CLI::App& app);
void add_profiles(CLI::App& app);
void add_bench(CLI::App& app);
void add_demo(CLI::App& app);
void add_sim(CLI::App& app);
void add_record(CLI::App& app);
void add_replay(CLI::App& app);
void add_key(CLI::App& app);
void add_node(CLI::App& app);
void add_top(CLI::App& app);
void add_metrics(CLI::App& app);

}  // namespace tools
