// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The last batches of one stream: bodies by sequence, in places that are used again in turn.
///
/// Invariants: a body stays until another of the same place is put, that is one with a sequence
///   larger or smaller by a multiple of `places`. Sequences count from 1: 0 is an empty place.
/// Threads: one user at a time. Progress: put() and find() take the time of a copy and of a look;
///   memory is taken once, and used as it is written to.

#include "rmem/error.hpp"

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
    void clear() noexcept;

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

    std::vector<Entry> entries_;
    std::size_t most_bytes_;
    std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace rmem::udp
