// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/ring_sample.hpp"

#include <array>

namespace tools {

const char* name_of(NodeState state) {
    constexpr std::array kNames = {"absent", "joining", "up", "stopped", "down", "left"};
    return kNames.at(static_cast<std::size_t>(state));
}

}  // namespace tools
