// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/twin.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/fence.hpp"
#include "rmem/base/word_block.hpp"
#include "rmem/ring/bank.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/touched_part.hpp"
#include "rmem/ring/unsent.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace rmem {

namespace {

std::atomic<std::uint32_t>& word(std::byte* place) noexcept {
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(place);
}

bool is_storing(std::uint64_t count) noexcept {
    return count % 2 != 0;
}

/// The words of [offset, offset + bytes) that a write to `place` has, a bit each.
std::uint64_t words_at(std::uint64_t place, std::size_t offset, std::size_t bytes) noexcept {
    const std::size_t count = bytes / kWordBytes;
    const auto met = Applying::Place::of(place);
    const std::uint64_t first = met.offset / kWordBytes, here = offset / kWordBytes;
    const bool has_end = met.words != Applying::Place::kMaxWords;
    const std::uint64_t end = has_end ? first + met.words : ~std::uint64_t{0};
    if (first >= here + count || end <= here) return 0;
    const unsigned from = static_cast<unsigned>(first > here ? first - here : 0);
    const auto to = static_cast<unsigned>(std::min<std::uint64_t>(end - here, count));
    const std::uint64_t below_end = to == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << to) - 1;
    return below_end & ~((std::uint64_t{1} << from) - 1);
}

/// The words into which `applier` may have stored since its count was `before`, a bit each.
std::uint64_t words_met(const Applier& applier, std::uint64_t before, std::size_t offset,
                        std::size_t bytes) noexcept {
    constexpr std::uint64_t kAll = ~std::uint64_t{0};
    const std::size_t kept = applier.places.size();
    // (1) - this acquire-load synchronizes-with the release-stores rmem/ring/bank.hpp (1) and
    // rmem/ring/bank.hpp (2)
    const std::uint64_t after = applier.count.load(std::memory_order_acquire);
    const std::uint64_t first = before / 2, end = (after + 1) / 2;
    if (end - first >= kept) return kAll;
    std::uint64_t met = 0;
    for (std::uint64_t write = first; write != end; ++write) {
        // (3) - this acquire-load synchronizes-with the release-store rmem/ring/bank.hpp (3)
        const auto place = applier.places[write % kept].load(std::memory_order_acquire);
        met |= words_at(place, offset, bytes);
    }
    // (4) - this acquire-load synchronizes-with the release-stores rmem/ring/bank.hpp (1) and
    // rmem/ring/bank.hpp (2)
    const std::uint64_t now = applier.count.load(std::memory_order_acquire);
    return (now + 1) / 2 - first >= kept ? kAll : met;
}

}  // namespace

Twin::Twin(const Ring& ring, unsigned node, Deadline deadline)
    : ring_(ring), node_(node), bank_(ring.bank(node)), twin_(ring.twin(node)) {
    storers_.reserve(2 * std::size_t{ring.config().seats()} + 1);
    if (ring.config().is_remote())
        storers_.push_back({&ring.board().applier, kMaxSeats, false, 0, 0, 0});
    register_fences();
    hold_ = ring.try_lock_twin(node);
    if (!hold_) {
        throw Error(Errc::rank_taken,
                    fmt::format("another program of node {} of ring '{}' has its stores scanned "
                                "already, and one does; use RMEM_STORES=exact, or a rank of "
                                "another node",
                                node, ring.config().name));
    }
    ring_.segment().reserve(twin_, ring_.config().user_bytes);
    // relaxed is enough, throughout: await_appliers() makes them see it. One that was killed has
    // left both, and what differs.
    std::atomic<std::uint32_t>& kept = ring.node(node).keeps_twin;
    const bool is_whole = kept.load(std::memory_order_relaxed) == kWhole;
    if (!is_whole && kept.exchange(kBegun, std::memory_order_relaxed) == kNone)
        ring.delivery().twins.fetch_add(1, std::memory_order_relaxed);  // enough: as above
    if (await_appliers(deadline) && (is_whole || copy_bank(deadline))) {
        kept.store(kWhole, std::memory_order_relaxed);  // enough: as above
        return;
    }
    if (!is_whole) leave();  // else the next one goes on
    throw Error(Errc::timed_out,
                fmt::format("somebody was stopped in the middle of a write to ring '{}', so "
                            "stores into it cannot be scanned; continue that process "
                            "(SIGCONT), or end it",
                            ring_.config().name));
}

Twin::~Twin() {
    if (hold_->held()) leave();  // else it is of the parent of this process
}

/// Its memory stays with the segment where a program may still store into it.
void Twin::leave() noexcept {
    // relaxed is enough, twice: await_appliers() makes them see it
    ring_.node(node_).keeps_twin.store(0, std::memory_order_relaxed);
    ring_.delivery().twins.fetch_sub(1, std::memory_order_relaxed);
    if (await_appliers(Deadline::now()))
        ring_.segment().give_back(twin_, ring_.config().user_bytes);
}

/// True: nobody is in the middle of a write that has not seen keeps_twin as it is now.
bool Twin::await_appliers(Deadline deadline) noexcept {
    heavy_fence();
    meet_new();
    for (Storer& storer : storers_) {
        // (2) - this acquire-load synchronizes-with the release-store rmem/ring/bank.hpp (2)
        const std::uint64_t before = storer.applier->count.load(std::memory_order_acquire);
        if (!is_storing(before)) continue;
        // relaxed is enough: as the load before
        while (storer.applier->count.load(std::memory_order_relaxed) == before) {
            if (!is_alive(storer)) {
                storer.stopped = before;
                mend(storer);
                break;
            }
            if (deadline.passed(now_ns())) return false;
            ::sched_yield();
        }
    }
    return true;
}

