// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Messages under an instrument that counts instructions, in the way that nobody has to wait: a
/// figure without noise.
///
///     valgrind --tool=callgrind --toggle-collect='*counted_send*' ports-bench instructions
///     --system fm4 valgrind --tool=callgrind --toggle-collect='*counted_receive*' ports-bench
///     instructions --system fm4
///
/// Callgrind prints what each of the two processes has "Collected". Each sends, and each receives,
/// --rounds times --turn messages: the figure is for all of them. A message is there before its
/// receiver asks for it. --turn 1 is a ping-pong, in which acknowledgements ride on answers; more
/// is a stream.

#include "tools/measure/rank_group.hpp"

#include <string>
#include <vector>

namespace bench {

struct InstructionPlan {
    std::string system = "bbp";
    unsigned rounds = 1000, turn = 1;
};
std::vector<std::string> systems_counted();
void run_counted(const GroupOptions& options, const InstructionPlan& plan);

}  // namespace bench
