// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Runs the ranks of one job to their end: output, input, signals, deaths.
///
/// Failure   When a rank ends with a signal or an exit code, the others get a grace time to find
///           out (their calls return BBP_EPEER) and end by themselves; then SIGTERM; after as long
///           again SIGKILL. With keep_going they run on.
/// Signals   SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on; a second SIGINT,
///           SIGTERM or SIGQUIT kills. SIGTSTP stops the ranks and then the launcher; SIGCONT goes
///           on.
/// Leftovers What a rank has started and left running is killed with it, and waited for: then it is
///           in no ring any more. A process that has left the rank's process group is not.
/// Result    0, or the exit code of the rank that failed first (128 + signal when it died of one).
/// Invariants, executed: a job has ranks and places for them; a rank is started when it does not
///           run, and ends when it does.
/// Thread safety: one thread, the only one of the process.

#include "rmem/base/time.hpp"
#include "tools/run/janitor.hpp"
#include "tools/run/rank_output.hpp"
#include "tools/run/rank_process.hpp"
#include "tools/run/run_report.hpp"

#include <sys/signalfd.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tools {

struct Job {
    std::vector<RankProgram> programs;  ///< one for each rank
    /// A rank's place in the ring, as variables.
    std::function<Variables(unsigned rank)> place;
    bool label = true;
    bool keep_going = false;
    unsigned restarts = 0;  ///< times that each rank is started again when it dies of a signal
    std::int64_t grace_ns = 0;
    /// Whether, of the ranks that run, some are still to come to the ring. Asked until it is false;
    /// empty: it does not matter.
    std::function<bool(const std::vector<unsigned>& running)> is_expecting;
    /// Of silence, while some have ended and others run on: then a line says who.
    std::int64_t silence_ns = rmem::kNever;
};

class Launcher {
public:
    Launcher(const Job& job, RunReport& report, Janitor& janitor);
    /// Kills the ranks that run: there are some where not all could be started.
    ~Launcher();
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;
    /// Starts all, returns the job's exit code when all have ended.
    int run();

private:
    struct Rank {
        RankProcess process;
        std::array<std::optional<LineBuffer>, 2> streams;  ///< stdout, stderr
        bool running = false;
        bool told_to_end = false;
        unsigned restarts_left = 0;
    };
    enum class Ending { no, waiting, told, killed };

    void start(unsigned rank);
    void wait_for_something();
    void read_stream(unsigned rank, unsigned stream, std::int64_t now);
    void drain(unsigned rank);
    void feed_input();
    void close_input();
    void take_signals();
    void take_signal(int number);
    void stop_all();
    void look_for_deaths();
    void on_end(unsigned rank);
    void end_others(std::int64_t now);
    std::int64_t silence_due() const;
    void tell_silence(std::int64_t now);
    void tell_running(int signal);
    void on_nobody_reads();
    std::int64_t next_due() const;
    std::vector<unsigned> running() const;

    const Job& job_;
    bool is_expecting_;
    RunReport& report_;
    Janitor& janitor_;
    std::vector<Rank> ranks_;
    rmem::Descriptor signals_;
    bool from_terminal_;
    rmem::Descriptor input_from_, input_to_;  ///< a pipe to rank 0 when our stdin is a terminal
    std::string input_held_;
    std::int64_t started_ns_ = 0;
    std::int64_t heard_ns_ = 0;  ///< when a rank has printed or ended last; kNever: it was told
    Ending ending_ = Ending::no;
    std::int64_t end_at_ns_ = 0;
    int exit_code_ = 0;
    int passed_on_ = 0;  ///< the last signal that asks to end
    bool readers_gone_ = false;
};

}  // namespace tools
