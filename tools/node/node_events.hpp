// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The events of a node of the udp link, as sentences for a log: nodes and programs that come and
/// go, being dropped, broken bounds.
///
/// Found by comparing the node's segment with its state at the last look; so an event that comes
/// and goes between two looks may not be told.
/// Thread safety: one thread. Trust: the segment's numbers are only printed.

#include "rmem/ring/bound_violation.hpp"
#include "rmem/ring/ring.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tools {

class NodeEvents {
public:
    using Say = std::function<void(const std::string& sentence)>;

    /// The ring must outlive it.
    NodeEvents(const rmem::Ring& ring, Say say);
    void look(std::int64_t now);
    /// To be told in the next second's summary.
    void note(const rmem::BoundViolation& violation);
    /// How it is now, in one line.
    std::string status() const;

private:
    enum class End { none, left, died };
    /// The last process that had a rank here; pid 0: nobody.
    struct Program {
        std::uint32_t pid = 0;
        End end = End::none;
    };

    void look_at_epoch();
    void look_at_notice();
    void look_at_members();
    void look_at_rank(unsigned rank);
    void look_at_bound(std::int64_t now);
    Program program_of(unsigned rank) const;
    std::vector<unsigned> members() const;

    const rmem::Ring& ring_;
    const unsigned node_;
    Say say_;
    std::uint32_t epoch_ = 0;
    std::uint32_t notices_ = 0;
    std::vector<unsigned> members_;   ///< other than this node
    std::vector<Program> programs_;   ///< of each rank
    std::uint64_t violations_ = 0;    ///< that have been told
    std::uint64_t late_by_host_ = 0;  ///< as above
    rmem::BoundViolation worst_;
    std::int64_t next_bound_ns_ = 0;
};

}  // namespace tools
