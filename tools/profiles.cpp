// SPDX-License-Identifier: Apache-2.0
// `rmem profiles`: the timing profiles, with their figures.

#include <fmt/format.h>

#include <memory>
#include <string>

#include "rmem/config.hpp"
#include "rmem/timing.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"

namespace tools {

namespace {

constexpr const char* kExamples = R"(
Examples:
  rmem profiles                                     all of them, for a ring of four nodes
  rmem profiles --nodes 16                          bounds for sixteen nodes
  rmem profiles scramnet-burst,cable=50m,fifo=lose  one with options, as --timing takes it

Options of a profile: fifo=hold|lose, packet=256|1024, cable=<metres>m, bound=<n>ns|us|ms.
Exit codes: 0 done, 1 failed, 2 wrong command line.)";

struct ProfilesOptions {
    std::vector<std::string> specs;
    unsigned nodes = 4;
    bool json = false;
};

std::uint64_t ns(std::uint64_t ps) {
    return (ps + 500) / 1000;
}

nlohmann::json profile_json(const std::string& spec, unsigned nodes) {
    const rmem::TimingProfile p = rmem::parse_timing(spec);
    const double bytes_per_s =
        p.pitch_ps == 0 ? 0 : 1e12 * rmem::kWordBytes / static_cast<double>(p.pitch_ps);
    return {{"profile", rmem::to_string(p)},
            {"instant", p.instant != 0},
            {"bits_per_s", p.bits_per_s},
            {"node_delay_ns", ns(p.node_delay_ps)},
            {"longest_node_delay_ns", ns(rmem::max_node_delay_ps(p))},
            {"word_on_wire_ns", ns(rmem::packet_ps(p, 1))},
            {"word_pitch_ns", ns(p.pitch_ps)},
            {"one_transmitter_bytes_per_s", static_cast<std::uint64_t>(bytes_per_s)},
            {"packet_bytes", p.packet_bytes},
            {"fifo_words", p.fifo_words},
            {"fifo_full", p.overflow == rmem::FifoPolicy::lose ? "lose" : "hold"},
            {"cable_ns", ns(p.cable_ps)},
            {"nodes", nodes},
            {"bound_ns", rmem::bound_ns(p, nodes)}};
}

std::string table_of(const nlohmann::json& profiles) {
    Table table({"profile", ">line", ">node delay", ">word on wire", ">word pitch", ">1 word MB/s",
                 ">packet", ">FIFO", ">bound"});
    for (const auto& p : profiles) {
        if (p["instant"].get<bool>()) {
            table.add({p["profile"].get<std::string>(), "-", "-", "-", "-", "-", "-", "-", "none"});
            continue;
        }
        const auto number = [&](const char* key) { return p[key].get<std::uint64_t>(); };
        table.add(
            {p["profile"].get<std::string>(),
             fmt::format("{:.0f} Mbit/s", p["bits_per_s"].get<double>() / 1e6),
             fmt::format("{}-{} ns", number("node_delay_ns"), number("longest_node_delay_ns")),
             fmt::format("{} ns", number("word_on_wire_ns")),
             fmt::format("{} ns", number("word_pitch_ns")),
             fmt::format("{:.1f}", p["one_transmitter_bytes_per_s"].get<double>() / 1e6),
             size_text(number("packet_bytes")), fmt::format("{}", number("fifo_words")),
             duration_text(number("bound_ns"))});
    }
    return table.text();
}

void profiles(const ProfilesOptions& options) {
    const auto specs = options.specs.empty() ? rmem::timing_profile_names() : options.specs;
    nlohmann::json all = nlohmann::json::array();
    for (const auto& spec : specs) all.push_back(profile_json(spec, options.nodes));
    if (options.json) return show_json(all);
    show(table_of(all) +
         fmt::format(
             "\nbound: the most that one word may take to all of {} nodes "
             "(--nodes); node delay: a passing\npacket's stay, without and with an own packet "
             "before it.\n",
             options.nodes));
}

}  // namespace

void add_profiles(CLI::App& app) {
    auto options = std::make_shared<ProfilesOptions>();
    CLI::App* command =
        app.add_subcommand("profiles", "List the timing profiles and their figures");
    command->add_option("PROFILE", options->specs, "Profiles with options (default: all names)");
    command->add_option("--nodes", options->nodes, "Nodes of the ring, for the bound")
        ->check(CLI::range(1U, rmem::kMaxNodes))
        ->capture_default_str();
    command->add_flag("--json", options->json, "Print JSON");
    command->footer(kExamples);
    command->callback([options] { profiles(*options); });
}

}  // namespace tools
