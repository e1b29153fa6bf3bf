// SPDX-License-Identifier: Apache-2.0
//
// Every size in every rhythm: the programs of all systems run at the same time, asleep but for the
// one whose turn it is, and take the steps that `curves` tells them. So two systems are compared
// within milliseconds, in which a virtual machine hardly changes.
//
// Rank r reads its steps from the FIFO DIRECTORY/r, a line each: rhythm, bytes, count, seconds.
// Rank 0 prints a JSON object when a step is done. The end of the FIFO is the end of the program.
//
//   pingpong   one way: half of a round trip
//   stream     a message of `count`, one after the other, of which the last is answered
//   window     the same, all posted before the first is completed: non-blocking calls where the
//              system has them, receives posted beforehand
//   burst      `count` messages after a pause: from the first one's arrival to the last one's
//   asleep     a round trip after a pause in which a receiver that can sleep has fallen asleep
//   fan_in     a message at rank 0, of `count` that each other rank sends
//   fan_out    a multicast of `count` to all other ranks, of which the last is answered
//   all_to_all each rank sends one message to each other one and receives theirs
//
// The last three are of channels that reach many: send_to(rank, …), receive_any(…), multicast(…).
#pragma once

#include "samples.hpp"

#include <fstream>
#include <sstream>

namespace rivals {

inline constexpr std::size_t most_bytes = stream_bytes;
inline constexpr double burst_pause_ns = 3'000;      ///< the receiver has found nothing by then
inline constexpr double sleep_pause_ns = 3'000'000;  ///< and has gone to sleep by then

struct Step {
    std::string rhythm;
    std::size_t bytes = 0, count = 1;
    double seconds = 0;
};

/// Allocated and touched once: a page's first touch takes longer than many messages.
struct Buffers {
    std::vector<std::byte> out = Message(most_bytes).bytes;
    std::vector<std::byte> in = std::vector<std::byte>(most_bytes, std::byte{1});
};

inline void busy_until(double ns) {
    while (now_ns() < ns) relax();
}

template <class Channel>
void post_send(Channel& channel, const void* data, std::size_t size) {
    if constexpr (requires { channel.post_send(data, size); })
        channel.post_send(data, size);
    else
        channel.send(data, size);
}

template <class Channel>
void finish_sends(Channel& channel) {
    if constexpr (requires { channel.finish_sends(); }) channel.finish_sends();
}

template <class Channel>
void answer(Channel& channel) {
    const std::uint64_t word = 1;
    channel.send(&word, sizeof word);
}

template <class Channel>
void await_answer(Channel& channel) {
    std::uint64_t word = 0;
    channel.receive(&word, sizeof word);
}

/// Takes steps on one channel; a method for each rhythm, for the leader and for the others alike.
template <class Channel>
class Steps {
public:
    Steps(const System& system, Channel& channel, int rank, int ranks, const Options& options)
        : system_(system), channel_(channel), rank_(rank), ranks_(ranks), options_(options) {}

    void take_all() {
        std::ifstream lines(options_.steps + "/" + std::to_string(rank_));
        require(lines.is_open(), "cannot open the steps in " + options_.steps);
        for (std::string line; std::getline(lines, line);) {
            std::istringstream words(line);
            require(bool(words >> step_.rhythm >> step_.bytes >> step_.count >> step_.seconds) &&
                        step_.bytes <= most_bytes && step_.count > 0,
                    "not a step: " + line);
            alarm(options_.deadline);
            take();
        }
    }

private:
    bool leads() const { return rank_ == 0; }

    void take() {
        if (step_.rhythm == "pingpong") return pingpong();
        if (step_.rhythm == "stream") return stream();
        if (step_.rhythm == "window") return window();
        if (step_.rhythm == "burst") return burst();
        if (step_.rhythm == "asleep") return asleep();
        if constexpr (requires { channel_.send_to(1, nullptr, 0); }) {
            if (step_.rhythm == "fan_in") return fan_in();
            if (step_.rhythm == "fan_out") return fan_out();
            if (step_.rhythm == "all_to_all") return all_to_all();
        }
        require(false, system_.name + " has no rhythm " + step_.rhythm);
    }

    void send() { channel_.send(buffers_.out.data(), step_.bytes); }
    void receive() { channel_.receive(buffers_.in.data(), step_.bytes); }

    /// What both sides do, each its own half; a sample is `length` operations, each of `share`.
    template <class Leader, class Follower>
    void measure(double share, std::size_t length, Leader&& lead_one, Follower&& follow_one) {
        if (!leads()) {
            follow(channel_, length, follow_one);
            return follow(channel_, length, follow_one);
        }
        const auto budget_of = [&](double part) {
            return Budget{options_.samples, step_.seconds * part * 1e9};
        };
        lead(channel_, budget_of(0.15), length, lead_one);
        tell(lead(channel_, budget_of(0.85), length, lead_one), share);
    }

