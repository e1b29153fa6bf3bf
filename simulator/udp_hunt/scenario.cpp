// SPDX-License-Identifier: Apache-2.0
#include "simulator/udp_hunt/scenario.hpp"

#include "rmem/base/random.hpp"

#include <algorithm>

namespace simulator::udp {

namespace {

static_assert(kind_of(rmem::DatagramFault::Kind::part) == FaultKind::part);
constexpr std::size_t kOfDatagrams = rmem::kDatagramFaultKinds;
constexpr std::array<const char*, static_cast<std::size_t>(FaultKind::count_) - kOfDatagrams>
    kNames = {"clog",        "cut-one-way", "cut-off", "kill",  "leave", "restart", "late",
              "slow-reader", "stall",       "flood",   "pause", "apart", "replay"};

constexpr std::array<std::uint32_t, 4> kHistories = {8, 16, 64, 256};
constexpr std::array<std::uint32_t, 4> kRooms = {8, 32, 64, 256};
constexpr std::array<std::size_t, 3> kPayloads = {1232, 1472, 4000};
constexpr std::array<std::int64_t, 4> kDelays = {2 * kMicrosecond, 10 * kMicrosecond,
                                                 100 * kMicrosecond, kMillisecond};
constexpr std::array<std::int64_t, 4> kPauses = {50 * kMicrosecond, 500 * kMicrosecond,
                                                 2 * kMillisecond, 4 * kMillisecond};
/// Behind those of datagrams.
constexpr std::array kAlways = {FaultKind::clog, FaultKind::slow_reader, FaultKind::stall,
                                FaultKind::flood};
constexpr std::array kCuts = {FaultKind::cut_one_way, FaultKind::cut_off, FaultKind::part};

/// A seed's possible faults: some seeds have all, some only those that kill nobody.
struct Mixture {
    bool cuts = false;
    bool ends = false;
};

FaultKind kind_for(const Mixture& mixture, rmem::Random& random) {
    const std::uint64_t dice = random.below(10);
    if (mixture.ends && dice < 3) {
        const std::uint64_t how = random.below(5);
        return how == 0 ? FaultKind::leave : how == 1 ? FaultKind::late : FaultKind::kill;
    }
    if (mixture.cuts && dice < 6) return kCuts.at(random.below(kCuts.size()));
    const std::uint64_t which = random.below(kOfDatagrams - 1 + kAlways.size());
    if (which < kOfDatagrams - 1) return static_cast<FaultKind>(which);
    return kAlways.at(which - (kOfDatagrams - 1));
}

/// Some are over before anybody counts as dead, some are not.
std::int64_t time_for(rmem::Random& random) {
    switch (random.below(4)) {
        case 0: return random.between(kMicrosecond, kMillisecond);
        case 1: return random.between(kMillisecond, 60 * kMillisecond);
        case 2: return random.between(60 * kMillisecond, 200 * kMillisecond);
        default: return random.between(200 * kMillisecond, 700 * kMillisecond);
    }
}

Fault fault_for(const Scenario& scenario, const Mixture& mixture, rmem::Random& random) {
    Fault fault;
    fault.kind = kind_for(mixture, random);
    fault.target = static_cast<unsigned>(random.below(scenario.nodes));
    fault.other = static_cast<unsigned>(random.below(scenario.nodes));
    if (fault.kind == FaultKind::part) {
        fault.other = static_cast<unsigned>(random.below(1U << scenario.nodes));
    }
    fault.at_message = static_cast<unsigned>(random.below(Scenario::kMessages)) + 1;
    fault.chance = static_cast<unsigned>(random.between(20, 600));
    fault.time_ns = time_for(random);
    fault.comes_back = !random.one_in(4);
    // Where nobody is to be given up, silence is shorter than the dead time-out.
    if (!mixture.cuts) fault.time_ns = std::min(fault.time_ns, 20 * kMillisecond);
    return fault;
}

void draw_network(Scenario& s, rmem::Random& random) {
    s.weather.delay_ns = kDelays.at(random.below(kDelays.size()));
    s.weather.jitter_ns = random.one_in(2) ? 0 : random.between(0, 4 * s.weather.delay_ns);
    s.weather.late_ns = random.between(0, kSecond / 2);
    const auto draw = [&](Weather::Fault fault, unsigned one_of, unsigned most) {
        if (random.one_in(one_of)) s.weather.of(fault) = static_cast<unsigned>(random.below(most));
    };
    draw(Weather::Fault::drop, 2, 150);
    draw(Weather::Fault::duplicate, 2, 150);
    draw(Weather::Fault::corrupt, 4, 50);
    for (HostClock& clock : s.clocks) {
        clock.offset_ns = random.between(0, 1000 * kSecond);
        clock.drift_ppm = random.between(-100, 100);
        clock.wall_offset_ns = random.between(0, 2 * kSecond);
    }
}

}  // namespace

const char* name_of(FaultKind kind) noexcept {
    const auto place = static_cast<std::size_t>(kind);
    return place < kOfDatagrams ? rmem::kDatagramFaultNames[place]
                                : kNames.at(place - kOfDatagrams);
}

Scenario Scenario::of_seed(std::uint64_t seed) {
    rmem::Random random(seed);
    Scenario s;
    s.seed = seed;
    s.nodes = static_cast<unsigned>(random.between(2, kMaxHosts));
    s.has_key = random.one_in(2);
    s.most_batches = kHistories.at(random.below(kHistories.size()));
    s.socket_room = kRooms.at(random.below(kRooms.size()));
    const auto draw_payload = [&] { return kPayloads.at(random.below(kPayloads.size())); };
    s.payloads.fill(draw_payload());
    s.pause_ns = kPauses.at(random.below(kPauses.size()));
    // Of the 32 bits that datagrams carry.
    if (random.one_in(3)) s.first_sequence = (std::uint64_t{1} << 32) - random.below(100);
    draw_network(s, random);
    Mixture mixture;
    mixture.cuts = random.below(4) != 0;
    mixture.ends = random.below(4) != 0;
    for (unsigned i = 0; i < kFaults; ++i) s.faults.push_back(fault_for(s, mixture, random));
    std::stable_sort(s.faults.begin(), s.faults.end(),
                     [](const Fault& a, const Fault& b) { return a.at_message < b.at_message; });
    if (random.one_in(2)) std::generate(s.payloads.begin(), s.payloads.end(), draw_payload);
    return s;
}

}  // namespace simulator::udp
