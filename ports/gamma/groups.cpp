// SPDX-License-Identifier: Apache-2.0
#include "ports/gamma/groups.hpp"

#include "ports/gamma/frame.hpp"
#include "rmem/base/check.hpp"

#include <fmt/format.h>

namespace ports::gamma {

namespace {

[[noreturn]] void refuse(const std::string& sentence) {
    throw rmem::Error(rmem::Errc::bad_environment, sentence);
}

bool is_left_to_order(const Request& rank) noexcept {
    return rank.takes_part() && !rank.par_pid;
}

void check_named(unsigned par_pid, const Group& group, std::span<const Request> ranks) {
    for (const int rank : group) {
        const unsigned asked = ranks[static_cast<std::size_t>(rank)].nodes;
        if (asked == group.size()) continue;
        refuse(
            fmt::format("rank {} asks for {} nodes of parallel PID {}, which {} ranks name in "
                        "RMEM_GAMMA=pid={}; let as many name it as gamma_init asks for",
                        rank, asked, par_pid, group.size(), par_pid));
    }
}

/// The ranks from `first` on that name no PID, as many as the first of them asks for.
Group consecutive(std::span<const Request> ranks, std::size_t& first) {
    Group group;
    const std::size_t leader = first;
    for (; first < ranks.size() && group.size() < ranks[leader].nodes; ++first) {
        if (!is_left_to_order(ranks[first])) continue;
        if (ranks[first].nodes != ranks[leader].nodes) {
            refuse(
                fmt::format("rank {} asks for {} nodes, and rank {}, whose group it falls into, "
                            "for {}; start programs of different sizes on consecutive ranks, or "
                            "name their groups by RMEM_GAMMA=pid=<n>",
                            first, ranks[first].nodes, leader, ranks[leader].nodes));
        }
        group.push_back(static_cast<int>(first));
    }
    if (group.size() != ranks[leader].nodes) {
        refuse(
            fmt::format("rank {} asks for {} nodes, and the ring has only {} ranks left for its "
                        "group; start more ranks (rmem run -n), or ask gamma_init for fewer",
                        leader, ranks[leader].nodes, group.size()));
    }
    return group;
}

}  // namespace

std::vector<Group> form_groups(std::span<const Request> ranks) {
    std::vector<Group> groups(kMaxGroups);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        if (ranks[r].par_pid && ranks[r].takes_part())
            groups.at(*ranks[r].par_pid).push_back(static_cast<int>(r));
    }
    for (unsigned pid = 0; pid < kMaxGroups; ++pid) check_named(pid, groups[pid], ranks);
    unsigned pid = 0;
    for (std::size_t next = 0; next < ranks.size();) {
        if (!is_left_to_order(ranks[next])) {
            ++next;
            continue;
        }
        while (pid < kMaxGroups && !groups[pid].empty()) ++pid;
        RMEM_CHECK(pid < kMaxGroups);  // there are no more ranks than PIDs
        groups[pid] = consecutive(ranks, next);
    }
    while (!groups.empty() && groups.back().empty()) groups.pop_back();
    return groups;
}

}  // namespace ports::gamma
