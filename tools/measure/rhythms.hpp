// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The rhythms in which messages are measured, ours by `rmem bench sizes` and every system by
/// bench/run. A system is a Channel between two ranks:
///
///     void send(const void* data, std::size_t size);      // until the buffer may be reused
///     void receive(void* data, std::size_t size);         // spins where the system allows it
///
/// and, where the system has something better than what is made of these two, or more:
///
///     void post_send(const void*, std::size_t); void finish_sends();   // several sends in flight
///     void post_receive(void*, std::size_t); void finish_receives();   // posted beforehand
///     void receive_view(std::size_t size, Look);                       // the message, in place
///     void send_many(const void*, std::size_t, std::size_t count), receive_many(…);
///     bool try_send(const void*, std::size_t);                         // false: no room
///     void barrier();
///     void share(std::uint64_t& word);                    // rank 0's, beside what is timed
///     void send_to(int, const void*, std::size_t); void receive_any(void*, std::size_t);
///     bool try_send_to(…), try_receive_any(…);            // false: no room, nothing there
///     void multicast(void*, std::size_t);                 // rank 0's to the rest
///     void allreduce(std::size_t), reduce(…), allgather(…);            // of MPI
///     void call(std::size_t), settle(std::size_t), serve(), finish();  // rank 1 serves rank 0
///     Numbers news();                                     // told with each step
///
///   pingpong   one way: half of `count` round trips; before each answer work of `more` ns on
///              average, which is measured alone and taken off
///   barrier    of all ranks; where there is none, each of two sends a word and awaits the other's
///   stream     a message of `count`, one after the other, of which the last is answered
///   window     the same, all posted before the first is completed: non-blocking calls where the
///              system has them, receives posted beforehand
///   view       the same, but each is read in place, a word of each line, and the answer proves it
///   both       a message each way, of `count` that both send at once, `more` of them at most
///              ahead of those received
///   burst      `count` messages after a pause: from the first one's arrival to the last one's
///   asleep     a round trip after a pause in which a receiver that can sleep has fallen asleep
///   fan_in     a message at rank 0, of `count` that each of `more` other ranks sends (0: all)
///   fan_out    a multicast of `count` to all other ranks, of which the last is answered
///   all_to_all each rank sends one message to each other one and receives theirs
///   bcast, reduce   a collective call and a word back between its root and the last rank, whose
///              own way is taken off: in a plain loop the root runs ahead, and its rate is measured
///   bcast_osu  as the OSU benchmarks do: a barrier, and after it each rank's own time in the call
///   allreduce, allgather, reduce_loop   a collective call, one after the other
///   relay      rank 0 calls, and settles with rank 1, which serves
///   call       the time of the call alone
///   turns, self   for callgrind (`--toggle-collect='*counted_send*'`, `'*counted_receive*'`): each
///              rank in turn sends `more` messages, which are there before the other one asks for
///              them; a message to oneself

#include "tools/measure/floor.hpp"
#include "tools/measure/processes.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tools {

inline constexpr std::size_t kMaxBytes = std::size_t{1} << 20;  ///< of most systems' messages
inline constexpr std::int64_t kBurstPauseNs = 3'000;  ///< the receiver has found nothing by then
inline constexpr std::chrono::milliseconds kSleepPause{3};  ///< and has gone to sleep by then

[[noreturn]] inline void fail(const std::string& complaint) {
    throw std::runtime_error(complaint);
}
/// Among what is timed: no sentence is made of what is not said.
inline void require(bool fine, const char* what) {
    if (!fine) [[unlikely]]
        fail(what);
}
template <class Why>
void require(bool fine, const char* what, Why&& why) {
    if (!fine) [[unlikely]]
        fail(std::string(what) + ": " + why());
}

/// What is measured: a rhythm, a size, and how many operations belong together.
struct Step {
    std::string rhythm;
    std::size_t bytes = 0, count = 1;
    double seconds = 0;  ///< a slow system takes fewer samples rather than forever
    double more = 0;     ///< of some rhythms
};

using Times = std::vector<double>;

template <class Operation>
void repeat(std::size_t count, Operation&& op) {
    for (std::size_t i = 0; i < count; ++i) op();
}

/// Every receiver that is handed a pointer looks at one word of each line, so that it also pays for
/// moving the data; the sum shows that the message is the one that was sent.
inline std::uint64_t look_at(const void* data, std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < size; at += rmem::kLineBytes) {
        std::uint64_t word = 0;
        std::memcpy(&word, static_cast<const std::byte*>(data) + at,
                    std::min(sizeof word, size - at));
        sum += word;
    }
    return sum;
}

