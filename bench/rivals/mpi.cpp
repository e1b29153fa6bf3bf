// SPDX-License-Identifier: Apache-2.0
//
// Any MPI: compiled once with each implementation found and started by that one's launcher.
#include "method.hpp"

#include <mpi.h>

namespace {

using namespace rivals;

int of_world(int (*query)(MPI_Comm, int*)) {
    int value = 0;
    query(MPI_COMM_WORLD, &value);
    return value;
}

class MpiChannel {
public:
    explicit MpiChannel(int rank) : peer_(1 - rank) {}

    void send(const void* data, std::size_t size) {
        MPI_Send(data, int(size), MPI_BYTE, peer_, 0, MPI_COMM_WORLD);
    }
    void receive(void* data, std::size_t size) {
        MPI_Recv(data, int(size), MPI_BYTE, peer_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    void post_send(const void* data, std::size_t size) {
        MPI_Isend(data, int(size), MPI_BYTE, peer_, 0, MPI_COMM_WORLD, &sends_.emplace_back());
    }
    void finish_sends() {
        MPI_Waitall(int(sends_.size()), sends_.data(), MPI_STATUSES_IGNORE);
        sends_.clear();
    }
    void post_receive(void* data, std::size_t size) {
        MPI_Irecv(data, int(size), MPI_BYTE, peer_, 0, MPI_COMM_WORLD, &receives_.emplace_back());
    }
    void finish_receives() {
        MPI_Waitall(int(receives_.size()), receives_.data(), MPI_STATUSES_IGNORE);
        receives_.clear();
    }
    void send_to(int rank, const void* data, std::size_t size) {
        MPI_Send(data, int(size), MPI_BYTE, rank, 0, MPI_COMM_WORLD);
    }
    void receive_any(void* data, std::size_t size) {
        MPI_Recv(data, int(size), MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    void multicast(void* data, std::size_t size) { share(data, size); }
    void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
    void share(void* data, std::size_t size) {
        MPI_Bcast(data, int(size), MPI_BYTE, 0, MPI_COMM_WORLD);
    }

private:
    int peer_;
    std::vector<MPI_Request> sends_, receives_;
};

/// The launcher's environment tells the rank before MPI_Init, whose memory should be local already.
int rank_before_init() {
    for (const char* name : {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"})
        if (const char* value = std::getenv(name)) return std::atoi(value);
    return 0;
}

int measure(const Options& options, int& argc, char**& argv) {
    alarm(options.deadline);
    pin_to(options.cpus[std::size_t(rank_before_init() % 2)]);
    enter_host(options, rank_before_init());
    MPI_Init(&argc, &argv);
    const int rank = of_world(MPI_Comm_rank);
    const int ranks = of_world(MPI_Comm_size);
    require(ranks >= 2, "start it with two ranks or more, through the MPI's own launcher");
    pin_to(options.cpus[std::size_t(rank % 2)]);

    MpiChannel channel(rank);
    measure_channel({RIVAL_NAME, RIVAL_VERSION}, channel, rank, ranks, options);
    MPI_Finalize();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return guarded(RIVAL_NAME, [&] {
        return measure(parse_options(argc, argv, "MPI point to point and barrier"), argc, argv);
    });
}
