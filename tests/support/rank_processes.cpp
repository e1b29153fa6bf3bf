// SPDX-License-Identifier: Apache-2.0
#include "tests/support/rank_processes.hpp"

#include "billboard/bbp.h"
#include "tests/support/leftovers.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>
#include <thread>

namespace rmem::test {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPause = std::chrono::microseconds(200);
constexpr const char* kSharedMemory = "/dev/shm";

std::string unique_ring_name() {
    static unsigned count = 0;
    remove_leftovers();
    return fmt::format("test-{}-{}", ::getpid(), ++count);
}

Shared* map_shared() {
    void* memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    return new (memory) Shared{};
}

void say(int pipe, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(pipe, text.data(), text.size());
        if (written <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

std::string describe(Place place) {
    if (place.line == 0) return "before its first check";
    return fmt::format("at {}:{}", std::filesystem::path(place.file).filename().string(),
                       place.line);
}

}  // namespace

void await(const std::function<bool()>& holds, std::string_view what, Place place) {
    passing(place);
    const auto deadline = Clock::now() + kAwaitDeadline;
    while (!holds()) {
        if (Clock::now() > deadline) fail(fmt::format("waited in vain for {}", what), place);
        std::this_thread::sleep_for(kPause);
    }
}

void Rank::await_word(std::size_t word, std::uint32_t value, Place place) {
    await([&] { return shared[word] >= value; },
          fmt::format("shared word {} to reach {}, it is {}", word, value, shared[word].load()),
          place);
}

void Rank::leave(Place place) {
    await([&] { return shared.dying == 0; }, "the killed to be gone", place);
    joined = false;
    check_code(bbp_finalize(), BBP_OK, "bbp_finalize", place);
}

RankProcesses::RankProcesses(RingSetup setup)
    : setup_(std::move(setup)),
      name_(unique_ring_name()),
      shared_(map_shared()),
      deadline_(Clock::now() + setup_.deadline) {
    if (setup_.ranks > kMaxTestRanks) throw std::invalid_argument("more ranks than kMaxTestRanks");
}

RankProcesses::~RankProcesses() {
    for (Process& process : processes_) {
        if (!process.ended) {
            ::kill(process.pid, SIGKILL);
            ::waitpid(process.pid, nullptr, 0);
        }
        if (process.pipe >= 0) ::close(process.pipe);
    }
    for (const std::string& file : left_behind()) {
        ::shm_unlink(("/" + file).c_str());
    }
    ::munmap(shared_, sizeof(Shared));
}

void RankProcesses::start_all(const Body& body) {
    for (unsigned rank = 0; rank < setup_.ranks; ++rank) start(rank, body);
}

void RankProcesses::start(unsigned rank, const Body& body) {
    spawn(rank, body, true, {});
}

void RankProcesses::start_bare(unsigned rank, const Body& body,
                               const std::map<std::string, std::string>& changes) {
    spawn(rank, body, false, changes);
}

void RankProcesses::start_doomed(unsigned rank, const Body& body, const std::string& mark) {
    spawn(rank, body, false, {{"RMEM_KILL_AT", mark}});
    latest(rank).doomed = mark;
}

void RankProcesses::spawn(unsigned rank, const Body& body, bool join,
                          const std::map<std::string, std::string>& changes) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    std::fflush(nullptr);
    const pid_t test = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != test) ::_exit(1);
        ::close(ends[0]);
        run_child(rank, body, join, ends[1], changes);
    }
    ::close(ends[1]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    Process process;
    process.rank = rank;
    process.pid = pid;
    process.pipe = ends[0];
    processes_.push_back(std::move(process));
}

void RankProcesses::run_child(unsigned rank, const Body& body, bool join, int pipe,
                              const std::map<std::string, std::string>& changes) {
    int result = 0;
    try {
        last_place = &shared_->places[rank];
        set_environment(rank, changes);
        Rank me{static_cast<int>(rank), static_cast<int>(setup_.ranks), setup_.partition, *shared_};
        if (join) {
            int number = -1;
            int ranks = -1;
            check_ok(bbp_init(&number, &ranks), "bbp_init");
            check_equal(number, rank, "the rank that bbp_init tells");
            check_equal(ranks, setup_.ranks, "the number of ranks that bbp_init tells");
            me.joined = true;
            ++shared_->joined;
            await([&] { return shared_->joined >= setup_.ranks; }, "all ranks to join");
        }
        body(me);
        if (me.joined) me.leave();
    } catch (const std::exception& error) {
        say(pipe, error.what());
        result = 1;
    }
    // Not exit: destructors and handlers here belong to the test that was forked.
    std::fflush(nullptr);
    ::_exit(result);
}

void RankProcesses::set_environment(unsigned rank,
                                    const std::map<std::string, std::string>& changes) const {
    for (const char* launcher :
         {"PMI_RANK", "PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
          "SLURM_PROCID", "SLURM_NTASKS", "RMEM_NODE", "RMEM_NODES", "RMEM_SIZE", "RMEM_BOUND",
          "RMEM_FAULTS", "RMEM_CHECK", "RMEM_UNIX_GROUP", "RMEM_KEY_FILE"}) {
        ::unsetenv(launcher);
    }
    std::map<std::string, std::string> variables = {
        {"RMEM_RING", name_},
        {"RMEM_RANK", std::to_string(rank)},
        {"RMEM_RANKS", std::to_string(setup_.ranks)},
        {"RMEM_LINK", setup_.link},
        {"RMEM_TIMING", setup_.timing},
        {"RMEM_LAYOUT", setup_.layout},
        {"RMEM_PARTITION", std::to_string(setup_.partition)},
        {"RMEM_JOIN_TIMEOUT", setup_.join_timeout},
    };
    for (const auto& [variable, value] : setup_.extra) variables[variable] = value;
    for (const auto& [variable, value] : changes) variables[variable] = value;
    for (const auto& [variable, value] : variables) {
        if (value.empty()) {
            ::unsetenv(variable.c_str());
        } else {
            ::setenv(variable.c_str(), value.c_str(), 1);
        }
    }
}

