// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A ring's shared memory at one instant, as plain values: counters, states, times.
///
/// From two of them come rates (tools/watch/ring_view.hpp), from one the metrics
/// (tools/watch/ring_metrics.hpp). Of a ring over several hosts there is one segment per node of
/// this host; a sample has all of them together, and these nodes' data on the others.
/// Trust: the values come out of memory that others write. They are bounded where they are indices;
/// otherwise they are only shown.
/// Invariants, executed (check()): there are as many ranks and nodes as the configuration says, and
/// each index is of one of them.

#include "rmem/ring/config.hpp"
#include "rmem/ring/counters.hpp"
#include "rmem/ring/node_board.hpp"
#include "tools/watch/histogram_sample.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tools {

/// In the order of the counters' list.
using CounterValues = std::vector<std::uint64_t>;

template <std::size_t Size>
CounterValues values_of(const rmem::CounterBlock<Size>& block, std::size_t count) {
    CounterValues values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = block.get(i);
    return values;
}
/// Whether any is not zero.
inline bool any_of(const CounterValues& values) {
    return std::any_of(values.begin(), values.end(), [](std::uint64_t v) { return v != 0; });
}

struct RankSample {
    unsigned node = 0;
    /// "alive", "stopped", "dead", "left", "absent", "elsewhere" or "lost". Alive and dead are told
    /// by the rank's lock.
    std::string state = "absent";
    unsigned pid = 0;
    std::string command;  ///< of its process, if that is there still
    std::uint32_t incarnation = 0;
    CounterValues link, protocol;
    /// In the order of ports::kPortNames; empty: the rank has not used that port.
    std::array<CounterValues, rmem::kPortBlocks> ports{};

    bool is_alive() const { return state == "alive" || state == "stopped" || state == "elsewhere"; }
};

/// The data of a node of link udp on this host on another one.
struct PeerSample {
    unsigned node = 0;
    std::uint64_t batches = 0;
    std::int64_t round_trip_ns = 0;
    std::int64_t clock_error_ns = -1;  ///< -1: its clock is not known
};

/// The engine of a node of link udp on this host.
struct EngineSample {
    bool runs = false;
    rmem::udp::EngineKind kind = rmem::udp::EngineKind::none;
    unsigned pid = 0;
    std::uint32_t membership_epoch = 0;  ///< odd: it is a member
    std::uint32_t window = 0;
    std::bitset<rmem::kMaxNodes> members;  ///< as it sees them
    CounterValues counters;                ///< UdpCounter
    std::vector<PeerSample> peers;
    std::string remark;  ///< about others that it refuses, or does not reach

    bool is_member() const { return runs && membership_epoch % 2 == 1; }
};

/// The MU-Net daemon of a node on this host (ports/munet/counter_board.hpp).
struct MunetSample {
    bool runs = false;
    unsigned pid = 0;
    unsigned active = 0;                          ///< endpoints
    CounterValues node;                           ///< NodeCounter
    std::map<unsigned, CounterValues> endpoints;  ///< by number, those that have counted anything
};

enum class NodeState {
    absent,   ///< never seen
    joining,  ///< link udp: not a member yet, or not any more
    up,
    stopped,  ///< its process is stopped by a signal or a debugger
    down,     ///< its processes died, or it cannot be heard
    left      ///< its processes have left
};
const char* name_of(NodeState state);

struct NodeSample {
    NodeState state = NodeState::absent;
    bool is_here = false;  ///< its bank is on this host
    bool is_present = false;
    unsigned keeper = 0;           ///< the process that keeps it on a link of this host; 0: none
    std::vector<unsigned> guests;  ///< programs beside its ranks
    CounterValues link;            ///< of its bank
    /// Of writes to its bank; of a node on another host: of its writes to the banks here.
    HistogramSample propagation;
    HistogramSample lateness;  ///< of its engine
    std::optional<EngineSample> engine;
    std::optional<MunetSample> munet;
};

struct RingSample {
    std::int64_t at_ns = 0;
    bool exists = false;       ///< there is a ring of the name; otherwise nothing else counts
    bool has_members = false;  ///< anybody takes part
    bool stays = false;        ///< it is kept when nobody does
    rmem::RingConfig config;
    std::int64_t bound_ns = 0;  ///< 0: none
    std::vector<RankSample> ranks;
    std::vector<NodeSample> nodes;

    void check() const;
};

}  // namespace tools
