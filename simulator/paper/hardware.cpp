// SPDX-License-Identifier: Apache-2.0
#include "simulator/paper/hardware.hpp"

#include "rmem/link/sim/memory.hpp"
#include "simulator/paper/worlds.hpp"

#include <algorithm>
#include <functional>
#include <vector>

namespace simulator {

namespace {

using rmem::sim::Event;
using rmem::sim::EventKind;
using rmem::sim::Process;
using rmem::sim::SimMemory;

/// Calls for each write that arrives anywhere.
class Arrivals final : public rmem::sim::Observer {
public:
    explicit Arrivals(std::function<void(const Event&)> on_arrival)
        : on_arrival_(std::move(on_arrival)) {}
    void on_event(const Event& event) override {
        if (event.kind == EventKind::arrived) on_arrival_(event);
    }

private:
    std::function<void(const Event&)> on_arrival_;
};

Testbed ring_of(const std::string& timing, unsigned nodes, const char* host) {
    Testbed testbed;
    testbed.timing = timing;
    testbed.nodes = testbed.ranks = nodes;
    testbed.host = rmem::sim::parse_host(host);
    return testbed;
}

}  // namespace

HopTimes hop_times(const std::string& timing, std::size_t own_bytes) {
    // Node 0's word passes node 1, which begins an own packet a nanosecond earlier each round, from
    // one that is too late to one that is through.
    constexpr std::int64_t kRounds = 2000, kPeriodNs = 500'000;
    const Testbed testbed = ring_of(timing, 4, "none");
    HopTimes times{INT64_MAX, 0};
    std::int64_t at_node_1 = 0;
    Arrivals arrivals([&](const Event& event) {
        if (event.origin != 0) return;
        if (event.node == 1) at_node_1 = event.time_ns;
        if (event.node != 2) return;
        times.least_ns = std::min(times.least_ns, event.time_ns - at_node_1);
        times.longest_ns = std::max(times.longest_ns, event.time_ns - at_node_1);
    });
    const auto program = [&](Process& me) {
        SimMemory memory(me);
        const std::vector<std::byte> own(me.rank() == 0 ? rmem::kWordBytes : own_bytes);
        const std::size_t place = me.rank() == 0 ? 0 : testbed.user_bytes / 2;
        for (std::int64_t i = 1; me.rank() <= 1 && i <= kRounds; ++i) {
            sleep_until(me, i * kPeriodNs + (me.rank() == 0 ? i - kRounds / 2 : 0));
            memory.write(place, own.data(), own.size());
        }
    };
    run_bare(testbed, program, &arrivals);
    return times;
}

std::int64_t throughput(const std::string& timing, unsigned transmitters) {
    // A single one streams; of several, each what its FIFO holds, so that all are sending until the
    // end.
    const std::size_t own_bytes = transmitters == 1 ? 65536 : 4096;
    Testbed testbed = ring_of(timing, std::max(transmitters, 2U), "pentium-ii");
    testbed.user_bytes = own_bytes * testbed.nodes;
    std::vector<std::int64_t> first(testbed.nodes), last(testbed.nodes);
    std::vector<std::int64_t> bytes(testbed.nodes);  // after the first write
    Arrivals arrivals([&](const Event& event) {
        if (event.node != (event.origin + 1U) % testbed.nodes) return;
        if (first[event.origin] == 0) {
            first[event.origin] = event.time_ns;
        } else {
            bytes[event.origin] += event.bytes;
        }
        last[event.origin] = event.time_ns;
    });
    const auto program = [&](Process& me) {
        if (me.rank() >= transmitters) return;
        SimMemory memory(me);
        const std::vector<std::byte> own(own_bytes);
        memory.write(me.rank() * own_bytes, own.data(), own.size());
    };
    run_bare(testbed, program, &arrivals);
    std::int64_t sum = 0;
    for (unsigned node = 0; node < transmitters; ++node) {
        sum += bytes[node] * 1'000'000'000 / (last[node] - first[node]);
    }
    return sum / transmitters;
}

unsigned largest_ring(const std::string& timing) {
    const auto is_possible = [&](unsigned nodes) {
        try {
            Testbed testbed = ring_of(timing, nodes, "none");
            unsigned reached = 0;
            Arrivals arrivals([&](const Event&) { ++reached; });
            const auto program = [](Process& me) {
                if (me.rank() == 0) SimMemory(me).post_word(0, 1);
            };
            run_bare(testbed, program, &arrivals);
            return reached == nodes - 1;
        } catch (const rmem::Error&) {
            return false;
        }
    };
    unsigned nodes = 2;
    while (is_possible(nodes * 2)) nodes *= 2;
    while (is_possible(nodes + 1)) ++nodes;
    return nodes;
}

}  // namespace simulator
