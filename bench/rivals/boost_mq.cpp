// SPDX-License-Identifier: Apache-2.0
//
// Boost.Interprocess message_queue: one queue per direction, the receiver spins on try_receive.
#include "method.hpp"

#include <boost/interprocess/ipc/message_queue.hpp>
#include <boost/version.hpp>

namespace {

using namespace rivals;
using boost::interprocess::message_queue;

constexpr std::size_t queue_length = 8;

/// Created before the fork and removed at once: both processes keep the mapping, the name goes.
class Queue {
public:
    explicit Queue(const std::string& name)
        : queue_(boost::interprocess::create_only, name.c_str(), queue_length, stream_bytes) {
        message_queue::remove(name.c_str());
    }
    message_queue* operator->() { return &queue_; }

private:
    message_queue queue_;
};

/// Every poll takes the queue's lock, so a receiver that polls without pause keeps the sender out.
void pause_between_polls() {
    for (int i = 0; i < 8; ++i) relax();
}

class QueueChannel {
public:
    QueueChannel(Queue& out, Queue& in) : out_(out), in_(in) {}

    void send(const void* data, std::size_t size) {
        while (!out_->try_send(data, size, 0)) relax();
    }

    void receive(void* data, std::size_t) {
        message_queue::size_type size = 0;
        unsigned priority = 0;
        while (!in_->try_receive(data, stream_bytes, size, priority)) pause_between_polls();
    }

private:
    Queue& out_;
    Queue& in_;
};

int measure(const Options& options) {
    const System system{"boost_mq", BOOST_LIB_VERSION};
    const std::string name = "rivals-mq-" + std::to_string(getpid());
    Queue there(name + "-there"), back(name + "-back");
    return measure_pair(system, options, [&](int rank, Meeting&) {
        return rank == 0 ? QueueChannel(there, back) : QueueChannel(back, there);
    });
}

}  // namespace

int main(int argc, char** argv) {
    return guarded("boost_mq", [&] {
        return measure(parse_options(argc, argv, "Boost.Interprocess message_queue"));
    });
}
