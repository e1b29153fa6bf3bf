// SPDX-License-Identifier: Apache-2.0
#include "tools/run/launcher.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <tuple>

namespace tools {

namespace {

constexpr std::array<int, 9> kTakenSignals = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                                              SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD};
constexpr std::int64_t kLookNs = 20 * rmem::kNsPerMs;  // who has come to the ring

/// Signals come through a descriptor, so that nothing happens at odd moments.
rmem::Descriptor take_signals_by_descriptor() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : kTakenSignals) sigaddset(&set, number);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGCHLD, SIG_DFL);  // who starts us may ignore it: nobody could wait for ranks then
    ::signal(SIGTTOU, SIG_IGN);  // our reports may be printed from the background
    return rmem::Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool asks_to_end(int number) {
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

/// A terminal's reader in the background would be stopped.
bool is_in_foreground() {
    return ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
}

}  // namespace

Launcher::Launcher(const Job& job, RunReport& report, Janitor& janitor)
    : job_(job),
      is_expecting_(job.is_expecting != nullptr),
      report_(report),
      janitor_(janitor),
      ranks_(job.programs.size()),
      signals_(take_signals_by_descriptor()),
      from_terminal_(::isatty(STDIN_FILENO) == 1) {
    RMEM_CHECK(!job.programs.empty() && job.place);
    // Processes that a rank has started become ours when the rank ends, so that we can wait for
    // their end, too.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (Rank& rank : ranks_) rank.restarts_left = job.restarts;
    if (from_terminal_) {
        std::tie(input_from_, input_to_) = make_pipe();
        ::fcntl(input_to_.get(), F_SETFL, O_NONBLOCK);
    }
}

Launcher::~Launcher() {
    tell_running(SIGKILL);
    for (const unsigned rank : running()) {
        const pid_t pid = ranks_[rank].process.pid();
        ranks_[rank].process.reap();
        janitor_.reaped(pid);
    }
}

int Launcher::run() {
    started_ns_ = rmem::now_ns();
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) start(rank);
    input_from_.reset();  // rank 0 has it now
    while (!running().empty()) wait_for_something();
    return exit_code_;
}

void Launcher::start(unsigned rank) {
    RankStart how;
    how.program = job_.programs[rank];
    how.place = job_.place(rank);
    how.piped_output = job_.label;
    // A restarted rank 0 of a terminal gets none: its former incarnation may have eaten half a
    // line.
    if (rank == 0) how.input = from_terminal_ ? input_from_.get() : STDIN_FILENO;

    Rank& r = ranks_[rank];
    RMEM_CHECK(!r.running);
    r.process = RankProcess::start(how);
    r.running = true;
    for (unsigned stream = 0; stream < r.streams.size(); ++stream) {
        const int fd = stream == 0 ? STDOUT_FILENO : STDERR_FILENO;
        r.streams[stream].emplace([this, rank, fd](std::string_view line, bool whole) {
            if (!report_.output(rank, fd, line, whole)) on_nobody_reads();
        });
    }
    janitor_.started(r.process.pid());
    report_.started(rank, r.process.pid());
}

// ---- Waiting

