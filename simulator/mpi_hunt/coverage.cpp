// SPDX-License-Identifier: Apache-2.0
#include "simulator/mpi_hunt/coverage.hpp"

#include <array>

namespace simulator::mpi {

namespace {

constexpr std::array<const char*, kCoverageMarks> kNames = {
    "short messages",       "eager messages",        "rendezvous",
    "out of credit",        "flow packets",          "bundles",
    "sends that waited",    "unexpected messages",   "receives of any source",
    "messages to itself",   "messages cut",          "receives of several",
    "cancelled receives",   "cancelled too late",    "peeks that found",
    "claimed and received", "claimed and discarded", "sends to the dead",
    "receives of the dead", "drained from the dead"};

}  // namespace

const char* name_of(CoverageMark mark) noexcept {
    return kNames.at(static_cast<std::size_t>(mark));
}

}  // namespace simulator::mpi
