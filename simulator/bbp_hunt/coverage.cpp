// SPDX-License-Identifier: Apache-2.0
#include "simulator/bbp_hunt/coverage.hpp"

#include <array>

namespace simulator::bbp {

namespace {

constexpr std::array<const char*, kCoverageMarks> kNames = {
    "overtaken writes",      "FIFO full",           "sends that waited", "garbage collections",
    "messages in parts",     "multicasts",          "bound broken",      "BBP_EPEER",
    "drained from the dead", "forgiven for a loss", "barriers",          "numbers wrapped",
    "epochs wrapped"};

}  // namespace

const char* name_of(CoverageMark mark) noexcept {
    return kNames.at(static_cast<std::size_t>(mark));
}

}  // namespace simulator::bbp
