// SPDX-License-Identifier: Apache-2.0
//
// rmem itself: the billboard through its C library, on the ring BENCH_RING where daemons run its
// nodes.
#include "bench/systems/ring.hpp"

namespace {

struct RmemChannel : bench::Joined, bench::BillboardChannel {
    RmemChannel(const bench::Setup& setup, const std::string& ring, int rank)
        : Joined(setup, ring, rank), BillboardChannel(rank, setup.ranks) {}
};

}  // namespace

int bench::measure(const Setup& setup) {
    const std::string ring = setting("BENCH_RING", name_of_ring());
    return measure_ranks(
        setup, [&](int rank, Meeting&) { return RmemChannel(setup, ring, rank); },
        Pinned::when_joined);
}
