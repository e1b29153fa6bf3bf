// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Command-line options that set RMEM_ variables: the command and the processes that it starts find
/// the value in the environment, where the same code reads it that reads a user's.
/// Thread safety: one thread, since environments have no more.

#include "tools/options.hpp"

#include <map>
#include <span>
#include <string>

namespace tools {

struct Setting {
    const char* option;
    const char* variable;
    const char* meaning;
};

/// Of a ring, for every command that makes one.
inline constexpr Setting kRingSettings[] = {
    {"--size", "RMEM_SIZE", "Bytes of user's memory, such as 64K or 8M"},
    {"--map", "RMEM_MAP", "Map of the memory (TOML): names, types and owners; rmem-map(1)"},
    {"--timing", "RMEM_TIMING", "Timing profile (not link direct); `rmem profiles` lists them"},
    {"--layout", "RMEM_LAYOUT", "Layout of the billboard: inline or paper"},
    {"--partition", "RMEM_PARTITION", "Bytes of each rank's data partition, such as 64K"},
    {"--bound", "RMEM_BOUND", "Promised propagation, such as 10us"},
    {"--faults", "RMEM_FAULTS", "Faults to inject on ring, udp or fabric; rmem(7) has them all"},
    {"--join-timeout", "RMEM_JOIN_TIMEOUT", "How long to wait for the others, such as 30s"},
    {"--unix-group", "RMEM_UNIX_GROUP", "Share the ring with this group of users"},
};

class Settings {
public:
    /// Adds an option for each. The object must exist until the command line is parsed.
    void add_to(cli::App& command, std::span<const Setting> settings);
    /// Sets the variables of the given options in this process's environment.
    void apply() const;

private:
    std::map<std::string, std::string> values_;  ///< by variable
};

void set_variable(const std::string& name, const std::string& value);
void unset_variable(const std::string& name);

}  // namespace tools
