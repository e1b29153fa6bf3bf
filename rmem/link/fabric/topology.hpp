// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Which nodes are near each other, and who passes on to whom what comes from afar.
///
///     # a line for each rack: the numbers of its nodes
///     rack 0-7
///     rack 8-15 40
///     rack 16-31
///     fan-out chain          # or tree, the default
///
/// A node of no rack is a rack by itself. Without a file all nodes are one rack: each datagram goes
/// to each.
///
/// Terms: rack, head: docs/design/fabric-link.md. Stop: one message of a sender, to a node of its
///   own rack or to a head, which passes it on.
/// Invariants: each node is in one rack; what a plan reaches, each node once: the own rack's other
///   nodes, and each other rack by one stop or, in a chain, by the stop before it.
/// Thread safety: plain values. Errors: Error(bad_environment) with the line and what is allowed.
/// Trust: a file of at most kUserFileBytes; numbers are bounded by the ring.

#include "rmem/error.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rmem::fabric {

class RMEM_API Topology {
public:
    enum class FanOut : std::uint8_t { tree, chain };

    /// One rack.
    explicit Topology(unsigned nodes);
    /// `name`: of the file, for sentences.
    static Topology parse(const std::string& text, const std::string& name, unsigned nodes);
    static Topology read(const std::string& path, unsigned nodes);

    unsigned racks() const noexcept { return static_cast<unsigned>(members_.size()); }
    unsigned rack_of(unsigned node) const noexcept { return rack_of_[node]; }
    const std::vector<unsigned>& members(unsigned rack) const noexcept { return members_[rack]; }
    FanOut fan_out() const noexcept { return fan_out_; }

    struct Stop {
        unsigned node = 0;
        unsigned racks = 0;  ///< that it is to serve, its own first; 0: it passes nothing on
        friend bool operator==(const Stop&, const Stop&) = default;
    };
    using Reaches = std::function<bool(unsigned node)>;
    /// What a node sends of its own, in order of ring from it. A rack none of whose nodes can be
    /// reached is tried by all of them.
    std::vector<Stop> plan(unsigned from, const Reaches& reaches) const;
    /// What a head sends of what came with a mark for that number of racks.
    std::vector<Stop> pass_on(unsigned head, unsigned racks, const Reaches& reaches) const;

private:
    void add_heads(std::vector<Stop>& stops, unsigned after, unsigned racks,
                   const Reaches& reaches) const;

    std::vector<unsigned> rack_of_;
    std::vector<std::vector<unsigned>> members_;
    FanOut fan_out_ = FanOut::tree;
};

}  // namespace rmem::fabric