void Launcher::wait_for_something() {
    std::vector<pollfd> polled = {{signals_.get(), POLLIN, 0}};
    std::vector<std::pair<unsigned, unsigned>> streams;  // rank and stream of each after the first
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
        const RankProcess& process = ranks_[rank].process;
        for (unsigned stream = 0; stream < 2; ++stream) {
            const int fd = stream == 0 ? process.output() : process.errors();
            if (!ranks_[rank].running || fd < 0 || !ranks_[rank].streams[stream]) continue;
            polled.push_back({fd, POLLIN, 0});
            streams.emplace_back(rank, stream);
        }
    }
    const std::size_t input_at = polled.size();
    if (input_to_.get() >= 0) {
        polled.push_back(input_held_.empty() ? pollfd{STDIN_FILENO, POLLIN, 0}
                                             : pollfd{input_to_.get(), POLLOUT, 0});
    }

    const std::int64_t due = next_due();
    const std::int64_t wait_ns =
        due == rmem::kNever ? 0 : std::max<std::int64_t>(due - rmem::now_ns(), 0);
    const int timeout = due == rmem::kNever ? -1 : static_cast<int>(wait_ns / rmem::kNsPerMs + 1);
    if (::poll(polled.data(), polled.size(), timeout) < 0 && errno != EINTR) return;

    const std::int64_t now = rmem::now_ns();
    for (std::size_t i = 0; i < streams.size(); ++i) {
        if (polled[i + 1].revents != 0) read_stream(streams[i].first, streams[i].second, now);
    }
    if (input_at < polled.size() && polled[input_at].revents != 0) feed_input();
    for (Rank& rank : ranks_) {
        for (auto& stream : rank.streams) {
            if (stream) stream->tick(now);
        }
    }
    if (polled[0].revents != 0) take_signals();
    look_for_deaths();
    end_others(now);
    if (is_expecting_) is_expecting_ = job_.is_expecting(running());
    tell_silence(now);
}

std::int64_t Launcher::silence_due() const {
    const bool is_whole = running().size() == ranks_.size();
    if (is_whole || ending_ != Ending::no || heard_ns_ == rmem::kNever) return rmem::kNever;
    return rmem::Deadline::after(heard_ns_, job_.silence_ns).at_ns;
}

void Launcher::tell_silence(std::int64_t now) {
    if (running().empty() || now < silence_due()) return;
    std::vector<unsigned> ended;
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
        if (!ranks_[rank].running) ended.push_back(rank);
    }
    report_.silent(ended, running(), job_.silence_ns);
    heard_ns_ = rmem::kNever;
}

std::int64_t Launcher::next_due() const {
    std::int64_t due =
        ending_ == Ending::waiting || ending_ == Ending::told ? end_at_ns_ : silence_due();
    if (is_expecting_) due = std::min(due, rmem::now_ns() + kLookNs);
    for (const Rank& rank : ranks_) {
        for (const auto& stream : rank.streams) {
            if (stream) due = std::min(due, stream->due_ns());
        }
    }
    return due;
}

void Launcher::read_stream(unsigned rank, unsigned stream, std::int64_t now) {
    std::array<char, 1 << 16> buffer;
    Rank& r = ranks_[rank];
    const int fd = stream == 0 ? r.process.output() : r.process.errors();
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got > 0) {
        if (heard_ns_ != rmem::kNever) heard_ns_ = now;
        r.streams[stream]->add({buffer.data(), static_cast<std::size_t>(got)}, now);
        return;
    }
    r.streams[stream]->end();
    r.streams[stream].reset();  // the end of it: polled no more
}

/// The last output of a rank that has ended. Nobody of its group is left to print more, unless it
/// fled into a session of its own, for whose output we do not wait.
void Launcher::drain(unsigned rank) {
    Rank& r = ranks_[rank];
    for (unsigned stream = 0; stream < r.streams.size(); ++stream) {
        const int fd = stream == 0 ? r.process.output() : r.process.errors();
        pollfd ready{fd, POLLIN, 0};
        while (fd >= 0 && r.streams[stream] && ::poll(&ready, 1, 0) > 0) {
            read_stream(rank, stream, rmem::now_ns());
        }
        if (r.streams[stream]) r.streams[stream]->end();
        r.streams[stream].reset();
    }
}

// ---- Input

