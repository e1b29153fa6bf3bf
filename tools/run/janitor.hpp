// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A small process that outlives a killed launcher and tidies up after it.
///
/// It waits on a pipe that only the launcher holds. The launcher tells it the ranks it starts; when
/// the pipe ends without the launcher's last word, the launcher was killed: the janitor kills the
/// ranks' process groups (what they had started does not get the kernel's death signal) and removes
/// the rings once nobody is in them. It sits in a session of its own, so that signals to the job do
/// not meet it.
/// Invariant, executed: what it is told of is a process, started before it is reaped.
/// Thread safety: one thread, which must be the only one of the process when it is made.

#include "rmem/ring/segment.hpp"

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace tools {

class Janitor {
public:
    /// `rings`: by the names of their segments.
    explicit Janitor(const std::vector<std::string>& rings);
    /// Tells the janitor to end: nothing is left to tidy up.
    ~Janitor();
    Janitor(const Janitor&) = delete;
    Janitor& operator=(const Janitor&) = delete;

    void started(pid_t rank);
    void reaped(pid_t rank);

private:
    void tell(pid_t news);

    rmem::Descriptor pipe_;
    pid_t pid_ = -1;
    std::set<pid_t> ranks_;  ///< that have been started
};

}  // namespace tools
