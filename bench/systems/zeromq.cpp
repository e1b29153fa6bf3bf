// SPDX-License-Identifier: Apache-2.0
//
// ZeroMQ: a PAIR over ipc (a Unix-domain socket, served by an I/O thread in each process), or, by
// variant, tcp.
#include "bench/harness/harness.hpp"

#include <zmq.h>

namespace {

using namespace bench;

void check(int result, const char* what) {
    require(result >= 0, what, [] { return zmq_strerror(zmq_errno()); });
}

class ZeroMqChannel : Unique {
public:
    ZeroMqChannel(int rank, const std::string& url) {
        set(ZMQ_LINGER, 0);
        set(ZMQ_SNDBUF, socket_buffer);
        set(ZMQ_RCVBUF, socket_buffer);
        if (rank == 0)
            check(zmq_bind(socket_, url.c_str()), "zmq_bind");
        else
            check(zmq_connect(socket_, url.c_str()), "zmq_connect");
        zmq_msg_init(&message_);
    }
    ~ZeroMqChannel() {
        zmq_msg_close(&message_);
        zmq_close(socket_);
        zmq_ctx_term(context_);
    }

    void send(const void* data, std::size_t size) {
        check(zmq_send(socket_, data, size, 0), "zmq_send");
    }
    void receive(void* data, std::size_t size) {
        poll([&] { return zmq_recv(socket_, data, size, ZMQ_DONTWAIT); });
    }
    template <class Look>
    void receive_view(std::size_t, Look&& look) {
        poll([&] { return zmq_msg_recv(&message_, socket_, ZMQ_DONTWAIT); });
        look(zmq_msg_data(&message_));
    }

    /// Without a copy: the window's acknowledgement says when the buffer is free again.
    void post_send(const void* data, std::size_t size) {
        zmq_msg_t message;
        check(zmq_msg_init_data(&message, const_cast<void*>(data), size, keep, nullptr),
              "zmq_msg_init_data");
        check(zmq_msg_send(&message, socket_, 0), "zmq_msg_send");
    }

private:
    static constexpr int socket_buffer = int(kMaxBytes);

    static void keep(void*, void*) {}

    void set(int option, int value) {
        check(zmq_setsockopt(socket_, option, &value, sizeof value), "zmq_setsockopt");
    }

    /// Yields between polls: the I/O thread of the same process needs this CPU to deliver anything.
    template <class Attempt>
    static void poll(Attempt&& attempt) {
        int result;
        while ((result = attempt()) < 0 && zmq_errno() == EAGAIN) sched_yield();
        check(result, "zmq receive");
    }

    void* context_ = zmq_ctx_new();
    void* socket_ = zmq_socket(context_, ZMQ_PAIR);
    zmq_msg_t message_;
};

}  // namespace

int bench::measure(const Setup& setup) {
    const std::string url = setup.variant == "tcp" ? "tcp://" + setup.addresses[0] + ":" +
                                                         std::to_string(Setup::some_port())
                                                   : "ipc://" + scratch_file("pair");
    return measure_ranks(setup, [&](int rank, Meeting&) { return ZeroMqChannel(rank, url); });
}
