// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A network for a test's ring that no other host, and no other test, hears: loop-back, and a port
/// of its own.

#include <cstdlib>
#include <functional>
#include <string>

namespace rmem::test {

/// RMEM_GROUP for a ring of that name; RMEM_INTERFACE is lo.
inline std::string own_group(const std::string& ring) {
    return "239.1.2.3:" + std::to_string(10'000 + std::hash<std::string>{}(ring) % 20'000);
}

/// For what this process and its children open from now on. Call it while there is one thread.
inline void stay_on_this_host(const std::string& ring) {
    ::setenv("RMEM_GROUP", own_group(ring).c_str(),
             1);                          // NOLINT(concurrency-mt-unsafe): one thread
    ::setenv("RMEM_INTERFACE", "lo", 1);  // NOLINT(concurrency-mt-unsafe): as above
}

}  // namespace rmem::test
