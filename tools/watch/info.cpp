// SPDX-License-Identifier: Apache-2.0
// `rmem info` and `rmem list`: the rings of this host, and their members.

#include "rmem/ring/segment.hpp"
#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"
#include "tools/watch/munet_report.hpp"
#include "tools/watch/ring_report.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>

namespace tools {

namespace {

constexpr const char* kInfoExamples = R"(
Examples:
  rmem info my-ring                     members, times and counters that are not zero
  rmem info default@0 --munet           endpoints of `rmem node --munet`, and refusals
  rmem info my-ring --json | jq '.members[] | select(.state == "dead")'

States: alive, stopped (alive, but not running), dead (died without leaving), left, absent (not yet
come). Exit codes: 0 done, 1 failed, 2 wrong command line.)";

constexpr const char* kListExamples = R"(
Examples:
  rmem list
  rmem list --json | jq -r '.[] | select(.state == "dead") | .name'

States: alive, dead (nobody is left: `rmem clean` removes it), kept (nobody is in it: `rmem make`
made it to stay), broken (no ring of this version), not yours (another user's, whose name
follows).
Exit codes: 0 done, 1 failed, 2 wrong command line.)";

constexpr const char* kNotYours = "not yours";

std::string problem_of(const nlohmann::json& ring) {
    if (ring.contains("owner"))
        return fmt::format("({})", printable(ring["owner"].get<std::string>()));
    return ring.contains("problem") ? printable(ring["problem"].get<std::string>()) : "";
}

void list(bool as_json) {
    nlohmann::json rings = nlohmann::json::array();
    for (const auto& name : rmem::Segment::list()) {
        auto summary = ring_summary(name);
        // Its last member may have gone since, and the ring with it.
        if (summary["state"] != "broken" || rmem::Segment::exists(name)) rings.push_back(summary);
    }
    for (const auto& name : rmem::Segment::others()) {
        rings.push_back({{"name", name},
                         {"segment", name},
                         {"state", kNotYours},
                         {"owner", rmem::Segment::owner(name)}});
    }
    if (as_json) return show_json(rings);
    if (rings.empty()) return show("No rings on this host.\n");
    Table table({"ring", "state", ">ranks alive", "link", "timing", ">segment", ""});
    for (const auto& ring : rings) {
        const std::string name = printable(ring["segment"].get<std::string>());
        const std::string state = ring["state"].get<std::string>();
        if (state == "broken" || state == kNotYours) {
            table.add({name, state, "-", "-", "-", "-", problem_of(ring)});
            continue;
        }
        table.add({name, state,
                   fmt::format("{} of {}", ring["live_ranks"].get<unsigned>(),
                               ring["ranks"].get<unsigned>()),
                   ring["link"].get<std::string>(), ring["timing"].get<std::string>(),
                   size_text(ring["segment_bytes"].get<std::uint64_t>()), ""});
    }
    show(table.text());
}

}  // namespace

void add_info(cli::App& app) {
    struct Options {
        std::string ring;
        bool json = false, munet = false;
    };
    auto options = std::make_shared<Options>();
    cli::App* command = app.add_subcommand("info", "Show a ring: members, times, counters");
    add_ring(*command, options->ring)->required();
    command->add_flag("--json", options->json, "Print JSON, zeros and meanings included");
    command->add_flag("--munet", options->munet,
                      "Of the MU-Net daemon of RING, given as <ring>@<node>");
    command->footer(kInfoExamples);
    command->callback([options] {
        if (options->munet) {
            const auto report = munet_report(options->ring);
            return options->json ? show_json(report) : show(munet_report_text(report));
        }
        const auto report = ring_report(*rmem::Ring::observe(options->ring));
        options->json ? show_json(report) : show(report_text(report));
    });
}

void add_list(cli::App& app) {
    auto json = std::make_shared<bool>(false);
    cli::App* command = app.add_subcommand("list", "List the rings of this host");
    command->add_flag("--json", *json, "Print JSON");
    command->footer(kListExamples);
    command->callback([json] { list(*json); });
}

}  // namespace tools
