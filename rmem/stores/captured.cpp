// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/captured.hpp"

#include "rmem/link/write_bytes.hpp"
#include "rmem/ring/waiting/waiting.hpp"
#include "rmem/ring/write_log.hpp"
#include "rmem/stores/signal_chain.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace rmem {

namespace {

constexpr unsigned kTriesPerLook = 64;  ///< for room, between looks at the program's signals

void complain(std::string_view sentence) noexcept {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, sentence.data(), sentence.size());
}

}  // namespace

CapturedStores::CapturedStores(Card& card, StoresMode mode)
    : card_(card),
      mode_(mode),
      bank_(card.bank()),
      counters_(card.ring()->rank(card.member().rank).link),
      gathers_(card.ring()->config().is_remote()),
      captured_(counters_.values[static_cast<std::size_t>(LinkCounter::stores_captured)]) {
    // Another thread that stores ends what the node's thread sleeps in.
    lock_.on_wait(
        [](void* with) {
            const Card& mine = *static_cast<const Card*>(with);
            wake_rank(*mine.ring(), mine.member().rank);
        },
        &card_);
    lock_.adopt();
    CapturedStores::note_in_twin();
    stores_ = stores::capture(mode, *card.ring(), card.member().node, *this);
    card_.keep_applying();  // the program loads by itself
}

void CapturedStores::begin() noexcept {
    const bool is_mine = lock_.is_mine();
    if (!is_mine) grip_ = lock_.enter();
    is_inside_call_ = is_mine;
}

void CapturedStores::put(std::size_t offset, const void* from, std::size_t bytes) noexcept {
    const auto* const data = static_cast<const std::byte*>(from);
    if (bytes == 0) return;  // a part of no bytes means all of the word
    if (is_inside_call_) return defer(offset, data, bytes);
    captured_.add();
    if (!std::exchange(is_in_run_, true)) return send(offset, data, bytes, true);
    const bool is_next = joined_bytes_ != 0 && offset == joined_at_ + joined_bytes_;
    if (!is_next || bytes > joined_.size() - joined_bytes_) settle();
    if (bytes > joined_.size()) return send(offset, data, bytes, !gathers_);
    if (joined_bytes_ == 0) joined_at_ = offset;
    std::copy_n(data, bytes, joined_.begin() + static_cast<std::ptrdiff_t>(joined_bytes_));
    joined_bytes_ += bytes;
}

void CapturedStores::settle() noexcept {
    const std::size_t bytes = std::exchange(joined_bytes_, 0);
    if (bytes != 0) send(joined_at_, joined_.data(), bytes, !gathers_);
}

void CapturedStores::end() noexcept {
    if (std::exchange(is_inside_call_, false)) return;
    settle();
    is_in_run_ = false;
    if (std::exchange(is_uncommitted_, false)) card_.commit();
    leave(grip_);
}

void CapturedStores::send(std::size_t offset, const std::byte* from, std::size_t bytes,
                          bool leaves) noexcept {
    const std::size_t inside = offset % kWordBytes;
    if (leaves && inside + bytes <= kWordBytes) [[likely]] {
        const WordPart part = part_of_word(inside, bytes);
        if (card_.write_at_once(offset - inside, word_with(from, inside, bytes), part)) [[likely]]
            return;
    }
    if (!await_room(bytes + kCompletedBytes)) return keep_here(offset, from, bytes);
    write_bytes(card_, offset, from, bytes);
    leaves ? card_.commit() : void(is_uncommitted_ = true);
}

/// False: there will be none.
bool CapturedStores::await_room(std::size_t bytes) noexcept {
    if (card_.room(bytes)) return true;
    if (std::exchange(is_uncommitted_, false)) card_.commit();
    counters_.add(LinkCounter::stores_held_off);
    for (unsigned tries = 1; card_.is_member(); ++tries) {
        card_.poll();
        if (card_.room(bytes)) return true;
        card_.give_way();
        if (tries % kTriesPerLook == 0 && stores::is_asked_to_end()) return false;
    }
    complain_of_end();
    return false;
}

void CapturedStores::complain_of_end() noexcept {
    if (std::exchange(has_complained_, true)) return;
    complain(
        "rmem: the others have dropped this node, and its stores reach nobody any more; "
        "close it and open it once more\n");
}

