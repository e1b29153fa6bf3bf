// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The nodes of a job on link udp that have several ranks each: one process of `rmem node` per
/// node, from before the first rank starts until after the last has ended. So no rank's end takes
/// its node down. A node that somebody's `rmem node` runs already is left alone.
/// Thread safety: one thread, the only one of the process when it is made. Errors: the constructor
///   throws `rmem::Error`, after the node itself has said why it cannot run.

#include "rmem/ring/ring.hpp"
#include "tools/run/janitor.hpp"
#include "tools/run/rank_process.hpp"
#include "tools/run/run_report.hpp"

#include <memory>
#include <vector>

namespace tools {

class NodeProcesses {
public:
    /// `rings`: each node's segment, in order.
    NodeProcesses(const std::vector<std::shared_ptr<rmem::Ring>>& rings, RunReport& report,
                  Janitor& janitor);
    /// Ends them, and waits until they have.
    ~NodeProcesses();
    NodeProcesses(const NodeProcesses&) = delete;
    NodeProcesses& operator=(const NodeProcesses&) = delete;

private:
    struct Node {
        unsigned id = 0;
        RankProcess process;
    };

    void start(unsigned node);
    void await(const rmem::Ring& ring, const Node& node) const;
    void end() noexcept;

    RunReport& report_;
    Janitor& janitor_;
    std::vector<Node> nodes_;
};

}  // namespace tools
