// SPDX-License-Identifier: Apache-2.0
#pragma once

/// `rmem bench model`: measures Directed Point's cost model on a link, prints the fitted lines, and
/// beside a measured T_p2p what the paper's equations predict. A parameter that means nothing there
/// is n/a.
/// Errors: `rmem::Error`. Thread safety: forks; before there are threads.

#include "tools/measure/rank_group.hpp"

namespace tools {

void bench_model(const bench::GroupOptions& group, bool json);

}  // namespace tools
