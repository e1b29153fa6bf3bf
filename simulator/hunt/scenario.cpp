// SPDX-License-Identifier: Apache-2.0
#include "simulator/hunt/scenario.hpp"

#include "rmem/config.hpp"
#include "simulator/hunt/random.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

rmem::Error bad(std::string_view text) {
    return rmem::Error(
        rmem::Errc::invalid_argument,
        fmt::format("'{}' is no seed of the hunt; give a number, or what a failing hunt "
                    "has printed: <seed>:messages=<n>,faults=<i>.<j>",
                    text));
}

std::vector<unsigned> parse_places(std::string_view list, unsigned most) {
    std::vector<unsigned> places;
    while (!list.empty() && list != "none") {
        const std::size_t dot = std::min(list.find('.'), list.size());
        places.push_back(
            rmem::parse_unsigned("a fault's place", std::string(list.substr(0, dot)), most));
        list.remove_prefix(std::min(dot + 1, list.size()));
    }
    return places;
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

Scenario Scenario::with_messages(unsigned count) const {
    Scenario less = *this;
    less.messages = count;
    return less;
}

Scenario Scenario::with_faults(const std::vector<unsigned>& places) const {
    Scenario less = of_seed(seed).with_messages(messages);
    std::vector<Fault> all;
    all.swap(less.faults);
    for (const unsigned place : places) less.faults.push_back(all.at(place));
    less.kept = places;
    return less;
}

Scenario Scenario::parse(std::string_view text) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    std::uint64_t seed = 0;
    for (const char c : text.substr(0, colon)) {
        if (c < '0' || c > '9' || seed > (UINT64_MAX - 9) / 10) throw bad(text);
        seed = seed * 10 + static_cast<unsigned>(c - '0');
    }
    if (colon == 0) throw bad(text);
    Scenario scenario = of_seed(seed);
    for (std::string_view rest = text.substr(colon); !rest.empty();) {
        rest.remove_prefix(1);
        const std::size_t end = std::min(rest.find(','), rest.size());
        const std::string_view item = rest.substr(0, end);
        rest.remove_prefix(end);
        if (item.starts_with("messages=")) {
            scenario.messages =
                rmem::parse_unsigned("messages", std::string(item.substr(9)), 1'000'000);
        } else if (item.starts_with("faults=")) {
            scenario = scenario.with_faults(parse_places(item.substr(7), kFaults - 1));
        } else {
            throw bad(text);
        }
    }
    return scenario;
}

std::string Scenario::text() const {
    std::string text = fmt::format("{}", seed);
    if (messages != kMessages) text += fmt::format(":messages={}", messages);
    if (!kept) return text;
    text += messages != kMessages ? "," : ":";
    return text + (kept->empty() ? "faults=none" : fmt::format("faults={}", fmt::join(*kept, ".")));
}

}  // namespace simulator
