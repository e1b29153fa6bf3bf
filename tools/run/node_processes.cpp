// SPDX-License-Identifier: Apache-2.0
#include "tools/run/node_processes.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/ring/node_board.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

namespace tools {

namespace {

constexpr auto kPause = std::chrono::milliseconds(1);
constexpr std::int64_t kStartNs = 10'000'000'000;
constexpr std::int64_t kEndNs = 5'000'000'000;  // a node leaves in milliseconds

bool has_daemon(const rmem::Ring& ring) {
    // relaxed is enough: the holder of the engine's byte has said what it is, or does so before
    // programs may join
    const auto kind = ring.board().kind.load(std::memory_order_relaxed);
    return kind == static_cast<std::uint32_t>(rmem::udp::EngineKind::daemon) && ring.has_engine();
}

}  // namespace

NodeProcesses::NodeProcesses(const std::vector<std::shared_ptr<rmem::Ring>>& rings,
                             RunReport& report, Janitor& janitor)
    : report_(report), janitor_(janitor) {
    try {
        for (const auto& ring : rings) {
            if (!has_daemon(*ring)) start(ring->own_node());
        }
        for (const Node& node : nodes_) await(*rings.at(node.id), node);
    } catch (...) {
        end();
        throw;
    }
}

NodeProcesses::~NodeProcesses() {
    end();
}

void NodeProcesses::start(unsigned node) {
    RankStart how;
    how.program.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "node",
                           "--quiet", "--node", fmt::format("{}", node)};
    nodes_.push_back({node, RankProcess::start(how)});
    janitor_.started(nodes_.back().process.pid());
}

/// Until ranks find it: one that came before the node would run the node itself.
void NodeProcesses::await(const rmem::Ring& ring, const Node& node) const {
    const rmem::Deadline deadline = rmem::Deadline::in(kStartNs);
    while (!has_daemon(ring)) {
        if (node.process.has_ended() || deadline.passed(rmem::now_ns())) {
            throw rmem::Error(rmem::Errc::system,
                              fmt::format("node {} of ring '{}' did not start; `rmem node` has "
                                          "said why, or try it by hand",
                                          node.id, ring.config().name));
        }
        std::this_thread::sleep_for(kPause);
    }
}

void NodeProcesses::end() noexcept {
    for (const Node& node : nodes_) {
        if (node.process.has_ended()) report_.node_died(node.id, node.process.pid());
        node.process.signal(SIGTERM);
        node.process.signal(SIGCONT);
    }
    const rmem::Deadline deadline = rmem::Deadline::in(kEndNs);
    for (Node& node : nodes_) {
        while (!node.process.has_ended() && !deadline.passed(rmem::now_ns())) {
            std::this_thread::sleep_for(kPause);
        }
        const pid_t pid = node.process.pid();
        node.process.reap();
        janitor_.reaped(pid);
    }
    nodes_.clear();
}

}  // namespace tools
