// SPDX-License-Identifier: Apache-2.0
//
// nanomsg: a PAIR over ipc (a Unix-domain socket, served by a worker thread in each process).
#include "bench/harness/harness.hpp"

#include <nanomsg/nn.h>
#include <nanomsg/pair.h>

namespace {

using namespace bench;

void check(int result, const char* what) {
    require(result >= 0, what, [] { return nn_strerror(nn_errno()); });
}

class NanomsgChannel : Unique {
public:
    NanomsgChannel(int rank, const std::string& url) {
        check(socket_, "nn_socket");
        const int unlimited = -1;
        check(nn_setsockopt(socket_, NN_SOL_SOCKET, NN_RCVMAXSIZE, &unlimited, sizeof unlimited),
              "nn_setsockopt");
        if (rank == 0)
            check(nn_bind(socket_, url.c_str()), "nn_bind");
        else
            check(nn_connect(socket_, url.c_str()), "nn_connect");
    }
    ~NanomsgChannel() { nn_close(socket_); }

    void send(const void* data, std::size_t size) {
        check(nn_send(socket_, data, size, 0), "nn_send");
    }
    void receive(void* data, std::size_t size) {
        poll([&] { return nn_recv(socket_, data, size, NN_DONTWAIT); });
    }
    template <class Look>
    void receive_view(std::size_t, Look&& look) {
        void* message = nullptr;
        poll([&] { return nn_recv(socket_, &message, NN_MSG, NN_DONTWAIT); });
        look(message);
        nn_freemsg(message);
    }

private:
    /// Yields between polls: the worker thread of the same process needs this CPU to deliver.
    template <class Attempt>
    static void poll(Attempt&& attempt) {
        int result;
        while ((result = attempt()) < 0 && nn_errno() == EAGAIN) sched_yield();
        check(result, "nn_recv");
    }

    int socket_ = nn_socket(AF_SP, NN_PAIR);
};

}  // namespace

int bench::measure(const Setup& setup) {
    const std::string url = "ipc://" + scratch_file("pair");
    return measure_ranks(setup, [&](int rank, Meeting&) { return NanomsgChannel(rank, url); });
}