/// Takes steps on one channel; a method for each rhythm, for the leader and for the others alike.
/// How samples are taken and told is the Sampler's:
///
///     static constexpr bool kRepeats;      // operations follow one another, and nobody meets
///     static constexpr bool kProves;       // the echo of a ping is looked at, in its time
///     Times samples(const Step&, std::size_t length, op);  // the leader's, sorted, of one of
///                                                          // `length` operations at a time
///     void share(std::uint64_t&);          // the leader's word, before an operation that repeats
///     void tell(const Step&, const Times&, double part, double less);  // each: * part - less
///     Meeting* meeting();                  // beside the channel; null: there is none
template <class Channel, class Sampler>
class Rhythms {
public:
    Rhythms(Channel& channel, int rank, int ranks, Sampler& sampler)
        : channel_(channel), rank_(rank), ranks_(ranks), sampler_(sampler) {
        grow(kMaxBytes);
    }

    void take(const Step& step) {
        step_ = step;
        grow(step_.bytes);
        take();
    }

private:
    /// Touched before anything is timed: a page's first touch takes longer than many messages.
    void grow(std::size_t bytes) {
        for (std::size_t i = out_.size(); i < bytes; ++i)
            out_.push_back(std::byte(i * 7 + i / 256));
        in_.resize(out_.size(), std::byte{1});
    }

    bool leads() const { return rank_ == 0; }
    bool follows() const { return rank_ == 1; }
    int last() const { return ranks_ - 1; }
    std::size_t others() const { return std::size_t(ranks_) - 1; }

    // What the channel has.
    static constexpr bool kSends = requires(Channel c) { c.send(nullptr, 0); };
    static constexpr bool kGathers = requires(Channel c) { c.send_to(0, nullptr, 0); };
    static constexpr bool kMulticasts = requires(Channel c) { c.multicast(nullptr, 0); };
    static constexpr bool kHasCollectives = requires(Channel c) { c.reduce(0); };
    static constexpr bool kIsServed = requires(Channel c) { c.serve(); };
    static constexpr bool kPosts = requires(Channel c) { c.post_receive(nullptr, 0); };

    void take() {
        const std::string& name = step_.rhythm;
        if constexpr (kSends) {
            if (name == "pingpong") return pingpong();
            if (name == "barrier") return measure(1, step_.count, [&] { meet(); });
            if (name == "stream") return one_way([&] { send_all(); }, [&] { receive_all(); });
            if (name == "window") return one_way([&] { post_sends(); }, [&] { post_receives(); });
            if (name == "view") return view();
            if (name == "both") return both();
            if (name == "burst") return burst();
            if (name == "asleep") return asleep();
            if (name == "turns" && sampler_.meeting() != nullptr) return turns();
        }
        if constexpr (kGathers) {
            if (name == "fan_in") return fan_in();
        }
        if constexpr (kMulticasts) {
            if (name == "fan_out") return fan_out();
            if (name == "all_to_all") return all_to_all();
        }
        if constexpr (kHasCollectives) {
            if (name == "bcast") return bcast();
            if (name == "bcast_osu") return bcast_osu();
            if (name == "reduce") return reduce();
            if (name == "reduce_loop" || name == "allreduce" || name == "allgather") return loop();
        }
        if constexpr (kIsServed) {
            if (name == "relay" || name == "call") return served(name == "call");
        }
        if constexpr (kPosts) {
            if (name == "self") return measure(1, step_.count, [&] { counted_self(); });
        }
        fail("it has no rhythm " + name);
    }

    // ---- What rhythms are made of

    void send() { channel_.send(out_.data(), step_.bytes); }
    void receive() { channel_.receive(in_.data(), step_.bytes); }
    void send_back() { channel_.send(in_.data(), step_.bytes); }
    void send_word(std::uint64_t word = 1) { channel_.send(&word, sizeof word); }
    std::uint64_t receive_word() {
        std::uint64_t word = 0;
        channel_.receive(&word, sizeof word);
        return word;
    }
    void meet() {
        if constexpr (requires { channel_.barrier(); }) {
            channel_.barrier();
        } else {
            send_word();
            receive_word();
        }
    }

    template <class Operation>
    Times samples(std::size_t length, Operation&& op) {
        return sampler_.samples(step_, length, op);
    }
    /// What all do; a sample is `length` operations, each of `part`.
    template <class Operation>
    void measure(double part, std::size_t length, Operation&& op, double less = 0) {
        tell(samples(length, op), part, less);
    }
    /// Samples that the leader's operation takes itself: op(times).
    template <class Operation>
    void measure_within(Operation&& op) {
        Times times;
        samples(1, [&] { op(times); });
        std::sort(times.begin(), times.end());
        tell(times, 1);
    }
    void tell(const Times& times, double part, double less = 0) {
        if (leads()) sampler_.tell(step_, times, part, less);
    }
    double part() const { return 1.0 / double(step_.count); }

