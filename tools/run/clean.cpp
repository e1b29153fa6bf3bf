// SPDX-License-Identifier: Apache-2.0
// `rmem clean`: removes rings without live members.

#include "ports/munet/counter_board.hpp"
#include "rmem/ring/segment.hpp"
#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"
#include "tools/run/cleaning.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

namespace tools {

namespace {

constexpr const char* kCleanExamples = R"(
Examples:
  rmem clean                            all rings of this host that nobody is left in, and
                                        counters of MU-Net daemons
  rmem clean my-ring                    this one, if nobody is left in it, with all its nodes that
                                        are here;
                                        also one that `rmem make` made to stay
  rmem clean --dry-run                  only says what would be removed

A ring with a live member is never removed; end its processes first (`rmem info RING` names them).
Those of other users are left alone, unless root asks.
Exit codes: 0 done (a ring that was named is gone), 1 a named ring was kept, 2 wrong command line,
3 a named ring is not here, and none was kept.)";

constexpr int kExitNotHere = 3;

struct CleanOptions {
    std::vector<std::string> rings;
    bool all = false, force = false, dry_run = false, json = false;
};

/// The report, for people and for programs.
class Report {
public:
    explicit Report(bool dry_run) : dry_run_(dry_run) {}

    /// `key` and `kind`: its kind, in JSON and as a word before its name.
    void add(const char* key, const char* kind, const Cleaned& cleaned) {
        const char* what = !cleaned.removed ? "kept" : dry_run_ ? "would remove" : "removed";
        text += fmt::format("{} {}{}: {}\n", what, kind, printable(cleaned.name),
                            printable(cleaned.why));
        json.push_back({{key, cleaned.name},
                        {"removed", cleaned.removed && !dry_run_},
                        {"removable", cleaned.removed},
                        {"why", cleaned.why}});
        if (!cleaned.removed) exit_code = kExitFailed;
    }

    /// `ring` was named, and is not here.
    void add_missing(const std::string& ring) {
        const std::string why = fmt::format("this host has no ring '{}'", printable(ring));
        text += why + "; `rmem list` shows those that it has\n";
        json.push_back({{"ring", ring}, {"removed", false}, {"removable", false}, {"why", why}});
        if (exit_code == kExitOk) exit_code = kExitNotHere;
    }

    std::string text;
    nlohmann::json json = nlohmann::json::array();
    int exit_code = kExitOk;  ///< where rings were named

private:
    bool dry_run_;
};

/// Those of a ring, of which each node may have one: "ring" or "ring@node".
std::vector<std::string> of_ring(const std::string& ring, std::vector<std::string> names) {
    std::erase_if(names, [&](const std::string& name) {
        return name != ring && name.substr(0, name.rfind('@')) != ring;
    });
    return names;
}

/// Of rings that are not ours to remove.
std::string others_text() {
    const std::size_t others = rmem::Segment::others().size();
    if (others == 0) return "";
    return fmt::format("left alone: {} of other users\n",
                       others == 1 ? "one ring" : fmt::format("{} rings", others));
}

void clean(const CleanOptions& options) {
    const auto segments = rmem::Segment::list();
    const auto boards = ports::munet::CounterBoard::list();
    Report report(options.dry_run);
    const Staying staying = options.rings.empty() ? Staying::keep : Staying::remove;
    const auto clean_all = [&](const auto& rings, const auto& munet) {
        for (const auto& name : rings)
            report.add("ring", "", clean_ring(name, options.force, options.dry_run, staying));
        for (const auto& name : munet)
            report.add("munet", "MU-Net counters ", clean_munet(name, options.dry_run));
    };
    if (options.rings.empty()) clean_all(segments, boards);
    for (const auto& ring : options.rings) {
        auto here = of_ring(ring, segments);
        const auto munet = of_ring(ring, boards);
        if (here.empty() && munet.empty()) {
            if (!rmem::Segment::exists(ring)) {
                report.add_missing(ring);
                continue;
            }
            here.push_back(ring);  // another user's, which cleaning it tells
        }
        clean_all(here, munet);
    }
    if (options.json) {
        show_json(report.json);
    } else {
        if (options.rings.empty()) report.text += others_text();
        show(report.text.empty() ? "No rings on this host.\n" : report.text);
    }
    if (!options.rings.empty() && report.exit_code != kExitOk) end_with(report.exit_code);
}

}  // namespace

void add_clean(cli::App& app) {
    auto options = std::make_shared<CleanOptions>();
    cli::App* command = app.add_subcommand("clean", "Remove rings that nobody is left in");
    auto* rings = command->add_option("RING", options->rings, "Names (default: all)");
    command->add_flag("--all", options->all, "All rings of this host, as without a name")
        ->excludes(rings);
    command->add_flag("--force", options->force,
                      "Also an object that is no ring, if no live process holds a lock on it");
    command->add_flag("--dry-run", options->dry_run, "Only print what would be removed");
    command->add_flag("--json", options->json, "Print JSON");
    command->footer(kCleanExamples);
    command->callback([options] { clean(*options); });
}

}  // namespace tools
