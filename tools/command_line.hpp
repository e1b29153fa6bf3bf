// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The whole of `rmem` except for its process: words in, exit code out.
///
/// A wrong word gets a suggestion; `rmem help WORD` is `rmem WORD --help`. Everything that goes
/// wrong is one sentence on stderr that begins with the command's name.
/// Thread safety: one thread.

#include <string>
#include <vector>

namespace tools {

/// Runs a command line, given without the program's name, and returns its exit code.
[[nodiscard]] int run_command_line(std::vector<std::string> words);

}  // namespace tools
