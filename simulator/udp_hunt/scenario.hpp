// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One seed of the hunt on link udp or fabric: a few nodes, their writes, a network, and the faults
/// that meet them.
///
/// Thread safety: values. Errors: simulator/hunt/seeded.hpp's.

#include "simulator/hunt/findings.hpp"
#include "simulator/hunt/seeded.hpp"
#include "simulator/udp_hunt/network.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace simulator::udp {

/// The first are rmem::DatagramFault's: what many datagrams of a node meet for a while, and `part`.
enum class FaultKind : std::uint8_t {
    part = rmem::kDatagramFaultKinds - 1,  ///< some nodes and the others do not hear each other
    clog,         ///< a link lets nothing through for a while, and then all at once
    cut_one_way,  ///< one direction between two nodes, for a while
    cut_off,      ///< a node hears nobody and nobody hears it, for a while
    kill,         ///< a node dies, at once
    leave,        ///< it tells the others that it goes
    restart,      ///< one that is gone is started again (follows from kill and leave)
    late,         ///< a node is not there at the beginning, and joins now
    slow_reader,  ///< a node reads nothing for a while: its socket fills up
    stall,        ///< it does nothing at all for a while
    flood,        ///< it writes as much as there is room for
    // When all is well again one of these (simulator/udp_hunt/trials.hpp), so that it is known what
    // has to come of it
    pause,   ///< a node stops for longer than the dead time-out
    apart,   ///< two rings, or two parts of one, and both write
    replay,  ///< an attacker without a key sends datagrams of another session again
    count_
};

constexpr FaultKind kind_of(rmem::DatagramFault::Kind kind) {
    return static_cast<FaultKind>(kind);
}
const char* name_of(FaultKind kind) noexcept;

struct Fault {
    FaultKind kind{};
    unsigned target = 0;  ///< node
    unsigned other = 0;   ///< cut_one_way, clog: the node that hears nothing; part: nodes as bits
    unsigned at_message = 0;   ///< once this number has been written, or tried
    unsigned chance = 0;       ///< of a thousand datagrams
    std::int64_t time_ns = 0;  ///< how long
    bool comes_back = true;    ///< kill, leave: started again, after time_ns; else at the end
};

/// Of a node: no two clocks agree.
struct HostClock {
    std::int64_t offset_ns = 0;
    std::int64_t drift_ppm = 0;
    std::int64_t wall_offset_ns = 0;  ///< from which incarnations come
};

struct Scenario : Seeded<Scenario, Fault, 1000, 24> {
    static constexpr auto kFaultKinds = every<FaultKind>();
    static constexpr unsigned kMaxHosts = 5;

    unsigned nodes = 2;
    bool has_key = true;
    std::uint32_t most_batches = 64;  ///< of a history and window
    std::uint32_t socket_room = 256;  ///< datagrams of 1472 bytes
    /// Of the longest datagram that reaches each node.
    std::array<std::size_t, kMaxHosts> payloads{};
    std::uint64_t first_sequence = 1;  ///< of every stream
    std::int64_t pause_ns = 0;         ///< between two messages, at most
    Weather weather;
    std::array<HostClock, kMaxHosts> clocks{};
    /// A fabric carries what they send, and no socket (Network); the options of the run say so.
    bool is_fabric = false;

    static Scenario of_seed(std::uint64_t seed);
};

}  // namespace simulator::udp
