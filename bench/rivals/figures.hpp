// SPDX-License-Identifier: Apache-2.0
//
// The three figures that `run` compares: ping-pong, barrier, and a stream of large messages.
#pragma once

#include "samples.hpp"

namespace rivals {

inline void print_figure(const System& system, const Figure& figure, const Series& singles,
                         const Series& batches) {
    std::printf("{\"system\":\"%s\",\"version\":\"%s\",", system.name.c_str(),
                system.version.c_str());
    print_samples(figure, singles);
    if (!batches.empty()) print_number("batch_p50_ns", nearest_rank(batches, 0.5) * figure.share);
    if (figure.name == std::string("stream")) print_rate(figure, singles);
    print_end();
}

struct Measured {
    Series singles, batches;
    std::uint64_t batch = 0;  ///< operations of each of the batches
};

/// Warm-up, then singly timed operations, then batches: of batch_length, or of fewer where the
/// operations are so slow that hardly a batch would fit the time. A follower has nothing to report.
template <class Channel, class Operation>
Measured measure_operation(Channel& channel, bool leader, const Options& options, Operation&& op) {
    Measured found;
    if (!leader) {
        follow(channel, 1, op);
        follow(channel, 1, op);
        share(channel, false, found.batch);
        follow(channel, found.batch, op);
        return {};
    }
    lead(channel, budget(options, options.warmup, 0.1), 1, op);
    found.singles = lead(channel, budget(options, options.samples, 0.45), 1, op);
    const Budget rest =
        budget(options, std::max<std::uint64_t>(options.samples / batch_length, 1), 0.45);
    const double fit = rest.ns / few_batches / nearest_rank(found.singles, 0.5);
    found.batch = std::uint64_t(std::clamp(fit, 1.0, double(batch_length)));
    share(channel, true, found.batch);
    found.batches = lead(channel, rest, found.batch, op);
    return found;
}

template <class Channel, class Operation>
void measure_and_print(const System& system, const Figure& figure, Channel& channel, bool leader,
                       const Options& options, Operation&& op) {
    const Measured found = measure_operation(channel, leader, options, op);
    if (leader) print_figure(system, figure, found.singles, found.batches);
}

// --- the three figures -------------------------------------------------------------------------

/// One-way time: half of a round trip. The message's first word changes each time and is checked on
/// its return.
template <class Channel>
void pingpong(const System& system, Channel& channel, bool leader, const Options& options) {
    const std::size_t bytes = options.bytes;
    std::vector<std::uint64_t> message((bytes + 7) / 8), arrived(message.size());
    std::uint64_t& sent = message[0];
    const auto ping = [&] {
        ++sent;
        channel.send(message.data(), bytes);
        channel.receive(arrived.data(), bytes);
        require(arrived[0] == sent, system.name + ": the echo differs from the ping");
    };
    const auto pong = [&] {
        channel.receive(arrived.data(), bytes);
        channel.send(arrived.data(), bytes);
    };
    const Figure figure{"pingpong", bytes, 2, 0.5};
    if (leader)
        measure_and_print(system, figure, channel, true, options, ping);
    else
        measure_and_print(system, figure, channel, false, options, pong);
}

template <class Channel>
void enter_barrier(Channel& channel) {
    if constexpr (requires { channel.barrier(); }) {
        channel.barrier();
    } else {
        std::uint64_t word = 0;
        channel.send(&word, sizeof word);
        channel.receive(&word, sizeof word);
    }
}

template <class Channel>
void barrier(const System& system, Channel& channel, int ranks, bool leader,
             const Options& options) {
    measure_and_print(system, {"barrier", 0, ranks}, channel, leader, options,
                      [&] { enter_barrier(channel); });
}

template <class Channel>
void send_window(Channel& channel, const Message& message, std::size_t window) {
    const std::size_t size = message.bytes.size();
    for (std::size_t i = 0; i < window; ++i) {
        if constexpr (requires { channel.post_send(message.bytes.data(), size); })
            channel.post_send(message.bytes.data(), size);
        else
            channel.send(message.bytes.data(), size);
    }
    if constexpr (requires { channel.finish_sends(); }) channel.finish_sends();
    std::uint64_t acknowledgement = 0;
    channel.receive(&acknowledgement, sizeof acknowledgement);
    require(acknowledgement == message.sum * window, "the stream arrived damaged");
}

template <class Channel>
void receive_window(Channel& channel, std::vector<std::byte>& buffer, std::size_t window) {
    const std::size_t size = buffer.size();
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < window; ++i) {
        if constexpr (requires { channel.receive_view(size, [](const void*) {}); }) {
            channel.receive_view(size, [&](const void* data) { sum += look_at(data, size); });
        } else {
            channel.receive(buffer.data(), size);
            sum += look_at(buffer.data(), size);
        }
    }
    channel.send(&sum, sizeof sum);
}

/// `out` moves a window of messages; a sample is the mean time of one message in a window.
template <class Channel, class Operation>
void lead_stream(const System& system, Channel& channel, int ranks, const Options& options,
                 Operation&& out) {
    lead(channel, budget(options, options.warmup, 0.1), 1, out);
    const Figure figure{"stream", options.message_bytes, ranks, 1.0 / double(options.window)};
    print_figure(system, figure, lead(channel, budget(options, options.samples, 0.9), 1, out), {});
}

template <class Channel>
void stream(const System& system, Channel& channel, bool leader, const Options& options) {
    if (leader) {
        const Message message(options.message_bytes);
        lead_stream(system, channel, 2, options,
                    [&] { send_window(channel, message, options.window); });
        return;
    }
    std::vector<std::byte> buffer(options.message_bytes);
    for (int phase = 0; phase < 2; ++phase)
        follow(channel, 1, [&] { receive_window(channel, buffer, options.window); });
}

template <class Channel>
void all_figures(const System& system, Channel& channel, int ranks, bool leader,
                 const Options& options) {
    if (ranks == 2 && options.wants("pingpong")) pingpong(system, channel, leader, options);
    if (options.wants("barrier")) barrier(system, channel, ranks, leader, options);
    if (ranks == 2 && options.wants("stream")) stream(system, channel, leader, options);
}

}  // namespace rivals
