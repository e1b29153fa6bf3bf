// SPDX-License-Identifier: Apache-2.0
// What every subcommand has in common.

#include "tests/support/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::Contains;

/// As the command itself lists them.
std::vector<std::string> subcommands() {
    std::vector<std::string> names;
    std::istringstream help(run_tool({"--help"}).out);
    bool listed = false;
    for (std::string line; std::getline(help, line);) {
        if (line == "Subcommands:") {
            listed = true;
        } else if (listed && line.empty()) {
            break;
        } else if (listed && line.size() > 2 && line[2] != ' ') {
            names.push_back(line.substr(2, line.find(' ', 2) - 2));
        }
    }
    return names;
}

TEST(Help, lists_the_subcommands) {
    for (const char* name :
         {"run", "list", "info", "peek", "poke", "dump", "watch", "doctor", "clean"}) {
        EXPECT_THAT(subcommands(), Contains(name));
    }
}

TEST(Help, the_help_of_every_subcommand_has_examples_and_exit_codes) {
    for (const auto& name : subcommands()) {
        SCOPED_TRACE(name);
        expect_out(run_tool({name, "--help"}), 0, {"Examples:", "  rmem " + name, "Exit codes:"});
    }
}

TEST(Help, a_command_whose_program_is_not_installed_names_it) {
    std::string folder = ::testing::TempDir() + "XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const std::string alone = folder + "/rmem";
    std::filesystem::copy_file(RMEM_TOOL, alone);
    const Ran ran = run_tool({"run", "-n", "1", "--", alone, "sim", "paper"});
    std::filesystem::remove_all(folder);
    expect_err(ran, 1,
               {"`rmem sim` is the program rmem-sim, which is not in " + folder +
                "; install the package rmem-sim"});
}

TEST(Help, tells_the_version) {
    EXPECT_THAT(run_tool({"--version"}).out, ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

}  // namespace
}  // namespace rmem::test
