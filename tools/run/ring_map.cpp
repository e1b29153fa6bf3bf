// SPDX-License-Identifier: Apache-2.0
#include "tools/run/ring_map.hpp"

#include "maps/check.hpp"
#include "maps/ring_map.hpp"
#include "rmem/base/environment_variable.hpp"
#include "rmem/ring/config.hpp"
#include "tools/settings.hpp"
#include "tools/usage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace tools {

void prepare_map(const char* command) {
    const char* given = rmem::environment_setting("RMEM_MAP");
    if (given == nullptr) return;
    const std::string path = std::filesystem::absolute(given);
    set_variable("RMEM_MAP", path);
    const maps::SharedMap map = maps::map_setting();
    const auto findings = maps::check(*map);
    if (maps::has_errors(findings)) {
        fmt::print(stderr, "rmem {}: {}: {} (`rmem map check {}` says all)\n", command, path,
                   findings.front().sentence, path);
    }
    if (rmem::environment_setting("RMEM_NODES") == nullptr && map->ring.nodes != 0)
        set_variable("RMEM_NODES", fmt::format("{}", map->ring.nodes));
    const std::uint64_t wanted = std::max(map->ring.bytes, maps::end_of(*map));
    if (rmem::environment_setting("RMEM_SIZE") == nullptr &&
        (map->ring.bytes != 0 || wanted > rmem::kDefaultUserBytes)) {
        const std::uint64_t whole = (wanted + rmem::kWordBytes - 1) / rmem::kWordBytes;
        set_variable("RMEM_SIZE", fmt::format("{}", whole * rmem::kWordBytes));
    }
}

void OwnersOption::add_to(cli::App& command) {
    command
        .add_option("--owners", mode,
                    "What happens when somebody writes another's variable: off (nothing), report, "
                    "enforce (it is not written)")
        ->check(cli::is_member({"off", "report", "enforce"}))
        ->capture_default_str();
}

void OwnersOption::give(const rmem::Ring& ring) const {
    const maps::SharedMap map = maps::agreed_map(ring);
    const auto wanted = rmem::parse_owner_mode(mode).value();
    if (wanted == rmem::OwnerMode::off) return;
    if (map == nullptr)
        throw UsageError("--owners: nothing says whose the memory is; give --map as well");
    maps::give_owners(ring, *map, wanted);
}

}  // namespace tools
