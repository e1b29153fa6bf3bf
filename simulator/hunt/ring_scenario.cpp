// SPDX-License-Identifier: Apache-2.0
#include "simulator/hunt/ring_scenario.hpp"

#include "simulator/hunt/seed_text.hpp"

#include <algorithm>

namespace simulator {

namespace {

constexpr std::array<const char*, static_cast<std::size_t>(FaultKind::count_)> kNames = {
    "delay",     "clog",    "lose", "duplicate", "cut-cable",   "cut-link", "kill",
    "fail-node", "restart", "stop", "stall",     "slow-reader", "deaf"};

}  // namespace

const char* name_of(FaultKind kind) noexcept {
    return kNames.at(static_cast<std::size_t>(kind));
}

Fault draw_fault(FaultKind kind, unsigned messages, bool may_return, rmem::Random& random) {
    Fault fault;
    fault.kind = kind;
    fault.target = static_cast<unsigned>(random.below(RingScenario::kRanks));
    fault.at_message = static_cast<unsigned>(random.below(messages * 9 / 10)) + 1;
    fault.accesses = random.below(300) + 1;
    fault.comes_back = may_return && !random.one_in(8);
    switch (kind) {
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

void put_in_order(std::vector<Fault>& faults) {
    std::sort(faults.begin(), faults.end(), [](const Fault& a, const Fault& b) {
        return a.at_message != b.at_message ? a.at_message < b.at_message : a.accesses < b.accesses;
    });
}

}  // namespace simulator
