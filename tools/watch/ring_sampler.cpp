// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/ring_sampler.hpp"

#include "billboard/core/counters.hpp"
#include "rmem/base/process.hpp"
#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/segment.hpp"
#include "rmem/wire/timing.hpp"
#include "tools/watch/munet_report.hpp"
#include "tools/watch/port_counters.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace tools {

namespace {

using rmem::Ring;
using rmem::udp::NodeBoard;

std::shared_ptr<Ring> open_read_only(const std::string& segment) {
    auto ring = Ring::observe(segment);
    const std::size_t bytes = rmem::SegmentLayout(ring->config()).total;
    // It only adds safety to code that does not write: a host that refuses it is good enough.
    static_cast<void>(
        ::mprotect(const_cast<rmem::SegmentHeader*>(&ring->header()), bytes, PROT_READ));
    return ring;
}

// ---- Ranks

struct Process {
    std::string command;  ///< empty: not to be seen from here
    char state = '?';     ///< as in /proc/<pid>/stat

    bool is_stopped() const { return state == 'T'; }
};

/// The system's data on a process.
Process process_of(unsigned pid) {
    Process process;
    std::getline(std::ifstream(fmt::format("/proc/{}/comm", pid)), process.command);
    std::string stat;
    std::getline(std::ifstream(fmt::format("/proc/{}/stat", pid)), stat);
    const auto bracket = stat.rfind(')');
    if (bracket != std::string::npos && bracket + 2 < stat.size())
        process.state = stat[bracket + 2];
    return process;
}

const char* state_of(const Ring& ring, unsigned rank, const Process& process) {
    if (ring.is_alive(rank)) return process.is_stopped() ? "stopped" : "alive";
    // (1) - this acquire-load synchronizes-with the release-store rmem/ring/rank_hold.cpp (4)
    switch (static_cast<rmem::RankState>(ring.rank(rank).state.load(std::memory_order_acquire))) {
        case rmem::RankState::joined: return "dead";
        case rmem::RankState::left: return "left";
        case rmem::RankState::elsewhere: return "elsewhere";
        case rmem::RankState::lost: return "lost";
        case rmem::RankState::absent: break;
    }
    return "absent";
}

/// What a segment says of a rank. Of a ring over several hosts its own node's segment says most.
// relaxed is enough: a sample is of no one instant; and a process's start time tells whether its
// number is another's by now
RankSample rank_of(const Ring& ring, unsigned rank) {
    const rmem::RankSlot& slot = ring.rank(rank);
    RankSample sample;
    sample.pid = slot.pid.load(std::memory_order_relaxed);
    const std::uint64_t start = slot.start_time.load(std::memory_order_relaxed);
    Process process;
    if (sample.pid != 0 && start != 0 && rmem::process_start_time(sample.pid) == start)
        process = process_of(sample.pid);
    sample.command = process.command;
    sample.state = state_of(ring, rank, process);
    sample.incarnation = slot.incarnation.load(std::memory_order_relaxed);
    sample.node = std::min(slot.node.load(std::memory_order_relaxed), ring.config().nodes - 1);
    sample.link = values_of(slot.link, rmem::kLinkCounterNames.size());
    sample.protocol = values_of(slot.protocol, billboard::kCounterNames.size());
    for (std::size_t p = 0; p < sample.ports.size(); ++p) {
        CounterValues values = values_of(slot.ports[p], ports::kPortNames[p].counters.size());
        if (any_of(values)) sample.ports[p] = std::move(values);
    }
    return sample;
}

bool knows_better(const RankSample& one, const RankSample& other) {
    const auto knowledge = [](const RankSample& rank) {
        if (rank.state == "alive" || rank.state == "stopped") return 3;
        if (rank.state == "dead" || rank.state == "left") return 2;
        return rank.state == "absent" ? 0 : 1;
    };
    return knowledge(one) > knowledge(other);
}

// ---- Nodes

/// Where an engine of one's own or of each node is not what decides: as its ranks are.
NodeState state_by_ranks(const RingSample& sample, unsigned node) {
    constexpr std::array kOrder = {
        std::pair{"alive", NodeState::up}, std::pair{"stopped", NodeState::stopped},
        std::pair{"dead", NodeState::down}, std::pair{"left", NodeState::left}};
    for (const auto& [word, state] : kOrder) {
        for (const RankSample& rank : sample.ranks) {
            if (rank.node == node && rank.state == word) return state;
        }
    }
    return NodeState::absent;
}

EngineSample engine_of(const Ring& ring) {
    // relaxed is enough, here and below: for people
    constexpr auto kRelaxed = std::memory_order_relaxed;
    const NodeBoard& board = ring.board();
    EngineSample engine;
    engine.runs = ring.has_engine();
    engine.kind = static_cast<rmem::udp::EngineKind>(board.kind.load(kRelaxed));
    engine.pid = board.pid.load(kRelaxed);
    engine.membership_epoch = board.membership_epoch.load(kRelaxed);
    if (engine.runs) engine.remark = board.notice.text();
    engine.window = board.window.load(kRelaxed);
    engine.counters = values_of(board.counters, rmem::udp::kUdpCounterNames.size());
    for (unsigned n = 0; n < ring.config().nodes; ++n) {
        engine.members[n] = (board.members[n / 64].load(kRelaxed) >> n % 64 & 1) != 0;
        const auto& view = board.nodes[n];
        if (n == ring.own_node() || view.incarnation.load(kRelaxed) == 0) continue;
        engine.peers.push_back({n, view.batches_applied.load(kRelaxed),
                                view.round_trip_ns.load(kRelaxed),
                                view.clock_error_ns.load(kRelaxed)});
    }
    return engine;
}

NodeState state_of(const EngineSample& engine) {
    if (!engine.runs) return engine.membership_epoch == 0 ? NodeState::absent : NodeState::down;
    if (engine.pid != 0 && process_of(engine.pid).is_stopped()) return NodeState::stopped;
    return engine.is_member() ? NodeState::up : NodeState::joining;
}

/// The view of the nodes here on one that is elsewhere.
NodeState state_by_others(const RingSample& sample, unsigned node) {
    NodeState state = NodeState::absent;
    for (const NodeSample& here : sample.nodes) {
        if (!here.engine) continue;
        if (here.engine->is_member() && here.engine->members[node]) return NodeState::up;
        for (const PeerSample& peer : here.engine->peers) {
            if (peer.node == node) state = NodeState::down;
        }
    }
    return state;
}

/// The segment of another node of a ring over several hosts: that node's, and its measurements of
/// the others.
void add(RingSample& sample, RingSample&& other) {
    sample.has_members = sample.has_members || other.has_members;
    sample.stays = sample.stays || other.stays;
    for (std::size_t r = 0; r < sample.ranks.size(); ++r) {
        if (knows_better(other.ranks[r], sample.ranks[r]))
            sample.ranks[r] = std::move(other.ranks[r]);
    }
    for (std::size_t n = 0; n < sample.nodes.size(); ++n) {
        NodeSample& node = sample.nodes[n];
        if (other.nodes[n].is_here) {
            node = std::move(other.nodes[n]);
        } else if (!node.is_here) {
            node.propagation.add(other.nodes[n].propagation);
        }
    }
}

}  // namespace

