// SPDX-License-Identifier: Apache-2.0
#include "simulator/hunt/scenario.hpp"

#include "simulator/hunt/random.hpp"

#include <algorithm>
#include <array>

namespace simulator {

namespace {

constexpr std::array<const char*, kFaultKinds> kNames = {
    "delay", "clog",      "lose",    "duplicate", "cut-cable", "cut-link",
    "kill",  "fail-node", "restart", "stop",      "stall",     "slow-reader"};

constexpr std::array<FaultKind, 6> kAlways = {FaultKind::delay,     FaultKind::clog,
                                              FaultKind::duplicate, FaultKind::stop,
                                              FaultKind::stall,     FaultKind::slow_reader};
constexpr std::array<const char*, 6> kTimings = {
    "scramnet-burst", "scramnet-burst-plus", "platinum", "platinum-plus", "gt200", "none"};
constexpr std::array<std::size_t, 4> kPartitions = {1024, 2048, 4096, 16384};
constexpr std::int64_t kMicrosecond = 1000;

FaultKind kind_for(const Scenario& scenario, Random& random) {
    const std::uint64_t dice = random.below(10);
    if (scenario.ends && dice < 3) return random.one_in(3) ? FaultKind::fail_node : FaultKind::kill;
    if (scenario.loses && dice < 4) return random.one_in(2) ? FaultKind::lose : FaultKind::cut_link;
    // One cable cut while nothing else is: PLATINUM and BURST differ in what that loses.
    if (dice == 4 && (scenario.loses || scenario.timing.retransmits != 0)) {
        return FaultKind::cut_cable;
    }
    return kAlways.at(random.below(kAlways.size()));
}

Fault fault_for(const Scenario& scenario, Random& random) {
    Fault fault;
    fault.kind = kind_for(scenario, random);
    fault.target = static_cast<unsigned>(random.below(Scenario::kRanks));
    fault.at_message = static_cast<unsigned>(random.below(Scenario::kMessages * 9 / 10)) + 1;
    fault.accesses = random.below(300) + 1;
    fault.comes_back = !random.one_in(8);
    switch (fault.kind) {
        case FaultKind::delay:
        case FaultKind::duplicate:
        case FaultKind::lose:
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
    s.settings.board.layout =
        random.one_in(2) ? billboard::Layout::paper : billboard::Layout::inline_slots;
    s.settings.board.data_bytes = kPartitions.at(random.below(kPartitions.size()));
    s.settings.barrier =
        random.one_in(2) ? billboard::BarrierKind::paper : billboard::BarrierKind::arrival;
    s.timing = rmem::parse_timing(kTimings.at(random.below(kTimings.size())));
    s.host.store_ns = random.one_in(2) ? 0 : random.between(1, 300);
    s.host.load_ns = random.between(1, 700);
    s.host.call_ns = random.between(1, 900);
    const std::uint64_t kind = random.below(8);
    s.loses = kind == 0 && s.timing.instant == 0;
    s.ends = kind >= 3;
    for (unsigned i = 0; i < kFaults; ++i) s.faults.push_back(fault_for(s, random));
    if (s.ends && random.one_in(4)) {
        s.lives_before = 256 * static_cast<std::uint32_t>(random.below(3)) + 250 +
                         static_cast<std::uint32_t>(random.below(6));
    }
    std::sort(s.faults.begin(), s.faults.end(), [](const Fault& a, const Fault& b) {
        return a.at_message != b.at_message ? a.at_message < b.at_message : a.accesses < b.accesses;
    });
    return s;
}

}  // namespace simulator
