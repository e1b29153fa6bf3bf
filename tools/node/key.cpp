// SPDX-License-Identifier: Apache-2.0
// `rmem key`: makes the key that all nodes of a ring share.

#include "rmem/link/udp/key_file.hpp"
#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

namespace tools {

namespace {

constexpr const char* kKeyExamples = R"(
Examples:
  rmem key                                       makes rmem.key in this folder
  rmem key /etc/rmem/rig.key                     somewhere else
  scp -p rmem.key host2:                         each host of the ring gets a copy, mode and all
  RMEM_KEY_FILE=$PWD/rmem.key ./program          and each program is told where it is

Anyone who has the key can write into the ring. A key that others may have read is replaced on all
hosts.
Exit codes: 0 done, 1 failed, 2 wrong command line.)";

struct KeyOptions {
    std::string out = "rmem.key";
    bool json = false;
};

void make_key(const KeyOptions& options) {
    rmem::udp::write_new_key(options.out);
    const std::string file = std::filesystem::absolute(options.out).lexically_normal();
    if (options.json) return show_json({{"file", file}, {"mode", "0600"}});
    show(
        fmt::format("{} has a new key, which only you can read. What to do next:\n"
                    "  copy it to each host of the ring    scp -p {} HOST:\n"
                    "  tell programs there where it is     export RMEM_KEY_FILE={}\n",
                    file, file, file));
}

}  // namespace

void add_key(cli::App& app) {
    auto options = std::make_shared<KeyOptions>();
    cli::App* command = app.add_subcommand("key", "Make the key that a ring's hosts share");
    command->add_option("FILE,--out", options->out, "The file, which must not exist yet")
        ->capture_default_str();
    command->add_flag("--json", options->json, "Print the result as JSON");
    command->footer(kKeyExamples);
    command->callback([options] { make_key(*options); });
}

}  // namespace tools