RankProcesses::Process& RankProcesses::latest(unsigned rank) {
    const auto found = std::find_if(processes_.rbegin(), processes_.rend(),
                                    [&](const Process& p) { return p.rank == rank; });
    if (found == processes_.rend()) throw std::invalid_argument("that rank was never started");
    return *found;
}

void RankProcesses::kill(unsigned rank) {
    Process& process = latest(rank);
    process.killed = true;
    ++shared_->dying;
    ::kill(process.pid, SIGKILL);
    while (!process.ended) {
        collect();
        std::this_thread::sleep_for(kPause);
    }
    --shared_->dying;
}

void RankProcesses::stop(unsigned rank) {
    const pid_t pid = latest(rank).pid;
    ::kill(pid, SIGSTOP);
    int status = 0;
    ::waitpid(pid, &status, WUNTRACED);
    if (!WIFSTOPPED(status)) ADD_FAILURE() << "rank " << rank << " ended instead of stopping";
}

void RankProcesses::resume(unsigned rank) {
    ::kill(latest(rank).pid, SIGCONT);
}

void RankProcesses::await_value(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                                std::string_view name, Place place) {
    while (word < value) {
        collect();
        if (failed_ || Clock::now() > deadline_) {
            throw CheckFailed(
                place, fmt::format("{} stayed at {} instead of {}", name, word.load(), value));
        }
        std::this_thread::sleep_for(kPause);
    }
}

void RankProcesses::await_all_joined(Place place) {
    await_value(shared_->joined, setup_.ranks, "the number of joined ranks", place);
}

void RankProcesses::await_word(std::size_t word, std::uint32_t value, Place place) {
    await_value((*shared_)[word], value, fmt::format("shared word {}", word), place);
}

void RankProcesses::wait(unsigned rank) {
    while (!latest(rank).ended && Clock::now() < deadline_) {
        collect();
        std::this_thread::sleep_for(kPause);
    }
}

bool RankProcesses::collect() {
    bool running = false;
    for (Process& process : processes_) {
        if (process.ended) continue;
        char text[512];
        for (ssize_t n = 0; (n = ::read(process.pipe, text, sizeof text)) > 0;) {
            process.said.append(text, static_cast<std::size_t>(n));
        }
        int status = 0;
        if (::waitpid(process.pid, &status, WNOHANG) == process.pid) {
            // What it said between the last look and its end.
            for (ssize_t n = 0; (n = ::read(process.pipe, text, sizeof text)) > 0;) {
                process.said.append(text, static_cast<std::size_t>(n));
            }
            process.ended = true;
            report(process, status);
        } else {
            running = true;
        }
    }
    return running;
}

void RankProcesses::report(Process& process, int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && process.doomed.empty()) return;
    if ((process.killed || !process.doomed.empty()) && WIFSIGNALED(status) &&
        WTERMSIG(status) == SIGKILL)
        return;
    const std::string place = describe(shared_->places[process.rank]);
    if (!process.said.empty()) {
        ADD_FAILURE() << "rank " << process.rank << ": " << process.said;
    } else if (!process.doomed.empty() && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        ADD_FAILURE() << "rank " << process.rank << " never reached " << process.doomed;
    } else if (WIFSIGNALED(status)) {
        ADD_FAILURE() << "rank " << process.rank << " died of signal " << WTERMSIG(status) << " ("
                      << ::strsignal(WTERMSIG(status)) << "), last seen " << place;
    } else {
        ADD_FAILURE() << "rank " << process.rank << " ended with status " << status
                      << ", last seen " << place;
    }
    if (!failed_) deadline_ = std::min(deadline_, Clock::now() + kGrace);
    failed_ = true;
}

void RankProcesses::end_all(std::string_view why) {
    for (Process& process : processes_) {
        if (process.ended) continue;
        ADD_FAILURE() << "rank " << process.rank << " did not end: " << why << "; last seen "
                      << describe(shared_->places[process.rank]);
        process.killed = true;
        ::kill(process.pid, SIGKILL);
        ::waitpid(process.pid, nullptr, 0);
        process.ended = true;
    }
}

void RankProcesses::finish() {
    finished_ = true;
    while (collect()) {
        if (Clock::now() > deadline_) {
            end_all(failed_ ? "another rank had failed" : "the test's deadline passed");
            failed_ = true;
            break;
        }
        std::this_thread::sleep_for(kPause);
    }
    if (failed_) return;  // what a failed rank leaves behind says nothing
    for (const std::string& file : left_behind()) {
        ADD_FAILURE() << kSharedMemory << "/" << file << " was left behind";
    }
}

std::vector<std::string> RankProcesses::left_behind() const {
    std::vector<std::string> files;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(kSharedMemory, ignored)) {
        const std::string file = entry.path().filename().string();
        // "test-12-1" is not "test-12-10".
        const auto at = file.find(name_);
        if (at == std::string::npos) continue;
        const auto next = at + name_.size();
        if (next == file.size() || std::isdigit(static_cast<unsigned char>(file[next])) == 0) {
            files.push_back(file);
        }
    }
    return files;
}

}  // namespace rmem::test
