// SPDX-License-Identifier: Apache-2.0
// The `rmem` command: starts ranks on this host, and looks at the rings they are in.

#include "rmem/base/descriptor.hpp"
#include "tools/command_line.hpp"

#include <csignal>

int main(int argc, char** argv) {
    using namespace tools;
    rmem::fill_standard_streams();
    std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): a failed write says it
    constexpr AddCommand kCommands[] = {add_run, add_make,    add_node,   add_list,     add_info,
                                        add_env, add_peek,    add_poke,   add_dump,     add_watch,
                                        add_top, add_metrics, add_record, add_replay,   add_serve,
                                        add_key, add_doctor,  add_clean,  add_profiles, add_wait,
                                        add_map, add_who,     add_break};
    return run_command_line({argv + 1, argv + argc}, kCommands);
}
