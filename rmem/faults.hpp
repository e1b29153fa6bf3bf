// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Faults on purpose: what RMEM_FAULTS says, and what it means for one writer.
///
///     RMEM_FAULTS='seed=7; delay:node=1,by=200us,count=5,after=10; cut:cable=1,at=5ms,until=20ms'
///
///   seed=<n>     starts the random choices (`share`); 1 if not given
///   delay:       a node's writes reach its card later          by=<time>  (required, up to 4 s)
///   lose:        a node's writes are lost before the wire
///       of these two:  node=<n> (all), after=<writes> (0), count=<writes> (all), share=<percent>% (100%)
///   cut:         a cable is cut               cable=<n> (required: from node n to its successor),
///                                             ring=0|1|both (0)
///   bypass:      a node is out of the ring    node=<n> (required)
///       of these two:  at=<time> (0), until=<time> (for ever), since the making of the ring
///
/// Items are separated by `;`, blanks around them are ignored. `after` and `count` count the writes that
/// one rank hands to the link; of several delays that hit one write, the sum counts.
/// All members must be given the same: wire faults happen in every member's model of the wire.
///
/// Thread safety: values. Reproducible: equal seeds and equal writes give equal faults; each rank
///   draws its own sequence.
/// Errors: `Error(bad_fault)`, whose sentence names the item and what can stand there.

#include "rmem/error.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace rmem {

/// A fault that a writer does to its own writes.
struct WriteFault {
    static constexpr std::uint32_t kAllNodes = UINT32_MAX;

    bool lose = false;  ///< else: delay
    std::uint32_t node = kAllNodes;
    std::uint32_t delay_ns = 0;
    std::uint64_t after = 0;
    std::uint64_t count = UINT64_MAX;
    std::uint64_t share = UINT64_MAX;  ///< hit if a random 64-bit number does not exceed it
};

/// A change of the wire at a time since the ring was made.
struct WireFault {
    enum class Kind : std::uint8_t { cable, node };

    Kind kind = Kind::cable;
    bool up = false;  ///< false: cut or bypassed; true: mended or taken in again
    std::uint32_t ring = 0;
    std::uint32_t place = 0;  ///< the cable's first node, or the node
    std::int64_t at_ns = 0;
};

struct FaultPlan {
    std::uint64_t seed = 1;
    std::vector<WriteFault> writes;
    std::vector<WireFault> wire;  ///< in the order of their times

    bool empty() const noexcept { return writes.empty() && wire.empty(); }

    /// `nodes`: how many the ring has, which bounds the numbers of nodes and cables.
    RMEM_API static FaultPlan parse(std::string_view spec, std::uint32_t nodes);
};

/// What a plan does to the writes of one rank, in their order.
class RMEM_API WriteFaults {
public:
    struct Verdict {
        std::uint32_t delay_ns = 0;
        bool lose = false;
        std::uint32_t injected = 0;  ///< faults that hit this write
    };

    WriteFaults(const FaultPlan& plan, std::uint32_t node, std::uint32_t rank);

    bool empty() const noexcept { return faults_.empty(); }
    /// Decides on the next write.
    Verdict next() noexcept;

private:
    struct Active {
        WriteFault fault;
        std::uint64_t seen = 0;
        std::uint64_t hit = 0;
    };

    bool hits(Active& active) noexcept;

    std::vector<Active> faults_;
    std::uint64_t random_;
};

}  // namespace rmem
