// SPDX-License-Identifier: Apache-2.0
//
// The floor of everything that goes over the network: datagrams by multicast from one process to
// another, with nothing around them. In the ping-pong one plain call each; in the stream sendmmsg
// and recvmmsg, and datagrams lost on the way are not sent again but counted as not delivered.
#include "../method.hpp"
#include "datagrams.hpp"

namespace {

using namespace rivals;

/// A window as fast as it goes; then "that was all" until the receiver says how much came.
double ns_per_delivered(DatagramChannel& channel, const Message& message, std::size_t window) {
    const double start = now_ns();
    channel.send_many(message.bytes.data(), message.bytes.size(), window);
    const std::uint64_t end = window;
    std::uint64_t came = 0;
    for (int turn = 0;; ++turn) {
        if (turn % 1000 == 0) channel.send(&end, sizeof end);
        if (channel.try_receive(&came, sizeof came) == sizeof came) break;
        relax();
    }
    const double taken = now_ns() - start;
    require(came > 0, "of a whole window nothing came");
    return taken / double(came);
}

/// An end that comes before anything else is the previous window's, said once too often.
void deliver(DatagramChannel& channel, std::vector<std::byte>& buffer, const Message& message) {
    const std::size_t size = message.bytes.size();
    std::uint64_t came = 0, sum = 0;
    for (bool ended = false; !ended;) {
        channel.receive_many(buffer, size, [&](const std::byte* data, std::size_t length) {
            ended = ended || (length != size && came > 0);
            if (length != size) return;
            ++came;
            sum += look_at(data, size);
        });
    }
    require(sum == message.sum * came, "the stream arrived damaged");
    channel.send(&came, sizeof came);
}

void lead_raw_stream(const System& system, DatagramChannel& channel, Meeting& meeting,
                     const Options& options) {
    const Message message(options.message_bytes);
    Series samples;
    const double end = now_ns() + options.seconds * 1e9;
    bool more = true;
    while (more) {
        more = now_ns() < end && samples.size() < options.samples;
        meeting.exchange(0, more ? "more" : "");
        if (more) samples.push_back(ns_per_delivered(channel, message, options.window));
    }
    std::sort(samples.begin(), samples.end());
    print_figure(system, {"stream", options.message_bytes, 2}, samples, {});
}

int measure(const Options& options) {
    const System system{"udp_floor", "1"};
    const std::uint16_t port = some_port();
    Meeting* meeting = nullptr;
    return in_two_processes(
        options,
        [&](int rank, Meeting& place) {
            meeting = &place;
            return DatagramChannel(rank, options, port);
        },
        [&](DatagramChannel& channel, int rank) {
            const bool leader = rank == 0;
            if (!options.steps.empty())
                return Steps<DatagramChannel>(system, channel, rank, 2, options).take_all();
            if (options.wants("pingpong")) pingpong(system, channel, leader, options);
            if (!options.wants("stream")) return;
            if (leader) return lead_raw_stream(system, channel, *meeting, options);
            const Message message(options.message_bytes);
            std::vector<std::byte> buffer;
            while (!meeting->exchange(1, "").empty()) deliver(channel, buffer, message);
        });
}

}  // namespace

int main(int argc, char** argv) {
    return guarded("udp_floor", [&] {
        return measure(parse_options(argc, argv, "Datagrams by multicast, nothing around them"));
    });
}
