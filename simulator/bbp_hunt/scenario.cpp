// SPDX-License-Identifier: Apache-2.0
#include "simulator/bbp_hunt/scenario.hpp"

namespace simulator::bbp {

namespace {

constexpr std::array<FaultKind, 6> kAlways = {FaultKind::delay,     FaultKind::clog,
                                              FaultKind::duplicate, FaultKind::stop,
                                              FaultKind::stall,     FaultKind::slow_reader};
constexpr std::array<const char*, 6> kTimings = {
    "scramnet-burst", "scramnet-burst-plus", "platinum", "platinum-plus", "gt200", "none"};

FaultKind kind_for(const Scenario& scenario, rmem::Random& random) {
    const std::uint64_t dice = random.below(10);
    if (scenario.ends && dice < 3) return random.one_in(3) ? FaultKind::fail_node : FaultKind::kill;
    if (scenario.loses && dice < 4) return random.one_in(2) ? FaultKind::lose : FaultKind::cut_link;
    // One cable cut while nothing else is: PLATINUM and BURST differ in what that loses.
    if (dice == 4 && (scenario.loses || scenario.timing.retransmits != 0)) {
        return FaultKind::cut_cable;
    }
    return kAlways.at(random.below(kAlways.size()));
}

}  // namespace

Scenario Scenario::of_seed(std::uint64_t seed) {
    rmem::Random random(seed);
    Scenario s;
    s.seed = seed;
    s.settings.board.layout =
        random.one_in(2) ? billboard::Layout::paper : billboard::Layout::lines;
    // What programs on one host use, here in banks that see each other's stores late.
    if (s.settings.board.layout != billboard::Layout::paper && seed % 2 == 0)
        s.settings.board.layout = billboard::Layout::pieces;
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
    for (unsigned i = 0; i < kFaults; ++i) {
        const FaultKind fault = kind_for(s, random);
        s.faults.push_back(draw_fault(fault, kMessages, true, random));
    }
    if (s.ends && random.one_in(4)) {
        s.incarnations_before = 256 * static_cast<std::uint32_t>(random.below(3)) + 250 +
                                static_cast<std::uint32_t>(random.below(6));
    }
    put_in_order(s.faults);
    return s;
}

}  // namespace simulator::bbp
