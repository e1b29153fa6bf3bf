// SPDX-License-Identifier: Apache-2.0
#include "maps/pack.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/limits.hpp"
#include "rmem/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace maps {

namespace {

/// What is taken, and where there is room.
class Room {
public:
    Room(const Map& map, std::uint64_t end) : end_(end) {
        for (const Variable& one : map.variables()) {
            if (one.is_placed())
                taken_.emplace_back(one.offset, one.offset + map.bytes_of(one.type));
        }
        std::sort(taken_.begin(), taken_.end());
    }

    /// The first place of that many bytes at or behind `from`; what is taken is asked in ascending
    /// order.
    std::optional<std::uint64_t> take(std::uint64_t from, std::size_t bytes,
                                      std::size_t alignment) {
        std::uint64_t at = rmem::round_up(from, alignment);
        for (; next_ < taken_.size() && taken_[next_].first < at + bytes; ++next_)
            at = std::max(at, rmem::round_up(taken_[next_].second, alignment));
        if (bytes > end_ || at > end_ - bytes) return std::nullopt;
        return at;
    }

private:
    const std::uint64_t end_;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken_;
    std::size_t next_ = 0;  ///< those before it end before what is asked for
};

}  // namespace

void pack(Map& map) {
    struct Wish {
        Owner owner;
        double rate_hz;  ///< 0 below kOften
        std::size_t alignment;
        std::uint32_t index;
    };
    std::vector<Wish> wishes;
    const auto variables = map.variables();
    for (std::uint32_t i = 0; i < variables.size(); ++i) {
        const Variable& one = variables[i];
        if (one.is_placed()) continue;
        wishes.push_back({one.owner, one.rate_hz < kOften ? 0 : one.rate_hz,
                          map.natural_alignment_of(one.type), i});
    }
    std::sort(wishes.begin(), wishes.end(), [](const Wish& a, const Wish& b) {
        return std::tuple(a.owner, -a.rate_hz, -static_cast<std::int64_t>(a.alignment), a.index) <
               std::tuple(b.owner, -b.rate_hz, -static_cast<std::int64_t>(b.alignment), b.index);
    });
    Room room(map, map.ring.bytes != 0 ? map.ring.bytes : std::uint64_t{1} << 40);
    std::uint64_t end = 0;
    const Wish* last = nullptr;
    for (const Wish& wish : wishes) {
        const Variable& one = variables[wish.index];
        const bool is_of_last =
            last != nullptr && last->owner == wish.owner && last->rate_hz == wish.rate_hz;
        std::size_t alignment = wish.alignment;
        if (!is_of_last) alignment = std::max(alignment, rmem::kLineBytes);
        if (wish.owner.kind == Owner::Kind::nobody)
            alignment = std::max(alignment, rmem::kWordBytes);
        const std::size_t bytes = map.bytes_of(one.type);
        const auto at = room.take(end, bytes, alignment);
        if (!at) {
            throw rmem::Error(rmem::Errc::bad_map,
                              fmt::format("line {}: '{}' finds no {} bytes in a memory of {:#x}; "
                                          "give the ring more (bytes)",
                                          one.line, one.name, bytes, map.ring.bytes));
        }
        RMEM_CHECK(*at >= end);
        map.place(wish.index, *at);
        end = *at + bytes;
        last = &wish;
    }
}

}  // namespace maps
