// SPDX-License-Identifier: Apache-2.0
#include "tools/run/rank_process.hpp"

#include "rmem/base/check.hpp"
#include "rmem/error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <tuple>
#include <utility>

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
    pid_t launcher;
};

/// Undoes the launcher's changes, as a program expects.
void restore_signals() {
    for (const int number : {SIGPIPE, SIGTTOU}) ::signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void give_up(const char* doing, const char* what, const char* advice) {
    const int error = errno;
    fmt::print(stderr, "cannot {} '{}': {}; {}\n", doing, what, std::strerror(error), advice);
    std::fflush(stderr);
    ::_exit(error == ENOENT ? kExitNotFound : kExitCannotExecute);
}

void become_user(const User& user) {
    if (::setgroups(user.groups.size(), user.groups.data()) == 0 && ::setgid(user.group) == 0 &&
        ::setuid(user.id) == 0) {
        return;
    }
    give_up("become user", user.name.c_str(), "only root may start programs as other users");
}

/// The kernel forgets it when a process changes its user.
void die_with(pid_t launcher) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != launcher) ::_exit(kExitCannotExecute);  // it died in between
}

[[noreturn]] void become(const Prepared& p, const RankProgram& program) {
    ::setpgid(0, 0);
    die_with(p.launcher);
    ::dup2(p.input, STDIN_FILENO);
    if (p.output >= 0) ::dup2(p.output, STDOUT_FILENO);
    if (p.errors >= 0) ::dup2(p.errors, STDERR_FILENO);
    if (!program.processors.empty()) bind_to(program.processors);
    if (program.user) {
        become_user(*program.user);
        die_with(p.launcher);
    }
    if (!program.directory.empty() && ::chdir(program.directory.c_str()) != 0) {
        give_up("go into folder", program.directory.c_str(), "check the path and its permissions");
    }
    restore_signals();
    for (const auto& assignment : p.assignments) ::putenv(const_cast<char*>(assignment.c_str()));
    ::execvp(p.argv[0], p.argv.data());
    give_up("execute", p.argv[0], "check the path and its permissions");
}

Variables of_user(const User& user) {
    return {{"HOME", user.home}, {"USER", user.name}, {"LOGNAME", user.name}};
}

}  // namespace

RankProcess RankProcess::start(const RankStart& how) {
    const auto& processors = how.program.processors;
    RMEM_CHECK(!how.program.command.empty() && !how.program.command[0].empty());
    RMEM_CHECK(std::all_of(processors.begin(), processors.end(),
                           [](unsigned processor) { return processor < CPU_SETSIZE; }));
    RankProcess process;
    rmem::Descriptor output, errors;
    if (how.piped_output) {
        std::tie(process.output_, output) = make_pipe();
        std::tie(process.errors_, errors) = make_pipe();
    }
    const rmem::Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (how.input < 0 && null.get() < 0) fail("opening /dev/null");

    Prepared prepared{{},           {},           how.input < 0 ? null.get() : how.input,
                      output.get(), errors.get(), ::getpid()};
    std::vector<std::string> words = how.program.command;
    for (auto& word : words) prepared.argv.push_back(word.data());
    prepared.argv.push_back(nullptr);
    const Variables user = how.program.user ? of_user(*how.program.user) : Variables{};
    for (const Variables* variables : {&user, &how.program.environment, &how.place}) {
        for (const auto& [name, value] : *variables)
            prepared.assignments.push_back(name + "=" + value);
    }

    // Descriptors of rmem close themselves in forked children, so the child works on bare copies.
    for (int* fd : {&prepared.input, &prepared.output, &prepared.errors}) {
        if (*fd >= 0 && (*fd = ::fcntl(*fd, F_DUPFD_CLOEXEC, 3)) < 0) fail("copying a descriptor");
    }
    process.pid_ = ::fork();
    if (process.pid_ == 0) become(prepared, how.program);
    const int error = errno;
    for (const int fd : {prepared.input, prepared.output, prepared.errors}) {
        if (fd >= 0) ::close(fd);
    }
    errno = error;
    if (process.pid_ < 0) fail("starting a process");
    ::setpgid(process.pid_, process.pid_);  // here too: no matter which comes first
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

void RankProcess::reap_orphans() const {
    siginfo_t info{};
    while (pid_ > 0 &&
           ::waitid(P_PGID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0 && info.si_pid != pid_) {
        ::waitpid(std::exchange(info.si_pid, 0), nullptr, 0);
    }
}

int RankProcess::reap() {
    RMEM_CHECK(pid_ > 0);
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
    auto ends = rmem::Descriptor::pipe(O_CLOEXEC);
    if (ends.first.get() < 0) fail("making a pipe");
    return ends;
}

}  // namespace tools
