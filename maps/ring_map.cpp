// SPDX-License-Identifier: Apache-2.0
#include "maps/ring_map.hpp"

#include "maps/difference.hpp"
#include "maps/map_file.hpp"
#include "maps/map_text.hpp"
#include "maps/pack.hpp"
#include "rmem/base/environment_variable.hpp"
#include "rmem/error.hpp"
#include "rmem/ring/map_text.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace maps {

namespace {

constexpr std::size_t kKept = 4;  // of a process

/// The maps that were read last, by what they were read from.
class Kept {
public:
    SharedMap of(const std::string& from, const std::function<SharedMap()>& read) {
        if (const SharedMap map = find(from)) return map;
        const SharedMap map = read();
        const std::lock_guard lock(mutex_);
        kept_.emplace_front(from, map);
        if (kept_.size() > kKept) kept_.pop_back();
        return map;
    }

private:
    SharedMap find(const std::string& from) {
        const std::lock_guard lock(mutex_);
        const auto found = std::find_if(kept_.begin(), kept_.end(),
                                        [&](const auto& one) { return one.first == from; });
        return found == kept_.end() ? nullptr : found->second;
    }

    std::mutex mutex_;
    std::deque<std::pair<std::string, SharedMap>> kept_;
};

Kept& kept() {
    static Kept all;
    return all;
}

[[noreturn]] void refuse_map(const rmem::Ring& ring, const std::string& sentence) {
    throw rmem::Error(rmem::Errc::bad_map,
                      fmt::format("ring '{}' {}", ring.config().name, sentence));
}

/// 0 says that there is none.
std::uint64_t mark_of(const Map& map) {
    return std::max<std::uint64_t>(map.hash(), 1);
}

SharedMap read_from(const rmem::Ring& ring, std::uint64_t hash) {
    const std::string text = rmem::map_text(ring);
    if (text.empty()) {
        if (auto map = map_setting(); map && mark_of(*map) == hash) return map;
        refuse_map(ring, "has a map that is too large to be in it; set RMEM_MAP to its file");
    }
    auto map = std::make_shared<Map>(map_of(text, "the map of ring " + ring.config().name));
    if (mark_of(*map) != hash)
        refuse_map(ring, "has a map that was damaged; `rmem clean` removes it");
    return map;
}

void check_room(const rmem::Ring& ring, const Map& map) {
    const rmem::RingConfig& config = ring.config();
    if (const std::uint64_t end = end_of(map); end > config.user_bytes) {
        refuse_map(ring,
                   fmt::format("has {:#x} bytes of memory, and its map needs {:#x}; give it more "
                               "(RMEM_SIZE, --size)",
                               config.user_bytes, end));
    }
    if (map.ring.nodes > config.nodes) {
        refuse_map(ring, fmt::format("has {} nodes, and its map is for {}; give it as many "
                                     "(RMEM_NODES, --nodes)",
                                     config.nodes, map.ring.nodes));
    }
}

}  // namespace

std::uint64_t end_of(const Map& map) noexcept {
    std::uint64_t end = 0;
    for (const Variable& one : map.variables()) {
        if (one.is_placed()) end = std::max(end, one.offset + map.bytes_of(one.type));
    }
    return end;
}

SharedMap shared_map(const std::string& path) {
    struct stat status {};
    // One that is not there is refused when it is read.
    static_cast<void>(::stat(path.c_str(), &status));
    return kept().of(fmt::format("{} {} {} {}", path, status.st_ino, status.st_size,
                                 status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec),
                     [&] {
                         auto map = std::make_shared<Map>(read_map(path));
                         pack(*map);
                         return map;
                     });
}

SharedMap map_setting() {
    const char* path = rmem::environment_setting("RMEM_MAP");
    return path == nullptr ? nullptr : shared_map(path);
}

SharedMap map_of(const rmem::Ring& ring) {
    const std::uint64_t hash = rmem::map_hash(ring);
    if (hash == 0) return nullptr;
    return kept().of(fmt::format("{} {} {:x}", ring.segment_name(), ring.header().made_ns, hash),
                     [&] { return read_from(ring, hash); });
}

void give_map(const rmem::Ring& ring, const Map& map) {
    const std::uint64_t hash = mark_of(map);
    if (rmem::map_hash(ring) == 0) {
        check_room(ring, map);
        if (rmem::put_map(ring, hash, file_of(map))) return;
    }
    const std::uint64_t there = rmem::map_hash(ring);
    if (there == hash) return;
    std::string first = "its text is not in the ring";
    if (const SharedMap other = rmem::map_text(ring).empty() ? nullptr : map_of(ring)) {
        const auto found = differences(*other, map, "there", "here");
        if (!found.empty()) first = found.front();
    }
    refuse_map(ring, fmt::format("has another map: {}; take that one (`rmem map show`), or another "
                                 "ring",
                                 first));
}

void give_owners(const rmem::Ring& ring, const Map& map, rmem::OwnerMode mode) {
    using Kind = rmem::ByteOwner::Kind;
    std::vector<rmem::OwnedRange> ranges;
    for (const Variable& one : map.variables()) {
        const Kind kind = one.owner.kind == Owner::Kind::node   ? Kind::node
                          : one.owner.kind == Owner::Kind::rank ? Kind::rank
                                                                : Kind::anybody;
        if (!one.is_placed() || (kind == Kind::anybody && !map.ring.has_canaries)) continue;
        ranges.push_back({one.offset,
                          map.bytes_of(one.type),
                          {kind, static_cast<std::uint16_t>(one.owner.number)}});
    }
    if (!rmem::Owners::put(ring, mode, ranges, map.ring.has_canaries) &&
        rmem::Owners::mode_of(ring) != mode)
        refuse_map(ring, "looks after owners in another way; take that, or another ring");
}

SharedMap agreed_map(const rmem::Ring& ring) {
    if (const SharedMap own = map_setting()) {
        give_map(ring, *own);
        return own;
    }
    return map_of(ring);
}

}  // namespace maps
