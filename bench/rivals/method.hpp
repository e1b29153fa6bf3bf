// SPDX-License-Identifier: Apache-2.0
//
// The one method by which every system here is measured. A rival is a Channel between two
// processes:
//
//     void send(const void* data, std::size_t size);      // until the buffer may be reused
//     void receive(void* data, std::size_t size);         // spins where the system allows it
//
// and, only where the system has something better than the default made of these two:
//
//     void post_send(const void*, std::size_t); void finish_sends();   // several sends in flight
//     void receive_view(std::size_t size, Consumer);                   // the message read in place
//     void barrier();                                                  // default: send + receive
//     void share(void* data, std::size_t size);                        // leader's data to the rest
//
// Rank 0 is the leader: it alone reads the clock and prints one JSON object per figure.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <ctime>

namespace rivals {

inline constexpr std::size_t cache_line = 64;
inline constexpr std::size_t batch_length = 100;
inline constexpr double few_batches = 8;
inline constexpr std::size_t stream_bytes = std::size_t{1} << 20;
inline constexpr std::size_t stream_window = 32;

struct Options {
    std::array<int, 2> cpus{0, 1};
    std::uint64_t samples = 100'000;
    std::uint64_t warmup = 10'000;
    double seconds = 2.0;  // per figure: a slow system takes fewer samples rather than forever
    unsigned deadline = 120;
    int ranks = 2;          // of systems that bring no launcher and have a barrier of more than two
    std::size_t bytes = 8;  // of a ping-pong's message
    std::vector<std::string> figures{"pingpong", "barrier", "stream"};
    std::size_t message_bytes = stream_bytes;  // of a stream's message, at most stream_bytes
    std::size_t window = stream_window;        // messages of a stream per acknowledgement
    // Of systems that use the network: where rank 0 and rank 1 are.
    std::array<std::string, 2> spaces;  // network namespaces; empty: this one
    std::array<std::string, 2> addresses{"127.0.0.1", "127.0.0.1"};
    std::string interface = "lo";

    bool wants(const std::string& figure) const {
        return std::find(figures.begin(), figures.end(), figure) != figures.end();
    }
};

Options parse_options(int argc, char** argv, const char* about);

struct System {
    std::string name;
    std::string version;
};

inline void require(bool condition, const std::string& complaint) {
    if (!condition) throw std::runtime_error(complaint);
}

// --- processor and clock -----------------------------------------------------------------------

inline void pin_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(std::size_t(cpu), &set);
    require(sched_setaffinity(0, sizeof set, &set) == 0,
            "cannot pin to CPU " + std::to_string(cpu));
}

/// Puts this process on the host of the rank, which is a network namespace.
inline void enter_host(const Options& options, int rank) {
    const std::string& space = options.spaces[std::size_t(rank % 2)];
    if (space.empty()) return;
    const int file = open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
    require(file >= 0 && setns(file, CLONE_NEWNET) == 0,
            "cannot enter network namespace " + space + ": " + std::strerror(errno));
    close(file);
}

/// To be called before the processes part: the same in both, hardly another program's.
inline std::uint16_t some_port() {
    return std::uint16_t(10'000 + getpid() % 20'000);
}

inline double now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

// --- samples -----------------------------------------------------------------------------------

using Series = std::vector<double>;

