// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The last batches of one stream: bodies by sequence, in places that are used again in turn.
///
/// A place has a room in each of several tables for short bodies, and a body lies in the smallest
/// that it fits: so a stream of short ones goes through few pages and lines. A page that is touched
/// for the first time takes the host 0.25 us, and a virtual one 15 to 50 us, which asks for memory
/// in turn. Longer bodies lie one behind the other in a ring of bytes.
///
/// Invariants: a body stays until another of the same place is put, that is one with a sequence
///   larger or smaller by a multiple of `places`, or until `kept_bytes` bytes of longer bodies have
///   been put since. Sequences count from 1: 0 is an empty place.
/// Threads: one user at a time. Progress: put() and find() take the time of a copy and of a look;
///   memory is taken with the first body of a kind, and used as it is written to.

#include "rmem/error.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

namespace rmem::udp {

class RMEM_API BatchHistory {
public:
    /// `places`: a power of two. `most_bytes`: of one body.
    BatchHistory(std::uint32_t places, std::size_t most_bytes, std::size_t kept_bytes);

    std::uint32_t places() const noexcept { return places_; }
    std::size_t most_bytes() const noexcept { return most_bytes_; }

    /// False, and nothing changes, for a body that is larger than `most_bytes`, and without memory.
    bool put(std::uint64_t sequence, std::span<const std::byte> body) noexcept;
    bool contains(std::uint64_t sequence) const noexcept {
        if (!entries_) return false;
        const Entry& its = entry(sequence);
        return its.sequence == sequence && (its.bytes <= kMiddleBytes || end_ - its.begin <= room_);
    }
    /// Of a body that is there.
    std::size_t bytes(std::uint64_t sequence) const noexcept { return entry(sequence).bytes; }
    /// Empty when it is not there.
    std::span<const std::byte> find(std::uint64_t sequence) const noexcept;
    /// What has been taken; of its pages those are in use that were written to.
    std::size_t memory_bytes() const noexcept;

private:
    static constexpr std::size_t kShortBytes = 64;    // a word or two, or a message as short
    static constexpr std::size_t kMiddleBytes = 256;  // most messages that are no blocks

    struct Entry {
        std::uint64_t sequence;  ///< 0: none
        std::uint64_t begin;     ///< of one in the ring: in bytes put there since the first
        std::size_t bytes;
    };
    struct Free {
        void operator()(Entry* entries) const noexcept { std::free(entries); }
    };
    std::size_t place_of(std::uint64_t sequence) const noexcept {
        return static_cast<std::size_t>(sequence & (places_ - 1));
    }
    const Entry& entry(std::uint64_t sequence) const noexcept {
        return entries_[place_of(sequence)];
    }
    std::byte* bytes_of(const Entry& entry) const noexcept;
    bool take_memory_for(std::size_t bytes) noexcept;
    std::uint64_t begin_in_ring(std::size_t bytes) noexcept;

    std::uint32_t places_;
    std::size_t most_bytes_;
    std::size_t room_;       ///< of the ring
    std::uint64_t end_ = 0;  ///< of what was put there
    // Taken when something is put there, and no page is touched before.
    std::unique_ptr<Entry[], Free> entries_;
    std::unique_ptr<std::byte[]> short_, middle_, ring_;
};

}  // namespace rmem::udp
