// SPDX-License-Identifier: Apache-2.0
//
// Any MPI: compiled once with each implementation found and started by that one's launcher.
#include "bench/harness/harness.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>

namespace {

using namespace bench;

int of_world(int (*query)(MPI_Comm, int*)) {
    int value = 0;
    query(MPI_COMM_WORLD, &value);
    return value;
}

class MpiChannel {
public:
    /// A rank that is alone is its own peer.
    MpiChannel(int rank, int ranks)
        : rank_(rank), ranks_(ranks), peer_(rank == 0 ? ranks > 1 : 0) {}

    void send(const void* data, std::size_t size) { send_to(peer_, data, size); }
    void receive(void* data, std::size_t size) { receive_from(peer_, data, size); }
    void post_send(const void* data, std::size_t size) {
        MPI_Isend(data, int(size), MPI_BYTE, peer_, 0, MPI_COMM_WORLD, &requests_.emplace_back());
    }
    void finish_sends() {
        MPI_Waitall(int(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        requests_.clear();
    }
    void post_receive(void* data, std::size_t size) {
        MPI_Irecv(data, int(size), MPI_BYTE, peer_, 0, MPI_COMM_WORLD, &requests_.emplace_back());
    }
    void finish_receives() { finish_sends(); }
    void send_to(int rank, const void* data, std::size_t size) {
        MPI_Send(data, int(size), MPI_BYTE, rank, 0, MPI_COMM_WORLD);
    }
    void receive_any(void* data, std::size_t size) { receive_from(MPI_ANY_SOURCE, data, size); }

    // ---- All ranks

    void multicast(void* data, std::size_t size) {
        MPI_Bcast(data, int(size), MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    void share(std::uint64_t& word) { multicast(&word, sizeof word); }
    void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
    void allreduce(std::size_t size) {
        MPI_Allreduce(begin(), out_.data(), doubles(size), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        require(out_[0] == round_ * ranks_, "the sum is wrong");
    }
    void reduce(std::size_t size) {
        MPI_Reduce(begin(), out_.data(), doubles(size), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        require(rank_ != 0 || out_[0] == round_ * ranks_, "the sum is wrong");
    }
    void allgather(std::size_t size) {
        const int each = doubles(size);
        MPI_Allgather(begin(rank_), each, MPI_DOUBLE, out_.data(), each, MPI_DOUBLE,
                      MPI_COMM_WORLD);
        require(out_[std::size_t(each * (ranks_ - 1))] == round_ + ranks_ - 1, "a part is wrong");
    }
    double mean_of_ranks(double value) const {
        double sum = 0;
        MPI_Reduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        return sum / ranks_;
    }

private:
    static void receive_from(int rank, void* data, std::size_t size) {
        MPI_Recv(data, int(size), MPI_BYTE, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    static int doubles(std::size_t size) {
        return int(std::max<std::size_t>(size / sizeof(double), 1));
    }
    /// The parts of a collective call, the first of which is another one each time.
    const double* begin(int more = 0) {
        in_[0] = ++round_ + more;
        return in_.data();
    }

    int rank_, ranks_, peer_;
    std::vector<MPI_Request> requests_;
    std::vector<double> in_ = std::vector<double>(kMaxBytes / sizeof(double)), out_ = in_;
    double round_ = 0;
};

/// The launcher's environment tells the rank before MPI_Init, which opens sockets.
int rank_before_init() {
    for (const char* name : {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"})
        if (const char* value = std::getenv(name)) return std::atoi(value);
    return 0;
}

}  // namespace

int bench::measure(const Setup& setup) {
    setup.enter_host(rank_before_init());
    const auto began = now_ns();
    MPI_Init(nullptr, nullptr);
    const auto start = double(now_ns() - began);
    const int rank = of_world(MPI_Comm_rank), ranks = of_world(MPI_Comm_size);
    // Only now: threads that the MPI has started are to run where there is room.
    setup.pin(rank);
    MpiChannel channel(rank, ranks);
    try {
        take_steps(setup, channel, rank, ranks, nullptr, start);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
