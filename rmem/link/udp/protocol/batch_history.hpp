// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The last batches of one stream: bodies by sequence, in places that are used again in turn.
///
/// A place has a room in each of several tables, and a body lies in the smallest that it fits: so a
/// stream of short ones goes through few pages and lines. A page that is touched for the first time
/// takes the host 0.25 us, and a virtual one 15 to 50 us, which asks for memory in turn.
///
/// Invariants: a body stays until another of the same place is put, that is one with a sequence
///   larger or smaller by a multiple of `places`. Sequences count from 1: 0 is an empty place.
/// Threads: one user at a time. Progress: put() and find() take the time of a copy and of a look;
///   memory is taken once, and used as it is written to.

#include "rmem/error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace rmem::udp {

class RMEM_API BatchHistory {
public:
    /// `places`: a power of two. `most_bytes`: of one body.
    BatchHistory(std::uint32_t places, std::size_t most_bytes);

    std::uint32_t places() const noexcept { return static_cast<std::uint32_t>(entries_.size()); }
    std::size_t most_bytes() const noexcept { return most_bytes_; }

    /// False, and nothing changes, for a body that is larger than `most_bytes`.
    bool put(std::uint64_t sequence, std::span<const std::byte> body) noexcept;
    bool contains(std::uint64_t sequence) const noexcept {
        return entry(sequence).sequence == sequence;
    }
    /// Empty when it is not there.
    std::span<const std::byte> find(std::uint64_t sequence) const noexcept;

private:
    struct Entry {
        std::uint64_t sequence = 0;  ///< 0: none
        std::size_t bytes = 0;
    };
    std::size_t place_of(std::uint64_t sequence) const noexcept {
        return static_cast<std::size_t>(sequence & (entries_.size() - 1));
    }
    const Entry& entry(std::uint64_t sequence) const noexcept {
        return entries_[place_of(sequence)];
    }
    struct Table {
        std::size_t room;  ///< bytes of a place
        std::unique_ptr<std::byte[]> bytes;
    };
    std::byte* room_for(std::size_t place, std::size_t bytes) const noexcept;

    std::vector<Entry> entries_;
    std::size_t most_bytes_;
    std::array<Table, 3> tables_;  ///< the smallest rooms first
};

}  // namespace rmem::udp