RingSample sample_of(const Ring& ring) {
    RingSample sample;
    sample.exists = true;
    sample.config = ring.config();
    sample.bound_ns = sample.config.bound_ns != 0
                          ? sample.config.bound_ns
                          : rmem::bound_ns(sample.config.timing, sample.config.nodes);
    sample.has_members = ring.has_members();
    sample.stays = ring.stays();
    for (unsigned r = 0; r < sample.config.ranks; ++r) sample.ranks.push_back(rank_of(ring, r));
    const bool is_remote = sample.config.is_remote();
    for (unsigned n = 0; n < sample.config.nodes; ++n) {
        const rmem::NodeSlot& slot = ring.node(n);
        NodeSample& node = sample.nodes.emplace_back();
        node.is_here = !is_remote || n == ring.own_node();
        // relaxed is enough: as above
        node.is_present = slot.present.load(std::memory_order_relaxed) != 0;
        node.link = values_of(slot.link, rmem::kLinkCounterNames.size());
        node.propagation = HistogramSample(slot.propagation);
        node.lateness = HistogramSample(slot.lateness);
        if (is_remote && node.is_here) node.engine = engine_of(ring);
        if (node.is_here)
            node.state = is_remote ? state_of(*node.engine) : state_by_ranks(sample, n);
    }
    for (unsigned seat = sample.config.ranks; seat < ring.seats(); ++seat) {
        const rmem::RankSlot& slot = ring.rank(seat);
        // relaxed is enough, twice: as above
        const unsigned n = slot.node.load(std::memory_order_relaxed);
        if (n >= sample.config.nodes || !ring.is_alive(seat)) continue;
        const std::uint32_t pid = slot.pid.load(std::memory_order_relaxed);  // enough: as above
        NodeSample& node = sample.nodes[n];
        sample.config.is_keeper(seat) ? node.keeper = pid : node.guests.emplace_back(pid);
        if (!is_remote && node.state != NodeState::stopped) node.state = NodeState::up;
    }
    return sample;
}

