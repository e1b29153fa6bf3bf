// SPDX-License-Identifier: Apache-2.0
#include "simulator/mpi_hunt/scenario.hpp"

#include "simulator/hunt/random.hpp"

#include <algorithm>
#include <array>

namespace simulator::mpi {

namespace {

constexpr std::array<const char*, kFaultKinds> kNames = {
    "delay", "clog", "duplicate", "cut-cable", "kill", "fail-node", "stop", "stall", "deaf"};

constexpr std::array<FaultKind, 6> kAlways = {FaultKind::delay,     FaultKind::clog,
                                              FaultKind::duplicate, FaultKind::stop,
                                              FaultKind::stall,     FaultKind::deaf};
constexpr std::array<const char*, 5> kTimings = {"scramnet-burst", "scramnet-burst-plus",
                                                 "platinum-plus", "gt200", "none"};
constexpr std::array<std::size_t, 4> kPartitions = {1024, 2048, 4096, 16384};
constexpr std::int64_t kMicrosecond = 1000;

FaultKind kind_for(const Scenario& scenario, Random& random) {
    const std::uint64_t dice = random.below(8);
    if (scenario.ends && dice < 2) return random.one_in(3) ? FaultKind::fail_node : FaultKind::kill;
    if (scenario.timing.retransmits != 0 && dice == 2) return FaultKind::cut_cable;
    return kAlways.at(random.below(kAlways.size()));
}

Fault fault_for(const Scenario& scenario, Random& random) {
    Fault fault;
    fault.kind = kind_for(scenario, random);
    fault.target = static_cast<unsigned>(random.below(Scenario::kRanks));
    fault.at_message = static_cast<unsigned>(random.below(Scenario::kMessages * 9 / 10)) + 1;
    fault.accesses = random.below(300) + 1;
    switch (fault.kind) {
        case FaultKind::delay:
        case FaultKind::duplicate:
            fault.writes = random.below(4) + 1;
            fault.time_ns = random.between(1, 60 * kMicrosecond);
            break;
        case FaultKind::clog:
            fault.writes = random.below(200) + 20;
            fault.time_ns = random.between(20 * kMicrosecond, 300 * kMicrosecond);
            break;
        default: fault.time_ns = random.between(1, 500 * kMicrosecond);
    }
    return fault;
}

}  // namespace

const char* name_of(FaultKind kind) noexcept {
    return kNames.at(static_cast<std::size_t>(kind));
}

Scenario Scenario::of_seed(std::uint64_t seed) {
    Random random(seed);
    Scenario s;
    s.seed = seed;
    s.heavy = random.one_in(8);
    s.settings.board.layout =
        random.one_in(2) ? billboard::Layout::paper : billboard::Layout::inline_slots;
    s.settings.board.data_bytes =
        s.heavy ? kPartitions.back() : kPartitions.at(random.below(kPartitions.size()));
    s.timing = rmem::parse_timing(s.heavy ? "none" : kTimings.at(random.below(kTimings.size())));
    s.host.store_ns = s.heavy || random.one_in(2) ? 0 : random.between(1, 300);
    s.host.load_ns = random.between(1, s.heavy ? 20 : 700);
    s.host.call_ns = random.between(1, 900);
    s.ends = random.one_in(2);
    s.direct = static_cast<unsigned>(random.below(1U << kRanks));
    for (unsigned i = 0; i < kFaults; ++i) s.faults.push_back(fault_for(s, random));
    std::sort(s.faults.begin(), s.faults.end(), [](const Fault& a, const Fault& b) {
        return a.at_message != b.at_message ? a.at_message < b.at_message : a.accesses < b.accesses;
    });
    return s;
}

}  // namespace simulator::mpi
