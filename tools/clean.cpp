// SPDX-License-Identifier: Apache-2.0
// `rmem clean`: removes rings without live members.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "rmem/segment.hpp"
#include "tools/cleaning.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"

namespace tools {

namespace {

constexpr const char* kExamples = R"(
Examples:
  rmem clean                            all rings of this host that nobody is left in
  rmem clean my-ring                    this one, if nobody is left in it, with all its nodes that are here
  rmem clean --dry-run                  only says what would be removed

A ring with a live member is never removed; end its processes first (`rmem info RING` names them).
Exit codes: 0 done (a ring that was named is gone), 1 a named ring was kept, 2 wrong command line.)";

struct CleanOptions {
    std::vector<std::string> rings;
    bool all = false, force = false, dry_run = false, json = false;
};

std::string line_of(const Cleaned& ring, bool dry_run) {
    const char* what = !ring.removed ? "kept" : dry_run ? "would remove" : "removed";
    return fmt::format("{} {}: {}\n", what, printable(ring.ring), printable(ring.why));
}

/// What this host has of each ring: its segment, or those of its nodes; of one that is not here, its name.
std::vector<std::string> segments_of(const std::vector<std::string>& rings) {
    std::vector<std::string> segments;
    for (const auto& ring : rings) {
        const std::size_t before = segments.size();
        for (const auto& found : rmem::Segment::list()) {
            if (found == ring || found.substr(0, found.rfind('@')) == ring)
                segments.push_back(found);
        }
        if (segments.size() == before) segments.push_back(ring);
    }
    return segments;
}

void clean(const CleanOptions& options) {
    const auto names = options.rings.empty() ? rmem::Segment::list() : segments_of(options.rings);
    nlohmann::json report = nlohmann::json::array();
    std::string text;
    bool all_removed = true;
    for (const auto& name : names) {
        const Cleaned ring = clean_ring(name, options.force, options.dry_run);
        all_removed = all_removed && ring.removed;
        text += line_of(ring, options.dry_run);
        report.push_back({{"ring", ring.ring},
                          {"removed", ring.removed && !options.dry_run},
                          {"removable", ring.removed},
                          {"why", ring.why}});
    }
    if (options.json) {
        show_json(report);
    } else {
        show(text.empty() ? "No rings on this host.\n" : text);
    }
    if (!options.rings.empty() && !all_removed) end_with(kExitFailed);
}

}  // namespace

void add_clean(CLI::App& app) {
    auto options = std::make_shared<CleanOptions>();
    CLI::App* command = app.add_subcommand("clean", "Remove rings that nobody is left in");
    auto* rings = command->add_option("RING", options->rings, "Names (default: all)");
    command->add_flag("--all", options->all, "All rings of this host, as without a name")
        ->excludes(rings);
    command->add_flag("--force", options->force,
                      "Also what is no ring, if no live process holds a lock on it");
    command->add_flag("--dry-run", options->dry_run, "Only say what would be removed");
    command->add_flag("--json", options->json, "Print JSON");
    command->footer(kExamples);
    command->callback([options] { clean(*options); });
}

}  // namespace tools
