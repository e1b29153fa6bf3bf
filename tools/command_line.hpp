// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The command line of `rmem` and of the programs beside it: words in, exit code out.
///
/// Commands that few need are programs of their own, `rmem-sim` and so on, in the folder of `rmem`,
/// which starts them: `rmem sim paper` is `rmem-sim paper`. A program that is not installed is told
/// by name.
///
/// A wrong word gets a suggestion; `rmem help WORD` is `rmem WORD --help`. Everything that goes
/// wrong is one sentence on stderr that begins with the command's name.
/// Thread safety: one thread.

#include "tools/commands.hpp"

#include <span>
#include <string>
#include <vector>

namespace tools {

/// What adds a command to the line.
using AddCommand = void (*)(cli::App&);

/// Runs a command line of `rmem`, given without the program's name, with these commands in it, and
/// returns its exit code. A command of another program becomes that program, and does not return.
[[nodiscard]] int run_command_line(std::vector<std::string> words,
                                   std::span<const AddCommand> commands);

/// The same of a program that has one command; its word is not among `words`.
[[nodiscard]] int run_program(const Program& program, AddCommand command,
                              std::vector<std::string> words);

}  // namespace tools