/// Words that were never touched are zeros in both.
bool Twin::copy_bank(Deadline deadline) {
    const std::size_t size = ring_.config().user_bytes;
    TouchedPart touched(ring_, node_);
    for (std::size_t at = 0; (at = touched.begin(at)) < size;) {
        at = at / kBlockBytes * kBlockBytes;
        const std::size_t bytes = std::min(kBlockBytes, size - at);
        while (differs(at, bytes)) {
            const Seen seen = look(at, bytes);
            for (std::uint64_t left = seen.words; left != 0; left &= left - 1) {
                const auto i = static_cast<unsigned>(std::countr_zero(left));
                set_sent(at + i * kWordBytes, seen.before[i], seen.now[i]);
            }
            if (seen.words != 0) continue;
            if (seen.undecided == 0) break;  // what is left is of one that was killed
            if (deadline.passed(now_ns())) return false;
            ::sched_yield();
        }
        at += bytes;
    }
    return true;
}

/// Guests come while it is kept.
void Twin::meet_new() noexcept {
    for (const unsigned all = ring_.seats(); seats_ < all; ++seats_) {
        RankSlot& slot = ring_.rank(seats_);
        storers_.push_back({&slot.writer, seats_, !ring_.config().is_keeper(seats_), 0, 0, 0});
        storers_.push_back({&slot.engine_applier, seats_, false, 0, 0, 0});
    }
}

bool Twin::is_alive(const Storer& storer) const noexcept {
    return storer.seat != kMaxSeats ? ring_.is_alive(storer.seat) : ring_.has_engine();
}

/// Of one that is dead.
void Twin::mend(const Storer& storer) noexcept {
    if (!storer.is_writer) return mend_applier(ring_, *storer.applier);
    static_cast<void>(send_unsent_of_dead(ring_, storer.seat));  // without room the next time
}

bool Twin::differs(std::size_t offset, std::size_t bytes) const noexcept {
    return !is_same_block(bank_ + offset, twin_ + offset, bytes);
}

Twin::Seen Twin::look(std::size_t offset, std::size_t bytes) noexcept {
    meet_new();
    for (Storer& storer : storers_) {
        // (5) - this acquire-load synchronizes-with the release-store rmem/ring/bank.hpp (2) and
        // the release-exchange (6)
        storer.at_look = storer.applier->count.load(std::memory_order_acquire);
    }
    Seen seen;
    load_block(seen.now.data(), bank_ + offset, bytes);
    load_block(seen.before.data(), twin_ + offset, bytes);
    for (std::size_t i = 0; i < bytes / kWordBytes; ++i) {
        if (seen.now[i] != seen.before[i]) seen.words |= std::uint64_t{1} << i;
    }
    for (const Storer& storer : storers_) {
        if (seen.words == 0) break;
        const std::uint64_t met = words_met(*storer.applier, storer.at_look, offset, bytes);
        const bool is_stopped = is_storing(storer.at_look) && storer.at_look == storer.stopped;
        if (!is_stopped) seen.undecided |= seen.words & met;
        seen.words &= ~met;
    }
    if (seats_ != ring_.seats()) seen.undecided |= std::exchange(seen.words, 0);  // theirs, perhaps
    return seen;
}

void Twin::set_sent(std::size_t offset, std::uint32_t before, std::uint32_t now) noexcept {
    RMEM_CHECK_IF(false, before != now);
    // relaxed is enough: who compares looks at the appliers' counts
    word(twin_ + offset).compare_exchange_strong(before, now, std::memory_order_relaxed);
}

void Twin::set_logged(const LogRecord& record, const void* words) noexcept {
    const std::size_t bytes = record.words * kWordBytes, size = ring_.config().user_bytes;
    if (record.offset >= size || bytes > size - record.offset) return;
    std::uint32_t value = 0;
    std::memcpy(&value, words, sizeof value);
    if (record.part() != kWholeWord) return store_part(twin_ + record.offset, value, record.part());
    store_block(twin_ + record.offset, words, bytes);
}

void Twin::look_for_the_stuck() noexcept {
    for (Storer& storer : storers_) {
        // relaxed is enough: it is compared with what it was long ago
        const std::uint64_t count = storer.applier->count.load(std::memory_order_relaxed);
        const std::uint64_t former = std::exchange(storer.stuck, count);
        if (!is_storing(count) || count != former) continue;
        storer.stopped = count;
        if (!is_alive(storer)) mend(storer);
    }
}

void mend_applier(const Ring& ring, Applier& applier) noexcept {
    // relaxed is enough: its user is dead, or not there yet
    std::uint64_t count = applier.count.load(std::memory_order_relaxed);
    if (!is_storing(count)) return;
    const auto [offset, words, part] =
        Applying::Place::of(applier.place.load(std::memory_order_relaxed));
    const std::size_t size = ring.config().user_bytes;
    const std::size_t bytes =
        offset < size ? std::min(words * kWordBytes, size - offset) : std::size_t{0};
    const unsigned first = ring.config().is_remote() ? ring.own_node() : 0;
    for (unsigned i = 0; i < ring.config().banks(); ++i) {
        // relaxed is enough: one that begins to be kept is copied after this
        if (ring.node(first + i).keeps_twin.load(std::memory_order_relaxed) == 0) continue;
        for (std::size_t at = 0; at < bytes; at += kWordBytes) {
            std::uint32_t value = 0;
            load_block(&value, ring.bank(first + i) + offset + at, kWordBytes);
            store_part(ring.twin(first + i) + offset + at, value, words == 1 ? part : kWholeWord);
        }
    }
    // Another process may have done the same.
    // (6) - this release-exchange synchronizes-with the acquire-load (5); relaxed is enough where
    // it fails
    applier.count.compare_exchange_strong(count, count + 1, std::memory_order_release,
                                          std::memory_order_relaxed);
}

}  // namespace rmem
