// SPDX-License-Identifier: Apache-2.0

/// An MPI program like any other: bench/mpi/run starts it over each MPI and each way below it.
///
///     mpirun.openmpi -n 2 mpi-figures-openmpi --figures latency,stream --seconds 0.5
#include "bench/mpi/figures.hpp"

#include <CLI/CLI.hpp>

namespace {

using namespace mpi_bench;

constexpr std::uint64_t kMostSamples = 400'000;  ///< it is the time that ends a figure

void measure_all(const Options& options) {
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const World world{rank, ranks, options};
    // Only now: threads that the MPI has started are to run where there is room.
    rivals::pin_to(options.cpus[static_cast<std::size_t>(rank) % options.cpus.size()]);
    latency(world);
    bandwidth(world);
    collectives(world);
    reduce_loops(world);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    options.method.samples = options.method.warmup = kMostSamples;
    options.method.seconds = 1;
    options.method.deadline = 300;
    CLI::App app("The figures of an MPI");
    app.add_option("--figures", options.figures,
                   "of latency, self, rate, stream, transfer, barrier, bcast, allreduce, reduce, "
                   "allgather, reduce_loop (all that the number of ranks allows)")
        ->delimiter(',');
    app.add_option("--bytes", options.sizes, "sizes, instead of each figure's own")->delimiter(',');
    app.add_option("--cpus", options.cpus, "rank r runs on number r modulo their count (0,1)")
        ->delimiter(',');
    app.add_option("--seconds", options.method.seconds, "for each figure and size")
        ->capture_default_str();
    app.add_option("--deadline", options.method.deadline,
                   "the program ends after this many seconds in any case")
        ->capture_default_str();
    app.add_option("--rounds", options.rounds,
                   "operations of each figure but bandwidths, untimed: for a profiler");
    CLI11_PARSE(app, argc, argv);
    alarm(options.method.deadline);
    MPI_Init(&argc, &argv);
    try {
        measure_all(options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "mpi bench: %s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
