// SPDX-License-Identifier: Apache-2.0
// `rmem profiles`: the timing profiles, with their figures.

#include "rmem/ring/config.hpp"
#include "rmem/wire/timing.hpp"
#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tools {

namespace {

constexpr const char* kProfilesExamples = R"(
Examples:
  rmem profiles                                     all of them, for a ring of four nodes
  rmem profiles --nodes 16                          bounds for sixteen nodes
  rmem profiles scramnet-burst,cable=50m,fifo=lose  one with options, as --timing takes it
  rmem profiles ./my-card.toml                      one of your own, in a file; rmem(7) has its keys

Options of a profile: fifo=hold|lose, packet=256|1024, cable=<metres>m, bound=<n>ns|us|ms; of a card
of your own also line, delay, insertion, pitch, header, byte, depth, packets, resend: rmem(7).
Exit codes: 0 done, 1 failed, 2 wrong command line.)";

struct ProfilesOptions {
    std::vector<std::string> specs;
    unsigned nodes = 4;
    bool json = false;
};

std::uint64_t ns(std::uint64_t ps) {
    return (ps + 500) / 1000;
}

std::string source_of(const std::string& spec) {
    const std::string_view name = std::string_view(spec).substr(0, spec.find(','));
    return std::string(rmem::timing_source(name));
}

nlohmann::json profile_json(const std::string& spec, unsigned nodes) {
    const rmem::TimingProfile p = rmem::parse_timing(spec);
    const double bytes_per_s =
        p.pitch_ps == 0 ? 0 : 1e12 * rmem::kWordBytes / static_cast<double>(p.pitch_ps);
    return {{"profile", rmem::names_timing_file(spec) ? spec : rmem::to_string(p)},
            {"instant", p.instant != 0},
            {"bits_per_s", p.bits_per_s},
            {"node_delay_ns", ns(p.node_delay_ps)},
            {"insertion_ns", ns(p.insertion_ps)},
            {"longest_node_delay_ns", ns(rmem::max_node_delay_ps(p))},
            {"word_on_wire_ns", ns(rmem::packet_ps(p, 1))},
            {"word_pitch_ns", ns(p.pitch_ps)},
            {"one_transmitter_bytes_per_s", static_cast<std::uint64_t>(bytes_per_s)},
            {"word_gap_ns", ns(rmem::gap_ps(p))},
            {"header_bits", p.header_bits},
            {"bits_per_byte", p.bits_per_byte},
            {"packets", p.packets == rmem::PacketMode::fixed ? "fixed" : "variable"},
            {"packet_bytes", p.packet_bytes},
            {"fifo_words", p.fifo_words},
            {"fifo_full", p.overflow == rmem::FifoPolicy::lose ? "lose" : "hold"},
            {"resends_damaged", p.retransmits != 0},
            {"cable_ns", ns(p.cable_ps)},
            {"promised_bound_ns", p.promised_ns},
            {"source", source_of(spec)},
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

/// Where the numbers are from, once for profiles that share it.
std::string sources_of(const std::vector<std::string>& specs) {
    std::vector<std::pair<std::string, std::string>> told;  // source, profiles
    for (const auto& spec : specs) {
        const std::string source = source_of(spec), name = spec.substr(0, spec.find(','));
        const auto same = std::find_if(told.begin(), told.end(),
                                       [&](const auto& one) { return one.first == source; });
        if (source.empty()) continue;
        if (same == told.end()) {
            told.emplace_back(source, name);
        } else {
            same->second += ", " + name;
        }
    }
    std::string text = told.empty() ? "" : "\n";
    for (const auto& [source, names] : told) text += fmt::format("{}: {}.\n", names, source);
    return text;
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
             options.nodes) +
         sources_of(specs));
}

}  // namespace

void add_profiles(cli::App& app) {
    auto options = std::make_shared<ProfilesOptions>();
    cli::App* command =
        app.add_subcommand("profiles", "List the timing profiles and their figures");
    command->add_option("PROFILE", options->specs, "Profiles with options (default: all names)");
    command->add_option("--nodes", options->nodes, "Nodes of the ring, for the bound")
        ->check(cli::range(1U, rmem::kMaxNodes))
        ->capture_default_str();
    command->add_flag("--json", options->json, "Print JSON");
    command->footer(kProfilesExamples);
    command->callback([options] { profiles(*options); });
}

}  // namespace tools
