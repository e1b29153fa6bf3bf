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
#include "tests/support/child.hpp"

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace rmem::test {

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
    RestartProcesses(const RestartSettings& settings, std::string ring, std::string record);
    ~RestartProcesses();
    RestartProcesses(const RestartProcesses&) = delete;
    RestartProcesses& operator=(const RestartProcesses&) = delete;

    void start_rank(unsigned rank, std::uint64_t seed);
    void start_daemon(unsigned node);
    void kill_rank(unsigned rank) { running_.erase(rank_name(rank)); }
    void kill_daemon(unsigned node) { running_.erase(daemon_name(node)); }
    bool runs_rank(unsigned rank) const { return running_.contains(rank_name(rank)); }

    /// Fails when one has ended.
    void check_running();
    /// Waits until all ranks have ended well; then ends the daemons, and waits.
    void finish();

    /// Those that run, by process id.
    std::map<pid_t, std::string> names() const;

private:
    static std::string rank_name(unsigned rank) { return "rank " + std::to_string(rank); }
    static std::string daemon_name(unsigned node) { return "daemon " + std::to_string(node); }
    void start(const std::string& name, unsigned node, const std::vector<std::string>& variables,
               const std::vector<std::string>& program);
    void await_end(const std::string& name);

    RestartSettings settings_;
    std::string ring_, record_;
    std::map<std::string, Child> running_;
};

}  // namespace rmem::test
