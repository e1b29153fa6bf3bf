// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/membership.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/fence.hpp"
#include "rmem/base/word_block.hpp"
#include "rmem/ring/applied.hpp"
#include "rmem/ring/bank.hpp"
#include "rmem/ring/delivery_board.hpp"
#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/touched_part.hpp"
#include "rmem/ring/write_log.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <vector>

namespace rmem {

namespace {

constexpr std::int64_t kClaimNs = 10'000'000;
constexpr std::size_t kPage = 4096;  // parts with memory are whole pages

std::uint64_t oldest_of(Ring& ring, unsigned rank) {
    return LogReader(ring.log(rank)).oldest();
}

/// Whether a rank other than `except` has joined the node and is alive.
bool has_residents(const Ring& ring, unsigned node, unsigned except) noexcept {
    const NodeSlot& slot = ring.node(node);
    for (unsigned r = 0; r < ring.seats(); ++r) {
        // relaxed is enough: the engine's lock orders the residents of a node; for other nodes it
        // is a hint, and a node that is wrongly taken for alive has a bank that is old, not wrong
        const auto incarnation = slot.resident[r].load(std::memory_order_relaxed);
        if (r == except || incarnation == 0) continue;
        // relaxed is enough: as above
        if (ring.rank(r).incarnation.load(std::memory_order_relaxed) != incarnation) continue;
        if (ring.is_alive(r)) return true;
    }
    return false;
}

std::optional<unsigned> find_source(const Ring& ring, unsigned node) {
    for (unsigned n = 0; n < ring.config().nodes; ++n) {
        if (n != node && is_node_alive(ring, n)) return n;
    }
    return std::nullopt;
}

/// A node that was in the ring, for one whose bank lacks what logs need not have: the banks of
/// those that have left hold what was delivered to them.
std::optional<unsigned> find_left_source(Ring& ring, unsigned node) {
    for (unsigned n = 0; n < ring.config().nodes; ++n) {
        if (n == node || !is_delivered_to(ring.node(n))) continue;
        bool has_all = true;
        for (unsigned r = 0; r < ring.seats(); ++r) {
            has_all = has_all && applied_of(ring, n, r) >= oldest_of(ring, r);
        }
        if (has_all) return n;
    }
    return std::nullopt;
}

/// What neither of the two has ever touched is zeros in both, and stays without memory. That is not
/// looked for in a new target, which is zeros, or as level_banks() has left it.
void copy_bank(Ring& ring, unsigned from, unsigned to, bool is_new) {
    const std::size_t size = ring.config().bank_bytes();
    TouchedPart source(ring, from), target(ring, to);
    std::array<std::byte, kPage> page;
    for (std::size_t at = 0;;) {
        at = is_new ? source.begin(at) : std::min(source.begin(at), target.begin(at));
        if (at >= size) return;
        const std::size_t bytes = std::min(page.size(), size - at);
        load_block(page.data(), ring.bank(from) + at, bytes);
        // Nobody reads this bank before the rank has joined.
        store_block(ring.bank(to) + at, page.data(), bytes);
        at += bytes;
    }
}

/// True if no log was reused under the copy, nor the source taken in again.
bool copy_node(Ring& ring, unsigned from, unsigned to, bool is_new) {
    const unsigned ranks = ring.seats();
    NodeSlot& target = ring.node(to);
    const auto& present = ring.node(from).present;
    // (5) - this acquire-load synchronizes-with the acq_rel adds (3) and (4): then it is whole
    const std::uint32_t before = present.load(std::memory_order_acquire);
    if (is_in_part(before)) return false;
    for (unsigned r = 0; r < ranks; ++r) {
        const std::uint64_t position = applied_of(ring, from, r);
        // relaxed is enough: writers that miss it reuse what we then find overwritten, and we
        // repeat
        target.applied[r].store(position, std::memory_order_relaxed);
    }
    copy_bank(ring, from, to, is_new);
    for (unsigned r = 0; r < ranks; ++r) {
        // relaxed is enough: stored by this thread
        if (oldest_of(ring, r) > target.applied[r].load(std::memory_order_relaxed)) return false;
    }
    // relaxed is enough: the logs' heads that were just read order it
    return present.load(std::memory_order_relaxed) == before;
}

/// What ranks of the node have written last, before they were killed: their own bank had it first,
/// and the copy need not have it yet. In the order of its times, as the others apply it.
void restore_own(Ring& ring, unsigned node) {
    struct Next {
        LogReader log;
        LogReader::Entry entry;
    };
    std::vector<Next> logs;
    const std::size_t size = ring.config().bank_bytes();
    const auto has_next = [size](Next& next) {
        if (next.log.peek(next.entry) != LogReader::Found::record) return false;
        const LogRecord& record = next.entry.record;
        const std::uint64_t bytes = std::uint64_t{record.words} * kWordBytes;
        return bytes <= size && record.offset <= size - bytes;  // others the engine refuses
    };
    for (unsigned r = 0; r < ring.seats(); ++r) {
        const RankSlot& slot = ring.rank(r);
        // relaxed is enough, throughout: a rank's node is stored before its records, and the
        // engine's lock orders `applied`
        const bool is_resident = slot.node.load(std::memory_order_relaxed) == node &&
                                 slot.incarnation.load(std::memory_order_relaxed) != 0;
        if (!is_resident) continue;
        // What they had not logged is gone with the former bank: nobody has it. relaxed is enough:
        // its user is dead
        ring.rank(r).writer.log_end.store(Applying::kNotOwn, std::memory_order_relaxed);
        Next next{LogReader(ring.log(r)), {}};
        next.log.seek(ring.node(node).applied[r].load(std::memory_order_relaxed));  // enough: above
        if (has_next(next)) logs.push_back(next);
    }
    while (!logs.empty()) {
        const auto first = std::min_element(logs.begin(), logs.end(), [](auto& a, auto& b) {
            return a.entry.record.written_ns < b.entry.record.written_ns;
        });
        const LogRecord& record = first->entry.record;
        if ((record.flags & LogRecord::kMeLast) == 0)
            static_cast<void>(first->log.copy_words(first->entry, ring.bank(node) + record.offset));
        first->log.pass(first->entry);
        if (!has_next(*first)) logs.erase(first);
    }
}

/// A writer that waits for its write to be due may store it into this bank: for some microseconds,
/// unless its process is stopped.
void await_claims(const Ring& ring, unsigned own) {
    const std::int64_t end = now_ns() + kClaimNs;
    for (unsigned r = 0; r < ring.seats(); ++r) {
        const LogHeader& log = ring.log(r).header();
        // (2) - this acquire-load synchronizes-with the release-store rmem/link/ring/delivery.cpp
        // (9)
        while (r != own && log.deliverer.load(std::memory_order_acquire) != 0 && ring.is_alive(r) &&
               now_ns() < end) {
            ::sched_yield();
        }
    }
}

/// How much of all logs a bank has; one that is there in part has nothing to give.
std::uint64_t progress_of(const Ring& ring, unsigned node) {
    std::uint64_t all = 0;
    // relaxed is enough: no rank takes part
    if (is_in_part(ring.node(node).present.load(std::memory_order_relaxed))) return all;
    for (unsigned r = 0; r < ring.seats(); ++r) {
        all += applied_of(ring, node, r);
    }
    return all;
}

}  // namespace

void level_banks(Ring& ring) {
    unsigned newest = 0;
    for (unsigned n = 1; n < ring.config().nodes; ++n) {
        if (progress_of(ring, n) > progress_of(ring, newest)) newest = n;
    }
    for (unsigned n = 0; n < ring.config().nodes; ++n) {
        if (progress_of(ring, n) == progress_of(ring, newest)) continue;
        static_cast<void>(copy_node(ring, newest, n, false));
    }
}

bool take_in(Ring& ring, unsigned node, unsigned rank) {
    NodeSlot& slot = ring.node(node);
    const bool anew = !has_residents(ring, node, rank);
    if (anew) {
        const bool lacks = !is_delivered_to(slot);
        // relaxed is enough: the engine's lock orders it
        const std::uint32_t former = slot.present.load(std::memory_order_relaxed);
        // relaxed is enough, here and for `applied`: the engine's lock orders those of the node,
        // and `present` (3) the writers
        for (auto& resident : slot.resident) resident.store(0, std::memory_order_relaxed);
        for (unsigned r = 0; r < ring.seats(); ++r) {
            // The writes that it has applied before it was left are in the bank; applied again,
            // they could undo newer ones.
            const auto before =
                slot.applied[r].load(std::memory_order_relaxed);  // enough: as above
            slot.applied[r].store(std::max(before, oldest_of(ring, r)),
                                  std::memory_order_relaxed);  // enough: as above
        }
        // (3) - this acq_rel add synchronizes-with the acquire-loads rmem/link/ring/memory.cpp (4),
        // rmem/link/ring/memory.cpp (5), rmem/ring/applied.hpp (2) and (5): from now on writers
        // wait for this node
        slot.present.fetch_add(lacks && !is_in_part(former) ? 1 : 2, std::memory_order_acq_rel);
        ring.delivery().note_change();
        heavy_fence();  // from now on writers leave what they append to the engines
        if (ring.config().timing.instant == 0) await_claims(ring, rank);
        // A search for touched parts of the bank before this one ends here.
        // relaxed is enough: the value is not used
        static_cast<void>(reinterpret_cast<const std::atomic<std::uint32_t>*>(ring.bank(node))
                              ->load(std::memory_order_relaxed));
        const auto copy = [&](unsigned source) {
            // relaxed is enough, for both: the fence has ended what was delivered to this node
            if (!is_in_part(slot.present.load(std::memory_order_relaxed)))
                slot.present.fetch_add(1, std::memory_order_relaxed);  // enough: as above
            RMEM_CHECK(!is_delivered_to(slot));
            // What programs have stored into the former bank by themselves is gone with it.
            if (slot.keeps_twin.exchange(0, std::memory_order_relaxed) != 0)  // enough: as above
                ring.delivery().twins.fetch_sub(1, std::memory_order_relaxed);
            return copy_node(ring, source, node, former == 0);
        };
        auto source = find_source(ring, node);
        while (source && !copy(*source)) {
            source = find_source(ring, node);  // it may have died
        }
        if (!source && lacks) {
            source = find_left_source(ring, node);
            if (source) static_cast<void>(copy(*source));
        }
        if (source) restore_own(ring, node);
    }
    return anew;
}

void settle_in(Ring& ring, unsigned node, unsigned rank, std::uint32_t incarnation) noexcept {
    NodeSlot& slot = ring.node(node);
    // relaxed is enough: the engine's lock orders it
    if (is_in_part(slot.present.load(std::memory_order_relaxed))) {
        // (4) - this acq_rel add synchronizes-with the acquire-loads rmem/ring/applied.hpp (2) and
        // (5)
        slot.present.fetch_add(1, std::memory_order_acq_rel);
    }
    // relaxed is enough: the engine's lock orders it, and a source is known by (4)
    slot.resident[rank].store(incarnation, std::memory_order_relaxed);
}

bool is_node_alive(const Ring& ring, unsigned node) noexcept {
    return has_residents(ring, node, ring.seats());
}

void take_out(Ring& ring, unsigned node, unsigned rank) noexcept {
    // relaxed is enough: the engine's lock orders it
    ring.node(node).resident[rank].store(0, std::memory_order_relaxed);
}

}  // namespace rmem