void Launcher::feed_input() {
    if (input_held_.empty()) {
        if (!is_in_foreground()) {
            ::usleep(10'000);  // the input is somebody else's; do not spin on it
            return;
        }
        std::array<char, 4096> buffer;
        const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
        if (got <= 0) {
            if (got == 0 || errno != EINTR) close_input();
            return;
        }
        input_held_.assign(buffer.data(), static_cast<std::size_t>(got));
    }
    const ssize_t put = ::write(input_to_.get(), input_held_.data(), input_held_.size());
    if (put > 0) input_held_.erase(0, static_cast<std::size_t>(put));
    if (put < 0 && errno != EAGAIN && errno != EINTR) close_input();
}

void Launcher::close_input() {
    input_held_.clear();
    input_to_.reset();
}

// ---- Signals

void Launcher::take_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
        take_signal(static_cast<int>(info.ssi_signo));
    }
}

void Launcher::take_signal(int number) {
    if (number == SIGCHLD) {  // of ranks we look for anyway
        for (const unsigned rank : running()) ranks_[rank].process.reap_orphans();
        return;
    }
    if (number == SIGTSTP) return stop_all();
    const bool kills = asks_to_end(number) && passed_on_ != 0 && number != SIGHUP;
    if (kills) return tell_running(SIGKILL);
    if (asks_to_end(number)) passed_on_ = number;
    report_.passed_on(number, running(), number == SIGINT);
    tell_running(number);
    // A stopped rank hears nothing but SIGKILL and SIGCONT.
    if (asks_to_end(number)) tell_running(SIGCONT);
}

void Launcher::stop_all() {
    tell_running(SIGTSTP);
    ::raise(SIGSTOP);  // SIGCONT wakes us, and comes through the descriptor as well
}

void Launcher::tell_running(int signal) {
    for (const unsigned rank : running()) {
        ranks_[rank].process.signal(signal);
        if (asks_to_end(signal) || signal == SIGKILL) ranks_[rank].told_to_end = true;
    }
}

void Launcher::on_nobody_reads() {
    if (std::exchange(readers_gone_, true)) return;
    if (exit_code_ == 0) exit_code_ = 128 + SIGPIPE;
    tell_running(SIGTERM);
}

// ---- Ends

void Launcher::look_for_deaths() {
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
        if (ranks_[rank].running && ranks_[rank].process.has_ended()) on_end(rank);
    }
}

void Launcher::on_end(unsigned rank) {
    Rank& r = ranks_[rank];
    RMEM_CHECK(r.running);
    RankEnd end;
    end.rank = rank;
    end.pid = r.process.pid();
    end.after_ns = rmem::now_ns() - started_ns_;
    end.expected = r.told_to_end;
    end.status = r.process.reap();
    r.running = false;
    janitor_.reaped(end.pid);
    drain(rank);
    heard_ns_ = rmem::now_ns();
    report_.ended(end);
    if (rank == 0) close_input();
    if (!end.failed()) return;
    const bool died = end.exit_code() > 128 && !WIFEXITED(end.status);
    if (died && !end.expected && ending_ == Ending::no && r.restarts_left > 0) {
        report_.restarting(rank, --r.restarts_left);
        return start(rank);
    }
    if (exit_code_ == 0) exit_code_ = end.exit_code();
    if (ending_ == Ending::no && !job_.keep_going && !end.expected) {
        ending_ = Ending::waiting;
        end_at_ns_ = rmem::now_ns() + job_.grace_ns;
    }
}

void Launcher::end_others(std::int64_t now) {
    if ((ending_ != Ending::waiting && ending_ != Ending::told) || now < end_at_ns_) return;
    const auto left = running();
    if (left.empty()) return;
    const bool kill = ending_ == Ending::told;
    report_.ending(left, kill ? SIGKILL : SIGTERM, job_.grace_ns);
    tell_running(kill ? SIGKILL : SIGTERM);
    if (!kill) tell_running(SIGCONT);
    ending_ = kill ? Ending::killed : Ending::told;
    end_at_ns_ = now + job_.grace_ns;
}

std::vector<unsigned> Launcher::running() const {
    std::vector<unsigned> ranks;
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
        if (ranks_[rank].running) ranks.push_back(rank);
    }
    return ranks;
}

}  // namespace tools
