// SPDX-License-Identifier: Apache-2.0
#include "bridge/table.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/hash.hpp"

#include <algorithm>

namespace bridge {

namespace {

using rmem::load;
using rmem::store;

constexpr std::uint32_t kSlotMagic = 0x544C5342;  // "BSLT"
constexpr std::size_t kChecksumAt = 4;
constexpr std::size_t kUseAt = 8;  // of what the checksum covers the first
constexpr std::size_t kStateAt = 9;
constexpr std::size_t kHopsAt = 10;
constexpr std::size_t kOffsetAt = 12;  // in words, as the next
constexpr std::size_t kWordsAt = 16;
constexpr std::size_t kHopAt = 20;
constexpr std::size_t kPathAt = 28;
static_assert(kPathAt + kMaxHops * sizeof(std::uint64_t) <= kBeatAt);

std::uint32_t checksum(std::span<const std::byte> slot) {
    const std::uint64_t value = rmem::Fnv1a().add(slot.subspan(kUseAt, kBeatAt - kUseAt)).value();
    return static_cast<std::uint32_t>(value ^ value >> 32);
}

bool overlaps(const Slot& slot, std::uint64_t offset, std::uint64_t bytes) {
    return slot.offset < offset + bytes && offset < slot.offset + slot.bytes;
}

bool has(const Path& path, std::uint64_t hop) {
    return std::find(path.begin(), path.end(), hop) != path.end();
}

}  // namespace

// ---- Slots

SlotBytes encoded(const Slot& slot) {
    SlotBytes bytes{};
    store(bytes.data(), kSlotMagic);
    bytes[kUseAt] = static_cast<std::byte>(slot.use);
    bytes[kStateAt] = static_cast<std::byte>(slot.state);
    const std::size_t hops = std::min(slot.path.size(), kMaxHops);
    store(bytes.data() + kHopsAt, static_cast<std::uint16_t>(hops));
    store(bytes.data() + kOffsetAt, static_cast<std::uint32_t>(slot.offset / kWordBytes));
    store(bytes.data() + kWordsAt, static_cast<std::uint32_t>(slot.bytes / kWordBytes));
    store(bytes.data() + kHopAt, slot.hop);
    for (std::size_t i = 0; i < hops; ++i)
        store(bytes.data() + kPathAt + i * sizeof(std::uint64_t), slot.path[i]);
    store(bytes.data() + kChecksumAt, checksum(bytes));
    return bytes;
}

std::optional<Slot> read_slot(std::span<const std::byte> bytes) {
    if (load<std::uint32_t>(bytes.data()) != kSlotMagic ||
        load<std::uint32_t>(bytes.data() + kChecksumAt) != checksum(bytes))
        return std::nullopt;
    const auto hops = load<std::uint16_t>(bytes.data() + kHopsAt);
    const auto use = static_cast<Slot::Use>(bytes[kUseAt]);
    const auto state = static_cast<Slot::State>(bytes[kStateAt]);
    if (use > Slot::Use::brings || state > Slot::State::refused || hops > kMaxHops)
        return std::nullopt;
    Slot slot;
    slot.use = use;
    slot.state = state;
    slot.offset = std::uint64_t{load<std::uint32_t>(bytes.data() + kOffsetAt)} * kWordBytes;
    slot.bytes = std::uint64_t{load<std::uint32_t>(bytes.data() + kWordsAt)} * kWordBytes;
    slot.hop = load<std::uint64_t>(bytes.data() + kHopAt);
    for (std::size_t i = 0; i < hops; ++i)
        slot.path.push_back(
            load<std::uint64_t>(bytes.data() + kPathAt + i * sizeof(std::uint64_t)));
    return slot;
}

StampBytes encoded(const Stamp& stamp) {
    StampBytes bytes{};
    store(bytes.data(), stamp.frames);
    store(bytes.data() + 4, stamp.hops);
    store(bytes.data() + 8, stamp.stored_wall_ns);
    store(bytes.data() + 16, stamp.age_us);
    store(bytes.data() + 20, stamp.error_us);
    return bytes;
}

Stamp read_stamp(std::span<const std::byte, kStampBytes> bytes) {
    return {load<std::uint32_t>(bytes.data()), load<std::uint32_t>(bytes.data() + 4),
            load<std::uint64_t>(bytes.data() + 8), load<std::uint32_t>(bytes.data() + 16),
            load<std::uint32_t>(bytes.data() + 20)};
}

// ---- Bridges that run

void TableWatch::look(std::span<const std::byte> table, std::int64_t now_ns) {
    RMEM_CHECK(table.size() % kSlotBytes == 0);
    const std::size_t slots = table.size() / kSlotBytes;
    seen_.resize(slots);
    live_.clear();
    for (std::size_t i = 0; i < slots; ++i) {
        const auto bytes = table.subspan(i * kSlotBytes, kSlotBytes);
        const auto beat = load<std::uint32_t>(bytes.data() + kBeatAt);
        Seen& seen = seen_[i];
        if (!seen.is_known || seen.beat != beat) seen = {beat, now_ns, true};
        if (now_ns - seen.since_ns >= kGoneNs) continue;
        auto slot = read_slot(bytes);
        if (slot && slot->use != Slot::Use::none) live_.push_back(std::move(*slot));
    }
}

// ---- Circles

Path path_to(std::span<const Slot> live, std::uint64_t offset, std::uint64_t bytes,
             std::uint64_t own) {
    Path path;
    for (const Slot& slot : live) {
        if (slot.use != Slot::Use::brings || slot.state == Slot::State::refused ||
            !overlaps(slot, offset, bytes))
            continue;
        for (const std::uint64_t hop : slot.path) {
            if (hop != own && !has(path, hop) && path.size() < kMaxHops) path.push_back(hop);
        }
    }
    path.push_back(own);
    RMEM_CHECK(path.size() <= kMaxHops + 1);
    return path;
}

const Slot* circle_through(std::span<const Slot> live, std::uint64_t offset, std::uint64_t bytes,
                           const Path& path, Slot::State state) {
    for (const Slot& slot : live) {
        if (slot.use != Slot::Use::takes || slot.state == Slot::State::refused ||
            !overlaps(slot, offset, bytes) || !has(path, slot.hop))
            continue;
        const bool is_open = state == Slot::State::open;
        const bool is_other_open = slot.state == Slot::State::open;
        const std::uint64_t own = path.back();
        if (own == slot.hop || (is_open == is_other_open ? slot.hop < own : is_other_open))
            return &slot;
    }
    return nullptr;
}

}  // namespace bridge
