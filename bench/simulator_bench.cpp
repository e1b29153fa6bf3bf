// SPDX-License-Identifier: Apache-2.0

/// How fast the simulator is: writes, and hops of packets from node to node, for each second of one
/// processor's time.
///
///     simulator-bench [--benchmark_filter=...]
///
///   stream     every node stores words without end, each stalled by its card's FIFO as on hardware
///   pingpong   two nodes answer each other by words; the others' cards pass them on
///   messages   two ranks of the billboard, layout paper, in ping-pong; two more wait

#include "billboard/bbp.h"
#include "billboard/simulation.hpp"
#include "rmem/link/sim/memory.hpp"

#include <benchmark/benchmark.h>

namespace {

using rmem::sim::Process;
using rmem::sim::SimMemory;
using rmem::sim::World;
using rmem::sim::WorldConfig;

WorldConfig ring_of(unsigned nodes) {
    WorldConfig config;
    config.ring.name = "bench";
    config.ring.nodes = config.ring.ranks = nodes;
    config.ring.user_bytes = 4096;
    config.ring.timing = rmem::parse_timing("scramnet-burst");
    return config;
}

/// Runs a world to its end, over and over.
template <class Start>
void run_worlds(benchmark::State& state, const WorldConfig& config, const Start& start) {
    std::uint64_t writes = 0, hops = 0;
    for (auto _ : state) {
        World world(config);
        start(world);
        world.run();
        writes += world.writes();
        hops += world.arrivals() + world.writes();  // the last hop brings a packet back
    }
    const auto rate = [](std::uint64_t count) {
        return benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsRate);
    };
    state.counters["writes/s"] = rate(writes);
    state.counters["hops/s"] = rate(hops);
}

void stream(benchmark::State& state) {
    const auto nodes = static_cast<unsigned>(state.range(0));
    const unsigned words = 400'000 / nodes / nodes + 100;
    run_worlds(state, ring_of(nodes), [&](World& world) {
        for (unsigned r = 0; r < nodes; ++r) {
            world.start(r, [words](Process& me) {
                SimMemory memory(me);
                for (unsigned i = 0; i < words; ++i) {
                    memory.post_word(me.rank() * rmem::kWordBytes, i);
                }
            });
        }
    });
}

/// Waits as protocols do.
void await_word(SimMemory& memory, std::size_t offset, std::uint32_t value) {
    memory.begin_wait();
    while (memory.load(offset) != value) memory.wait(rmem::Deadline::never());
    memory.end_wait();
}

void pingpong(benchmark::State& state) {
    const auto nodes = static_cast<unsigned>(state.range(0));
    const std::uint32_t rounds = 40'000 / nodes + 10;
    run_worlds(state, ring_of(nodes), [&](World& world) {
        for (unsigned r = 0; r < 2; ++r) {
            world.start(r, [rounds](Process& me) {
                SimMemory memory(me);
                for (std::uint32_t i = 1; i <= rounds; ++i) {
                    if (me.rank() == 0) memory.post_word(0, i);
                    await_word(memory, me.rank() == 0 ? 4 : 0, i);
                    if (me.rank() == 1) memory.post_word(4, i);
                }
            });
        }
    });
}

void messages(benchmark::State& state) {
    run_worlds(state, billboard::simulated(ring_of(4)), [](World& world) {
        for (unsigned r = 0; r < 4; ++r) {
            world.start(r, [](Process& me) {
                bbp_init(nullptr, nullptr);
                const int other = 1 - static_cast<int>(me.rank());
                std::uint32_t word = 0;
                std::size_t length = 0;
                for (int i = 0; me.rank() < 2 && i < 10'000; ++i) {
                    if (me.rank() == 0) bbp_send(other, &word, sizeof word);
                    bbp_recv(other, &word, sizeof word, &length);
                    if (me.rank() == 1) bbp_send(other, &word, sizeof word);
                }
                bbp_barrier();
                bbp_finalize();
            });
        }
    });
}

BENCHMARK(stream)->Arg(2)->Arg(4)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);
BENCHMARK(pingpong)->Arg(4)->Arg(256)->Unit(benchmark::kMillisecond);
BENCHMARK(messages)->Unit(benchmark::kMillisecond);

}  // namespace
