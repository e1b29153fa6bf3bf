// SPDX-License-Identifier: Apache-2.0
// `rmem serve`: opens one node, as any program does, and lets programs use it that are not on its
// host, or on another system.

#include "cards/common/unit.hpp"
#include "rmem/error.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"
#include "tools/serve/server.hpp"
#include "tools/settings.hpp"
#include "tools/stop_signals.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>

namespace tools {

namespace {

constexpr const char* kServeExamples = R"(
Examples:
  rmem serve --ring rig --nodes 2 --node 0             a node of its own, at 127.0.0.1 port 5565
  rmem serve --unit 0                                  that of `rmem node --unit 0`
  rmem serve --unit 1 --listen 127.0.0.1:5566          another; clients know it as the second card
  ssh -L 5565:127.0.0.1:5565 rig-host                  on the client's host: brings the port there

Anyone who reaches the port can read and write the node's bank, and send its interrupts: nothing
asks who it is. Only this host reaches 127.0.0.1. For others take a tunnel, as above; --listen
0.0.0.0:5565 opens it to a network that you trust.

Programs for RFM2g cards on Windows are such clients: rfm2g(7).
Exit codes: 0 told to end by SIGTERM, SIGINT or SIGHUP; 1 failed; 2 wrong command line.)";

constexpr Setting kServeSettings[] = {
    {"--ring", "RMEM_RING", "Name of the ring"},
    {"--node", "RMEM_NODE", "Which node this is, from 0"},
    {"--nodes", "RMEM_NODES", "Number of nodes of the ring"},
    {"--rank", "RMEM_RANK", "Which rank this is, from 0 (default: the node's first)"},
    {"--ranks", "RMEM_RANKS", "Number of ranks of the ring (default: one per node)"},
    {"--link", "RMEM_LINK", "direct, ring, udp or fabric"},
};

struct ServeOptions {
    Settings settings;
    std::optional<unsigned> unit;
    unsigned silence_s = 60;
    std::string listen = fmt::format("127.0.0.1:{}", remote::kFirstPort);
};

cards::OwnNode open_node(const ServeOptions& options) {
    rmem_node* node = nullptr;
    int code = RMEM_OK;
    if (options.unit) {
        node = cards::open_unit(*options.unit, code).release();
    } else {
        options.settings.apply();
        rmem_options own = RMEM_OPTIONS;
        own.await = RMEM_AWAIT_NONE;
        code = rmem_open_with(&node, &own);
    }
    if (code < 0) throw std::runtime_error(rmem_last_error());
    return cards::OwnNode(node);
}

void run_serve(const ServeOptions& options) {
    const remote::Address address = remote::parse_address("--listen", options.listen);
    // Before there are threads, which inherit what is blocked.
    const StopSignals stop;
    const cards::OwnNode node = open_node(options);
    Server server(node.get(), address, options.silence_s * rmem::kNsPerSecond,
                  [](const std::string& sentence) {
                      std::fprintf(stderr, "rmem serve: %s\n", sentence.c_str());
                  });
    show(fmt::format("node {} at {} port {}\n", rmem_id(node.get()), address.host, server.port()));
    server.run(stop);
}

}  // namespace

void add_serve(cli::App& app) {
    auto options = std::make_shared<ServeOptions>();
    cli::App* command = app.add_subcommand("serve", "Let programs elsewhere use a node");
    options->settings.add_to(*command, kServeSettings);
    options->settings.add_to(*command, kRingSettings);
    command->add_option("--unit", options->unit,
                        "The node of the cards' unit of that number, from 0");
    command
        ->add_option("--listen", options->listen, "Address and port of this host; port 0: any one")
        ->capture_default_str();
    command
        ->add_option("--silence", options->silence_s,
                     "Seconds after which a silent client loses its place, if another comes")
        ->capture_default_str();
    command->footer(kServeExamples);
    command->callback([options] { run_serve(*options); });
}

}  // namespace tools
