// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Between which ranks bytes may go from memory to memory, as far as is known here.
///
/// Nothing may until use() and use_far(). A rank that could not read, or be read, once is not tried
/// again.
/// Thread safety: one thread at a time. Errors: results; std::bad_alloc from the constructor.

#include "mpi_channel/device/peer_memory.hpp"
#include "mpi_channel/settings.hpp"
#include "rmem/link/far_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mpi_channel {

class Reach {
public:
    explicit Reach(unsigned ranks) : ranks_(ranks) {}

    /// Messages of `least` to `most` bytes, and accesses of `least` bytes or more.
    void use(PeerMemory& peers, std::size_t least, std::size_t most) noexcept {
        peers_ = &peers;
        least_ = least;
        most_ = most;
    }
    /// Messages of several parts, and accesses, do not go that way.
    void use_far(rmem::FarMemory& far) noexcept { far_ = &far; }
    /// Null if there is none.
    [[nodiscard]] rmem::FarMemory* far() const noexcept { return far_; }
    /// Whether its progress is needed.
    [[nodiscard]] bool is_far_busy() const noexcept { return far_ != nullptr && far_->is_busy(); }
    [[nodiscard]] std::size_t least() const noexcept { return least_; }
    [[nodiscard]] std::size_t most() const noexcept { return most_; }

    /// Whether the other may read `size` bytes here.
    [[nodiscard]] bool may_be_read(unsigned by, std::size_t size) {
        return size >= least_ && !ranks_[by].cannot_read && peers_->reaches(by);
    }
    [[nodiscard]] bool cannot_read(unsigned rank) const { return ranks_[rank].cannot_read; }
    void found_no_reader(unsigned rank) { ranks_[rank].cannot_read = true; }

    /// Whether the other's memory may be read from here.
    [[nodiscard]] bool may_read(unsigned rank) {
        return peers_ != nullptr && !ranks_[rank].unreadable && peers_->reaches(rank);
    }
    [[nodiscard]] bool is_unreadable(unsigned rank) const { return ranks_[rank].unreadable; }
    void found_unreadable(unsigned rank) { ranks_[rank].unreadable = true; }
    /// After may_read(). False: what is in `to` is worth nothing.
    [[nodiscard]] bool read(unsigned rank, std::uint64_t address, std::span<std::byte> to) {
        return peers_->read(rank, address, to);
    }

private:
    struct Rank {
        bool cannot_read = false;
        bool unreadable = false;
    };

    PeerMemory* peers_ = nullptr;
    rmem::FarMemory* far_ = nullptr;
    std::size_t least_ = kNoGets, most_ = kNoGets;
    std::vector<Rank> ranks_;
};

}  // namespace mpi_channel
