// SPDX-License-Identifier: Apache-2.0
//
// Boost.Interprocess message_queue: one queue per direction, the receiver spins on try_receive.
#include "bench/harness/harness.hpp"

#include <boost/interprocess/ipc/message_queue.hpp>
#include <boost/version.hpp>

namespace {

using namespace bench;
using boost::interprocess::message_queue;

/// Every poll takes the queue's lock, so a receiver that polls without pause keeps the sender out.
void pause_between_polls() {
    for (int i = 0; i < 8; ++i) cpu_relax();
}

class QueueChannel {
public:
    QueueChannel(message_queue& out, message_queue& in) : out_(out), in_(in) {}

    void send(const void* data, std::size_t size) {
        while (!out_.try_send(data, size, 0)) cpu_relax();
    }

    void receive(void* data, std::size_t) {
        message_queue::size_type size = 0;
        unsigned priority = 0;
        while (!in_.try_receive(data, kMaxBytes, size, priority)) pause_between_polls();
    }

private:
    message_queue& out_;
    message_queue& in_;
};

}  // namespace

/// Created before the fork and removed at once: both processes keep the mapping, the name goes.
int bench::measure(const Setup& setup) {
    constexpr std::size_t kLength = 8;
    const std::string names[] = {"bench-mq-there-" + std::to_string(getpid()),
                                 "bench-mq-back-" + std::to_string(getpid())};
    using boost::interprocess::create_only;
    message_queue there(create_only, names[0].c_str(), kLength, kMaxBytes),
        back(create_only, names[1].c_str(), kLength, kMaxBytes);
    for (const std::string& name : names) message_queue::remove(name.c_str());
    return measure_ranks(setup, [&](int rank, Meeting&) {
        return rank == 0 ? QueueChannel(there, back) : QueueChannel(back, there);
    });
}
