// SPDX-License-Identifier: Apache-2.0
// The `rmem` command: starts ranks on this host, and looks at the rings they are in.

#include "tools/command_line.hpp"

#include <csignal>

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): a failed write says it
    return tools::run_command_line({argv + 1, argv + argc});
}
