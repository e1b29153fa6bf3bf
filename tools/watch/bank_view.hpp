// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A bank as an observer sees it: a node's memory, without taking part in the ring.
///
/// Looking disturbs nobody, and works on rings whose members are stuck or dead. On links with a
/// bank per node a bank shows what its node's engine has applied so far.
/// Errors: `rmem::Error`: no_such_ring, bad_rank for the node, invalid_argument for a range.

#include "rmem/ring/ring.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tools {

class BankView {
public:
    /// A ring and node as users name them: see named_segment() and chosen_node().
    BankView(const std::string& ring, std::optional<unsigned> node);

    const rmem::Ring& ring() const { return *ring_; }
    unsigned node() const { return node_; }
    /// Bytes of the user's memory, and of the whole bank with the system's regions above it.
    std::uint64_t user_bytes() const { return ring_->config().user_bytes; }
    std::uint64_t bank_bytes() const { return ring_->config().bank_bytes(); }

    /// Throws when [offset, offset + bytes) is not all in the user's memory, or with `system` in
    /// the bank.
    void check(std::uint64_t offset, std::uint64_t bytes, bool system) const;
    /// Says so on stderr where the bank lacks what others had written when this was called: nobody
    /// applies it there. Waits for somebody to do so, kLackNs at most.
    void warn_if_old() const;
    /// The bytes as they are now, word by word.
    std::vector<std::byte> read(std::uint64_t offset, std::uint64_t bytes) const;

private:
    static constexpr std::int64_t kLackNs = 200'000'000;
    [[nodiscard]] bool lacks_writes() const;

    std::shared_ptr<rmem::Ring> ring_;
    unsigned node_;
};

/// The bank that a user means by a ring's name and --node. Of a ring over several hosts each node
/// that is on this host has a segment: `rig@1`, or `rig` and --node 1, or `rig` alone where it is
/// the only one. Throws bad_rank for a node that is on another host.
std::string named_segment(const std::string& ring, std::optional<unsigned> node);

/// Whose bank: the given node's, checked; without one the first, or the one whose segment it is.
/// Throws bad_rank for a node that the ring does not have, or whose bank is not here.
unsigned chosen_node(const rmem::Ring& ring, std::optional<unsigned> node);

/// Throws invalid_argument when [offset, offset + bytes) is not all in the user's memory; `more` is
/// the end of the sentence.
void check_user_range(const rmem::RingConfig& config, std::uint64_t offset, std::uint64_t bytes,
                      const std::string& more);

/// Whether anybody may still write there: its members, or while it is kept those who come.
bool may_change(const rmem::Ring& ring);

/// Throws when the ring has no such node.
void check_node(const rmem::RingConfig& config, unsigned node);

}  // namespace tools
