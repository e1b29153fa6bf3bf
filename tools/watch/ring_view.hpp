// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The changes of a ring between two samples: rates, percentiles, and its members. Made for people
/// and for `--json`; it looks at nothing but the samples.
///
/// Counters that have become smaller have begun again, with a ring of the same name: all of them is
/// new.
/// Invariants, executed: the samples are in the order of time; an event has no more now than ever,
/// and somebody who has counted it.
/// Units: per second, nanoseconds, bytes.

#include "tools/watch/ring_sample.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tools {

/// Times of propagation. Zeros when none was measured.
struct TimesView {
    std::uint64_t count = 0, p50_ns = 0, p99_ns = 0, max_ns = 0;
};

/// A counter that is not part of the traffic: something was lost, sent again, refused, held up… And
/// each of a port that ranks have used.
struct EventView {
    /// One of event_kinds(), or a port's name.
    const char* kind;
    const char* name;
    const char* unit;
    const char* meaning;
    std::uint64_t total = 0, more = 0;  ///< since the ring was made, and since the first sample
    std::vector<unsigned> nodes;        ///< which have counted any, ascending
};

/// The MU-Net daemon of a node on this host.
struct MunetView {
    bool runs = false;
    unsigned pid = 0;
    unsigned endpoints = 0;     ///< that programs have now
    std::uint64_t backlog = 0;  ///< frames that wait for a link
};

struct NodeView {
    unsigned node = 0;
    NodeState state = NodeState::absent;
    bool is_here = false;
    unsigned ranks_alive = 0, ranks = 0;
    /// Of its programs, if they are on this host and their writes are counted.
    bool has_traffic = false;
    double writes = 0, bytes = 0;
    /// Of the billboard. On `direct` those of up to kInlineBytes are counted by samples
    /// (write_stamps.hpp).
    double messages = 0;
    bool has_messages = false;  ///< it has ever sent one that was counted
    /// Others' writes that reached its bank; of a node elsewhere: its batches that reached banks
    /// here.
    double applied = 0, batches = 0;
    double datagrams_sent = 0, datagrams_received = 0;  ///< link udp
    TimesView now, ever;
    std::uint64_t broken = 0, broken_more = 0;  ///< writes that the wire brought over the bound
    std::uint64_t late = 0, late_more = 0;  ///< writes over the bound by this host's fault alone
    /// Link udp, of a node here: to the farthest member; of one elsewhere: to it. 0: not known.
    std::int64_t round_trip_ns = 0;
    std::optional<MunetView> munet;
    std::string remark;  ///< of its engine, on link udp
};

struct RingView {
    bool exists = false, has_members = false, stays = false;
    std::string name, link, timing;
    std::uint64_t user_bytes = 0, bank_bytes = 0;
    std::int64_t elapsed_ns = 0;
    std::int64_t bound_ns = 0;  ///< 0: none
    unsigned nodes_up = 0, ranks_alive = 0, ranks = 0;
    bool has_wire = false;      ///< nodes are apart, in the order of their numbers
    bool is_remote = false;     ///< and on several hosts
    bool has_messages = false;  ///< of any node
    std::vector<NodeView> nodes;
    TimesView now, ever;
    std::uint64_t broken = 0, broken_more = 0, late = 0, late_more = 0;
    std::vector<EventView> events;  ///< those that are not zero, the kinds together
};

/// Of the kinds of events that any ring can have, in the order in which they are shown. Those of
/// ports come after.
std::vector<const char*> event_kinds();

RingView view_of(const RingSample& before, const RingSample& now);

}  // namespace tools
