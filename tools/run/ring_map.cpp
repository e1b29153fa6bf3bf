// SPDX-License-Identifier: Apache-2.0
#include "tools/run/ring_map.hpp"

#include "maps/check.hpp"
#include "maps/ring_map.hpp"
#include "rmem/base/environment_variable.hpp"
#include "rmem/ring/config.hpp"
#include "tools/settings.hpp"

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

void give_map_setting(const rmem::Ring& ring) {
    static_cast<void>(maps::agreed_map(ring));
}

}  // namespace tools
