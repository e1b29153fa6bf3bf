// SPDX-License-Identifier: Apache-2.0
#include "tools/node/node_events.hpp"

#include "rmem/ring/node_board.hpp"
#include "rmem/ring/node_slot.hpp"
#include "tools/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tools {

namespace {

constexpr std::int64_t kSummaryNs = rmem::kNsPerSecond;

/// The entries of the first that are not in the second.
std::vector<unsigned> without(const std::vector<unsigned>& all, const std::vector<unsigned>& less) {
    std::vector<unsigned> rest;
    std::set_difference(all.begin(), all.end(), less.begin(), less.end(), std::back_inserter(rest));
    return rest;
}

std::string nodes_text(const std::vector<unsigned>& nodes) {
    return (nodes.size() == 1 ? "node " : "nodes ") + numbers_text(nodes);
}

}  // namespace

NodeEvents::NodeEvents(const rmem::Ring& ring, Say say)
    : ring_(ring),
      node_(ring.own_node()),
      say_(std::move(say)),
      epoch_(ring.board().membership_epoch.load(std::memory_order_relaxed)),  // enough: for people
      programs_(ring.config().ranks) {}

void NodeEvents::look(std::int64_t now) {
    look_at_epoch();
    look_at_members();
    look_at_notice();
    for (unsigned r = 0; r < programs_.size(); ++r) look_at_rank(r);
    look_at_bound(now);
}

void NodeEvents::look_at_epoch() {
    // relaxed is enough, here and below: for people
    const std::uint32_t epoch = ring_.board().membership_epoch.load(std::memory_order_relaxed);
    if (epoch == epoch_) return;
    const bool was_member = epoch_ % 2 == 1 || epoch - epoch_ > 1;
    const bool is_member = epoch % 2 == 1;
    epoch_ = epoch;
    if (was_member) {
        say_("the others have dropped this node; programs that are open here have to open again");
        members_.clear();
    }
    if (!is_member) return;
    members_ = members();
    say_(fmt::format("in ring '{}' as node {} of {}, {}", ring_.config().name, node_,
                     ring_.config().nodes,
                     members_.empty() ? "alone so far" : "with " + nodes_text(members_)));
}

void NodeEvents::look_at_notice() {
    const std::uint32_t count = ring_.board().notice.count();
    if (count == notices_) return;
    notices_ = count;
    if (const std::string text = ring_.board().notice.text(); !text.empty()) say_(text);
}

void NodeEvents::look_at_members() {
    if (epoch_ % 2 == 0) return;
    const std::vector<unsigned> now = members();
    const auto came = without(now, members_);
    const auto gone = without(members_, now);
    if (!came.empty()) say_(nodes_text(came) + " came");
    if (!gone.empty()) say_(nodes_text(gone) + " left, died or is out of reach");
    members_ = now;
}

std::vector<unsigned> NodeEvents::members() const {
    std::vector<unsigned> nodes;
    for (unsigned n = 0; n < ring_.config().nodes; ++n) {
        // relaxed is enough: the next look sees what this one misses
        const auto bits = ring_.board().members[n / 64].load(std::memory_order_relaxed);
        if (n != node_ && (bits >> n % 64 & 1) != 0) nodes.push_back(n);
    }
    return nodes;
}

NodeEvents::Program NodeEvents::program_of(unsigned rank) const {
    const rmem::RankSlot& slot = ring_.rank(rank);
    // relaxed is enough, three times: for people
    const auto state = static_cast<rmem::RankState>(slot.state.load(std::memory_order_relaxed));
    const bool is_ours = state == rmem::RankState::joined || state == rmem::RankState::left;
    if (!is_ours || slot.node.load(std::memory_order_relaxed) != node_) return {};
    Program program;
    program.pid = slot.pid.load(std::memory_order_relaxed);
    program.end = state == rmem::RankState::left ? End::left
                  : !ring_.is_alive(rank)        ? End::died
                                                 : End::none;
    return program;
}

void NodeEvents::look_at_rank(unsigned rank) {
    const Program now = program_of(rank);
    const Program before = std::exchange(programs_[rank], now);
    const bool is_new = now.pid != 0 && now.pid != before.pid;
    const bool was_here = before.pid != 0 && before.end == End::none;
    const auto tell = [&](const Program& who, const char* what) {
        say_(fmt::format("rank {} (process {}) {}", rank, who.pid, what));
    };
    if (was_here && (is_new || now.pid == 0)) tell(before, "has gone");
    if (is_new) tell(now, "has come");
    if (now.end != End::none && (is_new || was_here)) {
        tell(now, now.end == End::left ? "has left" : "has died");
    }
}

// ---- The bound

void NodeEvents::note(const rmem::BoundViolation& violation) {
    if (violation.propagation_ns > worst_.propagation_ns) worst_ = violation;
}

void NodeEvents::look_at_bound(std::int64_t now) {
    if (now < next_bound_ns_) return;
    next_bound_ns_ = now + kSummaryNs;
    const rmem::Counters& link = ring_.node(node_).link;
    const auto violations = link.get(rmem::LinkCounter::bound_violations);
    const auto late_by_host = link.get(rmem::LinkCounter::bound_missed_by_host);
    const auto more = violations - std::exchange(violations_, violations);
    const auto more_by_host = late_by_host - std::exchange(late_by_host_, late_by_host);
    const rmem::BoundViolation worst = std::exchange(worst_, {});
    if (more + more_by_host == 0) return;
    std::string sentence = fmt::format("{} writes took longer than the bound", more + more_by_host);
    if (more_by_host != 0) {
        sentence += fmt::format(", {} of them because this host was away", more_by_host);
    }
    if (worst.propagation_ns != 0) {
        sentence += fmt::format("; the longest {}, of node {} at {}",
                                duration_text(static_cast<std::uint64_t>(worst.propagation_ns)),
                                worst.origin, offset_text(worst.offset));
    }
    say_(sentence);
}

std::string NodeEvents::status() const {
    const auto programs = std::count_if(
        programs_.begin(), programs_.end(),
        [](const Program& program) { return program.pid != 0 && program.end == End::none; });
    const std::string where = fmt::format("node {} of ring '{}'", node_, ring_.config().name);
    if (epoch_ % 2 == 0) return where + ": joining";
    return fmt::format("{}: {}; {} programs here", where,
                       members_.empty() ? "alone" : "with " + nodes_text(members_), programs);
}

}  // namespace tools
