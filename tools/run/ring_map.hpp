// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The map (--map, RMEM_MAP) of a ring that a command makes.
///
/// Thread safety: one thread; the environment is changed.
/// Errors: rmem::Error(bad_map).

#include "rmem/ring/ring.hpp"
#include "tools/options.hpp"

#include <string>

namespace tools {

/// Before the environment's settings are read: the map's path made absolute, since programs may run
/// elsewhere, and the ring as large as the map needs it where nothing else is said. Says on stderr,
/// after `command`, what is wrong with the map.
void prepare_map(const char* command);

/// --owners of a command that makes a ring.
struct OwnersOption {
    std::string mode = "off";

    void add_to(cli::App& command);
    /// The ring gets the map, and looks after owners if that is wanted. Throws UsageError without a
    /// map.
    void give(const rmem::Ring& ring) const;
};

}  // namespace tools
