// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/link_kind.hpp"
#include "rmem/ring/segment.hpp"
#include "tests/support/child.hpp"
#include "tests/support/rank_processes.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

namespace rmem::test {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPause = std::chrono::microseconds(200);
constexpr const char* kSharedMemory = "/dev/shm";

/// Ranks that are forked processes, each with its own environment.
/// Fork only from a test without threads.
class ForkedRanks final : public RankHost {
public:
    ForkedRanks(const RingSetup& setup, const std::string& ring)
        : setup_(setup), ring_(ring), deadline_(Clock::now() + setup_.deadline) {}

    ~ForkedRanks() override {
        processes_.clear();
        for (const std::string& file : left_behind()) {
            ::shm_unlink(("/" + file).c_str());
        }
    }

    Shared& shared() override { return *shared_; }

    void start(RankRun rank_run) override { processes_.emplace_back(*this, rank_run); }

    void kill(unsigned rank) override {
        Process& process = latest(rank);
        process.killed = true;
        ++shared_->dying;
        process.child.signal(SIGKILL);
        if (!process.ended) has_ended(process, process.child.wait());
        --shared_->dying;
    }

    void stop(unsigned rank) override {
        SCOPED_TRACE(rank);
        latest(rank).child.stop();
    }

    void resume(unsigned rank) override { latest(rank).child.resume(); }

    void await_value(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                     std::string_view name, Place place) override {
        while (word < value) {
            collect();
            if (failed_ || Clock::now() > deadline_) {
                throw CheckFailed(
                    place, fmt::format("{} stayed at {} instead of {}", name, word.load(), value));
            }
            std::this_thread::sleep_for(kPause);
        }
    }

    void wait(unsigned rank) override {
        while (!latest(rank).ended && Clock::now() < deadline_) {
            collect();
            std::this_thread::sleep_for(kPause);
        }
    }

    void let_pass(std::chrono::nanoseconds time) override { std::this_thread::sleep_for(time); }

    void finish() override {
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

private:
    struct Process {
        Process(ForkedRanks& ranks, const RankRun& rank_run)
            : rank(rank_run.rank),
              doomed(rank_run.doomed),
              child([&] { ranks.run_child(rank_run, *said); }) {}

        const unsigned rank;
        const std::string doomed;  ///< the mark at which it must be killed
        bool ended = false;
        bool killed = false;                       ///< by the test, so its end is no failure
        SharedValue<std::array<char, 4096>> said;  ///< what failed
        Child child;
    };

    void run_child(const RankRun& rank_run, std::array<char, 4096>& said) {
        try {
            last_place = &shared_->places[rank_run.rank];
            set_environment(rank_run);
            live(rank_run, setup_, *shared_);
        } catch (const std::exception& error) {
            std::strncpy(said.data(), error.what(), said.size() - 1);
            std::fflush(nullptr);
            ::_exit(1);
        }
    }

    void set_environment(const RankRun& rank_run) const {
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

    Process& latest(unsigned rank) {
        const auto found = std::find_if(processes_.rbegin(), processes_.rend(),
                                        [&](const Process& p) { return p.rank == rank; });
        if (found == processes_.rend()) throw std::invalid_argument("that rank was never started");
        return *found;
    }

    ///< looks for processes that have ended; false when all have
    bool collect() {
        bool running = false;
        for (Process& process : processes_) {
            if (process.ended) continue;
            if (const auto code = process.child.poll()) {
                has_ended(process, *code);
            } else {
                running = true;
            }
        }
        return running;
    }

    void has_ended(Process& process, int code) {
        process.ended = true;
        if (code == 0 && process.doomed.empty()) return;
        if ((process.killed || !process.doomed.empty()) && code == -SIGKILL) return;
        const std::string place = describe(shared_->places[process.rank]);
        if (process.said->front() != '\0') {
            ADD_FAILURE() << "rank " << process.rank << ": " << process.said->data();
        } else if (code == 0) {
            ADD_FAILURE() << "rank " << process.rank << " never reached " << process.doomed;
        } else if (code < 0) {
            ADD_FAILURE() << "rank " << process.rank << " died of signal " << -code << " ("
                          << ::strsignal(-code) << "), last seen " << place;
        } else {
            ADD_FAILURE() << "rank " << process.rank << " ended with status " << code
                          << ", last seen " << place;
        }
        if (!failed_) deadline_ = std::min(deadline_, Clock::now() + kGrace);
        failed_ = true;
    }

    void end_all(std::string_view why) {
        for (Process& process : processes_) {
            if (process.ended) continue;
            ADD_FAILURE() << "rank " << process.rank << " did not end: " << why << "; last seen "
                          << describe(shared_->places[process.rank]);
            process.child.kill();
            process.ended = true;
        }
    }

    /// A killed program that was alone on its node leaves that node's segment, until it is started
    /// again.
    void remove_nodes_of_the_killed() {
        if (!is_remote(parse_link(setup_.link))) return;
        for (const Process& process : processes_) {
            if (!process.killed && process.doomed.empty()) continue;
            const std::string segment = ring_ + "@" + std::to_string(process.rank);
            const auto left = Segment::open(segment);
            if (left && !left->is_locked(0, 4096)) Segment::remove(segment);
        }
    }

    std::vector<std::string> left_behind() const {
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

    const RingSetup& setup_;
    const std::string& ring_;
    SharedValue<Shared> shared_;
    std::deque<Process> processes_;
    std::chrono::steady_clock::time_point deadline_;
    bool failed_ = false;
};

}  // namespace

std::unique_ptr<RankHost> forked_ranks(const RingSetup& setup, const std::string& ring) {
    return std::make_unique<ForkedRanks>(setup, ring);
}

}  // namespace rmem::test
