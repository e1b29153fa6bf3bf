// SPDX-License-Identifier: Apache-2.0
#include "tools/rank_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "rmem/error.hpp"

namespace tools {

namespace {

[[noreturn]] void fail(const char* doing) {
    throw rmem::Error(rmem::Errc::system,
                      fmt::format("{}: {}; end other processes or raise the limit (ulimit -u, -n)",
                                  doing, std::strerror(errno)));
}

/// Everything the child needs, made before the fork, because there it may not allocate.
struct Prepared {
    std::vector<char*> argv;
    std::vector<std::string> assignments;
    int input, output, errors;
    std::optional<unsigned> processor;
    pid_t launcher;
};

/// What the launcher changed, back to what a program expects.
void restore_signals() {
    for (const int number : {SIGPIPE, SIGTTOU}) ::signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void bind_to(unsigned processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    ::sched_setaffinity(0, sizeof set, &set);
}

[[noreturn]] void become(const Prepared& p) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != p.launcher) ::_exit(kExitCannotExecute);  // it died in between
    ::dup2(p.input, STDIN_FILENO);
    if (p.output >= 0) ::dup2(p.output, STDOUT_FILENO);
    if (p.errors >= 0) ::dup2(p.errors, STDERR_FILENO);
    if (p.processor) bind_to(*p.processor);
    restore_signals();
    for (const auto& assignment : p.assignments) ::putenv(const_cast<char*>(assignment.c_str()));
    ::execvp(p.argv[0], p.argv.data());
    const int error = errno;
    fmt::print(stderr, "cannot execute '{}': {}; check the path and its permissions\n", p.argv[0],
               std::strerror(error));
    std::fflush(stderr);
    ::_exit(error == ENOENT ? kExitNotFound : kExitCannotExecute);
}

}  // namespace

RankProcess RankProcess::start(const RankStart& how) {
    RankProcess process;
    rmem::Descriptor output, errors;
    if (how.piped_output) {
        std::tie(process.output_, output) = make_pipe();
        std::tie(process.errors_, errors) = make_pipe();
    }
    const rmem::Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (how.input < 0 && null.get() < 0) fail("opening /dev/null");

    Prepared prepared{{},           {},           how.input < 0 ? null.get() : how.input,
                      output.get(), errors.get(), how.processor,
                      ::getpid()};
    std::vector<std::string> words = how.command;
    for (auto& word : words) prepared.argv.push_back(word.data());
    prepared.argv.push_back(nullptr);
    for (const auto& [name, value] : how.environment)
        prepared.assignments.push_back(name + "=" + value);

    // Descriptors of rmem close themselves in forked children, so the child works on bare copies.
    for (int* fd : {&prepared.input, &prepared.output, &prepared.errors}) {
        if (*fd >= 0 && (*fd = ::fcntl(*fd, F_DUPFD_CLOEXEC, 3)) < 0) fail("copying a descriptor");
    }
    process.pid_ = ::fork();
    if (process.pid_ == 0) become(prepared);
    const int error = errno;
    for (const int fd : {prepared.input, prepared.output, prepared.errors}) {
        if (fd >= 0) ::close(fd);
    }
    errno = error;
    if (process.pid_ < 0) fail("starting a process");
    ::setpgid(process.pid_, process.pid_);  // here too: whoever comes first
    return process;
}

void RankProcess::signal(int number) const {
    if (pid_ > 0) ::kill(-pid_, number);
}

bool RankProcess::has_ended() const {
    siginfo_t info{};
    return pid_ > 0 &&
           ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
}

void RankProcess::bury_orphans() const {
    siginfo_t info{};
    while (pid_ > 0 &&
           ::waitid(P_PGID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0 && info.si_pid != pid_) {
        ::waitpid(std::exchange(info.si_pid, 0), nullptr, 0);
    }
}

int RankProcess::bury() {
    signal(SIGKILL);  // while the number is still its own
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    while (::waitpid(-pid_, nullptr, 0) > 0 || errno == EINTR) {
    }
    pid_ = -1;
    return status;
}

std::pair<rmem::Descriptor, rmem::Descriptor> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("making a pipe");
    return {rmem::Descriptor(ends[0]), rmem::Descriptor(ends[1])};
}

std::vector<unsigned> usable_processors() {
    std::vector<unsigned> numbers;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return {0};
    for (unsigned i = 0; i < CPU_SETSIZE; ++i) {
        if (CPU_ISSET(i, &set)) numbers.push_back(i);
    }
    return numbers;
}

}  // namespace tools
