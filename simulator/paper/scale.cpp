// SPDX-License-Identifier: Apache-2.0
#include "simulator/paper/scale.hpp"

#include "billboard/boards/layout.hpp"
#include "rmem/link/sim/memory.hpp"
#include "simulator/paper/experiments.hpp"

#include <algorithm>

namespace simulator {

namespace {

using rmem::sim::Process;
using rmem::sim::SimMemory;

constexpr std::int64_t kPsPerNs = 1000;
constexpr std::int64_t kRounds = 8;
constexpr std::int64_t kBarriers = 3;  // the first may find what is not yet in step

Testbed testbed_of(const Place& place) {
    Testbed testbed;
    testbed.nodes = place.nodes();
    testbed.ranks = place.ranks;
    if (place.rings > 1) testbed.topology = {place.rings, place.nodes_per_ring};
    testbed.partition_bytes = billboard::kMinDataBytes;
    return testbed;
}

Testbed bare_testbed_of(const Place& place) {
    Testbed testbed = testbed_of(place);
    testbed.ranks = place.nodes();
    testbed.user_bytes = std::max<std::size_t>(4096, place.nodes() * rmem::kWordBytes);
    return testbed;
}

/// Polls until the word, which counts, has come as far: a rank that is ahead may have counted on.
void await_count(SimMemory& memory, std::size_t offset, std::uint32_t count) {
    if (memory.load(offset) >= count) return;
    memory.begin_wait();
    do {
        memory.wait(rmem::Deadline{});
    } while (memory.load(offset) < count);
    memory.end_wait();
}

/// Node 0 stores, all others poll; each round meets their polls in other phases.
std::int64_t word_ps(const Testbed& testbed) {
    const std::int64_t poll_ns = testbed.host.load_ns;
    const std::int64_t period_ns = 1'000'000 + testbed.nodes * 10'000;
    std::int64_t sum_ns = 0, last_ns = 0;
    run_bare(testbed, [&](Process& me) {
        SimMemory memory(me);
        for (std::int64_t i = 1; i <= kRounds; ++i) {
            const std::int64_t begin_ns = i * period_ns;
            const auto count = static_cast<std::uint32_t>(i);
            if (me.rank() == 0) {
                sleep_until(me, begin_ns);
                last_ns = 0;
                memory.post_word(0, count);
                continue;
            }
            sleep_until(me, begin_ns - period_ns / 4 + (i * 97 + me.rank() * 37) % poll_ns);
            await_count(memory, 0, count);
            const std::int64_t took_ns = me.now_ns() - begin_ns;
            sum_ns += std::max<std::int64_t>(took_ns - last_ns, 0);
            last_ns = std::max(last_ns, took_ns);
        }
    });
    return sum_ns * kPsPerNs / kRounds;
}

/// As bbp_barrier by arrival words does it, with nothing around it.
std::int64_t word_barrier_ps(const Testbed& testbed) {
    std::int64_t begun_ns = 0, ended_ns = 0;
    run_bare(testbed, [&](Process& me) {
        SimMemory memory(me);
        for (std::int64_t i = 0; i < kBarriers; ++i) {
            if (me.rank() == 0 && i == 1) begun_ns = me.now_ns();
            const auto count = static_cast<std::uint32_t>(i + 1);
            memory.progress();
            memory.post_word(me.rank() * rmem::kWordBytes, count);
            for (unsigned r = 0; r < testbed.ranks; ++r) {
                if (r != me.rank()) await_count(memory, r * rmem::kWordBytes, count);
            }
        }
        if (me.rank() == 0) ended_ns = me.now_ns();
    });
    return (ended_ns - begun_ns) * kPsPerNs / (kBarriers - 1);
}

}  // namespace

std::vector<Place> places_to_measure(unsigned most_nodes) {
    constexpr unsigned kSpreadRanks =
        64;  // more ranks' partitions on thousands of nodes fill this host
    std::vector<Place> places;
    for (unsigned nodes = 2; nodes <= rmem::kMaxNodes; nodes *= 2) {
        places.push_back({1, nodes, nodes});
    }
    for (unsigned side = 8; side <= 64; side *= 2) {
        places.push_back({side, side, kSpreadRanks});
    }
    std::erase_if(places, [&](const Place& place) { return place.nodes() > most_nodes; });
    return places;
}

ScalePoint measure(const Place& place) {
    ScalePoint point;
    point.place = place;
    const Collectives by_billboard = collectives(testbed_of(place), 4);
    point.multicast_ps = by_billboard.multicast_ps;
    point.barrier_ps = by_billboard.barrier_ps;
    point.word_ps = word_ps(bare_testbed_of(place));
    point.word_barrier_ps = word_barrier_ps(bare_testbed_of(place));
    return point;
}

unsigned most_ranks(std::size_t memory_bytes, std::size_t data_bytes) {
    rmem::RingConfig ring;
    ring.link = rmem::LinkKind::sim;
    ring.user_bytes = 0;
    const auto fits = [&](unsigned ranks) {
        ring.ranks = ranks;
        return billboard::Geometry(ring, {billboard::Layout::paper, data_bytes}).region_bytes() <=
               memory_bytes;
    };
    unsigned ranks = 0;
    while (fits(ranks + 1)) ++ranks;
    return ranks;
}

}  // namespace simulator
