// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The writes of every node, and where they came: checks the promises of the udp link's core.
///
///   * a node applies the batches of each incarnation of another node once, in order, intact,
///     nothing between two left out
///   * never again those of a former incarnation, once it applies those of a newer one
///   * at quiet, all banks are equal, and each word has a value that was written to it; when nobody
///     was given up or died, the last one
///
/// Each word written has a value of its own, so that a value tells its writer, its place, and the
/// values before it.
/// Thread safety: none.

#include "rmem/link/udp/protocol/datagram.hpp"
#include "simulator/hunt/findings.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace simulator::udp {

class Ledger {
public:
    Ledger(unsigned nodes, std::size_t bank_words, Findings& findings);

    /// The value for the next word that this incarnation of the node writes.
    std::uint32_t next_value(unsigned node, std::uint64_t incarnation, std::uint64_t place);
    /// That incarnation of a reader has applied a batch.
    void applies(unsigned reader, std::uint64_t reader_incarnation, unsigned origin,
                 const rmem::udp::Batch& batch);
    /// The banks of all nodes are these, and nothing is under way. `nothing_ended`: no node or
    /// membership has.
    void check_quiet(const std::vector<std::span<const std::uint32_t>>& banks, bool nothing_ended);

private:
    struct Written {
        std::uint32_t incarnation = 0;  ///< place in incarnations_
        std::uint32_t index = 0;        ///< of the words of that incarnation
        std::uint64_t place = 0;
    };
    struct IncarnationState {
        unsigned node = 0;
        std::uint64_t incarnation = 0;
        std::uint32_t words = 0;
    };
    /// A reader's position in an origin's writes.
    struct Position {
        static constexpr std::uint32_t kNone = UINT32_MAX;
        std::uint32_t incarnation = kNone;
        std::uint32_t next = 0;
    };
    struct Reader {
        std::uint64_t incarnation = 0;
        std::vector<Position> of;
    };

    void applies_word(unsigned reader, unsigned origin, std::uint64_t place, std::uint32_t value);

    Findings& findings_;
    std::vector<Written> written_;  ///< by value; there is no value 0
    std::vector<IncarnationState> incarnations_;
    std::vector<std::uint32_t> current_;  ///< of each node: place in incarnations_
    std::vector<std::uint32_t> last_;     ///< value of each word
    std::vector<Reader> readers_;
};

}  // namespace simulator::udp
