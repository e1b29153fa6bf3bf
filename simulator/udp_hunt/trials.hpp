// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Faults of a ring that is whole and at rest, one at a time, so that the right outcome is known:
///
///   * a node stops for longer than the dead time-out, with its clock or without, while the others
///     write: it goes, they stay
///   * the ring falls in two, or a second one is formed apart; both sides write, and the links
///     between them are mended one by one: of two rings the older one stands, of two parts of one
///     the greater
///   * somebody who has recorded all datagrams plays them again, in any mix, to nodes of another
///     session: nothing happens
///
/// In each, the nodes that stand are never dropped, and in the end all banks are what theirs were.
/// Thread safety: none.

#include "rmem/base/random.hpp"
#include "simulator/udp_hunt/world.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace simulator::udp {

/// The tests of the hunt have one done that is not the seed's.
inline constexpr FaultKind kTrials[] = {FaultKind::pause, FaultKind::apart, FaultKind::replay};

class Trials {
public:
    /// All outlive it. `write`: the node writes something, if it can.
    Trials(const Scenario& scenario, World& world, Findings& findings,
           std::function<void(unsigned node)> write);

    void run(FaultKind kind);

private:
    using Nodes = std::uint32_t;  ///< a bit each
    static bool has(Nodes nodes, unsigned node) { return (nodes >> node & 1U) != 0; }
    Nodes all() const { return (1U << scenario_.nodes) - 1; }

    void pause();
    void apart();
    void replay();

    void write_for(std::int64_t span_ns, Nodes nodes);
    void form_apart(Nodes nodes);
    Nodes standing_of(Nodes some) const;
    void cut(Nodes some);
    void mend(Nodes some);
    void begin_session(Nodes nodes);
    void play(std::int64_t span_ns);
    bool run_until_whole(std::int64_t within_ns, const char* what);
    std::vector<std::uint32_t> bank_of(Nodes nodes) const;
    void expect_to_stand(Nodes nodes, const std::vector<std::uint32_t>& bank, const char* what);

    const Scenario& scenario_;
    World& world_;
    Findings& findings_;
    std::function<void(unsigned node)> write_;
    rmem::Random random_;
    std::vector<std::uint64_t> drops_before_;
};

}  // namespace simulator::udp
