// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The state of a ring as an observer sees it: members, counters, percentiles; as JSON, from which
/// the text is made, so that both say the same.
///
/// Everything comes out of shared memory that others write, and is read once. Nothing is changed.

#include "rmem/ring/ring.hpp"
#include "tools/json.hpp"

#include <string>

namespace tools {

/// Ranks held by a live process.
unsigned live_ranks(const rmem::Ring& ring);

/// "alive", "kept" (empty, and made to stay) or "dead".
const char* ring_state(const rmem::Ring& ring);

/// One line's worth: name, state (that of ring_state(), or broken), members, link, sizes. Never
/// throws for the object's contents: a broken one has "problem".
nlohmann::json ring_summary(const std::string& name);

/// All of it.
nlohmann::json ring_report(const rmem::Ring& ring);

/// The report for people. Counters that are zero are left out.
std::string report_text(const nlohmann::json& report);

}  // namespace tools
