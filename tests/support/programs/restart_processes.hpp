// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The processes of ring-restarts: a rank each, and, on request, a daemon (`rmem node`) for each
/// node.
///
/// A process is started by `before`, its words with the node's number for {}, followed by `env`,
/// the settings of the ring that the environment lacks, and the program; on the hosts of a lab
/// `before` is `scripts/lab exec {} --`. All are killed with this one.
/// Thread safety: one thread. Errors: std::system_error; `CheckFailed` when one ends by itself that
/// should not.

#include "rmem/base/link_kind.hpp"
#include "tests/support/checks.hpp"
#include "tests/support/child.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace rmem::test {

inline constexpr auto kPause = std::chrono::milliseconds(1);
inline constexpr auto kLongest = std::chrono::seconds(20);

inline std::string with_node(std::string word, unsigned node) {
    const auto at = word.find("{}");
    return at == std::string::npos ? word : word.replace(at, 2, std::to_string(node));
}

inline std::string how_it_ended(int code) {
    if (code < 0) return fmt::format("was ended by signal {}", -code);
    return fmt::format("ended with status {}", code);
}

[[noreturn]] inline void become(const std::vector<std::string>& words) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    std::perror(arguments[0]);
    ::_exit(127);
}

struct RestartSettings {
    unsigned ranks = 4, nodes = 4;
    bool daemons = false;
    std::string link = "udp";
    std::string rmem = "rmem";  ///< the command, for daemons
    std::vector<std::string> before;

    /// As bbp_init deals ranks out.
    unsigned node_of(unsigned rank) const { return rank * nodes / ranks; }
    bool is_several_hosts() const { return is_remote(parse_link(link)); }
};

class RestartProcesses {
public:
    /// `record`: the file of the RestartRecord, which each rank is given.
    RestartProcesses(const RestartSettings& settings, std::string ring, std::string record)
        : settings_(settings), ring_(std::move(ring)), record_(std::move(record)) {}

    ~RestartProcesses() {
        running_.clear();
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
            const std::string file = entry.path().filename().string();
            if (file.ends_with("." + ring_) || file.find("." + ring_ + "@") != std::string::npos) {
                std::filesystem::remove(entry.path(), ignored);
            }
        }
    }

    RestartProcesses(const RestartProcesses&) = delete;
    RestartProcesses& operator=(const RestartProcesses&) = delete;

    void start_rank(unsigned rank, std::uint64_t seed) {
        start(rank_name(rank), settings_.node_of(rank), {fmt::format("RMEM_RANK={}", rank)},
              {std::filesystem::read_symlink("/proc/self/exe").string(), "--record", record_,
               "--seed", std::to_string(seed)});
    }

    void start_daemon(unsigned node) {
        start(daemon_name(node), node, {}, {settings_.rmem, "node", "--quiet"});
    }

    void kill_rank(unsigned rank) { running_.erase(rank_name(rank)); }
    void kill_daemon(unsigned node) { running_.erase(daemon_name(node)); }

    /// Fails when one has ended.
    void check_running() {
        for (auto& [name, process] : running_) {
            const auto code = process.poll();
            if (!code) continue;
            const std::string who = name;
            running_.erase(who);
            fail(fmt::format("{} {}", who, how_it_ended(*code)));
        }
    }

    /// Waits until all ranks have ended well; then ends the daemons, and waits.
    void finish() {
        for (unsigned rank = 0; rank < settings_.ranks; ++rank) await_end(rank_name(rank));
        for (const auto& [name, process] : running_) process.signal(SIGTERM);
        while (!running_.empty()) await_end(std::string(running_.begin()->first));
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
            const std::string file = entry.path().filename().string();
            check(file.find(ring_) == std::string::npos, "/dev/shm/" + file + " was left behind");
        }
    }

    /// Those that run, by process id.
    std::map<pid_t, std::string> names() const {
        std::map<pid_t, std::string> result;
        for (const auto& [name, process] : running_) result[process.pid()] = name;
        return result;
    }

private:
    static std::string rank_name(unsigned rank) { return "rank " + std::to_string(rank); }
    static std::string daemon_name(unsigned node) { return "daemon " + std::to_string(node); }

    void start(const std::string& name, unsigned node, const std::vector<std::string>& variables,
               const std::vector<std::string>& program) {
        std::vector<std::string> words;
        for (const std::string& word : settings_.before) words.push_back(with_node(word, node));
        words.insert(words.end(), {"env", fmt::format("RMEM_NODE={}", node),
                                   fmt::format("RMEM_NODES={}", settings_.nodes),
                                   fmt::format("RMEM_RANKS={}", settings_.ranks)});
        words.insert(words.end(), variables.begin(), variables.end());
        words.insert(words.end(), program.begin(), program.end());
        running_.emplace(name, [&] { become(words); });
    }

    void await_end(const std::string& name) {
        Child& process = running_.at(name);
        const auto deadline = std::chrono::steady_clock::now() + kLongest;
        std::optional<int> code;
        while (!(code = process.poll())) {
            check(std::chrono::steady_clock::now() < deadline, name + " does not end");
            std::this_thread::sleep_for(kPause);
        }
        running_.erase(name);
        check(*code == 0, name + " " + how_it_ended(*code));
    }

    RestartSettings settings_;
    std::string ring_, record_;
    std::map<std::string, Child> running_;
};

}  // namespace rmem::test
