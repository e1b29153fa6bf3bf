// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The plain stores of a program on their way: what is captured goes to the node's card, one store
/// after the other and beside the calls of the node.
///
/// A store that finds no room waits for it, as one to a card with hold-off does; a signal that
/// would end the program ends that, and the store reaches the own bank alone, counted. So does a
/// store of a node that is no member any more, which is said once on stderr.
/// A signal handler of the program may store while its thread is inside a call of the node: the
/// store is in the bank at once, and on its way when the call ends. Of more than 64 that wait so,
/// one to the place of the last takes that one's place; others reach the own bank alone, counted.
///
/// Thread safety: stores from any thread; `Hold` from the node's, around each use of its card.
/// Progress: a holder that waits gives way to those that store.

#include "rmem/base/biased_lock.hpp"
#include "rmem/link/card.hpp"
#include "rmem/stores/stores.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>

namespace rmem {

class RMEM_API CapturedStores final : private stores::StoreTaker {
public:
    /// How long a call of the node may go on that gives no way.
    static constexpr std::int64_t kLongestHoldNs = 1'000'000;

    CapturedStores(Card& card, StoresMode mode);

    std::byte* memory() const noexcept { return stores_->memory(); }
    StoresMode mode() const noexcept { return mode_; }
    /// What was stored before is on its way; false: the deadline has passed.
    [[nodiscard]] bool await_taken(Deadline deadline) { return stores_->await_taken(deadline); }
    /// Words that leave after all else that is found in one look. Of scan; elsewhere the order is
    /// the program's.
    void set_sync(std::size_t offset, std::size_t bytes) { stores_->set_sync(offset, bytes); }

    /// The right to use the card; none is needed where `captured` is null.
    class Hold {
    public:
        explicit Hold(CapturedStores* captured) : captured_(captured) {
            if (captured_ != nullptr) [[unlikely]]
                grip_ = captured_->enter();
        }
        ~Hold() {
            if (captured_ != nullptr) [[unlikely]]
                captured_->leave(grip_);
        }
        Hold(const Hold&) = delete;
        Hold& operator=(const Hold&) = delete;

        /// Whether a thread waits to store.
        [[nodiscard]] bool is_awaited() const noexcept {
            return captured_ != nullptr && captured_->lock_.is_awaited();
        }
        void give_way() { captured_->lock_.give_way(grip_); }

    private:
        CapturedStores* const captured_;
        BiasedLock::Grip grip_{};
    };

private:
    static constexpr std::size_t kDeferredBytes = 64;
    static constexpr std::size_t kJoinedBytes = 256;

    struct Deferred {
        std::size_t offset, bytes;
        std::array<std::byte, kDeferredBytes> data;
    };

    void begin() noexcept override;
    void put(std::size_t offset, const void* from, std::size_t bytes) noexcept override;
    void end() noexcept override;
    std::size_t forward(std::span<const stores::StoredWords> stored) noexcept override;
    void note_in_twin() noexcept override;
    void note_look(std::int64_t after_ns, bool is_late) noexcept override;
    void settle() noexcept override;
    /// `leaves`: at once, else with the run's end.
    void send(std::size_t offset, const std::byte* from, std::size_t bytes, bool leaves) noexcept;
    [[nodiscard]] bool await_room(std::size_t bytes) noexcept;
    void complain_of_end() noexcept;
    void keep_here(std::size_t offset, const std::byte* from, std::size_t bytes) noexcept;
    void defer(std::size_t offset, const std::byte* from, std::size_t bytes) noexcept;
    [[nodiscard]] bool has_deferred() const noexcept;
    void send_deferred() noexcept;
    /// With what the thread has stored on its way.
    BiasedLock::Grip enter() noexcept {
        stores_->publish_own();
        return lock_.enter();
    }
    void leave(BiasedLock::Grip grip) noexcept;

    Card& card_;
    const StoresMode mode_;
    std::byte* const bank_;
    Counters& counters_;
    const bool gathers_;   ///< what comes behind the first store of a run leaves with its end
    Counter<>& captured_;  ///< of them
    BiasedLock lock_;
    BiasedLock::Grip grip_{};      ///< of the thread that stores
    bool is_inside_call_ = false;  ///< that is a signal handler, inside a call of the node
    bool is_in_run_ = false;       ///< something was stored since begin()
    bool is_uncommitted_ = false;
    /// What was stored in a run from one place on, in ascending order, and goes as one write. It is
    /// in no bank yet.
    std::array<std::byte, kJoinedBytes> joined_;
    std::size_t joined_at_ = 0, joined_bytes_ = 0;
    std::array<Deferred, 64> deferred_;
    std::atomic<std::size_t> deferred_head_{0};  ///< sent: changed by the thread inside
    std::atomic<std::size_t> deferred_tail_{0};  ///< stored: by handlers on it
    bool has_complained_ = false;
    std::unique_ptr<stores::Stores> stores_;  // last: it uses the rest
};

}  // namespace rmem
