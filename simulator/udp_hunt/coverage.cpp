// SPDX-License-Identifier: Apache-2.0
#include "simulator/udp_hunt/coverage.hpp"

#include <array>

namespace simulator::udp {

namespace {

constexpr std::array<const char*, kCoverageMarks> kMarkNames = {"overtaken datagrams",
                                                                "socket overflows",
                                                                "too long datagrams",
                                                                "back-pressure",
                                                                "NAKs sent",
                                                                "retransmissions",
                                                                "probes",
                                                                "batches forwarded",
                                                                "messages in parts",
                                                                "joined in traffic",
                                                                "members given up",
                                                                "dropped nodes",
                                                                "two rings",
                                                                "refused datagrams",
                                                                "replayed datagrams",
                                                                "numbers wrapped",
                                                                "runs with a key",
                                                                "runs without a key"};

}  // namespace

const char* name_of(CoverageMark mark) noexcept {
    return kMarkNames.at(static_cast<std::size_t>(mark));
}

}  // namespace simulator::udp
