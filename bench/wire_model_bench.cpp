// SPDX-License-Identifier: Apache-2.0
// How many hops the wire model makes in a second. A hop is a packet passed on by a node, or taken
// off by its source; the `ring` link pays for each one inline.
#include "rmem/wire/model.hpp"

#include <benchmark/benchmark.h>

#include <cstdint>

namespace {

using rmem::WireModel;
using rmem::WireOutcome;
using rmem::WireWrite;

void report(benchmark::State& state, const WireModel& model) {
    const rmem::WireCounters total = model.totals();
    const auto hops = static_cast<double>(total.passed + total.removed_by_source);
    state.counters["hops/s"] = benchmark::Counter(hops, benchmark::Counter::kIsRate);
    state.counters["writes/s"] =
        benchmark::Counter(static_cast<double>(total.submitted), benchmark::Counter::kIsRate);
}

/// `senders` nodes write `bytes` each every `gap_ns`.
void stream(benchmark::State& state, const char* profile, std::uint32_t senders,
            std::uint32_t bytes, std::int64_t gap_ns) {
    const auto nodes = static_cast<std::uint32_t>(state.range(0));
    WireModel model(rmem::parse_timing(profile), nodes);
    std::uint64_t arrivals = 0;
    std::int64_t now = 0;
    const auto sink = [&arrivals](const WireOutcome& outcome) { arrivals += outcome.node; };
    WireWrite write;
    write.bytes = bytes;
    for (auto _ : state) {
        for (std::uint32_t node = 0; node < senders; ++node) {
            write.origin = static_cast<std::uint16_t>(node * nodes / senders);
            write.time_ns = now;
            write.offset = (write.offset + 4096) % (1U << 23);
            model.submit(write);
        }
        now += gap_ns;
        model.advance(now, sink);
    }
    benchmark::DoNotOptimize(arrivals);
    report(state, model);
}

void one_idle_sender(benchmark::State& state) {
    stream(state, "scramnet-burst", 1, 4, 100'000);
}

void one_saturating_sender(benchmark::State& state) {
    stream(state, "scramnet-burst", 1, 4, 615);
}

void all_nodes_at_nine_tenths_of_the_ring(benchmark::State& state) {
    const auto nodes = static_cast<std::uint32_t>(state.range(0));
    stream(state, "scramnet-burst", nodes, 4, 683 * state.range(0));
}

void plus_packets_of_64_bytes(benchmark::State& state) {
    stream(state, "scramnet-burst-plus", 1, 64, 6000);
}

void fixed_packets_of_64_bytes(benchmark::State& state) {
    stream(state, "scramnet-burst", 1, 64, 12000);
}

BENCHMARK(one_idle_sender)->ArgName("nodes")->Arg(2)->Arg(4)->Arg(16)->Arg(64)->Arg(256);
BENCHMARK(one_saturating_sender)->ArgName("nodes")->Arg(2)->Arg(4)->Arg(16)->Arg(64)->Arg(256);
BENCHMARK(all_nodes_at_nine_tenths_of_the_ring)
    ->ArgName("nodes")
    ->Arg(2)
    ->Arg(4)
    ->Arg(16)
    ->Arg(64)
    ->Arg(256);
BENCHMARK(plus_packets_of_64_bytes)->ArgName("nodes")->Arg(4)->Arg(16);
BENCHMARK(fixed_packets_of_64_bytes)->ArgName("nodes")->Arg(4)->Arg(16);

}  // namespace
