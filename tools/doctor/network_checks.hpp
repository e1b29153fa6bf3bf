// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The meaning of the network's facts for link `udp`, and the advice.
///
/// Pure: equal facts, equal findings. Where link `udp` is not asked for, nothing is worse than a
/// warning.

#include "tools/doctor/checks.hpp"
#include "tools/doctor/network_facts.hpp"

#include <vector>

namespace tools {

/// group, interface, route, loop-back, lo, igmp, mtu, receive-buffer, key, refusals.
std::vector<Finding> judge_network(const NetworkFacts& facts);

}  // namespace tools
