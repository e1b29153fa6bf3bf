// SPDX-License-Identifier: Apache-2.0
// `rmem wait`: until a ring is there and its ranks have come.

#include "rmem/base/clock.hpp"
#include "tools/commands.hpp"
#include "tools/usage.hpp"
#include "tools/watch/ring_sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

namespace tools {

namespace {

constexpr const char* kWaitExamples = R"(
Examples:
  rmem wait rig                         until there is a ring 'rig' that can be looked at
  rmem wait rig --ranks all             and all of its ranks have joined
  rmem wait rig --ranks 2 --for 5m      two of them, within five minutes

Exit codes: 0 they are there, 1 they have not come in time, 2 wrong command line.)";

constexpr std::chrono::milliseconds kBetweenWaitLooks{5};

struct WaitOptions {
    std::string ring, ranks = "0", patience = "30s";
};

/// What the ring lacks; empty: nothing.
std::string lack_of(const RingSample& ring, const WaitOptions& options) {
    if (!ring.exists) return "is not on this host";
    if (!ring.has_members && !ring.stays) return "has no members left";
    const bool is_in = std::any_of(ring.nodes.begin(), ring.nodes.end(), [](const NodeSample& n) {
        return n.engine && n.engine->is_member();
    });
    if (ring.config.is_remote() && !is_in) return "is joined by no node of this host yet";
    const unsigned all = ring.config.ranks;
    const unsigned wanted =
        options.ranks == "all" ? all : rmem::parse_unsigned("--ranks", options.ranks, all);
    const auto here = std::count_if(ring.ranks.begin(), ring.ranks.end(),
                                    [](const RankSample& rank) { return rank.is_alive(); });
    return here >= wanted ? "" : fmt::format("has {} of its {} ranks", here, all);
}

void wait_for_ring(const WaitOptions& options) {
    const auto deadline = rmem::Deadline::in(duration_option("--for", options.patience));
    RingSampler sampler(options.ring);
    for (;;) {
        std::string lack;
        try {
            lack = lack_of(sampler.sample(rmem::now_ns()), options);
        } catch (const rmem::Error& error) {
            if (error.code() != rmem::Errc::foreign_segment) throw;
            lack = "is half made";
        }
        if (lack.empty()) return;
        if (deadline.passed(rmem::now_ns())) {
            throw rmem::Error(rmem::Errc::timed_out,
                              fmt::format("ring '{}' {}, after {}; start what is missing, or wait "
                                          "longer (--for)",
                                          options.ring, lack, options.patience));
        }
        std::this_thread::sleep_for(kBetweenWaitLooks);
    }
}

}  // namespace

void add_wait(cli::App& app) {
    auto options = std::make_shared<WaitOptions>();
    cli::App* command = app.add_subcommand("wait", "Wait until a ring, or its ranks, are there");
    add_ring(*command, options->ring)->required();
    command->add_option("--ranks", options->ranks, "This many ranks, or all")
        ->capture_default_str();
    command->add_option("--for", options->patience, "At most this long")->capture_default_str();
    command->footer(kWaitExamples);
    command->callback([options] { wait_for_ring(*options); });
}

}  // namespace tools
