// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/map_text.hpp"

#include "rmem/base/check.hpp"
#include "rmem/ring/life_cycle.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/segment.hpp"

#include <algorithm>
#include <cstring>

namespace rmem {

namespace {

SegmentHeader& segment_header(const Ring& ring) noexcept {
    return *reinterpret_cast<SegmentHeader*>(ring.segment().data());
}

std::byte* place_of(const Ring& ring) {
    return ring.segment().data() + SegmentLayout(ring.config()).map;
}

}  // namespace

std::uint64_t map_hash(const Ring& ring) noexcept {
    // (1) - this acquire-load synchronizes-with the release-store (2): its text is there
    return segment_header(ring).map_hash.load(std::memory_order_acquire);
}

std::string map_text(const Ring& ring) {
    if (map_hash(ring) == 0) return {};
    // relaxed is enough: it came before the hash
    const std::uint64_t bytes = segment_header(ring).map_bytes.load(std::memory_order_relaxed);
    // What has no memory may have none left to get.
    const std::byte* const place = place_of(ring);
    const auto from = static_cast<std::size_t>(place - ring.segment().data());
    const std::size_t touched = ring.segment().next_untouched(from) - from;
    return {reinterpret_cast<const char*>(place), static_cast<std::size_t>(std::min<std::uint64_t>(
                                                      bytes, std::min(touched, kMaxMapBytes)))};
}

bool put_map(const Ring& ring, std::uint64_t hash, std::string_view text) {
    RMEM_CHECK(hash != 0);
    const ByteLock held =
        life_cycle_lock(ring.segment(), ring.segment_name(), Deadline::in(kDefaultJoinTimeoutNs));
    if (map_hash(ring) != 0) return false;
    if (text.size() > kMaxMapBytes) text = {};
    SegmentHeader& header = segment_header(ring);
    if (!text.empty()) {
        std::byte* const place = place_of(ring);
        ring.segment().reserve(place, text.size());
        std::memcpy(place, text.data(), text.size());
    }
    // relaxed is enough: the hash comes after it
    header.map_bytes.store(text.size(), std::memory_order_relaxed);
    // (2) - this release-store synchronizes-with the acquire-load (1)
    header.map_hash.store(hash, std::memory_order_release);
    return true;
}

}  // namespace rmem
