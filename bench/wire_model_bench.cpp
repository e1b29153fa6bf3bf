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

/// `senders` nodes (0: all) write `bytes` each every `gap_ns`, times the nodes where all do.
void stream(benchmark::State& state, const char* profile, std::uint32_t senders,
            std::uint32_t bytes, std::int64_t gap_ns) {
    const auto nodes = static_cast<std::uint32_t>(state.range(0));
    if (senders == 0) {
        senders = nodes;
        gap_ns *= nodes;
    }
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
    const rmem::WireCounters total = model.totals();
    const auto rate = [](std::uint64_t count) {
        return benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsRate);
    };
    state.counters["hops/s"] = rate(total.passed + total.removed_by_source);
    state.counters["writes/s"] = rate(total.submitted);
}

void rings(benchmark::internal::Benchmark* each) {
    each->ArgName("nodes")->Arg(2)->Arg(4)->Arg(16)->Arg(64)->Arg(256);
}
BENCHMARK_CAPTURE(stream, one_idle_sender, "scramnet-burst", 1, 4, 100'000)->Apply(rings);
BENCHMARK_CAPTURE(stream, one_saturating_sender, "scramnet-burst", 1, 4, 615)->Apply(rings);
BENCHMARK_CAPTURE(stream, all_nodes_at_nine_tenths_of_the_ring, "scramnet-burst", 0, 4, 683)
    ->Apply(rings);
BENCHMARK_CAPTURE(stream, plus_packets_of_64_bytes, "scramnet-burst-plus", 1, 64, 6000)
    ->Apply(rings);
BENCHMARK_CAPTURE(stream, fixed_packets_of_64_bytes, "scramnet-burst", 1, 64, 12000)->Apply(rings);

}  // namespace
