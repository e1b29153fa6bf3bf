// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A ring's counters and times as metrics for Prometheus.
///
/// Every counter is a family: `rmem_link_…_total` with the labels ring, node and, if a rank counts
/// it, rank; `rmem_billboard_…_total` of a rank; `rmem_udp_…_total` of a node's engine. Ranks that
/// never came and nodes of other hosts have no counters here.

#include "tools/watch/ring_sample.hpp"

#include <string>

namespace tools {

/// `name` is what was asked for, for when there is no such ring.
std::string metrics_of(const std::string& name, const RingSample& sample);

}  // namespace tools
