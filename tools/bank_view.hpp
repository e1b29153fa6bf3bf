// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A bank as a bystander sees it: what a node's memory holds, without taking part in the ring.
///
/// Looking disturbs nobody, and works on rings whose members are stuck or dead. On links with a bank
/// per node a bank shows what its node's engine has applied so far.
/// Errors: `rmem::Error`: no_such_ring, bad_rank for the node, invalid_argument for a range.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rmem/ring.hpp"

namespace tools {

class BankView {
public:
    BankView(const std::string& ring, unsigned node);

    const rmem::Ring& ring() const { return *ring_; }
    unsigned node() const { return node_; }
    /// Bytes of the user's memory, and of the whole bank with the system's regions above it.
    std::uint64_t user_bytes() const { return ring_->config().user_bytes; }
    std::uint64_t bank_bytes() const { return ring_->config().bank_bytes(); }

    /// Throws when [offset, offset + bytes) is not all in the bank.
    void check(std::uint64_t offset, std::uint64_t bytes) const;
    /// The bytes as they are now, word by word.
    std::vector<std::byte> read(std::uint64_t offset, std::uint64_t bytes) const;

private:
    std::shared_ptr<rmem::Ring> ring_;
    unsigned node_;
};

/// Throws when the ring has no such node.
void check_node(const rmem::RingConfig& config, unsigned node);

}  // namespace tools
