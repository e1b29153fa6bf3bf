// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Memory that other ranks may read or write, by the keys under which it was registered.
///
/// A region is named from afar by its key and an address: the bytes' own, or (`by_offset`) counted
/// from its beginning. Nothing outside a region is ever found, nor one whose access was not
/// granted.
/// Thread safety: one thread at a time. Errors: results; std::bad_alloc.

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace mpi_channel {

enum class RemoteStatus : std::uint8_t {
    ok,
    no_key,      ///< nothing is registered by it
    denied,      ///< outside the region, or an access that it does not grant
    unreadable,  ///< the other process's memory: send the bytes
    gone,        ///< the other rank
};

/// Part of another rank's region, as it is named from afar.
struct RemotePlace {
    std::uint64_t key = 0;
    std::uint64_t address = 0;
    std::uint64_t extent = 0;
};

struct Region {
    std::byte* base = nullptr;
    std::size_t size = 0;
    bool by_offset = false;
    bool may_read = false;
    bool may_write = false;
    void* owner = nullptr;
};

class Regions {
public:
    struct Found {
        RemoteStatus status = RemoteStatus::no_key;
        std::byte* memory = nullptr;  ///< when it is ok
        void* owner = nullptr;
    };

    /// False if the key is taken.
    bool add(std::uint64_t key, const Region& region) {
        return regions_.emplace(key, region).second;
    }
    void remove(std::uint64_t key) { regions_.erase(key); }
    [[nodiscard]] Found find(const RemotePlace& place, bool writes) const;

private:
    std::unordered_map<std::uint64_t, Region> regions_;
};

inline Regions::Found Regions::find(const RemotePlace& place, bool writes) const {
    const auto it = regions_.find(place.key);
    if (it == regions_.end()) return {};
    const Region& region = it->second;
    const auto base = reinterpret_cast<std::uintptr_t>(region.base);
    // An address below the region becomes a large number.
    const std::uint64_t offset = region.by_offset ? place.address : place.address - base;
    const bool is_inside = place.extent <= region.size && offset <= region.size - place.extent;
    if (!is_inside || !(writes ? region.may_write : region.may_read))
        return {RemoteStatus::denied, nullptr, nullptr};
    return {RemoteStatus::ok, reinterpret_cast<std::byte*>(base + offset), region.owner};
}

}  // namespace mpi_channel
