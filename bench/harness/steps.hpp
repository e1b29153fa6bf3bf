// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The rhythms in which every system is measured. A system is a Channel between two ranks:
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

#include "bench/harness/processes.hpp"
#include "tools/measure/floor.hpp"

#include <cstdio>

namespace bench {

inline constexpr double kBurstPauseNs = 3'000;      ///< the receiver has found nothing by then
inline constexpr double kSleepPauseNs = 3'000'000;  ///< and has gone to sleep by then

/// Takes steps on one channel; a method for each rhythm, for the leader and for the others alike.
template <class Channel>
class Steps {
public:
    /// `meeting` may be null where the channel shares words.
    Steps(Channel& channel, int rank, int ranks, Meeting* meeting)
        : channel_(channel), rank_(rank), ranks_(ranks), meeting_(meeting) {
        grow(kMostBytes);
    }

    /// First of all, that it has begun.
    void take_all(StepSource source, double start_ns) {
        if (leads()) {
            std::printf(
                "{\"rhythm\":\"start\",\"bytes\":0,\"count\":1,\"ranks\":%d,"
                "\"version\":\"%s\",\"p50_ns\":%.0f}\n",
                ranks_, BENCH_VERSION, start_ns);
            std::fflush(stdout);
        }
        while (const auto step = source.next()) {
            step_ = *step;
            grow(step_.bytes);
            take();
        }
    }

private:
    /// Touched before anything is timed: a page's first touch takes longer than many messages.
    void grow(std::size_t bytes) {
        for (std::size_t i = out_.size(); i < bytes; ++i)
            out_.push_back(std::byte(i * 7 + i / 256));
        in_.resize(out_.size(), std::byte{1});
    }

    bool leads() const { return rank_ == 0; }
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
            if (name == "turns" && meeting_ != nullptr) return turns();
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

    void share(std::uint64_t& word) {
        if constexpr (requires { channel_.share(word); })
            channel_.share(word);
        else
            meeting_->share(rank_, word);
    }
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

    /// Warm-up, then samples; the leader's.
    template <class Operation>
    Series samples(std::size_t length, Operation&& op) {
        const auto sharing = [this](std::uint64_t& word) { share(word); };
        Series found;
        for (const double part : {0.15, 0.85}) {
            if (leads())
                found = lead(sharing, step_.seconds * part * 1e9, length, op);
            else
                follow(sharing, length, op);
        }
        return found;
    }
    /// What all do; a sample is `length` operations, each of `part`.
    template <class Operation>
    void measure(double part, std::size_t length, Operation&& op, double less = 0) {
        tell_of(samples(length, op), part, less);
    }
    /// Samples that the leader's operation takes itself: op(series).
    template <class Operation>
    void measure_within(Operation&& op) {
        Series series;
        samples(1, [&] { op(series); });
        std::sort(series.begin(), series.end());
        tell_of(series, 1);
    }
    void tell_of(const Series& found, double part, double less = 0) {
        if (!leads()) return;
        if constexpr (requires { channel_.news(); })
            bench::tell(step_, ranks_, found, part, less, channel_.news());
        else
            bench::tell(step_, ranks_, found, part, less);
    }
    double part() const { return 1.0 / double(step_.count); }

    // ---- Two ranks; further ones wait

