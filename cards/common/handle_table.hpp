// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The handles of a process: places of a table, so that what a program gives for a handle is
/// compared, and never followed.
///
///     if (const auto call = table.call(place)) use(*call);    // the card stays meanwhile
///
/// Closing lets no further call in, has `end_waits(card, calls)` end what calls of the handle wait
/// for, and returns when the last of them has left and the card, unless other handles have it, is
/// destroyed. A wait that begins later looks at is_closing(), under the lock under which
/// `end_waits` tells of it. A place is used again after all others. In a fork()ed child all handles
/// are its parent's: no call finds them, and their cards are left alone.
///
/// Invariants, executed: a handle that opens was closed; what leaves had entered.
/// Thread safety: any thread; a Call is one thread's, and no call closes its own handle. Calls take
///   no lock; handles are opened one after the other.
/// Errors: what making a card throws, and `rmem::Error`: no_space where all places are taken.

#include "rmem/base/at_fork.hpp"
#include "rmem/base/check.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace cards {

/// The calls of a handle that are under way.
class Calls {
public:
    /// Whether the handle is closed, or about to be.
    [[nodiscard]] bool is_closing() const noexcept {
        // relaxed is enough: closing and waiting threads meet under a lock of the card's
        return (state_.load(std::memory_order_relaxed) & kOpen) == 0;
    }

private:
    template <class Card>
    friend class HandleTable;
    static constexpr std::uint32_t kOpen = 1U << 31;

    [[nodiscard]] bool enter() noexcept {
        // (1) - this acquire-operation synchronizes-with the release-operation (3)
        if ((state_.fetch_add(1, std::memory_order_acquire) & kOpen) != 0) return true;
        leave();
        return false;
    }
    void leave() noexcept {
        // (2) - this release-operation synchronizes-with the acquire-load (4)
        const std::uint32_t before = state_.fetch_sub(1, std::memory_order_release);
        RMEM_CHECK((before & ~kOpen) != 0);
        if (before == 1) state_.notify_all();
    }
    void open() noexcept {
        RMEM_CHECK(is_closing());
        // (3) - this release-operation synchronizes-with the acquire-operation (1)
        state_.fetch_or(kOpen, std::memory_order_release);
    }
    /// False: another thread does so.
    [[nodiscard]] bool close() noexcept {
        // relaxed is enough: what calls have done is seen by (4)
        return (state_.fetch_and(~kOpen, std::memory_order_relaxed) & kOpen) != 0;
    }
    void await_last() const noexcept {
        // (4) - this acquire-load synchronizes-with the release-operation (2)
        while (const std::uint32_t state = state_.load(std::memory_order_acquire))
            state_.wait(state, std::memory_order_relaxed);  // enough: (4) looks again
    }

    std::atomic<std::uint32_t> state_{0};  ///< kOpen, and how many there are
};

template <class Card>
class HandleTable final : private rmem::AtFork {
    struct Entry {
        Calls calls;
        bool is_inherited = false;
        std::shared_ptr<Card> card;
    };

public:
    static constexpr unsigned kPlaces = 1024;
    static constexpr unsigned kNone = 0;

    class Call {
    public:
        explicit Call(Entry* entry) : entry_(entry->calls.enter() ? entry : nullptr) {}
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;
        ~Call() {
            if (entry_ != nullptr) entry_->calls.leave();
        }
        explicit operator bool() const noexcept { return entry_ != nullptr; }
        Card& operator*() const noexcept { return *entry_->card; }

    private:
        Entry* const entry_;
    };

    /// Never destroyed: at the end of a program other threads may be in calls.
    static HandleTable& of_process() {
        static HandleTable* const table = new HandleTable;
        return *table;
    }

    /// Whatever number a program has given.
    Call call(unsigned place) noexcept { return Call(&at(place)); }
    const Calls& calls(unsigned place) noexcept { return at(place).calls; }
    bool is_inherited(unsigned place) noexcept { return at(place).is_inherited; }

    /// Returns a new handle's place. `make` gets the card that other handles of the unit have, or
    /// null, and returns the new handle's card. If that is null, open() returns kNone.
    template <class Make>
    [[nodiscard]] unsigned open(unsigned unit, Make&& make) {
        const std::lock_guard one_at_a_time(opening_mutex_);
        std::shared_ptr<Card> card = make(card_of(unit));
        if (!card) return kNone;
        const std::lock_guard lock(mutex_);
        for (unsigned tried = 1; tried < kPlaces; ++tried) {
            last_ = last_ % (kPlaces - 1) + 1;
            Entry& entry = entries_[last_];
            if (entry.is_inherited || entry.card) continue;
            entry.card = std::move(card);
            entry.calls.open();
            return last_;
        }
        throw rmem::Error(rmem::Errc::no_space,
                          "this process has all handles open that it may have; close some");
    }
    /// False: there is no such handle, or another thread is closing it.
    template <class EndWaits>
    [[nodiscard]] bool close(unsigned place, EndWaits&& end_waits) {
        Entry& entry = at(place);
        if (!entry.calls.close()) return false;
        end_waits(*entry.card, entry.calls);
        entry.calls.await_last();
        const std::lock_guard lock(mutex_);  // who opens the unit next finds the card, or its rank
        entry.card.reset();
        return true;
    }

private:
    HandleTable() = default;
    /// Of what is no place that which is never open.
    Entry& at(unsigned place) noexcept { return entries_[place < kPlaces ? place : kNone]; }
    [[nodiscard]] std::shared_ptr<Card> card_of(unsigned unit) {
        const std::lock_guard lock(mutex_);
        for (const Entry& entry : entries_) {
            if (!entry.is_inherited && entry.card && entry.card->unit() == unit) return entry.card;
        }
        return nullptr;
    }
    void in_child() noexcept override {
        std::construct_at(&opening_mutex_);  // another thread may have held them
        std::construct_at(&mutex_);
        for (Entry& entry : entries_) {
            // relaxed is enough: the child has one thread. Another may have been about to look.
            const bool is_used = entry.calls.state_.load(std::memory_order_relaxed) != 0;
            entry.is_inherited = entry.is_inherited || entry.card != nullptr || is_used;
            static_cast<void>(entry.calls.close());
        }
    }

    std::mutex opening_mutex_;  ///< opening may take long, and closing does not wait for it
    std::mutex mutex_;          ///< before which the other is taken
    unsigned last_ = kNone;
    std::array<Entry, kPlaces> entries_;
};

}  // namespace cards
