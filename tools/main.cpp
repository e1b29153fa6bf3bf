// SPDX-License-Identifier: Apache-2.0
// The `rmem` command: starts ranks on this host, and looks at the rings they are in.

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "rmem/error.hpp"
#include "tools/commands.hpp"

namespace {

constexpr const char* kOverview = R"(
Examples:
  rmem run -n 4 -- ./program            four ranks of a program on this host
  rmem node --ring rig --node 0 --nodes 2   a node of a ring over several hosts
  rmem list                             the rings of this host
  rmem watch my-ring 0x100 4            what changes at an address
  rmem top my-ring                      who is there, traffic, losses, times: live
  rmem record --ring my-ring -o a.rec   every write, with its time, in a file
  rmem doctor                           is this host fit for it?
  rmem bench pingpong                   how fast is it here, beside the machine's own limit?
  rmem sim paper                        how fast was it on the cards of 1999? In virtual time

Exit codes: 0 done, 1 failed (the sentence says why), 2 wrong command line; `rmem run` has its own.
Manual: rmem(1), rmem(7) for the environment, bbp(7) for programming.)";

/// The words after the program's name belong to the program: `run -n 4 prog -n 3` becomes
/// `run -n 4 -- prog -n 3`.
void separate_program(const CLI::App& run, std::vector<std::string>& words) {
    for (auto word = words.begin() + 1; word != words.end(); ++word) {
        if (*word == "--") return;
        if (!word->starts_with('-')) {
            words.insert(word, "--");
            return;
        }
        const bool has_value =
            word->find('=') != std::string::npos || (!word->starts_with("--") && word->size() > 2);
        const CLI::Option* option = run.get_option_no_throw(*word);
        const bool wants_value = option != nullptr && option->get_items_expected_max() > 0;
        if (wants_value && !has_value && word + 1 != words.end()) ++word;
    }
}

int parse_and_run(CLI::App& app, std::vector<std::string> words) {
    if (!words.empty() && words[0] == "run") separate_program(*app.get_subcommand("run"), words);
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    try {
        app.parse(words);
    } catch (const CLI::RuntimeError& ended) {
        return ended.get_exit_code();
    } catch (const CLI::ParseError& wrong) {
        return app.exit(wrong) == 0 ? tools::kExitOk : tools::kExitUsage;
    }
    return tools::kExitOk;
}

std::string command_of(const CLI::App& app) {
    const auto chosen = app.get_subcommands();
    return chosen.empty() ? "rmem" : "rmem " + chosen.front()->get_name();
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): a failed write says it
    CLI::App app{"Reflective memory in software: starts programs, looks at rings.", "rmem"};
    app.set_version_flag("--version", RMEM_VERSION);
    app.footer(kOverview);
    app.require_subcommand(1);
    app.get_formatter()->column_width(34);
    for (const auto add :
         {tools::add_run,      tools::add_make,  tools::add_node,    tools::add_list,
          tools::add_info,     tools::add_peek,  tools::add_poke,    tools::add_dump,
          tools::add_watch,    tools::add_top,   tools::add_metrics, tools::add_record,
          tools::add_replay,   tools::add_key,   tools::add_doctor,  tools::add_clean,
          tools::add_profiles, tools::add_bench, tools::add_demo,    tools::add_sim}) {
        add(app);
    }
    try {
        return parse_and_run(app, std::vector<std::string>(argv + 1, argv + argc));
    } catch (const rmem::Error& error) {
        fmt::print(stderr, "{}: {}\n", command_of(app), error.what());
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}: {}\n", command_of(app), error.what());
    }
    return tools::kExitFailed;
}
