// SPDX-License-Identifier: Apache-2.0

/// A rank on a host of the lab: a soak (tests/support/soak.hpp) among the ranks that the
/// environment names.
///
///     scripts/lab run -- lab-traffic MESSAGES SEED
///
/// Each rank sends MESSAGES messages, to one or several, of up to a partition's size; exit status 0
/// when each that was meant for this one has come once, in order and intact.

#include "billboard/bbp.h"
#include "tests/support/checks.hpp"
#include "tests/support/soak.hpp"

#include <cstdio>
#include <exception>
#include <string>

namespace {

using namespace rmem::test;

constexpr std::size_t kLargest = 16384;

void run(std::uint64_t messages, std::uint64_t seed) {
    int rank = 0, ranks = 0;
    check_ok(bbp_init(&rank, &ranks), "bbp_init");
    Shared shared{};
    Rank me{rank, ranks, kLargest, shared};
    const std::int64_t begin = clock_ns();
    soak(me, messages, seed, kLargest);
    std::printf("rank %d of %d: all in order after %.1f s\n", rank, ranks,
                static_cast<double>(clock_ns() - begin) * 1e-9);
    check_ok(bbp_finalize(), "bbp_finalize");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: lab-traffic MESSAGES SEED\n");
        return 2;
    }
    try {
        run(std::stoull(argv[1]), std::stoull(argv[2]));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "lab-traffic: %s\n", error.what());
        return 1;
    }
}
