// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What an engine shows of itself on its node's board, to programs and tools of this host.
///
/// A counter goes on from where the segment's former engines have left it, and never back.
/// Thread safety: the engine's user; show_real_time() by any thread. Progress: nothing waits.

#include "rmem/link/carrier/carrier.hpp"
#include "rmem/link/udp/arrivals.hpp"
#include "rmem/link/udp/datagram_faults.hpp"
#include "rmem/link/udp/oddities.hpp"
#include "rmem/link/udp/protocol/core.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/ring.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace rmem::udp {

class RMEM_API EngineBoard {
public:
    /// The parts of the engine that are shown.
    struct Shown {
        const Core& core;
        const Carrier& carrier;
        const DatagramFaults& faults;
        const Arrivals& arrivals;
        const Oddities& oddities;
    };

    /// Shows that this process runs the engine. All of it outlives it.
    EngineBoard(Ring& ring, EngineKind kind, const Shown& shown);

    void show_members() noexcept;
    void show_nodes(std::int64_t now) noexcept;
    void show_counters() noexcept;
    /// Whether the engine's helper thread has real-time priority.
    void show_real_time(bool has) noexcept;
    /// What is odd, or wrong.
    void say(std::string text);

private:
    NodeBoard& board_;
    const unsigned nodes_;  ///< of the ring
    const Shown shown_;
    std::string said_;  ///< on the board
    /// What former engines of this segment had counted.
    std::array<std::uint64_t, static_cast<std::size_t>(UdpCounter::count_)> former_{};
};

}  // namespace rmem::udp
