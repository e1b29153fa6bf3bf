// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the ranks of a job run: by the words of a command line, `prog : -n 2 other x`, or by a rig
/// file (TOML):
///
///     [ring]                          # as rmem run's options: name, nodes, link, size, timing, …
///     name = "cockpit"
///     [environment]                   # of all ranks
///     SPEED = 10
///     [[rank]]                        # in the order of their numbers
///     program = "./aircraft"
///     arguments = ["flight.csv"]
///     count = 1                       # how many ranks run it
///     environment = { ROLE = "pilot" }
///     processors = "0-1"              # or 0, or [0, 1]
///     user = "pilot"
///     directory = "/opt/rig"          # relative ones count from the file's folder, which is the
///                                     default
///
/// Invariant, executed: there are from one to kMaxRanks programs, each with a command.
/// Trust: a rig file is its user's own; it is bounded in size, and nothing in it is taken that has
/// no meaning.
/// Errors: `rmem::Error` (invalid_argument; for processors, users and folders as this host has them
///   as well); its sentence begins with file:line.

#include "tools/run/rank_process.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tools {

struct Rig {
    Variables settings;                 ///< of the ring
    std::vector<RankProgram> programs;  ///< one for each rank
};

/// Which variable a key of [ring] sets.
using RingKeys = std::map<std::string, std::string>;

Rig read_rig(const std::string& file, const RingKeys& keys);
/// `file` is for messages, and its folder for directories.
Rig parse_rig(std::string_view text, const std::string& file, const RingKeys& keys);

/// `-n FIRST prog a : -n 2 prog b`: one for each rank. A word ":" ends a program.
std::vector<RankProgram> programs_of(unsigned first, const std::vector<std::string>& words);

}  // namespace tools
