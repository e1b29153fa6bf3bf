// SPDX-License-Identifier: Apache-2.0
// `rmem metrics`: serves a ring's counters to Prometheus.

#include "rmem/base/clock.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"
#include "tools/stop_signals.hpp"
#include "tools/usage.hpp"
#include "tools/watch/metrics_server.hpp"
#include "tools/watch/ring_metrics.hpp"
#include "tools/watch/ring_sampler.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>

namespace tools {

namespace {

constexpr const char* kMetricsExamples = R"(
Examples:
  rmem metrics my-ring --port 9464                  then: curl http://127.0.0.1:9464/metrics
  rmem metrics my-ring --port 0                     any free port; the first line says which
  rmem metrics my-ring --port 9464 --wait 1h        started before the ring is there
  rmem metrics my-ring                              prints them once

An observer: it takes part in nothing, and goes on when the ring ends or comes back. `rmem node
--metrics PORT` serves a node's own. Only this host can ask, unless --metrics-address says another
address.
Exit codes: 0 done, or told to end by SIGTERM, SIGINT or SIGHUP; 1 failed; 2 wrong command line.)";

constexpr unsigned kMaxPort = 65535;
constexpr std::int64_t kWaitStepNs = 10'000'000;

struct MetricsOptions {
    std::string ring, wait, address = "127.0.0.1";
    std::optional<unsigned> port;
};

/// Whether the ring is there, at the latest at the end of the time to wait for it.
bool await_ring(RingSampler& sampler, const MetricsOptions& options, const StopSignals& stop) {
    const rmem::Deadline deadline =
        rmem::Deadline::in(options.wait.empty() ? 0 : duration_option("--wait", options.wait));
    for (;;) {
        if (sampler.sample(rmem::now_ns()).exists) return true;
        if (deadline.passed(rmem::now_ns()) || stop.signal() != 0) return false;
        stop.sleep_until(rmem::now_ns() + kWaitStepNs);
    }
}

void run_metrics(const MetricsOptions& options) {
    RingSampler sampler(options.ring);
    const auto text = [&] { return metrics_of(options.ring, sampler.sample(rmem::now_ns())); };
    const StopSignals stop;
    if (!await_ring(sampler, options, stop)) {
        if (stop.signal() != 0) return;
        rmem::Ring::observe(options.ring);  // says it
    }
    if (!options.port) return show(text());
    const MetricsServer server(options.address, static_cast<std::uint16_t>(*options.port), text);
    show(server.url() + "\n");
    while (stop.signal() == 0) stop.sleep_until(rmem::kNever);
}

}  // namespace

void add_metrics(cli::App& app) {
    auto options = std::make_shared<MetricsOptions>();
    cli::App* command = app.add_subcommand("metrics", "Serve a ring's counters to Prometheus");
    add_ring(*command, options->ring)->required();
    command->add_option("--port", options->port, "Serve them at this port; 0: any free one")
        ->check(cli::range(0U, kMaxPort));
    command->add_option("--wait", options->wait, "Wait this long for the ring to be there");
    command->add_option("--metrics-address", options->address, "Also at this address of the host")
        ->capture_default_str();
    command->footer(kMetricsExamples);
    command->callback([options] { run_metrics(*options); });
}

}  // namespace tools
