// SPDX-License-Identifier: Apache-2.0
#include "tools/run/cleaning.hpp"

#include "ports/munet/counter_board.hpp"
#include "rmem/link/fabric/bootstrap.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/segment.hpp"
#include "tools/watch/ring_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace tools {

namespace {

constexpr std::uint64_t kAllBytes = std::uint64_t{1} << 40;

/// Ours in any version, or begun and never written because its maker was killed.
bool is_ours(const rmem::Segment& segment) {
    const std::span<const std::byte> start(segment.data(),
                                           std::min(segment.size(), rmem::kSegmentHeaderBytes));
    if (std::all_of(start.begin(), start.end(), [](std::byte b) { return b == std::byte{0}; })) {
        return true;
    }
    std::uint64_t magic = 0;
    if (start.size() < sizeof magic) return false;
    std::memcpy(&magic, start.data(), sizeof magic);
    return magic == rmem::kSegmentMagic;
}

/// A maker holds the life-cycle lock from before the name can be found until the ring is whole, and
/// a process that takes part another: an object that nobody has locked is nobody's.
Cleaned remove_unused(const std::string& name, const std::string& why, bool dry_run) {
    const auto segment = rmem::Segment::open(name, {.only_looks = true});
    if (!segment) return {name, true, "it is gone already"};
    if (segment->is_locked(0, kAllBytes)) return {name, false, "a live process holds a lock on it"};
    // A caller that only looks takes no lock: somebody who cleans at the same time would take it
    // for a live process.
    if (dry_run) return {name, true, why};
    // Held while we remove it, so that nobody joins it, or replaces it by a new ring of that name,
    // meanwhile.
    const auto lock = segment->try_lock(rmem::kLifeCycleByte);
    if (!lock || segment->is_locked(rmem::kLifeCycleByte + 1, kAllBytes) || !segment->is_linked())
        return {name, false, "somebody has just come to use it"};
    rmem::Segment::remove(name);
    rmem::fabric::Bootstrap::forget(name);
    return {name, true, why};
}

/// The fault of the ring: the sentence of `problem` advises programs that join.
const char* kind_of(const rmem::Segment& segment, const rmem::Error& problem) {
    if (!is_ours(segment)) return "it is no ring, and nobody uses it";
    return problem.code() == rmem::Errc::version_mismatch
               ? "a ring of another version, and nobody is left in it"
               : "a ring that was begun and never finished";
}

/// An object that is no ring of this version.
Cleaned clean_broken(const std::string& name, const rmem::Error& problem, bool force,
                     bool dry_run) {
    const char* kind = "";
    {
        const auto segment = rmem::Segment::open(name, {.only_looks = true});
        if (segment && !is_ours(*segment) && !force) {
            return {name, false, fmt::format("{}; --force removes it anyway", problem.what())};
        }
        if (segment) kind = kind_of(*segment, problem);
    }
    return remove_unused(name, kind, dry_run);
}

std::string members_of(const rmem::Ring& ring) {
    const unsigned alive = live_ranks(ring);
    if (alive == 0) return "a live process has joined it (such as the `rmem run` that made it)";
    return fmt::format("{} of its {} ranks {} alive", alive, ring.config().ranks,
                       alive == 1 ? "is" : "are");
}

}  // namespace

Cleaned clean_ring(const std::string& name, bool force, bool dry_run, Staying staying) {
    try {
        try {
            const auto ring = rmem::Ring::observe(name);
            if (ring->has_members()) return {name, false, members_of(*ring)};
            if (ring->stays() && staying == Staying::keep) {
                return {name, false,
                        fmt::format("`rmem make` made it to stay; `rmem clean {}` removes it",
                                    ring->config().name)};
            }
        } catch (const rmem::Error& problem) {
            const bool is_broken = problem.code() == rmem::Errc::foreign_segment ||
                                   problem.code() == rmem::Errc::version_mismatch;
            if (!is_broken) throw;
            return clean_broken(name, problem, force, dry_run);
        }
        return remove_unused(name, "nobody is left in it", dry_run);
    } catch (const rmem::Error& problem) {
        return {name, false, problem.what()};
    }
}

void forget_addresses(const std::vector<std::string>& rings) {
    for (const std::string& ring : rings) {
        if (!rmem::Segment::exists(ring)) rmem::fabric::Bootstrap::forget(ring);
    }
}

bool is_left_over(const std::string& name) {
    if (!rmem::Segment::exists(name)) return false;
    try {
        return !rmem::Ring::observe(name)->stays();
    } catch (const rmem::Error&) {  // half-made, or gone by now
        return rmem::Segment::exists(name);
    }
}

Cleaned clean_munet(const std::string& name, bool dry_run) {
    try {
        const bool was_there = ports::munet::CounterBoard::remove(name, dry_run);
        return {name, true, was_there ? "its daemon has ended" : "they are gone already"};
    } catch (const rmem::Error& problem) {
        return {name, false, problem.what()};
    }
}

}  // namespace tools
