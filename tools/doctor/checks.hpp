// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The possible troubles of rings on this host, checked one by one for `rmem doctor`.
///
/// Each check looks at the real thing (makes a ring, takes a lock, asks the kernel) rather than at
/// names and versions, changes nothing that lasts, and never throws: a fact that it cannot find out
/// is a warning that says so.

#include <string>
#include <vector>

namespace tools {

enum class Verdict { ok, warn, fail };

struct Finding {
    std::string name;  ///< stable, e.g. "shared-memory"
    Verdict verdict = Verdict::ok;
    std::string found;
    std::string advice;  ///< the advice; empty when there is nothing to do
};

inline Finding ok(const std::string& name, const std::string& found,
                  const std::string& advice = "") {
    return {name, Verdict::ok, found, advice};
}
inline Finding warn(const std::string& name, const std::string& found, const std::string& advice) {
    return {name, Verdict::warn, found, advice};
}
inline Finding fail(const std::string& name, const std::string& found,
                    const std::string& advice = "") {
    return {name, Verdict::fail, found, advice};
}

/// For a job of this number of ranks.
struct CheckedJob {
    unsigned ranks = 4;
    std::size_t segment_bytes = 0;  ///< the needs of its ring
};

/// Memory: shared-memory, ring, locks, stale-rings, memory-limit, limits, huge-pages.
std::vector<Finding> check_memory(const CheckedJob& job);

/// Processors: processors, spinning, wake-ups, real-time, clock, frequency, host-gaps, open-files.
std::vector<Finding> check_processors(const CheckedJob& job);

/// The network, as the settings of link udp have it: tools/doctor/network_checks.hpp lists the
/// names.
std::vector<Finding> check_network();

/// What libfabric offers for link fabric: a finding for each provider, by its name, RMEM_GROUP
/// where RMEM_LINK is fabric, and libfabric where nothing will do. Takes a second or two: endpoints
/// of this host talk to each other.
std::vector<Finding> check_fabric();

/// Files of one line below /proc and /sys; empty when there is none.
std::string first_line(const std::string& path);

}  // namespace tools