void add_munet(RingSample& sample) {
    const bool had_munet =
        std::any_of(sample.ranks.begin(), sample.ranks.end(), [](const RankSample& rank) {
            return !rank.ports[ports::port_block(billboard::Class::munet)].empty();
        });
    for (unsigned n = 0; n < sample.nodes.size(); ++n)
        sample.nodes[n].munet = munet_sample(sample.config.name, n, had_munet);
}

void RingSampler::find_segments() {
    std::vector<std::string> names;
    for (const std::string& found : rmem::Segment::list()) {
        if (found == name_ || found.substr(0, found.rfind('@')) == name_) names.push_back(found);
    }
    std::vector<std::shared_ptr<Ring>> rings;
    for (const std::string& name : names) {
        const auto old = std::find_if(rings_.begin(), rings_.end(), [&](const auto& ring) {
            return ring->segment_name() == name && ring->is_linked();
        });
        try {
            rings.push_back(old != rings_.end() ? *old : open_read_only(name));
        } catch (const rmem::Error& error) {
            if (error.code() != rmem::Errc::no_such_ring && rmem::Segment::exists(name)) throw;
        }
    }
    // Of nodes with other settings, which cannot hear each other, the first one's ring is shown.
    std::erase_if(rings, [&](const auto& ring) {
        return ring->config().hash() != rings.front()->config().hash();
    });
    rings_ = std::move(rings);
}

RingSample RingSampler::sample(std::int64_t now) {
    find_segments();
    RingSample sample;
    for (const auto& ring : rings_) {
        RingSample one = sample_of(*ring);
        sample.exists ? add(sample, std::move(one)) : void(sample = std::move(one));
    }
    sample.at_ns = now;
    for (unsigned n = 0; n < sample.nodes.size(); ++n) {
        NodeSample& node = sample.nodes[n];
        if (node.is_here) continue;
        node.state = state_by_others(sample, n);
        node.link.clear();  // it counts on its own host
    }
    add_munet(sample);
    return sample;
}

std::span<const std::byte> RingSampler::bank(unsigned node) const {
    for (const auto& ring : rings_) {
        if (node >= ring->config().nodes) break;
        if (ring->config().is_remote() && ring->own_node() != node) continue;
        return {ring->bank(node), ring->config().bank_bytes()};
    }
    return {};
}

}  // namespace tools
