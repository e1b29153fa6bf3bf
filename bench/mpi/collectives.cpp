// SPDX-License-Identifier: Apache-2.0

/// Figures of collective calls.
///
/// Barrier, Allreduce and Allgather wait for everybody, so they are called one after the other.
/// Bcast and Reduce do not: in a plain loop the root of a Bcast runs ahead, and what would be
/// measured is how often it can send. Therefore two ways:
///
///   bcast, reduce  until an answer has come: of the last rank to the root of a Bcast, of the root
///                  to the last rank after a Reduce. The answer's own time, half of a round trip of
///                  8 bytes between the same two, is measured before and told (`ack_ns`).
///   bcast_osu      as the OSU benchmarks do: a barrier, and after it each rank's own time in
///                  MPI_Bcast; mean over the ranks, and the slowest rank's (`slowest_ns`).
#include "bench/mpi/figures.hpp"

namespace mpi_bench {

namespace {

constexpr std::size_t kSizes[] = {8, 64, 256, 1024};

class Calls {
public:
    /// `size`: of one rank's part.
    Calls(const World& world, std::size_t size)
        : world_(world),
          size_(size),
          doubles_(static_cast<int>(size / sizeof(double))),
          in_(static_cast<std::size_t>(doubles_ * world.ranks)),
          out_(in_.size()) {
        expect(size >= sizeof(double), "collective calls are measured from 8 bytes on");
    }

    // ---- Calls that wait for all

    void allreduce() {
        in_[0] = ++round_;
        MPI_Allreduce(in_.data(), out_.data(), doubles_, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        expect(out_[0] == round_ * world_.ranks, "the sum is wrong");
    }
    void allgather() {
        in_[0] = ++round_ + world_.rank;
        MPI_Allgather(in_.data(), doubles_, MPI_DOUBLE, out_.data(), doubles_, MPI_DOUBLE,
                      MPI_COMM_WORLD);
        expect(out_[static_cast<std::size_t>(doubles_ * world_.last())] == round_ + world_.last(),
               "a part is wrong");
    }

    // ---- Calls that do not

    void broadcast() {
        ++round_;
        if (world_.is_leader()) in_[0] = round_;
        MPI_Bcast(in_.data(), static_cast<int>(size_), MPI_BYTE, 0, MPI_COMM_WORLD);
        expect(in_[0] == round_, "the broadcast is wrong");
    }
    void reduce() {
        in_[0] = ++round_;
        MPI_Reduce(in_.data(), out_.data(), doubles_, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (world_.is_leader()) expect(out_[0] == round_ * world_.ranks, "the sum is wrong");
    }

    // ---- A word between the root and the last rank

    void answer() const { word(world_.last(), 0, 1); }
    void question() const { word(0, world_.last(), 2); }

private:
    void word(int from, int to, int tag) const {
        double word = 0;
        if (world_.rank == from) MPI_Send(&word, 1, MPI_DOUBLE, to, tag, MPI_COMM_WORLD);
        if (world_.rank == to)
            MPI_Recv(&word, 1, MPI_DOUBLE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }

    const World& world_;
    std::size_t size_;
    int doubles_;
    std::vector<double> in_, out_;
    double round_ = 0;
};

template <class Operation>
void measure_calls(const World& world, const char* name, Operation&& op) {
    if (!world.options.wants(name)) return;
    for_sizes(world, kSizes, [&](std::size_t size) {
        Calls calls(world, size);
        measure(world, {name, size, world.ranks}, [&] { op(calls); });
    });
}

template <class Operation>
void measure_answered(const World& world, const char* name, Operation&& op) {
    if (!world.options.wants(name)) return;
    for_sizes(world, kSizes, [&](std::size_t size) {
        Calls calls(world, size);
        const double ack = measure(world, {nullptr, 8, world.ranks, 0.5}, [&] {
            calls.question();
            calls.answer();
        });
        measure(
            world, {name, size, world.ranks}, [&] { op(calls); }, ack);
    });
}

// ---- As OSU does

/// Few, because after the slowest barriers this takes a second.
constexpr int kOwnBatch = 20;

/// Its mean time at this rank.
double one_batch(Calls& calls) {
    double spent = 0;
    for (int i = 0; i < kOwnBatch; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double before = rivals::now_ns();
        calls.broadcast();
        spent += rivals::now_ns() - before;
    }
    return spent / kOwnBatch;
}

void measure_as_osu(const World& world, std::size_t size) {
    Calls calls(world, size);
    rivals::Series means, most;
    const double end = rivals::now_ns() + world.options.method.seconds * 1e9;
    for (std::uint64_t goes_on = 1; goes_on != 0;) {
        const double own = one_batch(calls);
        double sum = 0, slowest = 0;
        MPI_Reduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        means.push_back(sum / world.ranks);
        most.push_back(slowest);
        goes_on = rivals::now_ns() < end && means.size() < world.options.method.samples ? 1 : 0;
        world.share(&goes_on, sizeof goes_on);
    }
    if (!world.is_leader()) return;
    std::sort(means.begin(), means.end());
    std::sort(most.begin(), most.end());
    std::printf("{");
    rivals::print_samples({"bcast_osu", size, world.ranks}, means);
    rivals::print_number("batch_p50_ns", rivals::nearest_rank(means, 0.5));
    rivals::print_number("batch_p10_ns", rivals::nearest_rank(means, 0.1));
    rivals::print_number("slowest_ns", rivals::nearest_rank(most, 0.5));
    rivals::print_end();
}

}  // namespace

void collectives(const World& world) {
    if (world.ranks < 2) return;
    const Options& options = world.options;
    if (options.wants("barrier"))
        measure(world, {"barrier", 0, world.ranks}, [] { MPI_Barrier(MPI_COMM_WORLD); });
    measure_answered(world, "bcast", [](Calls& calls) {
        calls.broadcast();
        calls.answer();
    });
    if (options.wants("bcast") && options.rounds == 0)
        for_sizes(world, kSizes, [&](std::size_t size) { measure_as_osu(world, size); });
    measure_calls(world, "allreduce", [](Calls& calls) { calls.allreduce(); });
    measure_answered(world, "reduce", [](Calls& calls) {
        calls.reduce();
        calls.question();
    });
    measure_calls(world, "allgather", [](Calls& calls) { calls.allgather(); });
}

/// More ranks than processors. As a solver has it: sums of eight numbers at rank 0, one after the
/// other; no rank waits for anybody unless the MPI does.
void reduce_loops(const World& world) {
    if (world.ranks < 2 || !world.options.wants("reduce_loop")) return;
    constexpr std::size_t kSize = 8 * sizeof(double);
    Calls calls(world, kSize);
    measure(world, {"reduce_loop", kSize, world.ranks}, [&] { calls.reduce(); });
    measure(world, {"allreduce_loop", kSize, world.ranks}, [&] { calls.allreduce(); });
}

}  // namespace mpi_bench
