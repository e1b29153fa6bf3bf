// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/harness.hpp"
#include "tools/measure/samples.hpp"
#include "tools/processors.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace bench {

namespace {

constexpr unsigned kPatienceS = 200;  ///< with one step

std::vector<std::string> list_of(const char* name, const char* otherwise) {
    std::istringstream text(setting(name, otherwise));
    std::vector<std::string> words;
    for (std::string word; std::getline(text, word, ',');) words.push_back(word);
    return words;
}

std::vector<std::string> scratch_files;
volatile std::sig_atomic_t may_leave = 0;

/// A peer that dies in mid-measurement would leave the leader spinning.
void end_with_peer(int) {
    constexpr char kComplaint[] = "another rank ended early\n";
    if (may_leave) return;
    [[maybe_unused]] const ssize_t written = write(2, kComplaint, sizeof kComplaint - 1);
    _exit(3);
}

}  // namespace

std::string setting(const char* name, const std::string& otherwise) {
    const char* const value = std::getenv(name);
    return value == nullptr ? otherwise : value;
}

void tell(const Step& step, int ranks, const Times& sorted, double part, double less,
          const Numbers& more) {
    std::printf("{\"rhythm\":\"%s\",\"bytes\":%zu,\"count\":%zu,\"ranks\":%d,\"samples\":%zu",
                step.rhythm.c_str(), step.bytes, step.count, ranks, sorted.size());
    constexpr std::pair<const char*, double> kTold[] = {{"min", 0},  {"p10", .1},  {"p50", .5},
                                                        {"p90", .9}, {"p99", .99}, {"p999", .999},
                                                        {"max", 1}};
    for (const auto& [name, share] : kTold)
        std::printf(",\"%s_ns\":%.1f", name, tools::quantile(sorted, share) * part - less);
    if (less != 0) std::printf(",\"less_ns\":%.1f", less);
    for (const auto& [name, number] : more) std::printf(",\"%s\":%.3f", name.c_str(), number);
    std::printf("}\n");
    std::fflush(stdout);
}

Setup Setup::read(int argc, char** argv) {
    Setup setup;
    for (const std::string& cpu : list_of("BENCH_CPUS", "")) {
        if (cpu != "any") setup.cpus.push_back(unsigned(std::stoul(cpu)));
    }
    if (setting("BENCH_CPUS", "").empty()) setup.cpus = tools::usable_processors();
    setup.ranks = std::stoi(setting("BENCH_RANKS", "2"));
    setup.variant = setting("BENCH_VARIANT", "");
    setup.interface = setting("BENCH_INTERFACE", "lo");
    setup.spaces = list_of("BENCH_SPACES", "");
    setup.addresses = list_of("BENCH_ADDRESSES", "127.0.0.1,127.0.0.1");
    setup.steps.assign(argv + 1, argv + argc);
    if (setup.steps.empty() && setting("BENCH_STEPS", "").empty())
        fail("give steps, such as 'pingpong 8 20 0.5': rhythm, bytes, how many, seconds");
    return setup;
}

void Setup::pin(int rank) const {
    if (cpus.empty()) return;
    require(tools::bind_to({cpus[std::size_t(rank) % cpus.size()]}),
            "cannot pin to a CPU of BENCH_CPUS");
}

void Setup::enter_host(int rank) const {
    if (spaces.empty()) return;
    const std::string& space = spaces[std::size_t(rank) % spaces.size()];
    const int file = open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
    require(file >= 0 && setns(file, CLONE_NEWNET) == 0, "cannot enter a network namespace",
            [] { return std::strerror(errno); });
    close(file);
}

StepSource::StepSource(const Setup& setup, int rank) : given_(setup.steps) {
    if (given_.empty()) lines_.open(setting("BENCH_STEPS", "") + "/" + std::to_string(rank));
}

std::optional<Step> StepSource::next() {
    alarm(0);  // the runner may take its time
    std::string line;
    if (taken_ < given_.size())
        line = given_[taken_++];
    else if (!std::getline(lines_, line))
        return std::nullopt;
    alarm(kPatienceS);
    std::istringstream words(line);
    Step step;
    words >> step.rhythm >> step.bytes >> step.count >> step.seconds;
    if (!words || step.count == 0) fail("not a step: " + line);
    words >> step.more;
    return step;
}

std::string scratch_file(const std::string& name) {
    return scratch_files.emplace_back(setting("TMPDIR", "/tmp") + "/bench-" +
                                      std::to_string(getpid()) + "-" + name);
}

int fork_ranks(const Setup& setup) {
    std::signal(SIGCHLD, end_with_peer);
    int rank = 0;
    for (int other = 1; other < setup.ranks && rank == 0; ++other) {
        const pid_t child = fork();
        require(child >= 0, "fork failed");
        if (child != 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        rank = other;
    }
    setup.enter_host(rank);
    return rank;
}
void let_leave() {
    may_leave = 1;
}
int end_ranks(int rank) {
    bool fine = true;
    for (int status = 0; rank == 0 && wait(&status) > 0;) fine = fine && status == 0;
    for (const std::string& file : scratch_files)
        if (rank == 0) unlink(file.c_str());
    return fine ? 0 : 1;
}

}  // namespace bench

int main(int argc, char** argv) {
    try {
        return bench::measure(bench::Setup::read(argc, argv));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, error.what());
        return dynamic_cast<const bench::Unavailable*>(&error) == nullptr ? 1 : bench::kUnavailable;
    }
}
