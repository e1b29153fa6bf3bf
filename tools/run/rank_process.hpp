// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One process that is a rank: how it is started, signalled and reaped.
///
/// Each rank leads a process group of its own, so that its children (a shell's commands, a
/// debugger's program) get the same signals and end with it. It dies by SIGKILL when the launcher
/// dies.
/// Invariants, executed: what is started has a program and processors that there can be, and what
/// has been started is reaped once.
/// Thread safety: the process must have one thread while it starts ranks.
/// Errors: `rmem::Error` (system) when the host refuses a process or a pipe; a program that cannot
///   be executed, or not in its directory or as its user, is a rank that ends with
///   kExitCannotExecute or kExitNotFound and says so on its stderr.

#include "rmem/ring/segment.hpp"
#include "tools/processors.hpp"

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tools {

inline constexpr int kExitCannotExecute = 126;  ///< as in shells
inline constexpr int kExitNotFound = 127;

using Variables = std::vector<std::pair<std::string, std::string>>;

/// The user that a program runs as, looked up before the fork.
struct User {
    std::string name, home;
    uid_t id = 0;
    gid_t group = 0;
    std::vector<gid_t> groups;
};

/// A rank's program, and how it runs.
struct RankProgram {
    std::vector<std::string> command;
    Variables environment;             ///< besides the launcher's own
    std::vector<unsigned> processors;  ///< that it may use; none: those of the launcher
    std::string directory;             ///< empty: the launcher's
    std::optional<User> user;          ///< none: the launcher's
    std::string where;                 ///< "rig.toml:12", for messages; empty: the command line
};

struct RankStart {
    RankProgram program;
    Variables place;           ///< in the ring: it wins over the program's environment
    bool piped_output = true;  ///< else: the launcher's own
    int input = -1;            ///< descriptor to read from; -1: /dev/null
};

class RankProcess {
public:
    static RankProcess start(const RankStart& how);

    pid_t pid() const { return pid_; }
    /// The ends to read from; negative when not piped.
    int output() const { return output_.get(); }
    int errors() const { return errors_.get(); }

    /// To the rank and all that it has started. Does nothing to one that is reaped.
    void signal(int number) const;

    /// Whether the process has ended, without reaping it, so its pid is not reused.
    bool has_ended() const;
    /// Takes the status of processes that it has started and left, and that have ended since: a
    /// subreaper has to.
    void reap_orphans() const;
    /// Kills what it has left running and takes its status, as of wait(2). Where the launcher is a
    /// subreaper (prctl(2)), processes that it had left running have ended, too.
    int reap();

private:
    pid_t pid_ = -1;
    rmem::Descriptor output_, errors_;
};

/// A pipe, closed on exec: the end to read from, the end to write to.
std::pair<rmem::Descriptor, rmem::Descriptor> make_pipe();

}  // namespace tools
