// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Bulk that is on its way here, and where it goes: at most one announced at a time of each rank,
/// since a rank's bulk follows its packet at once.
///
/// Thread safety: one thread at a time. Progress: in take(), which does not wait.
/// Errors: the sink's. Trust: more bytes than were announced are the transport's to refuse.
/// Invariants, checked where the transport is simulated
///   (B1) Bulk is announced of a rank only when nothing of its former bulk is left.
///   (B2) A sink gets as many bytes as were announced, and then is_whole(), unless it was dropped.

#include "billboard/bbp.h"
#include "rmem/base/check.hpp"
#include "rmem/link/memory.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace mpi_channel {

inline constexpr std::size_t kScratchBytes = 16 * 1024;

/// The part that bulk is for.
class BulkSink {
public:
    /// Where the next bytes of that rank go; empty: nowhere.
    virtual std::span<std::byte> room(unsigned from) = 0;
    virtual void arrived(unsigned from, std::size_t bytes) = 0;
    virtual void is_whole(unsigned from) = 0;

protected:
    ~BulkSink() = default;
};

template <class T>
class IncomingBulk {
public:
    explicit IncomingBulk(T& transport)
        : transport_(transport), ranks_(transport.ranks()), scratch_(kScratchBytes) {}

    /// The rank has announced this number of bytes; null: they go nowhere.
    void begin(unsigned from, std::size_t bytes, BulkSink* sink) {
        // Over a port this is the sender's word: a wrong one breaks its own messages.
        if constexpr (rmem::is_simulated<T>) RMEM_CHECK_IF(true, ranks_[from].left == 0);
        ranks_[from] = {sink, bytes};
        transport_.expect_bulk(from, bytes);
    }
    [[nodiscard]] bool is_due(unsigned from) const noexcept { return ranks_[from].left != 0; }
    /// The rest goes nowhere.
    void drop(unsigned from) noexcept { ranks_[from].sink = nullptr; }
    void drop(unsigned from, const BulkSink& sink) noexcept {
        if (ranks_[from].sink == &sink) drop(from);
    }
    /// Whatever arrives of that rank from now on goes nowhere.
    void drop_for_ever(unsigned from) {
        constexpr std::size_t kWithoutEnd = std::numeric_limits<std::size_t>::max() / 2;
        ranks_[from] = {nullptr, kWithoutEnd};
        transport_.expect_bulk(from, kWithoutEnd);
    }
    /// All that is here of it.
    void take(unsigned from);

private:
    struct Rank {
        BulkSink* sink = nullptr;
        std::size_t left = 0;
    };

    T& transport_;
    std::vector<Rank> ranks_;
    std::vector<std::byte> scratch_;  ///< for what goes nowhere
};

template <class T>
void IncomingBulk<T>::take(unsigned from) {
    Rank& rank = ranks_[from];
    while (rank.left != 0) {
        std::span<std::byte> room;
        if (rank.sink != nullptr) room = rank.sink->room(from);
        if (room.empty()) room = scratch_;
        std::size_t size = 0;
        const int result =
            transport_.recv_from_channel(room.first(std::min(room.size(), rank.left)), from, &size);
        if (result != BBP_OK || size == 0) return;
        rank.left -= size;
        if (rank.sink != nullptr) rank.sink->arrived(from, size);
    }
    if (BulkSink* sink = std::exchange(rank.sink, nullptr)) sink->is_whole(from);
}

}  // namespace mpi_channel
