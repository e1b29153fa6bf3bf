// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Faults on purpose: the plan of RMEM_FAULTS, and its effect on one writer.
///
///     RMEM_FAULTS='seed=7; delay:node=1,by=200us,count=5,after=10; cut:cable=1,at=5ms,until=20ms'
///     RMEM_FAULTS='drop:share=1%; hold:by=200us,share=5%; part:nodes=0-2,at=1s,until=3s'
///
///   seed=<n>     starts the random choices (`share`); 1 if not given
/// Of writes:
///   delay:       a node's writes reach its card later          by=<time>  (required, up to 4 s)
///   lose:        a node's writes are lost before the wire; not on udp, whose banks would stay
///                unequal
///       of these two:  node=<n> (all), after=<writes> (0), count=<writes> (all), share=<percent>%
///                      (100%)
/// Of the wire, on links ring and sim:
///   cut:         a cable is cut               cable=<n> (required: from node n to its successor),
///                                             ring=0|1|both (0)
///   bypass:      a node is out of the ring    node=<n> (required)
///       of these two:  at=<time> (0), until=<time> (forever), since the making of the ring
/// Of datagrams, on link udp, done by the node that receives them
///   (rmem/link/udp/datagram_faults.hpp):
///   drop:        they are lost
///   duplicate:   they come twice              by=<time> (0): the second one that much later
///   hold:        they come later              by=<time> (required); with a share, others overtake
///                them
///   corrupt:     one bit of them, any, is flipped
///       of these four: from=<nodes>, to=<nodes> (all), after=<datagrams> (0), count=<datagrams>
///                      (all), share=<percent>% (100%), at=<time> (0), until=<time> (forever)
///   part:        nothing passes between nodes=<nodes> (required) and the others, either way
///                (one way: drop:from=…,to=…)   at=<time> (0), until=<time> (forever)
///       at and until count from the node's own start
///
/// Items are separated by `;`, blanks around them are ignored. <nodes> is `3`, `0-2` or `0-2+5`.
/// `after` and `count` count what the item could hit: the writes that one rank hands to the link,
/// the datagrams from those nodes at that time that one node receives. Of several delays that hit
/// one write, the sum counts.
/// All members must be given the same: wire faults happen in every member's model of the wire.
///
/// Thread safety: values. Reproducible: equal seeds and equal writes, or equal datagrams at equal
///   times, give equal faults; each rank, and each node for its datagrams, draws its own sequence.
/// Errors: `Error(bad_fault)`, whose sentence names the item and the valid values.

#include "rmem/base/link_kind.hpp"
#include "rmem/base/node_set.hpp"
#include "rmem/base/time.hpp"
#include "rmem/error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace rmem {

/// Which of the events that a fault could hit it does hit.
struct FaultChoice {
    std::uint64_t after = 0;
    std::uint64_t count = UINT64_MAX;
    std::uint64_t share = UINT64_MAX;  ///< hit if a random 64-bit number does not exceed it
};

/// Chooses: to be asked once for each event, in their order.
class RMEM_API FaultChooser {
public:
    explicit FaultChooser(const FaultChoice& choice) noexcept : choice_(choice) {}

    /// Whether the next event is hit; draws from `random` when chance decides.
    [[nodiscard]] bool hits(std::uint64_t& random) noexcept;

private:
    FaultChoice choice_;
    std::uint64_t seen_ = 0;
    std::uint64_t hit_ = 0;
};

/// A fault that a writer does to its own writes.
struct WriteFault : FaultChoice {
    static constexpr std::uint32_t kAllNodes = UINT32_MAX;

    bool lose = false;  ///< else: delay
    std::uint32_t node = kAllNodes;
    std::uint32_t delay_ns = 0;
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

/// A fault that a node does to the datagrams that it receives. The hunt's network has each kind
/// before `part`, too (simulator/udp_hunt/network.cpp).
struct DatagramFault : FaultChoice {
    enum class Kind : std::uint8_t { drop, duplicate, hold, corrupt, part, kCount };

    Kind kind = Kind::drop;
    udp::NodeSet from;  ///< all kMaxNodes unless named: then strangers' datagrams are meant, too
    udp::NodeSet to;    ///< part is two faults, one each way
    std::int64_t by_ns = 0;
    std::int64_t at_ns = 0;  ///< since the node's start, as until_ns; this one is the first outside
    std::int64_t until_ns = kNever;
};
inline constexpr std::size_t kDatagramFaultKinds =
    static_cast<std::size_t>(DatagramFault::Kind::kCount);
inline constexpr std::array<const char*, kDatagramFaultKinds> kDatagramFaultNames = {
    "drop", "duplicate", "hold", "corrupt", "part"};

struct FaultPlan {
    std::uint64_t seed = 1;
    std::vector<WriteFault> writes;
    std::vector<WireFault> wire;  ///< in the order of their times
    std::vector<DatagramFault> datagrams;

    bool empty() const noexcept { return writes.empty() && wire.empty() && datagrams.empty(); }

    /// `nodes`: how many the ring has, which bounds the numbers of nodes and cables. An item that
    /// `link` cannot do is refused.
    RMEM_API static FaultPlan parse(std::string_view spec, std::uint32_t nodes, LinkKind link);
};

/// The effect of a plan on the writes of one rank, in their order.
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
        FaultChooser chooser;
    };

    std::vector<Active> faults_;
    std::uint64_t random_;
};

}  // namespace rmem
