// SPDX-License-Identifier: Apache-2.0
// A command that is a program of its own: RMEM_PROGRAM, which RMEM_ADD adds to the line.

#include "rmem/base/descriptor.hpp"
#include "tools/command_line.hpp"

#include <csignal>

int main(int argc, char** argv) {
    rmem::fill_standard_streams();
    std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): a failed write says it
    return tools::run_program(tools::RMEM_PROGRAM, tools::RMEM_ADD, {argv + 1, argv + argc});
}
