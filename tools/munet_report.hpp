// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a MU-Net daemon's board says (ports/munet/counter_board.hpp), for `rmem info --munet`.
/// Errors: `rmem::Error` (no_such_ring). Trust: the board's numbers are only printed.

#include <nlohmann/json.hpp>
#include <string>

namespace tools {

nlohmann::json munet_report(const std::string& name);
/// Counters that are not zero.
std::string munet_report_text(const nlohmann::json& report);

}  // namespace tools
