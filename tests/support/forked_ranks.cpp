// SPDX-License-Identifier: Apache-2.0
#include "tests/support/forked_ranks.hpp"

#include "rmem/ring/segment.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
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

}  // namespace

ForkedRanks::ForkedRanks(const RingSetup& setup, const std::string& ring)
    : setup_(setup),
      ring_(ring),
      shared_(map_shared()),
      deadline_(Clock::now() + setup_.deadline) {}

ForkedRanks::~ForkedRanks() {
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

void ForkedRanks::start(RankRun rank_run) {
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
        run_child(rank_run, ends[1]);
    }
    ::close(ends[1]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    Process process;
    process.rank = rank_run.rank;
    process.pid = pid;
    process.pipe = ends[0];
    process.doomed = rank_run.doomed;
    processes_.push_back(std::move(process));
}

void ForkedRanks::run_child(const RankRun& rank_run, int pipe) {
    int result = 0;
    try {
        last_place = &shared_->places[rank_run.rank];
        set_environment(rank_run);
        live(rank_run, setup_, *shared_);
    } catch (const std::exception& error) {
        say(pipe, error.what());
        result = 1;
    }
    // Not exit: destructors and handlers here belong to the test that was forked.
    std::fflush(nullptr);
    ::_exit(result);
}

void ForkedRanks::set_environment(const RankRun& rank_run) const {
    for (const char* launcher :
         {"PMI_RANK", "PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
          "SLURM_PROCID", "SLURM_NTASKS", "RMEM_NODE", "RMEM_NODES", "RMEM_SIZE", "RMEM_BOUND",
          "RMEM_FAULTS", "RMEM_CHECK", "RMEM_UNIX_GROUP", "RMEM_KEY_FILE"}) {
        ::unsetenv(launcher);
    }
    for (const auto& [variable, value] : environment_of(setup_, ring_, rank_run)) {
        if (value.empty()) {
            ::unsetenv(variable.c_str());
        } else {
            ::setenv(variable.c_str(), value.c_str(), 1);
        }
    }
}

ForkedRanks::Process& ForkedRanks::latest(unsigned rank) {
    const auto found = std::find_if(processes_.rbegin(), processes_.rend(),
                                    [&](const Process& p) { return p.rank == rank; });
    if (found == processes_.rend()) throw std::invalid_argument("that rank was never started");
    return *found;
}

void ForkedRanks::kill(unsigned rank) {
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

void ForkedRanks::stop(unsigned rank) {
    const pid_t pid = latest(rank).pid;
    ::kill(pid, SIGSTOP);
    int status = 0;
    ::waitpid(pid, &status, WUNTRACED);
    if (!WIFSTOPPED(status)) ADD_FAILURE() << "rank " << rank << " ended instead of stopping";
}

void ForkedRanks::resume(unsigned rank) {
    ::kill(latest(rank).pid, SIGCONT);
}

void ForkedRanks::await_value(const std::atomic<std::uint32_t>& word, std::uint32_t value,
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

void ForkedRanks::wait(unsigned rank) {
    while (!latest(rank).ended && Clock::now() < deadline_) {
        collect();
        std::this_thread::sleep_for(kPause);
    }
}

void ForkedRanks::let_pass(std::chrono::nanoseconds time) {
    std::this_thread::sleep_for(time);
}

bool ForkedRanks::collect() {
    bool running = false;
    for (Process& process : processes_) {
        if (process.ended) continue;
        char text[512];
        for (ssize_t n = 0; (n = ::read(process.pipe, text, sizeof text)) > 0;) {
            process.said.append(text, static_cast<std::size_t>(n));
        }
        int status = 0;
        if (::waitpid(process.pid, &status, WNOHANG) == process.pid) {
            // Its output between the last look and its end.
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

void ForkedRanks::report(Process& process, int status) {
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

void ForkedRanks::end_all(std::string_view why) {
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

void ForkedRanks::finish() {
    while (collect()) {
        if (Clock::now() > deadline_) {
            end_all(failed_ ? "another rank had failed" : "the test's deadline passed");
            failed_ = true;
            break;
        }
        std::this_thread::sleep_for(kPause);
    }
    if (failed_) return;  // the remains of a failed rank say nothing
    remove_nodes_of_the_killed();
    for (const std::string& file : left_behind()) {
        ADD_FAILURE() << kSharedMemory << "/" << file << " was left behind";
    }
}

/// A killed program that was alone on its node leaves that node's segment, until it is started
/// again.
void ForkedRanks::remove_nodes_of_the_killed() {
    if (setup_.link != "udp") return;
    for (const Process& process : processes_) {
        if (!process.killed && process.doomed.empty()) continue;
        const std::string segment = ring_ + "@" + std::to_string(process.rank);
        const auto left = Segment::open(segment);
        if (left && !left->is_locked(0, 4096)) Segment::remove(segment);
    }
}

std::vector<std::string> ForkedRanks::left_behind() const {
    std::vector<std::string> files;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(kSharedMemory, ignored)) {
        const std::string file = entry.path().filename().string();
        // "test-12-1" is not "test-12-10".
        const auto at = file.find(ring_);
        if (at == std::string::npos) continue;
        const auto next = at + ring_.size();
        if (next == file.size() || std::isdigit(static_cast<unsigned char>(file[next])) == 0) {
            files.push_back(file);
        }
    }
    return files;
}

}  // namespace rmem::test
