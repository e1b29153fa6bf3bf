// SPDX-License-Identifier: Apache-2.0
#include "tools/run/janitor.hpp"

#include "rmem/base/check.hpp"
#include "tools/run/cleaning.hpp"
#include "tools/run/rank_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <set>
#include <thread>

namespace tools {

namespace {

constexpr pid_t kGoodBye = 0;
constexpr auto kTryEvery = std::chrono::milliseconds(10);
constexpr int kTries = 1000;  // ten seconds: killed processes end sooner

/// Reads the launcher's news until it says that it ends (true) or is killed (false). A positive
/// number is a rank started, a negative one a rank reaped.
bool follow(int pipe, std::set<pid_t>& ranks) {
    for (;;) {
        pid_t news = 0;
        const ssize_t got = ::read(pipe, &news, sizeof news);
        if (got < 0 && errno == EINTR) continue;
        if (got != sizeof news) return false;
        if (news == kGoodBye) return true;
        if (news > 0) {
            ranks.insert(news);
        } else {
            ranks.erase(-news);
        }
    }
}

/// No signal to the job, no terminal and no pipe of the job may depend on this process.
void withdraw() {
    ::setsid();
    ::prctl(PR_SET_NAME, "rmem-janitor");
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(number, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
}

bool remove_dead(const std::vector<std::string>& rings) {
    bool gone = true;
    for (const std::string& ring : rings) {
        gone =
            (!is_left_over(ring) || clean_ring(ring, true, false, Staying::keep).removed) && gone;
    }
    return gone;
}

[[noreturn]] void watch_over(const std::vector<std::string>& rings, int pipe) {
    withdraw();
    std::set<pid_t> ranks;
    if (follow(pipe, ranks)) ::_exit(0);
    for (const pid_t rank : ranks) ::kill(-rank, SIGKILL);
    for (int tries = 0; tries < kTries; ++tries) {
        // Twice in a row, because a rank may die while it makes the ring.
        const bool gone = remove_dead(rings);
        std::this_thread::sleep_for(kTryEvery);
        if (gone && std::none_of(rings.begin(), rings.end(), is_left_over)) break;
    }
    forget_addresses(rings);
    ::_exit(0);
}

}  // namespace

Janitor::Janitor(const std::vector<std::string>& rings) {
    auto [from, to] = make_pipe();
    // Descriptors of rmem are closed in forked children; this one the child needs.
    const int kept = ::fcntl(from.get(), F_DUPFD_CLOEXEC, 3);
    pid_ = ::fork();
    if (pid_ == 0) {
        try {
            watch_over(rings, kept);
        } catch (...) {
            ::_exit(1);  // /dev/null hears what it would say
        }
    }
    ::close(kept);
    pipe_ = std::move(to);
    // Without a process to spare the job runs anyway, and `rmem clean` does the tidying.
}

Janitor::~Janitor() {
    tell(kGoodBye);
    pipe_.reset();
    if (pid_ <= 0) return;
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

void Janitor::started(pid_t rank) {
    const bool is_new = rank > 0 && ranks_.insert(rank).second;
    RMEM_CHECK(is_new);
    tell(rank);
}
void Janitor::reaped(pid_t rank) {
    const bool was_there = ranks_.erase(rank) != 0;
    RMEM_CHECK(was_there);
    tell(-rank);
}

void Janitor::tell(pid_t news) {
    if (pid_ <= 0) return;
    // Whole, because it is shorter than PIPE_BUF; a janitor that somebody killed hears nothing.
    while (::write(pipe_.get(), &news, sizeof news) < 0 && errno == EINTR) {
    }
}

}  // namespace tools
