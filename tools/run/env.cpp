// SPDX-License-Identifier: Apache-2.0
// `rmem env`: the settings of a ring that is there, as variables.

#include "billboard/boards/layout.hpp"
#include "rmem/ring/ring.hpp"
#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tools {

namespace {

constexpr const char* kEnvExamples = R"~(
Examples:
  rmem env rig                          its settings, a line for each
  eval "$(rmem env rig --rank 2)"       and the next program of this shell is its rank 2
  rmem env rig --json

A program needs less: RMEM_RING and RMEM_RANK are enough to join a ring that is there; all
other settings must agree with it. Link udp needs besides RMEM_GROUP, RMEM_INTERFACE and
RMEM_KEY_FILE as its other nodes have them, which a ring does not tell.
Exit codes: 0 done, 1 failed, 2 wrong command line.)~";

struct EnvOptions {
    std::string ring;
    std::optional<unsigned> rank;
    bool json = false;
};

using ListedVariables = std::vector<std::pair<std::string, std::string>>;

ListedVariables variables_of(const rmem::RingConfig& config, std::optional<unsigned> rank) {
    ListedVariables all = {{"RMEM_RING", config.name},
                           {"RMEM_RANKS", std::to_string(config.ranks)},
                           {"RMEM_NODES", std::to_string(config.nodes)},
                           {"RMEM_LINK", name_of(config.link)},
                           {"RMEM_SIZE", rmem::size_setting(config.user_bytes)},
                           {"RMEM_TIMING", to_string(config.timing)}};
    if (config.bound_ns != 0)
        all.emplace_back("RMEM_BOUND", rmem::duration_setting(config.bound_ns));
    if (const auto board = billboard::board_of(config)) {
        all.emplace_back("RMEM_LAYOUT", name_of(board->layout));
        all.emplace_back("RMEM_PARTITION", rmem::size_setting(board->data_bytes));
    }
    if (rank) all.emplace_back("RMEM_RANK", std::to_string(*rank));
    return all;
}

void env(const EnvOptions& options) {
    const auto ring = rmem::Ring::observe(options.ring);
    const rmem::RingConfig& config = ring->config();
    if (options.rank && *options.rank >= config.ranks) {
        throw rmem::Error(rmem::Errc::bad_rank,
                          fmt::format("ring '{}' has no rank {} (--rank): its ranks are 0 to {}",
                                      config.name, *options.rank, config.ranks - 1));
    }
    const ListedVariables all = variables_of(config, options.rank);
    if (options.json) {
        nlohmann::json values = nlohmann::json::object();
        for (const auto& [name, value] : all) values[name] = value;
        return show_json(values);
    }
    std::string text;  // no value has a character that a shell would take for more
    for (const auto& [name, value] : all) text += fmt::format("export {}={}\n", name, value);
    show(text);
}

}  // namespace

void add_env(cli::App& app) {
    auto options = std::make_shared<EnvOptions>();
    cli::App* command = app.add_subcommand("env", "Print a ring's settings as variables");
    add_ring(*command, options->ring)->required();
    command->add_option("--rank", options->rank, "And this rank");
    command->add_flag("--json", options->json, "Print JSON");
    command->footer(kEnvExamples);
    command->callback([options] { env(*options); });
}

}  // namespace tools
