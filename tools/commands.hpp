// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The commands of `rmem`. Each is one function in a file of its own name; it adds itself to the
/// command line, and runs from there. Those of kPrograms are programs of their own, each built of
/// what it needs (tools/CMakeLists.txt), since few need them and they cost the most to build.
///
/// A command that is done returns; `end_with` ends one with another exit code. Failures are thrown
/// as `rmem::Error`, which tools/command_line.cpp prints; words that cannot be read, as UsageError
/// (tools/usage.hpp).

#include "tools/options.hpp"

#include <string>

namespace tools {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  ///< the sentence on stderr says what and why
inline constexpr int kExitUsage = 2;   ///< the command line cannot be read

/// A command's end with another exit code than that of a return.
struct Ended {
    int exit_code;
};

[[noreturn]] inline void end_with(int exit_code) {
    throw Ended{exit_code};
}

/// A command that is the program `rmem-WORD`, and its line in `rmem --help`.
struct Program {
    const char* word;
    const char* description;
};
inline constexpr Program kBridge{"bridge", "Forward regions of one ring to another"};
inline constexpr Program kBench{"bench", "Measure beside the machine's own limit"};
inline constexpr Program kDemo{"demo", "Show it at work: four processes, one table"};
inline constexpr Program kConform{"conform",
                                  "Try the rules of a reflective memory on a card or link"};
inline constexpr Program kSim{"sim", "Simulate: the library in virtual time"};
inline constexpr Program kPrograms[] = {kBridge, kBench, kDemo, kConform, kSim};

/// The ring that a command is about: a word, or --ring.
inline cli::Option* add_ring(cli::App& command, std::string& ring,
                             const std::string& meaning = "Name of the ring") {
    return command.add_option("RING,--ring", ring, meaning);
}

void add_run(cli::App& app);
void add_make(cli::App& app);
void add_map(cli::App& app);
void add_peek(cli::App& app);
void add_poke(cli::App& app);
void add_dump(cli::App& app);
void add_wait(cli::App& app);
void add_who(cli::App& app);
void add_break(cli::App& app);
void add_watch(cli::App& app);
void add_info(cli::App& app);
void add_list(cli::App& app);
void add_env(cli::App& app);
void add_clean(cli::App& app);
void add_doctor(cli::App& app);
void add_conform(cli::App& app);
void add_profiles(cli::App& app);
void add_bench(cli::App& app);
void add_demo(cli::App& app);
void add_sim(cli::App& app);
void add_record(cli::App& app);
void add_replay(cli::App& app);
void add_serve(cli::App& app);
void add_bridge(cli::App& app);
void add_key(cli::App& app);
void add_node(cli::App& app);
void add_top(cli::App& app);
void add_metrics(cli::App& app);

}  // namespace tools
