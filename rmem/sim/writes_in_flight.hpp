// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The writes that are on the wire, with their bytes: a pool that is reused.
///
/// A write stays until it has come round, or until a later one of its origin has: writes of one
/// origin keep their order, so then no node waits for it any more. Those of an origin that died on
/// the way stay.
/// Invariant: what comes round is in flight; so each write is forgotten once.
/// Thread safety: none. It allocates only while it grows to the load's size.

#include "rmem/base/check.hpp"
#include "rmem/base/limits.hpp"
#include "rmem/wire/queue.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace rmem::sim {

struct WriteInFlight {
    std::uint64_t number = 0;  ///< the origin's own count, from 1
    std::uint64_t offset = 0;
    std::int64_t stored_ns = 0;
    std::uint32_t bytes = 0;
    std::uint32_t rank = 0;
    std::uint16_t origin = 0;
    bool interrupts = false;       ///< it carries the interrupt bit
    bool shows_at_return = false;  ///< the own bank has it only then: write-me-last
    bool repeats = false;          ///< a fault: it comes by again
    WordPart part = kWholeWord;    ///< of its one word, if it has not all
    std::vector<std::byte> data;

    void store_into(std::byte* bank) const {
        for (std::size_t i = 0; part != kWholeWord && i < kWordBytes; ++i) {
            if ((part >> i & 1) != 0) bank[offset + i] = data[i];
        }
        if (part == kWholeWord) std::memcpy(bank + offset, data.data(), bytes);
    }
};

class WritesInFlight {
public:
    explicit WritesInFlight(std::size_t nodes) : of_origin_(nodes) {}

    /// A place for the next write of `origin`; its fields are to be filled in.
    std::uint32_t add(std::uint16_t origin) {
        if (free_.empty()) {
            free_.push_back(static_cast<std::uint32_t>(all_.size()));
            all_.emplace_back();
        }
        const std::uint32_t index = free_.back();
        free_.pop_back();
        Origin& from = of_origin_[origin];
        all_[index].origin = origin;
        all_[index].number = ++from.count;
        from.out.push_back(index);
        return index;
    }
    /// It stays where it is until the next add().
    WriteInFlight& operator[](std::uint64_t index) { return all_[index]; }

    /// This write of its origin has come round: it and all before it are forgotten.
    void forget_through(std::uint32_t index) {
        Origin& from = of_origin_[all_[index].origin];
        bool is_last = false;
        for (; !is_last && !from.out.empty(); from.out.pop_front()) {
            is_last = from.out.front() == index;
            free_.push_back(from.out.front());
        }
        RMEM_CHECK(is_last);
    }
    /// How many writes of the origin there have been.
    std::uint64_t count_of(std::uint16_t origin) const { return of_origin_[origin].count; }

private:
    struct Origin {
        std::uint64_t count = 0;
        rmem::detail::NumberedRing<std::uint32_t> out;  ///< not yet forgotten, oldest first
    };
    std::vector<WriteInFlight> all_;
    std::vector<std::uint32_t> free_;
    std::vector<Origin> of_origin_;
};

}  // namespace rmem::sim