/// The smallest sample that at least `quantile` of all samples do not exceed (nearest rank).
inline double nearest_rank(const Series& sorted, double quantile) {
    const auto rank = static_cast<std::size_t>(std::ceil(quantile * double(sorted.size())));
    return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

// --- report ------------------------------------------------------------------------------------

struct Figure {
    const char* name;
    std::size_t bytes;
    int ranks;
    double share = 1.0;  // of an operation's time that is reported: half of a round trip
};

inline void print_number(const char* name, double value) {
    std::printf(",\"%s\":%.1f", name, value);
}

/// What every line tells, whichever program's: which figure, and its samples.
inline void print_samples(const Figure& figure, const Series& samples) {
    std::printf("\"figure\":\"%s\",\"bytes\":%zu,\"ranks\":%d,\"samples\":%zu", figure.name,
                figure.bytes, figure.ranks, samples.size());
    constexpr std::pair<const char*, double> told[] = {{"p10_ns", 0.1},    {"p50_ns", 0.5},
                                                       {"p90_ns", 0.9},    {"p99_ns", 0.99},
                                                       {"p999_ns", 0.999}, {"max_ns", 1.0}};
    for (const auto& [name, quantile] : told)
        print_number(name, nearest_rank(samples, quantile) * figure.share);
}

inline void print_rate(const Figure& figure, const Series& samples) {
    print_number("mb_per_s",
                 double(figure.bytes) * 1e3 / (nearest_rank(samples, 0.5) * figure.share));
}

inline void print_end() {
    std::printf("}\n");
    std::fflush(stdout);
}

inline void print_figure(const System& system, const Figure& figure, const Series& singles,
                         const Series& batches) {
    std::printf("{\"system\":\"%s\",\"version\":\"%s\",", system.name.c_str(),
                system.version.c_str());
    print_samples(figure, singles);
    if (!batches.empty()) print_number("batch_p50_ns", nearest_rank(batches, 0.5) * figure.share);
    if (figure.name == std::string("stream")) print_rate(figure, singles);
    print_end();
}

// --- how often: the leader decides chunk by chunk and tells the others, so that a figure takes its
// --- time and no more, however busy the machine -------------------------------------------------

struct Budget {
    std::uint64_t samples;
    double ns;
};

/// The time of a figure's warm-up, of its single and of its batched samples.
inline Budget budget(const Options& options, std::uint64_t samples, double share_of_time) {
    return {samples, options.seconds * share_of_time * 1e9};
}

template <class Channel>
void share(Channel& channel, bool leader, std::uint64_t& word) {
    if constexpr (requires { channel.share(&word, sizeof word); })
        channel.share(&word, sizeof word);
    else if (leader)
        channel.send(&word, sizeof word);
    else
        channel.receive(&word, sizeof word);
}

template <class Operation>
void repeat(std::uint64_t count, Operation&& op) {
    for (std::uint64_t i = 0; i < count; ++i) op();
}

template <class Channel, class Operation>
void follow(Channel& channel, std::size_t length, Operation&& op) {
    for (std::uint64_t count = 0; share(channel, false, count), count > 0;)
        repeat(count * length, op);
}

/// Sorted times of one operation out of `length` at a time, within the budget. Chunks grow until
/// agreeing on them costs nothing.
template <class Channel, class Operation>
Series lead(Channel& channel, Budget budget, std::size_t length, Operation&& op) {
    Series series;
    const double first = now_ns();
    for (std::uint64_t chunk = 1;;) {
        const double start = now_ns();
        std::uint64_t count = std::min<std::uint64_t>(chunk, budget.samples - series.size());
        if (start - first > budget.ns) count = 0;
        share(channel, true, count);
        if (count == 0) break;
        for (std::uint64_t i = 0; i < count; ++i) {
            const double before = now_ns();
            repeat(length, op);
            series.push_back((now_ns() - before) / double(length));
        }
        if (now_ns() - start < budget.ns / 32) chunk *= 2;
    }
    std::sort(series.begin(), series.end());
    return series;
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

/// Every receiver looks at one word of each line, so that a system which hands over a pointer also
/// pays for moving the data; the sum shows that the message is the one that was sent.
inline std::uint64_t look_at(const void* data, std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < size; at += cache_line) {
        std::uint64_t word = 0;
        std::memcpy(&word, static_cast<const std::byte*>(data) + at,
                    std::min(sizeof word, size - at));
        sum += word;
    }
    return sum;
}

struct Message {
    std::vector<std::byte> bytes;
    std::uint64_t sum = 0;

    explicit Message(std::size_t size) : bytes(size) {
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i * 7 + i / 256);
        sum = look_at(bytes.data(), bytes.size());
    }
};

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

// --- two processes, for systems that bring no launcher -----------------------------------------

/// Where the two processes meet before their channel exists and after it has gone: to exchange
/// addresses, and to leave together.
class Meeting {
public:
    static Meeting& create() {
        void* place = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        require(place != MAP_FAILED, "no shared page for the two processes to meet in");
        return *new (place) Meeting;
    }

    void wait_for_other(int rank) {
        const std::uint32_t mine = arrived_[rank].fetch_add(1) + 1;
        while (arrived_[1 - rank].load() < mine) sched_yield();
    }

