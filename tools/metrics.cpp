// SPDX-License-Identifier: Apache-2.0
// `rmem metrics`: serves a ring's counters to Prometheus.

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <string>

#include "rmem/clock.hpp"
#include "tools/commands.hpp"
#include "tools/metrics_server.hpp"
#include "tools/output.hpp"
#include "tools/ring_metrics.hpp"
#include "tools/ring_sampler.hpp"
#include "tools/stop_signals.hpp"

namespace tools {

namespace {

constexpr const char* kExamples = R"(
Examples:
  rmem metrics my-ring --port 9464                  then: curl http://127.0.0.1:9464/metrics
  rmem metrics my-ring --port 0                     any free port; the first line says which
  rmem metrics my-ring                              prints them once

A bystander: it takes part in nothing, and goes on when the ring ends or comes back. `rmem node --metrics PORT`
serves a node's own. Only this host can ask, unless --metrics-address says another address.
Exit codes: 0 done, or told to end by SIGTERM, SIGINT or SIGHUP; 1 failed; 2 wrong command line.)";

struct MetricsOptions {
    std::string ring, address = "127.0.0.1";
    std::optional<std::uint16_t> port;
};

void run_metrics(const MetricsOptions& options) {
    RingSampler sampler(options.ring);
    const auto text = [&] { return metrics_of(options.ring, sampler.sample(rmem::now_ns())); };
    if (!sampler.sample(rmem::now_ns()).exists) rmem::Ring::observe(options.ring);  // says it
    if (!options.port) return show(text());
    const StopSignals stop;
    const MetricsServer server(options.address, *options.port, text);
    show(server.url() + "\n");
    while (stop.signal() == 0) stop.sleep_until(std::numeric_limits<std::int64_t>::max());
}

}  // namespace

void add_metrics(CLI::App& app) {
    auto options = std::make_shared<MetricsOptions>();
    CLI::App* command = app.add_subcommand("metrics", "Serve a ring's counters to Prometheus");
    command->add_option("RING", options->ring, "Name of the ring")->required();
    command->add_option("--port", options->port, "Serve them at this port; 0: any free one");
    command->add_option("--metrics-address", options->address, "And at this address of the host")
        ->capture_default_str();
    command->footer(kExamples);
    command->callback([options] { run_metrics(*options); });
}

}  // namespace tools
