// SPDX-License-Identifier: Apache-2.0
#include "simulator/mpi_hunt/scenario.hpp"

namespace simulator::mpi {

namespace {

constexpr std::array<FaultKind, 6> kAlways = {FaultKind::delay,     FaultKind::clog,
                                              FaultKind::duplicate, FaultKind::stop,
                                              FaultKind::stall,     FaultKind::deaf};
constexpr std::array<const char*, 5> kTimings = {"scramnet-burst", "scramnet-burst-plus",
                                                 "platinum-plus", "gt200", "none"};

FaultKind kind_for(const Scenario& scenario, rmem::Random& random) {
    const std::uint64_t dice = random.below(8);
    if (scenario.ends && dice < 2) return random.one_in(3) ? FaultKind::fail_node : FaultKind::kill;
    if (scenario.timing.retransmits != 0 && dice == 2) return FaultKind::cut_cable;
    return kAlways.at(random.below(kAlways.size()));
}

}  // namespace

Scenario Scenario::of_seed(std::uint64_t seed) {
    rmem::Random random(seed);
    Scenario s;
    s.seed = seed;
    s.heavy = random.one_in(8);
    s.settings.board.layout =
        random.one_in(2) ? billboard::Layout::paper : billboard::Layout::lines;
    if (s.settings.board.layout != billboard::Layout::paper && seed % 2 == 0)
        s.settings.board.layout = billboard::Layout::pieces;
    s.settings.board.data_bytes =
        s.heavy ? kPartitions.back() : kPartitions.at(random.below(kPartitions.size()));
    s.timing = rmem::parse_timing(s.heavy ? "none" : kTimings.at(random.below(kTimings.size())));
    s.host.store_ns = s.heavy || random.one_in(2) ? 0 : random.between(1, 300);
    s.host.load_ns = random.between(1, s.heavy ? 20 : 700);
    s.host.call_ns = random.between(1, 900);
    s.ends = random.one_in(2);
    for (unsigned i = 0; i < kFaults; ++i) {
        const FaultKind fault = kind_for(s, random);
        s.faults.push_back(draw_fault(fault, kMessages, false, random));
    }
    put_in_order(s.faults);
    return s;
}

}  // namespace simulator::mpi