    /// Gives `mine` to the other process and returns what it gave.
    std::string exchange(int rank, const std::string& mine) {
        require(mine.size() <= letter_size, "an address too long for the meeting page");
        std::memcpy(letter_[rank], mine.data(), mine.size());
        length_[rank] = mine.size();
        wait_for_other(rank);
        std::string theirs(letter_[1 - rank], length_[1 - rank]);
        wait_for_other(rank);
        return theirs;
    }

private:
    static constexpr std::size_t letter_size = 8192;
    std::atomic<std::uint32_t> arrived_[2]{};
    std::size_t length_[2]{};
    char letter_[2][letter_size]{};
};

/// A directory for socket files, gone with its owner.
class ScratchDirectory {
public:
    ScratchDirectory() {
        const char* base = std::getenv("TMPDIR");
        path_ = std::string(base && *base ? base : "/tmp") + "/rivals.XXXXXX";
        require(mkdtemp(path_.data()) != nullptr, "cannot create " + path_);
    }
    ~ScratchDirectory() {
        if (getpid() != owner_) return;
        for (const std::string& file : files_) unlink(file.c_str());
        rmdir(path_.c_str());
    }
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;

    std::string file(const std::string& name) { return files_.emplace_back(path_ + "/" + name); }

private:
    pid_t owner_ = getpid();
    std::string path_;
    std::vector<std::string> files_;
};

inline volatile std::sig_atomic_t peer_may_leave = 0;

/// A peer that dies in mid-measurement would leave the leader spinning.
inline void end_with_peer() {
    std::signal(SIGCHLD, [](int) {
        constexpr char complaint[] = "the other process ended early\n";
        if (peer_may_leave) return;
        [[maybe_unused]] const ssize_t written = write(2, complaint, sizeof complaint - 1);
        _exit(3);
    });
}

/// A child that ends with this process at the latest, by that signal; 0 in the child.
inline pid_t fork_child(int signal = SIGKILL) {
    const pid_t child = fork();
    require(child >= 0, "fork failed");
    if (child == 0) prctl(PR_SET_PDEATHSIG, signal);
    return child;
}

/// Calls `body(rank)` in that many processes, pinned, each on its host; this one is rank 0. When
/// all are done with it, `peer_may_leave` is to be set. Returns the exit status.
template <class Body>
int in_processes(const Options& options, int ranks, Body&& body) {
    end_with_peer();
    int rank = 0;
    for (int other = 1; other < ranks && rank == 0; ++other)
        if (fork_child() == 0) rank = other;
    alarm(options.deadline);
    pin_to(options.cpus[std::size_t(rank % 2)]);
    enter_host(options, rank);
    body(rank);
    bool fine = true;
    for (int status = 0; rank == 0 && wait(&status) > 0;) fine = fine && status == 0;
    return fine ? 0 : 1;
}

/// Builds each side's channel with `make(rank, meeting)` and calls `measure(channel, leader)` in
/// both processes. Returns the exit status.
template <class Make, class Measure>
int in_two_processes(const Options& options, Make&& make, Measure&& measure) {
    Meeting& meeting = Meeting::create();
    return in_processes(options, 2, [&](int rank) {
        auto channel = make(rank, meeting);
        meeting.wait_for_other(rank);
        measure(channel, rank == 0);
        peer_may_leave = 1;
        meeting.wait_for_other(rank);
    });
}

template <class Make>
int measure_pair(const System& system, const Options& options, Make&& make) {
    return in_two_processes(options, make, [&](auto& channel, bool leader) {
        all_figures(system, channel, 2, leader, options);
    });
}

/// A system that this host cannot have at all: said by a status of its own.
struct Unavailable : std::runtime_error {
    using std::runtime_error::runtime_error;
};
inline constexpr int unavailable = 77;

/// main() of every program: complaints become one line and a status.
template <class Body>
int guarded(const char* program, Body&& body) {
    try {
        return body();
    } catch (const Unavailable& reason) {
        std::fprintf(stderr, "%s: %s\n", program, reason.what());
        return unavailable;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", program, error.what());
        return 1;
    }
}

}  // namespace rivals