std::size_t CapturedStores::forward(std::span<const stores::StoredWords> stored) noexcept {
    // The thread that is inside may wait for the caller, in a handler of a signal that stores.
    if (!lock_.try_as_guest(kLongestHoldNs)) return 0;
    std::size_t done = 0;
    for (const auto& [offset, data, part] : stored) {
        if (!card_.room(data.size())) card_.poll();
        if (card_.is_member()) {
            if (!card_.room(data.size())) {
                counters_.add(LinkCounter::stores_held_off);
                break;
            }
            if (part == kWholeWord) {
                card_.forward(offset, data.data(), data.size());
            } else {
                std::uint32_t value = 0;
                std::memcpy(&value, data.data(), sizeof value);
                card_.forward_part(offset, value, part);
            }
            captured_.add(data.size() / kWordBytes);
        } else {
            complain_of_end();
            counters_.add(LinkCounter::stores_lost, data.size() / kWordBytes);
        }
        ++done;
    }
    if (done != 0) card_.commit();
    leave(BiasedLock::Grip::guest);
    return done;
}

void CapturedStores::note_in_twin() noexcept {
    const Ring& ring = *card_.ring();
    const unsigned rank = card_.member().rank;
    // relaxed is enough, twice: it is read when this process is dead
    const std::uint64_t head = ring.log(rank).header().head.load(std::memory_order_relaxed);
    ring.rank(rank).in_twin.store(head, std::memory_order_relaxed);
}

void CapturedStores::note_look(std::int64_t after_ns, bool is_late) noexcept {
    counters_.add(LinkCounter::scans);
    if (is_late) counters_.add(LinkCounter::scans_late);
    counters_.raise_to(LinkCounter::scan_gap_max_ns, static_cast<std::uint64_t>(after_ns));
}

void CapturedStores::keep_here(std::size_t offset, const std::byte* from,
                               std::size_t bytes) noexcept {
    std::copy_n(from, bytes, bank_ + offset);
    counters_.add(LinkCounter::stores_lost);
}

// ---- Stores of signal handlers

void CapturedStores::defer(std::size_t offset, const std::byte* from, std::size_t bytes) noexcept {
    std::copy_n(from, bytes, bank_ + offset);
    while (bytes != 0) {
        const std::size_t part = std::min(bytes, kDeferredBytes);
        // relaxed is enough: this thread alone writes it
        const std::size_t tail = deferred_tail_.load(std::memory_order_relaxed);
        // (1) - this acquire-load synchronizes-with the release-store (2)
        const bool is_full =
            tail - deferred_head_.load(std::memory_order_acquire) == deferred_.size();
        Deferred& next = deferred_[(is_full ? tail - 1 : tail) % deferred_.size()];
        // That the last one was overwritten before it left keeps the order.
        if (is_full && (next.offset != offset || next.bytes != part))
            return counters_.add(LinkCounter::stores_lost);
        next.offset = offset;
        next.bytes = part;
        std::copy_n(from, part, next.data.data());
        offset += part;
        from += part;
        bytes -= part;
        // (3) - this release-store synchronizes-with the acquire-load (4)
        if (!is_full) deferred_tail_.store(tail + 1, std::memory_order_release);
    }
}

bool CapturedStores::has_deferred() const noexcept {
    // relaxed is enough: this thread alone writes it while it is inside
    const std::size_t head = deferred_head_.load(std::memory_order_relaxed);
    // (4) - this acquire-load synchronizes-with the release-store (3)
    return head != deferred_tail_.load(std::memory_order_acquire);
}

void CapturedStores::send_deferred() noexcept {
    // The bank has it since it was stored, and may have more.
    struct Forwarding {
        Card& card;
        void write(std::size_t offset, const void* from, std::size_t bytes) const {
            card.forward(offset, from, bytes);
        }
        void write_part(std::size_t offset, std::uint32_t value, WordPart part) const {
            card.forward_part(offset, value, part);
        }
    } forwarding{card_};
    while (has_deferred()) {
        // relaxed is enough: as in has_deferred()
        const std::size_t head = deferred_head_.load(std::memory_order_relaxed);
        const Deferred& one = deferred_[head % deferred_.size()];
        captured_.add();
        if (await_room(one.bytes + kCompletedBytes)) {
            write_bytes(forwarding, one.offset, one.data.data(), one.bytes);
            card_.commit();
        } else {
            counters_.add(LinkCounter::stores_lost);
        }
        // (2) - this release-store synchronizes-with the acquire-load (1)
        deferred_head_.store(head + 1, std::memory_order_release);
    }
}

void CapturedStores::leave(BiasedLock::Grip grip) noexcept {
    // What a handler on this thread stores between look and leaving is found by the second look.
    if (has_deferred()) send_deferred();
    lock_.leave(grip);
    if (has_deferred() && !lock_.is_mine()) leave(lock_.enter());
}

}  // namespace rmem
