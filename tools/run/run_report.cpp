// SPDX-License-Identifier: Apache-2.0
#include "tools/run/run_report.hpp"

#include "tools/output.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <numeric>

namespace tools {

namespace {

std::string ranks_text(const std::vector<unsigned>& ranks) {
    return (ranks.size() == 1 ? "rank " : "ranks ") + numbers_text(ranks);
}

std::string cause_of(const RankEnd& end) {
    if (!WIFSIGNALED(end.status)) return fmt::format("ended with exit code {}", end.exit_code());
    const int number = WTERMSIG(end.status);
    return fmt::format("died of {} ({}{})", signal_name(number), ::strsignal(number),  // NOLINT
                       WCOREDUMP(end.status) ? ", core dumped" : "");
}

}  // namespace

std::string signal_name(int number) {
    const char* name = ::sigabbrev_np(number);
    return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

int RankEnd::exit_code() const {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

RunReport::RunReport(bool as_json, unsigned ranks) : json_(as_json), output_(ranks) {}

void RunReport::ring(const rmem::RingConfig& config, std::size_t ranks) {
    emit({{"event", "ring"},
          {"name", config.name},
          {"link", name_of(config.link)},
          {"nodes", config.nodes},
          {"ranks", config.ranks}});
    if (ranks >= config.ranks) return;
    std::vector<unsigned> empty(config.ranks - ranks);
    std::iota(empty.begin(), empty.end(), static_cast<unsigned>(ranks));
    say(fmt::format("ring '{}' has {} ranks, this job {}: {} empty, and nobody waits for {}",
                    config.name, config.ranks, ranks,
                    ranks_text(empty) + (empty.size() == 1 ? " stays" : " stay"),
                    empty.size() == 1 ? "it" : "them"));
}

void RunReport::started(unsigned rank, pid_t pid) {
    emit({{"event", "started"}, {"rank", rank}, {"pid", pid}});
}

bool RunReport::output(unsigned rank, int fd, std::string_view line, bool whole) {
    if (!json_) return output_.line(rank, fd, line, whole);
    const nlohmann::json event = {{"event", "output"},
                                  {"rank", rank},
                                  {"stream", fd == STDOUT_FILENO ? "stdout" : "stderr"},
                                  {"text", line},
                                  {"whole", whole}};
    return write_all(STDOUT_FILENO,
                     event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void RunReport::ended(const RankEnd& end) {
    emit({{"event", "ended"},
          {"rank", end.rank},
          {"pid", end.pid},
          {"exit_code", end.exit_code()},
          {"signal", WIFSIGNALED(end.status) ? nlohmann::json(signal_name(WTERMSIG(end.status)))
                                             : nlohmann::json()},
          {"after_ns", end.after_ns},
          {"expected", end.expected}});
    if (!end.failed() || end.expected) return;
    say(fmt::format("rank {} (process {}) {} after {}", end.rank, end.pid, cause_of(end),
                    duration_text(static_cast<std::uint64_t>(end.after_ns))));
}

void RunReport::restarting(unsigned rank, unsigned left) {
    emit({{"event", "restarted"}, {"rank", rank}, {"restarts_left", left}});
    say(fmt::format("starting rank {} again ({} more time{} at most)", rank, left,
                    left == 1 ? "" : "s"));
}

void RunReport::node_died(unsigned node, pid_t pid) {
    emit({{"event", "node-died"}, {"node", node}, {"pid", pid}});
    say(fmt::format("the process of node {} ({}) ended before its ranks did", node, pid));
}

void RunReport::ending(const std::vector<unsigned>& ranks, int signal, std::int64_t grace_ns) {
    emit({{"event", "ending"}, {"ranks", ranks}, {"signal", signal_name(signal)}});
    const std::string grace = duration_text(static_cast<std::uint64_t>(grace_ns));
    say(fmt::format("{} did not end within {}: {}", ranks_text(ranks), grace,
                    signal == SIGKILL ? "killed" : "told to end (SIGTERM)"));
}

void RunReport::silent(const std::vector<unsigned>& ended, const std::vector<unsigned>& running,
                       std::int64_t for_ns) {
    say(fmt::format(
        "nothing was printed for {}; ended: {}; running: {}, which may wait for those "
        "(`rmem top` shows them)",
        duration_text(static_cast<std::uint64_t>(for_ns)), ranks_text(ended), ranks_text(running)));
}

void RunReport::passed_on(int signal, const std::vector<unsigned>& ranks, bool again_kills) {
    emit({{"event", "signal"}, {"signal", signal_name(signal)}, {"ranks", ranks}});
    if (again_kills) {
        say(fmt::format("{} passed on to {}; once more kills them", signal_name(signal),
                        ranks_text(ranks)));
    }
}

void RunReport::summary(int exit_code, std::int64_t after_ns, const std::string& ring_kept) {
    output_.finish_line();
    emit({{"event", "summary"},
          {"exit_code", exit_code},
          {"after_ns", after_ns},
          {"ring_kept", ring_kept.empty() ? nlohmann::json() : nlohmann::json(ring_kept)}});
    if (!ring_kept.empty()) say(ring_kept);
}

void RunReport::say(const std::string& sentence) {
    if (json_) return;
    output_.finish_line();
    write_all(STDERR_FILENO, "rmem run: " + sentence + "\n");
}

void RunReport::emit(const nlohmann::json& event) {
    if (json_) write_all(STDOUT_FILENO, event.dump() + "\n");
}

}  // namespace tools
