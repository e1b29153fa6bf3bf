// SPDX-License-Identifier: Apache-2.0
// `rmem make`: a ring that stays when its programs have left, with values in it.

#include "billboard/environment.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/ring/ring.hpp"
#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"
#include "tools/run/ring_map.hpp"
#include "tools/settings.hpp"
#include "tools/usage.hpp"
#include "tools/watch/bank_view.hpp"
#include "tools/watch/cells.hpp"
#include "tools/watch/outside_write.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tools {

namespace {

constexpr const char* kMakeExamples = R"(
Examples:
  rmem make rig -n 4 --link ring --size 64K         four ranks with a bank each
  rmem make rig 0x100=42 0x104=1.5:f32 0x40=up:text with values in it
  rmem make rig --from bank.bin                     as `rmem dump --format raw` wrote it
  rmem run -n 4 --ring rig -- ./program             a job in it; the memory is there afterwards
  rmem clean rig                                    removes it

Exit codes: 0 done, 1 failed, 2 wrong command line.)";

constexpr std::int64_t kMakeNs = 10'000'000'000;

constexpr Setting kMakeSettings[] = {
    {"-n,--ranks", "RMEM_RANKS", "Number of ranks it has room for (default: one per node)"},
    {"--nodes", "RMEM_NODES", "Nodes (default: one per rank)"},
    {"--link", "RMEM_LINK", "direct or ring"},
};

struct MakeOptions {
    OwnersOption owners;
    std::string ring, from, at = "0";
    std::vector<std::string> values;
    Settings settings;
    bool json = false;
};

/// Values for a place.
struct Value {
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes;
};

/// "OFFSET=VALUE", "OFFSET=VALUE:TYPE"
Value value_of(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
        throw UsageError(
            fmt::format("'{}' sets nothing; give OFFSET=VALUE or OFFSET=VALUE:TYPE, "
                        "such as 0x100=1.5:f32",
                        text));
    }
    const std::size_t colon = text.rfind(':');
    const bool has_type = colon != std::string::npos && colon > equals;
    const std::string type_name = has_type ? text.substr(colon + 1) : "u32";
    const CellType type = parse_cell_type(type_name);
    const std::string value =
        text.substr(equals + 1, has_type ? colon - equals - 1 : std::string::npos);
    const std::uint64_t offset = size_option("OFFSET", text.substr(0, equals));
    check_alignment(type, type_name, offset);
    return {offset, parse_cell(type, value)};
}

Value file_of(const std::string& path, const std::string& at) {
    std::ifstream stream(path, std::ios::binary | std::ios::ate);
    const auto size = stream ? static_cast<std::streamoff>(stream.tellg()) : -1;
    if (size < 0 || static_cast<std::uint64_t>(size) > rmem::kMaxUserBytes) {
        throw rmem::Error(
            rmem::Errc::invalid_argument,
            fmt::format("'{}' cannot be read, or is not a bank; give a file that `rmem "
                        "dump --format raw` wrote (--from)",
                        path));
    }
    Value value{size_option("--at", at), std::vector<std::byte>(static_cast<std::size_t>(size))};
    stream.seekg(0);
    stream.read(reinterpret_cast<char*>(value.bytes.data()), size);
    if (stream.gcount() == size) return value;
    throw rmem::Error(rmem::Errc::system,
                      fmt::format("reading '{}': it became shorter meanwhile", path));
}

rmem::RingConfig config_of(const MakeOptions& options) {
    options.settings.apply();
    set_variable("RMEM_RING", options.ring);
    prepare_map("make");
    rmem::RingConfig config = billboard::ring_config(rmem::Environment::read());
    if (config.link != rmem::LinkKind::direct && config.link != rmem::LinkKind::ring) {
        throw rmem::Error(
            rmem::Errc::unknown_link,
            fmt::format(
                "on link {} a node's memory exists only as long as its node, which is a process; "
                "{}, or give --link direct or ring",
                name_of(config.link),
                config.is_remote() ? "`rmem node` runs it without programs" : "see rmem(7)"));
    }
    if (config.nodes <= config.ranks) return config;
    throw rmem::Error(
        rmem::Errc::bad_node_count,
        fmt::format("{} nodes for {} ranks: each node needs a rank; give --nodes at most -n",
                    config.nodes, config.ranks));
}

void tell(const rmem::RingConfig& config, std::uint64_t set, bool as_json) {
    if (as_json) {
        return show_json({{"ring", config.name},
                          {"link", name_of(config.link)},
                          {"nodes", config.nodes},
                          {"ranks", config.ranks},
                          {"user_bytes", config.user_bytes},
                          {"bytes_set", set}});
    }
    show(fmt::format(
        "ring {0}: link {1}, {2} node{5}, {3} rank{6}, {4}; it stays until `rmem clean {0}`\n"
        "`rmem run --ring {0}` starts programs in it; started by hand they need RMEM_RING={0} and "
        "RMEM_RANK\n",
        config.name, name_of(config.link), config.nodes, config.ranks, size_text(config.user_bytes),
        config.nodes == 1 ? "" : "s", config.ranks == 1 ? "" : "s"));
}

void make(const MakeOptions& options) {
    const rmem::RingConfig config = config_of(options);
    std::vector<Value> values;
    if (!options.from.empty()) values.push_back(file_of(options.from, options.at));
    for (const auto& value : options.values) values.push_back(value_of(value));
    std::uint64_t set = 0;
    for (const Value& value : values) {
        check_user_range(config, value.offset, value.bytes.size(), " (--size)");
        set += value.bytes.size();
    }
    const auto ring = rmem::Ring::open(config, rmem::Deadline::in(kMakeNs));
    if (ring->header().creator_pid != static_cast<std::uint32_t>(::getpid())) {
        throw rmem::Error(
            rmem::Errc::rank_taken,
            fmt::format("there is a ring '{}' already; `rmem clean {}` removes it once "
                        "nobody is in it, `rmem poke` changes its values",
                        config.name, config.name));
    }
    options.owners.give(*ring);
    for (const Value& value : values) store_in_all_banks(*ring, value.offset, value.bytes);
    ring->set_stays(true);
    tell(config, set, options.json);
}

}  // namespace

void add_make(cli::App& app) {
    auto options = std::make_shared<MakeOptions>();
    cli::App* command =
        app.add_subcommand("make", "Make a ring that stays until it is cleaned away");
    add_ring(*command, options->ring)->required();
    command->add_option(
        "VALUE", options->values,
        fmt::format("OFFSET=VALUE or OFFSET=VALUE:TYPE (default u32): {}", kCellTypes));
    options->settings.add_to(*command, kMakeSettings);
    options->owners.add_to(*command);
    for (const Setting& setting : kRingSettings) {
        const std::string variable = setting.variable;  // these two are of programs, not of a ring
        if (variable == "RMEM_FAULTS" || variable == "RMEM_JOIN_TIMEOUT") continue;
        options->settings.add_to(*command, std::span(&setting, 1));
    }
    auto* from =
        command->add_option("--from", options->from, "A file with the contents of its memory");
    command->add_option("--at", options->at, "Offset of the file's first byte")
        ->capture_default_str()
        ->needs(from);
    command->add_flag("--json", options->json, "Print the new ring as JSON");
    command->footer(kMakeExamples);
    command->callback([options] { make(*options); });
}

}  // namespace tools
