// SPDX-License-Identifier: Apache-2.0
#include "tests/support/programs/restart_processes.hpp"

#include "tests/support/checks.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <thread>

namespace rmem::test {

namespace {

constexpr auto kPause = std::chrono::milliseconds(1);
constexpr auto kLongest = std::chrono::seconds(20);

std::string with_node(std::string word, unsigned node) {
    const auto at = word.find("{}");
    return at == std::string::npos ? word : word.replace(at, 2, std::to_string(node));
}

std::string how_it_ended(int status) {
    if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
    return fmt::format("ended with status {}", WEXITSTATUS(status));
}

[[noreturn]] void become(const std::vector<std::string>& words) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    std::perror(arguments[0]);
    ::_exit(127);
}

}  // namespace

RestartProcesses::RestartProcesses(const RestartSettings& settings, std::string ring,
                                   std::string record)
    : settings_(settings), ring_(std::move(ring)), record_(std::move(record)) {}

RestartProcesses::~RestartProcesses() {
    for (const auto& [name, pid] : running_) ::kill(pid, SIGKILL);
    for (const auto& [name, pid] : running_) ::waitpid(pid, nullptr, 0);
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
        const std::string file = entry.path().filename().string();
        if (file.ends_with("." + ring_) || file.find("." + ring_ + "@") != std::string::npos) {
            std::filesystem::remove(entry.path(), ignored);
        }
    }
}

void RestartProcesses::start_rank(unsigned rank, std::uint64_t seed) {
    start(rank_name(rank), settings_.node_of(rank), {fmt::format("RMEM_RANK={}", rank)},
          {std::filesystem::read_symlink("/proc/self/exe").string(), "--record", record_, "--seed",
           std::to_string(seed)});
}

void RestartProcesses::start_daemon(unsigned node) {
    start(daemon_name(node), node, {}, {settings_.rmem, "node", "--quiet"});
}

void RestartProcesses::start(const std::string& name, unsigned node,
                             const std::vector<std::string>& variables,
                             const std::vector<std::string>& program) {
    std::vector<std::string> words;
    for (const std::string& word : settings_.before) words.push_back(with_node(word, node));
    words.insert(words.end(), {"env", fmt::format("RMEM_NODE={}", node),
                               fmt::format("RMEM_NODES={}", settings_.nodes),
                               fmt::format("RMEM_RANKS={}", settings_.ranks)});
    words.insert(words.end(), variables.begin(), variables.end());
    words.insert(words.end(), program.begin(), program.end());
    std::fflush(nullptr);
    const pid_t pid = ::fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid == 0) become(words);
    running_[name] = pid;
}

void RestartProcesses::kill(const std::string& name) {
    const auto found = running_.find(name);
    ::kill(found->second, SIGKILL);
    ::waitpid(found->second, nullptr, 0);
    running_.erase(found);
}

void RestartProcesses::check_running() {
    for (auto& [name, pid] : running_) {
        int status = 0;
        if (::waitpid(pid, &status, WNOHANG) != pid) continue;
        const std::string who = name;
        running_.erase(name);
        fail(fmt::format("{} {}", who, how_it_ended(status)));
    }
}

void RestartProcesses::await_end(const std::string& name) {
    const pid_t pid = running_.at(name);
    const auto deadline = std::chrono::steady_clock::now() + kLongest;
    int status = 0;
    while (::waitpid(pid, &status, WNOHANG) != pid) {
        check(std::chrono::steady_clock::now() < deadline, name + " does not end");
        std::this_thread::sleep_for(kPause);
    }
    running_.erase(name);
    check(status == 0, name + " " + how_it_ended(status));
}

void RestartProcesses::finish() {
    for (unsigned rank = 0; rank < settings_.ranks; ++rank) await_end(rank_name(rank));
    for (const auto& [name, pid] : running_) ::kill(pid, SIGTERM);
    while (!running_.empty()) await_end(std::string(running_.begin()->first));
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
        const std::string file = entry.path().filename().string();
        check(file.find(ring_) == std::string::npos, "/dev/shm/" + file + " was left behind");
    }
}

std::map<pid_t, std::string> RestartProcesses::names() const {
    std::map<pid_t, std::string> result;
    for (const auto& [name, pid] : running_) result[pid] = name;
    return result;
}

}  // namespace rmem::test
