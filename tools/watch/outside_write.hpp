// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Writes that come from no program of a ring, but from its operator: `rmem poke`, `rmem make`.
///
/// Invariant, executed: what is written lies in the user's memory.
/// Thread safety: one thread. Errors: `rmem::Error`: rank_taken where a node has no room for a
///   guest, timed_out when a member is stopped.

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
/// was: the given one; else on link udp the one here, on others the first that is alive. A guest of
/// the node writes it. Where no node is alive on link ring it is a store into every bank.
unsigned write_from_outside(const std::shared_ptr<rmem::Ring>& ring, std::optional<unsigned> node,
                            std::uint64_t offset, const std::vector<std::byte>& bytes);

/// A member's write, waiting some seconds for room.
void write_with_patience(rmem::Node& node, std::uint64_t offset, std::span<const std::byte> bytes,
                         rmem::WordPart part = rmem::kWholeWord);

/// Into every bank of a ring in which no rank is to be told.
void store_in_all_banks(const rmem::Ring& ring, std::uint64_t offset,
                        const std::vector<std::byte>& bytes);

}  // namespace tools