    // ---- Two ranks; further ones wait

    void pingpong() {
        Thinking thinking(2 * step_.more, unsigned(rank_));
        std::uint64_t number = 0;
        [[maybe_unused]] const std::size_t proof = std::min(step_.bytes, sizeof number);
        double thought = 0;
        if (step_.more != 0) thought = time_of(10'000, thinking) / 10'000;
        measure(
            0.5, step_.count,
            [&] {
                if (follows()) {
                    receive();
                    thinking();
                    send_back();
                } else if (leads()) {
                    ++number;
                    if constexpr (Sampler::kProves) std::memcpy(out_.data(), &number, proof);
                    thinking();
                    send();
                    receive();
                    if constexpr (Sampler::kProves)
                        require(std::memcmp(in_.data(), &number, proof) == 0,
                                "the echo differs from the ping");
                }
            },
            thought);
    }

    void send_all() {
        if constexpr (requires { channel_.send_many(nullptr, 0, 0); })
            return channel_.send_many(out_.data(), step_.bytes, step_.count);
        repeat(step_.count, [&] { send(); });
    }
    void receive_all() {
        if constexpr (requires { channel_.receive_many(nullptr, 0, 0); })
            return channel_.receive_many(in_.data(), step_.bytes, step_.count);
        repeat(step_.count, [&] { receive(); });
    }
    void post_sends() {
        if constexpr (requires { channel_.post_send(nullptr, 0); }) {
            repeat(step_.count, [&] { channel_.post_send(out_.data(), step_.bytes); });
            if constexpr (requires { channel_.finish_sends(); }) channel_.finish_sends();
        } else {
            send_all();
        }
    }
    void post_receives() {
        if constexpr (kPosts) {
            repeat(step_.count, [&] { channel_.post_receive(in_.data(), step_.bytes); });
            return channel_.finish_receives();
        }
        receive_all();
    }
    std::uint64_t view_all() {
        std::uint64_t sum = 0;
        const auto look = [&](const void* data) { sum += look_at(data, step_.bytes); };
        repeat(step_.count, [&] {
            if constexpr (requires { channel_.receive_view(0, look); })
                return channel_.receive_view(step_.bytes, look);
            receive();
            look(in_.data());
        });
        return sum;
    }

    /// The leader's messages, and the other one's word that all have come.
    template <class Sends, class Receives>
    void one_way(Sends&& sends, Receives&& receives) {
        measure(part(), 1, [&] {
            if (leads()) {
                sends();
                receive_word();
            } else if (follows()) {
                receives();
                send_word();
            }
        });
    }
    void view() {
        const std::uint64_t sent = look_at(out_.data(), step_.bytes) * step_.count;
        measure(part(), 1, [&] {
            if (!leads()) return send_word(view_all());
            post_sends();
            require(receive_word() == sent, "the stream arrived damaged");
        });
    }

    /// A rank that would wait for room where the other one may wait too receives instead; others
    /// take in what comes while they wait.
    void both() {
        const auto ahead = std::size_t(step_.more);
        const auto sends = [&] {
            if constexpr (requires { channel_.try_send(nullptr, 0); })
                return channel_.try_send(out_.data(), step_.bytes);
            send();
            return true;
        };
        measure(part(), 1, [&] {
            std::size_t sent = 0;
            for (std::size_t received = 0; received < step_.count; ++received) {
                while (sent < std::min(received + ahead, step_.count) && sends()) ++sent;
                receive();
            }
            for (; sent < step_.count; ++sent) send();  // the other one only receives now
        });
    }

    /// The leader receives, since it has the clock.
    void burst() {
        measure_within([&](Times& times) {
            if (follows()) {
                receive_word();
                for (const auto until = rmem::now_ns() + kBurstPauseNs; rmem::now_ns() < until;)
                    rmem::cpu_relax();
                repeat(step_.count, [&] { send(); });
            } else if (leads()) {
                send_word();
                receive();
                times.push_back(time_of(step_.count - 1, [&] { receive(); }));
            }
        });
    }

    void asleep() {
        measure_within([&](Times& times) {
            if (!leads()) {
                receive();
                return send_back();
            }
            std::this_thread::sleep_for(kSleepPause);
            times.push_back(time_of(1, [&] {
                send();
                receive();
            }));
        });
    }

    // ---- Many ranks

    void fan_in() {
        const std::size_t senders = step_.more == 0 ? others() : std::size_t(step_.more),
                          all = step_.count * senders;
        std::uint64_t go = 0;
        measure(1.0 / double(all), 1, [&] {
            if constexpr (Sampler::kRepeats) sampler_.share(go);
            if (leads())
                repeat(all, [&] { channel_.receive_any(in_.data(), step_.bytes); });
            else if (std::size_t(rank_) <= senders)
                repeat(step_.count, [&] { channel_.send_to(0, out_.data(), step_.bytes); });
        });
    }

    void fan_out() {
        std::uint64_t word = 0;
        measure(part(), 1, [&] {
            std::byte* const data = leads() ? out_.data() : in_.data();
            repeat(step_.count, [&] { channel_.multicast(data, step_.bytes); });
            if (leads())
                repeat(others(), [&] { channel_.receive_any(&word, sizeof word); });
            else
                channel_.send_to(0, &word, sizeof word);
        });
    }

    /// Where all send and none receives, none may find room: who finds none takes what has come,
    /// if its channel can.
    void all_to_all() {
        measure(1, step_.count, [&] {
            std::size_t left = others();
            for (int d = 1; d < ranks_; ++d) send_taking((rank_ + d) % ranks_, left);
            repeat(left, [&] { channel_.receive_any(in_.data(), step_.bytes); });
            // A rank ahead would send for the next exchange.
            if constexpr (Sampler::kRepeats) channel_.barrier();
        });
    }
    void send_taking(int to, std::size_t& left) {
        if constexpr (requires { channel_.try_send_to(to, nullptr, 0); }) {
            while (!channel_.try_send_to(to, out_.data(), step_.bytes)) {
                if (channel_.try_receive_any(in_.data(), step_.bytes)) --left;
            }
        } else {
            channel_.send_to(to, out_.data(), step_.bytes);
        }
    }

    // ---- Collective calls

    void word_between(int from, int to) {
        std::uint64_t word = 0;
        if (rank_ == from) channel_.send_to(to, &word, sizeof word);
        if (rank_ == to) channel_.receive_any(&word, sizeof word);
    }
    /// The leader's half of the way from the root to the last rank and back.
    double answer_ns() {
        const Times trips = samples(step_.count, [&] {
            word_between(0, last());
            word_between(last(), 0);
        });
        return leads() ? trips[trips.size() / 2] / 2 : 0;
    }

    template <class Operation>
    void answered(int from, int to, Operation&& op) {
        const double answer = answer_ns();
        const auto both = [&] {
            op();
            word_between(from, to);
        };
        measure(1, step_.count, both, answer);
    }
    void bcast() {
        answered(last(), 0,
                 [&] { channel_.multicast(leads() ? out_.data() : in_.data(), step_.bytes); });
    }
    void reduce() {
        answered(0, last(), [&] { channel_.reduce(step_.bytes); });
    }

    void loop() {
        measure(1, step_.count, [&] {
            if (step_.rhythm == "allreduce") return channel_.allreduce(step_.bytes);
            if (step_.rhythm == "allgather") return channel_.allgather(step_.bytes);
            channel_.reduce(step_.bytes);
        });
    }

    void bcast_osu() {
        measure_within([&](Times& times) {
            double spent = 0;
            repeat(step_.count, [&] {
                channel_.barrier();
                spent += time_of(1, [&] {
                    channel_.multicast(leads() ? out_.data() : in_.data(), step_.bytes);
                });
            });
            times.push_back(channel_.mean_of_ranks(spent * part()));
        });
    }

    // ---- Rank 0 alone, whom rank 1 serves

    /// `call`: of the call alone.
    void served(bool of_call) {
        if (!leads()) return channel_.serve();
        Times calls;
        const Times all = sampler_.alone(step_, step_.count, [&] {
            if (of_call)
                calls.push_back(time_of(1, [&] { channel_.call(step_.bytes); }));
            else
                channel_.call(step_.bytes);
            channel_.settle(step_.bytes);
        });
        channel_.finish();
        std::sort(calls.begin(), calls.end());
        tell(of_call ? calls : all, 1);
    }

    // ---- Under callgrind

    [[gnu::noinline]] void counted_send(std::size_t times) {
        repeat(times, [&] { send(); });
    }
    [[gnu::noinline]] void counted_receive(std::size_t times) {
        repeat(times, [&] { receive(); });
    }
    void turns() {
        const std::size_t turn = std::max<std::size_t>(std::size_t(step_.more), 1);
        for (std::size_t i = 0; i < 2 * step_.count; ++i) {
            const bool sends = std::size_t(rank_) == i % 2;
            if (sends) counted_send(turn);
            sampler_.meeting()->meet();
            if (!sends) counted_receive(turn);
            sampler_.meeting()->meet();
        }
        tell({0}, 1);
    }
    [[gnu::noinline]] void counted_self() {
        channel_.post_receive(in_.data(), step_.bytes);
        send();
        channel_.finish_receives();
    }
    Channel& channel_;
    int rank_, ranks_;
    Sampler& sampler_;
    Step step_;
    std::vector<std::byte> out_, in_;
};

}  // namespace tools
