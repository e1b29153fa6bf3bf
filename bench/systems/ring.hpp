// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A rank of a ring of our own, on the link that the environment names, for the systems that use
/// it.

#include "bench/harness/harness.hpp"
#include "tools/measure/billboard_channel.hpp"

#include <string>

namespace bench {

using tools::BillboardChannel, tools::checked;

inline std::string name_of_ring() {
    return "bench-" + std::to_string(getpid());
}

/// Joined until it is destroyed.
class Joined : Unique {
public:
    Joined(const Setup& setup, const std::string& ring, int rank) {
        setenv("RMEM_RING", ring.c_str(), 1);
        setenv("RMEM_RANKS", std::to_string(setup.ranks).c_str(), 1);
        setenv("RMEM_RANK", std::to_string(rank).c_str(), 1);
        checked(bbp_init(nullptr, nullptr));
    }
    ~Joined() { bbp_finalize(); }
};

}  // namespace bench
