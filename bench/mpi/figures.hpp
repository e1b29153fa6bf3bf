// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The figures of MPI programs, by the method of the rivals (bench/rivals/method.hpp): rank 0 alone
/// decides how often, tells the others by MPI_Bcast outside of what is timed, and prints one JSON
/// object per figure and size.
///
/// Units: ns. Errors: a wrong result, or an argument that means nothing, ends all ranks with a
/// sentence (MPI_Abort). Thread safety: one thread.

#include "bench/rivals/method.hpp"

#include <mpi.h>

#include <stdexcept>
#include <vector>

namespace mpi_bench {

using rivals::Figure;

struct Options {
    rivals::Options method;            ///< the time of a figure of one size
    std::vector<int> cpus{0, 1};       ///< rank r runs on number r modulo their count
    std::vector<std::string> figures;  ///< empty: all
    std::vector<std::size_t> sizes;    ///< empty: each figure's own
    std::uint64_t rounds = 0;          ///< 0: by the time; else this number, untimed: a profiler's

    bool wants(const char* figure) const {
        return figures.empty() ||
               std::find(figures.begin(), figures.end(), figure) != figures.end();
    }
};

/// All ranks; for the method a channel, by which rank 0 says how often.
struct World {
    int rank, ranks;
    const Options& options;

    bool is_leader() const { return rank == 0; }
    int last() const { return ranks - 1; }
    void share(void* data, std::size_t size) const {
        MPI_Bcast(data, static_cast<int>(size), MPI_BYTE, 0, MPI_COMM_WORLD);
    }
};

/// Among what is timed: no string is made of what is not said.
inline void expect(bool holds, const char* complaint) {
    if (!holds) [[unlikely]]
        throw std::runtime_error(complaint);
}

/// Warm-up, then single operations, then batches; rank 0 prints, unless the figure has no name.
/// `ack_ns` of an operation are the way back, or there is none. Returns at rank 0 the lower of the
/// two medians, which other jobs have disturbed less.
template <class Operation>
double measure(const World& world, const Figure& figure, Operation&& op, double ack_ns = 0) {
    const Options& options = world.options;
    if (options.rounds != 0) {
        rivals::repeat(options.rounds, op);
        return 0;
    }
    const auto found = rivals::measure_operation(world, world.is_leader(), options.method, op);
    if (!world.is_leader()) return 0;
    const auto mean = [&](double quantile) {
        return rivals::nearest_rank(found.batches, quantile) * figure.share;
    };
    if (figure.name != nullptr) {
        std::printf("{");
        rivals::print_samples(figure, found.singles);
        std::printf(",\"batch\":%d", static_cast<int>(found.batch));
        rivals::print_number("batch_p50_ns", mean(0.5));
        rivals::print_number("batch_p10_ns", mean(0.1));
        rivals::print_number("batch_p99_ns", mean(0.99));
        if (ack_ns != 0) rivals::print_number("ack_ns", ack_ns);
        rivals::print_end();
    }
    return std::min(rivals::nearest_rank(found.singles, 0.5) * figure.share, mean(0.5));
}

/// Calls `one` for each size of the options, or else of `own`.
template <class Sizes, class One>
void for_sizes(const World& world, const Sizes& own, One&& one) {
    const auto& told = world.options.sizes;
    if (told.empty()) {
        for (const std::size_t size : own) one(size);
    } else {
        for (const std::size_t size : told) one(size);
    }
}

// ---- The figures: which sizes, unless the options say
void latency(const World& world);
void bandwidth(const World& world);
void collectives(const World& world);
void reduce_loops(const World& world);

}  // namespace mpi_bench