    void tell(const Series& samples, double share) const {
        std::printf("{\"system\":\"%s\",\"count\":%zu,", system_.name.c_str(), step_.count);
        print_samples({step_.rhythm.c_str(), step_.bytes, ranks_, share}, samples);
        print_end();
    }

    /// Of `count` round trips a sample, so that the clock does not count.
    void pingpong() {
        std::uint64_t number = 0;
        const std::size_t checked = std::min(step_.bytes, sizeof number);
        const auto ping = [&] {
            ++number;
            std::memcpy(buffers_.out.data(), &number, checked);
            send();
            receive();
            require(std::memcmp(buffers_.in.data(), &number, checked) == 0,
                    system_.name + ": the echo differs from the ping");
        };
        measure(0.5, step_.count, ping, [&] {
            receive();
            channel_.send(buffers_.in.data(), step_.bytes);
        });
    }

    void stream() {
        measure(
            1.0 / double(step_.count), 1,
            [&] {
                repeat(step_.count, [&] { send(); });
                await_answer(channel_);
            },
            [&] {
                repeat(step_.count, [&] { receive(); });
                answer(channel_);
            });
    }

    void window() {
        measure(
            1.0 / double(step_.count), 1,
            [&] {
                repeat(step_.count, [&] { post_send(channel_, buffers_.out.data(), step_.bytes); });
                finish_sends(channel_);
                await_answer(channel_);
            },
            [&] {
                if constexpr (requires { channel_.post_receive(nullptr, 0); }) {
                    repeat(step_.count,
                           [&] { channel_.post_receive(buffers_.in.data(), step_.bytes); });
                    channel_.finish_receives();
                } else {
                    repeat(step_.count, [&] { receive(); });
                }
                answer(channel_);
            });
    }

    /// The leader receives, since it has the clock.
    void burst() {
        if (!leads())
            return follow(channel_, 1, [&] {
                await_answer(channel_);
                busy_until(now_ns() + burst_pause_ns);
                repeat(step_.count, [&] { send(); });
            });
        Series samples;
        const Budget budget{options_.samples, step_.seconds * 1e9};
        lead(channel_, budget, 1, [&] {
            answer(channel_);
            receive();
            const double first = now_ns();
            repeat(step_.count - 1, [&] { receive(); });
            samples.push_back(now_ns() - first);
        });
        std::sort(samples.begin(), samples.end());
        tell(samples, 1);
    }

    void asleep() {
        if (!leads())
            return follow(channel_, 1, [&] {
                receive();
                channel_.send(buffers_.in.data(), step_.bytes);
            });
        Series samples;
        lead(channel_, {options_.samples, step_.seconds * 1e9}, 1, [&] {
            usleep(static_cast<useconds_t>(sleep_pause_ns / 1e3));
            const double before = now_ns();
            send();
            receive();
            samples.push_back(now_ns() - before);
        });
        std::sort(samples.begin(), samples.end());
        tell(samples, 1);
    }

    // ---- Many ranks

    void fan_in() {
        const std::size_t each = step_.count, all = each * (std::size_t(ranks_) - 1);
        std::uint64_t go = 0;
        measure(
            1.0 / double(all), 1,
            [&] {
                share(channel_, true, go);
                repeat(all, [&] { channel_.receive_any(buffers_.in.data(), step_.bytes); });
            },
            [&] {
                share(channel_, false, go);
                repeat(each, [&] { channel_.send_to(0, buffers_.out.data(), step_.bytes); });
            });
    }

    void fan_out() {
        std::uint64_t word = 0;
        measure(
            1.0 / double(step_.count), 1,
            [&] {
                repeat(step_.count, [&] { channel_.multicast(buffers_.out.data(), step_.bytes); });
                for (int r = 1; r < ranks_; ++r) channel_.receive_any(&word, sizeof word);
            },
            [&] {
                repeat(step_.count, [&] { channel_.multicast(buffers_.in.data(), step_.bytes); });
                channel_.send_to(0, &word, sizeof word);
            });
    }

    void all_to_all() {
        const auto exchange = [&] {
            for (int d = 1; d < ranks_; ++d)
                channel_.send_to((rank_ + d) % ranks_, buffers_.out.data(), step_.bytes);
            for (int d = 1; d < ranks_; ++d) channel_.receive_any(buffers_.in.data(), step_.bytes);
            channel_.barrier();  // a rank ahead would send for the next exchange
        };
        measure(1, step_.count, exchange, exchange);
    }

    const System& system_;
    Channel& channel_;
    int rank_, ranks_;
    const Options& options_;
    Step step_;
    Buffers buffers_;
};

}  // namespace rivals
