// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/waiting/awaiting.hpp"

#include "rmem/base/environment_variable.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/ring.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>

namespace rmem {

namespace {

RankState state_of(const Ring& ring, unsigned rank) noexcept {
    // (1) - this acquire-load synchronizes-with the release-stores rmem/ring/rank_hold.cpp (4) and
    // rmem/link/udp/roster.cpp (1): who has come says before where it is
    return static_cast<RankState>(ring.rank(rank).state.load(std::memory_order_acquire));
}

unsigned node_of(const Ring& ring, unsigned rank) noexcept {
    return ring.rank(rank).node.load(std::memory_order_relaxed);  // relaxed is enough: (1)
}

bool is_member(const Ring& ring, unsigned node) noexcept {
    return ring.config().is_remote() && ring.is_present(node);
}

}  // namespace

Await Await::read() {
    Await await;
    const char* text = environment_setting("RMEM_AWAIT");
    if (text == nullptr) return await;
    const std::string word = text;
    if (word == "all" || word == "none") {
        await.others = word == "all";
    } else if (std::isdigit(static_cast<unsigned char>(*text)) != 0 &&
               (await.ranks = parse_unsigned("RMEM_AWAIT", word, kMaxRanks)) != 0) {
        return await;
    } else {
        throw Error(Errc::bad_environment,
                    fmt::format("RMEM_AWAIT: nobody waits for '{}'; give all or none, or how many "
                                "of the ring's ranks this job has",
                                word));
    }
    return await;
}

std::vector<unsigned> missing_nodes(const Ring& ring, unsigned expected) {
    const RingConfig& config = ring.config();
    const unsigned nodes = (expected - 1) * config.nodes / config.ranks + 1;
    std::vector<bool> has_come(config.nodes);
    for (unsigned rank = 0; rank < ring.seats(); ++rank) {
        if (state_of(ring, rank) == RankState::absent) continue;
        if (const unsigned node = node_of(ring, rank); node < config.nodes) has_come[node] = true;
    }
    std::vector<unsigned> missing;
    for (unsigned node = 0; node < nodes; ++node) {
        if (!has_come[node] && !is_member(ring, node)) missing.push_back(node);
    }
    return missing;
}

std::string names_of_nodes(const std::vector<unsigned>& nodes) {
    return fmt::format("node{} {}", nodes.size() == 1 ? "" : "s", fmt::join(nodes, ", "));
}

std::string heard_of_others(const Ring& ring) {
    const std::string heard = ring.config().is_remote() ? ring.board().notice.text() : "";
    return heard.empty() ? heard : "; " + heard;
}

std::string not_come(const Ring& ring, Member member) {
    const unsigned expected = Await::read().expected(ring.config().ranks, member.rank);
    return fmt::format(
        "node {} of ring '{}' waited for {} of {}, where no program has come; start "
        "one there, or allow more time (RMEM_JOIN_TIMEOUT), or go on without "
        "(RMEM_AWAIT=none){}",
        member.node, ring.config().name, names_of_nodes(missing_nodes(ring, expected)),
        ring.config().nodes, heard_of_others(ring));
}

bool is_alone(const Ring& ring, unsigned node) noexcept {
    const RingConfig& config = ring.config();
    for (unsigned other = 0; other < config.nodes; ++other) {
        if (other != node && is_member(ring, other)) return false;
    }
    for (unsigned rank = 0; rank < ring.seats(); ++rank) {
        const RankState state = state_of(ring, rank);
        const bool is_there = state == RankState::joined || state == RankState::elsewhere;
        if (is_there && node_of(ring, rank) != node) return false;
    }
    return config.nodes > 1;
}

}  // namespace rmem
