// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/map_text.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/segment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace rmem {

namespace {

constexpr std::int64_t kLockNs = 10'000'000'000;  // others hold it for a few milliseconds
constexpr std::chrono::microseconds kPause{500};

SegmentHeader& segment_header(const Ring& ring) noexcept {
    return *reinterpret_cast<SegmentHeader*>(ring.segment().data());
}

std::byte* place_of(const Ring& ring) {
    return ring.segment().data() + SegmentLayout(ring.config()).map;
}

}  // namespace

ByteLock lock_life_cycle(const Ring& ring) {
    for (const Deadline end = Deadline::in(kLockNs);; std::this_thread::sleep_for(kPause)) {
        if (auto held = ring.segment().try_lock(kLifeCycleByte)) return std::move(*held);
        if (!end.passed(now_ns())) continue;
        throw Error(Errc::timed_out,
                    fmt::format("ring '{}' cannot get its map: a process that makes or joins it "
                                "makes no progress; if it is stopped, continue it, or end it",
                                ring.config().name));
    }
}

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
    const ByteLock held = lock_life_cycle(ring);
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
