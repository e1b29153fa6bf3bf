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
//     void post_receive(void*, std::size_t); void finish_receives();   // posted beforehand
//     void receive_view(std::size_t size, Consumer);                   // the message read in place
//     void barrier();                                                  // default: send + receive
//     void share(void* data, std::size_t size);                        // leader's data to the rest
//     void send_to(int, const void*, std::size_t); void receive_any(void*, std::size_t);
//     void multicast(void*, std::size_t);                              // rank 0's to the rest
//
// Rank 0 is the leader: it alone reads the clock and prints one JSON object per figure.
#pragma once

#include "figures.hpp"
#include "rhythms.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <csignal>

namespace rivals {

/// The steps that somebody tells, or all figures once.
template <class Channel>
void measure_channel(const System& system, Channel& channel, int rank, int ranks,
                     const Options& options) {
    if (!options.steps.empty())
        Steps<Channel>(system, channel, rank, ranks, options).take_all();
    else
        all_figures(system, channel, ranks, rank == 0, options);
}

// --- two processes, for systems that bring no launcher -----------------------------------------

/// Zeroed, touched, of this process and those that it forks, and gone with the last of them.
inline void* shared_memory(std::size_t bytes) {
    void* place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    require(place != MAP_FAILED, "no shared memory");
    return place;
}

/// Where the two processes meet before their channel exists and after it has gone: to exchange
/// addresses, and to leave together.
class Meeting {
public:
    static Meeting& create() { return *new (shared_memory(sizeof(Meeting))) Meeting; }

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

/// Builds each side's channel with `make(rank, meeting)` and calls `measure(channel, rank)` in
/// both processes. Returns the exit status.
template <class Make, class Measure>
int in_two_processes(const Options& options, Make&& make, Measure&& measure) {
    Meeting& meeting = Meeting::create();
    return in_processes(options, 2, [&](int rank) {
        auto channel = make(rank, meeting);
        meeting.wait_for_other(rank);
        measure(channel, rank);
        peer_may_leave = 1;
        meeting.wait_for_other(rank);
    });
}

template <class Make>
int measure_pair(const System& system, const Options& options, Make&& make) {
    return in_two_processes(options, make, [&](auto& channel, int rank) {
        measure_channel(system, channel, rank, 2, options);
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
