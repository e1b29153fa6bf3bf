// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Writes that come from no program of a ring, but from its operator: `rmem poke`, `rmem make`.
///
/// Invariant, executed: what is written lies in the user's memory.
/// Thread safety: one thread. Errors: `rmem::Error`: not_permitted on link udp, rank_taken,
///   timed_out when a member is stopped.

#include "rmem/node.hpp"
#include "rmem/ring/ring.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tools {

/// Words in the user's memory of a ring that the caller has joined; returns the node whose write it
///   was.
///   direct  a store into the bank that all share, which raises interrupts as a write of that node
///   ring    a write of that node, made from the operator's seat, which is free when all ranks are
///           taken; while no rank is alive, a store into every bank
/// Without a node: the first that has a live rank.
unsigned write_from_outside(const std::shared_ptr<rmem::Ring>& ring, std::optional<unsigned> node,
                            std::uint64_t offset, const std::vector<std::byte>& bytes);

/// A member's write, waiting some seconds for room.
void write_with_patience(rmem::Node& node, std::uint64_t offset, std::span<const std::byte> bytes,
                         rmem::WordPart part = rmem::kWholeWord);

/// A member's write, made by a process that is this member for a moment. Returns when every live
/// node has it.
void write_as_member(const std::shared_ptr<rmem::Ring>& ring, rmem::Member member,
                     std::uint64_t offset, const std::vector<std::byte>& bytes);

/// Into every bank of a ring in which no rank is to be told.
void store_in_all_banks(const rmem::Ring& ring, std::uint64_t offset,
                        const std::vector<std::byte>& bytes);

}  // namespace tools
