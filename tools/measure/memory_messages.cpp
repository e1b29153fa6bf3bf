// SPDX-License-Identifier: Apache-2.0
// Messages of a word or two, to set the memory's figures beside.
#include "tools/measure/billboard_channel.hpp"
#include "tools/measure/memory_case.hpp"

#include "rmem/base/clock.hpp"

#include <poll.h>
#include <unistd.h>

namespace tools {

namespace {

using rmem::now_ns;

constexpr int kPatienceMs = 1000;       // of one poll; then it is begun again
constexpr unsigned kSettleUs = 50'000;  // until those sleep that are to sleep

/// Takes the next message from the other rank, in the call or after poll() of the descriptor.
std::uint64_t take(int from, int fd) {
    std::uint64_t value = 0;
    if (fd < 0) {
        checked(bbp_recv(from, &value, sizeof value, nullptr));
        return value;
    }
    for (;;) {
        const int result = bbp_tryrecv(from, &value, sizeof value, nullptr);
        if (result != BBP_EAGAIN) {
            checked(result);
            return value;
        }
        pollfd ready{fd, POLLIN, 0};
        ::poll(&ready, 1, kPatienceMs);
    }
}

/// Node 0 sends a number in 8 bytes, node 1 sends it back; kOver is the last. All others sleep in
/// bbp_recv until then.
void message_to_and_fro(Case& it, const std::string& series, bool by_descriptor) {
    int rank = 0, ranks = 0;
    checked(bbp_init(&rank, &ranks));
    it.meeting.meet();
    if (it.me >= 2) {
        take(0, -1);
        checked(bbp_finalize());
        return;
    }
    ::usleep(kSettleUs);
    const int other = 1 - rank;
    const int fd = by_descriptor ? checked(bbp_fd()) : -1;
    const auto send = [&](std::uint64_t value) { checked(bbp_send(other, &value, sizeof value)); };
    if (it.me == 1) {
        std::uint64_t value = 0;
        while (value != kOver) send(value = take(other, fd));
    } else {
        Sampling samples(it.plan);
        for (std::uint64_t value = 1; samples.goes_on(); ++value) {
            const std::int64_t start = now_ns();
            send(value);
            take(other, fd);
            samples.add(static_cast<double>(now_ns() - start) / 2);
        }
        send(kOver);
        take(other, fd);
        it.results.put(series, samples.values());
        for (int sleeper = 2; sleeper < ranks; ++sleeper) {
            const std::uint64_t over = kOver;
            checked(bbp_send(sleeper, &over, sizeof over));
        }
    }
    checked(bbp_finalize());
}

}  // namespace

void measure_message(const GroupOptions& options, const MemoryPlan& plan, Results& results) {
    measure_floors(options, plan, results, "message", Sleeps::no);
    measure_multicast(options, plan, results, "message: floor, a datagram to all");
    run_case(options, plan, results, Who::all,
             [](Case& it) { message_to_and_fro(it, "message: 8 B by bbp_recv", false); });
    measure_floors(options, plan, results, "event", Sleeps::yes);
    run_case(options, plan, results, Who::all,
             [](Case& it) { message_to_and_fro(it, "event: 8 B by bbp_fd and poll", true); });
}

}  // namespace tools