    void pingpong() {
        Thinking thinking(2 * step_.more, unsigned(rank_));
        std::uint64_t number = 0;
        const std::size_t checked = std::min(step_.bytes, sizeof number);
        double thought = 0;
        if (step_.more != 0) thought = time_of(10'000, thinking) / 10'000;
        measure(
            0.5, step_.count,
            [&] {
                if (rank_ == 1) {
                    receive();
                    thinking();
                    send_back();
                } else if (leads()) {
                    ++number;
                    std::memcpy(out_.data(), &number, checked);
                    thinking();
                    send();
                    receive();
                    require(std::memcmp(in_.data(), &number, checked) == 0,
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
            } else {
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
        measure_within([&](Series& series) {
            if (!leads()) {
                receive_word();
                for (const double until = now_ns() + kBurstPauseNs; now_ns() < until;) relax();
                return repeat(step_.count, [&] { send(); });
            }
            send_word();
            receive();
            const double first = now_ns();
            repeat(step_.count - 1, [&] { receive(); });
            series.push_back(now_ns() - first);
        });
    }

    void asleep() {
        measure_within([&](Series& series) {
            if (!leads()) {
                receive();
                return send_back();
            }
            usleep(useconds_t(kSleepPauseNs / 1e3));
            const double before = now_ns();
            send();
            receive();
            series.push_back(now_ns() - before);
        });
    }

    // ---- Many ranks

    void fan_in() {
        const std::size_t senders = step_.more == 0 ? others() : std::size_t(step_.more),
                          all = step_.count * senders;
        std::uint64_t go = 0;
        measure(1.0 / double(all), 1, [&] {
            share(go);
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

    void all_to_all() {
        measure(1, step_.count, [&] {
            for (int d = 1; d < ranks_; ++d)
                channel_.send_to((rank_ + d) % ranks_, out_.data(), step_.bytes);
            repeat(others(), [&] { channel_.receive_any(in_.data(), step_.bytes); });
            channel_.barrier();  // a rank ahead would send for the next exchange
        });
    }

    // ---- Collective calls

    void word_between(int from, int to) {
        std::uint64_t word = 0;
        if (rank_ == from) channel_.send_to(to, &word, sizeof word);
        if (rank_ == to) channel_.receive_any(&word, sizeof word);
    }
    /// The leader's half of the way from the root to the last rank and back.
    double answer_ns() {
        const Series trips = samples(step_.count, [&] {
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
        measure_within([&](Series& series) {
            double spent = 0;
            repeat(step_.count, [&] {
                channel_.barrier();
                const double before = now_ns();
                channel_.multicast(leads() ? out_.data() : in_.data(), step_.bytes);
                spent += now_ns() - before;
            });
            series.push_back(channel_.mean_of_ranks(spent * part()));
        });
    }

    // ---- Rank 0 alone, whom rank 1 serves

    /// `call`: of the call alone.
    void served(bool of_call) {
        if (!leads()) return channel_.serve();
        Series calls;
        Series all = lead([](std::uint64_t&) {}, step_.seconds * 1e9, step_.count,
                          [&] {
                              const double before = of_call ? now_ns() : 0;
                              channel_.call(step_.bytes);
                              if (of_call) calls.push_back(now_ns() - before);
                              channel_.settle(step_.bytes);
                          });
        channel_.finish();
        std::sort(calls.begin(), calls.end());
        tell_of(of_call ? calls : all, 1);
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
            meeting_->wait_for_others(rank_);
            if (!sends) counted_receive(turn);
            meeting_->wait_for_others(rank_);
        }
        tell_of({0}, 1);
    }
    [[gnu::noinline]] void counted_self() {
        channel_.post_receive(in_.data(), step_.bytes);
        send();
        channel_.finish_receives();
    }
    Channel& channel_;
    int rank_, ranks_;
    Meeting* meeting_;
    Step step_;
    std::vector<std::byte> out_, in_;
};

/// When a rank is put on its processor: before threads begin that are to share it, or when it has
/// joined, since a ring asks on which processors its ranks may run.
enum class Pinned { first, when_joined };

/// Builds each rank's channel with make(rank, meeting), and takes the steps. Returns the exit
/// status.
template <class Make>
int measure_ranks(const Setup& setup, Make&& make, Pinned pinned = Pinned::first) {
    auto& meeting = *new (shared_memory(sizeof(Meeting))) Meeting(setup.ranks);
    const int rank = fork_ranks(setup);
    if (pinned == Pinned::first) setup.pin(rank);
    const double began = now_ns();
    {
        auto channel = make(rank, meeting);
        const double start = now_ns() - began;
        setup.pin(rank);
        meeting.wait_for_others(rank);
        Steps(channel, rank, setup.ranks, &meeting).take_all(StepSource(setup, rank), start);
        let_leave();
        meeting.wait_for_others(rank);
    }
    return end_ranks(rank);
}

}  // namespace bench
