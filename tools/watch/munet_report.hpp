// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The contents of a MU-Net daemon's board (ports/munet/counter_board.hpp), for `rmem info`, `top`
/// and `metrics`.

#include "tools/json.hpp"
#include "tools/watch/ring_sample.hpp"

#include <optional>
#include <string>

namespace tools {

/// Of the daemon of a ring's node on this host.
std::string board_name(const std::string& ring, unsigned node);

/// Nothing where there is no such board.
[[nodiscard]] std::optional<MunetSample> munet_sample(const std::string& board);
/// Of a ring's node. A dead daemon's board counts only where the ring has had one: it may be of a
/// former ring of the name.
[[nodiscard]] std::optional<MunetSample> munet_sample(const std::string& ring, unsigned node,
                                                      bool had_daemon);

nlohmann::json munet_json(const std::string& board, const MunetSample& sample);
/// The same of the board; throws rmem::Error (no_such_ring) where there is no such board.
nlohmann::json munet_report(const std::string& board);
std::string munet_report_text(const nlohmann::json& report);

/// "MU-Net daemon rig@0: process 123, 2 endpoints".
std::string munet_line(const nlohmann::json& report);

}  // namespace tools
