// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The node behind a card, and what cards of every kind do with it.
///
///     return node.send_out([&] { return node.write(place, from, bytes); });
///
/// Invariants, executed: a thread has the lock once, and makes those calls of the node under it
/// that rmem.h gives to one thread at a time; numbers that raise nothing anywhere are let in by
/// nobody.
/// Thread safety: any thread, but the destructor; reads and loads need no lock.
/// Progress: send_out() returns after kLongestWaitForRoomNs, and lets others in while it waits.
/// Errors: codes of rmem.h, with the sentence in rmem_last_error().
/// Units: bytes, nanoseconds.

#include "cards/common/interrupt_numbers.hpp"
#include "cards/common/unit.hpp"
#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/failures.hpp"
#include "rmem/base/wait_for_room.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace cards {

inline constexpr std::uint32_t kWordBytes = 4;

/// A mutex that knows its owner, where checks are code.
class OwnedMutex {
public:
    void lock() {
        RMEM_CHECK_IF(false, !is_own());
        mutex_.lock();
        note(std::this_thread::get_id());
    }
    void unlock() {
        note({});
        mutex_.unlock();
    }
    [[nodiscard]] bool is_own() const noexcept {
        // relaxed is enough: a thread asks for its own number, which none but itself stores
        return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
    }

private:
    void note(std::thread::id owner) noexcept {
        // relaxed is enough: as above
        if constexpr (rmem::kChecked) owner_.store(owner, std::memory_order_relaxed);
    }
    std::mutex mutex_;
    std::atomic<std::thread::id> owner_{};
};

class CardNode {
public:
    using Lock = std::lock_guard<OwnedMutex>;

    CardNode(unsigned unit, OwnNode node)
        : unit_(unit),
          node_(std::move(node)),
          id_(static_cast<unsigned>(rmem_id(*this))),
          nodes_(static_cast<unsigned>(rmem_nodes(*this))),
          memory_bytes_(whole_words(rmem_size(*this))) {}
    CardNode(const CardNode&) = delete;
    CardNode& operator=(const CardNode&) = delete;

    /// For calls of rmem.h.
    [[nodiscard]] operator rmem_node*() const noexcept { return node_.get(); }
    [[nodiscard]] Lock lock() const { return Lock(mutex_); }

    [[nodiscard]] unsigned unit() const noexcept { return unit_; }
    [[nodiscard]] unsigned id() const noexcept { return id_; }
    [[nodiscard]] unsigned nodes() const noexcept { return nodes_; }  ///< of the ring
    /// Whole words, whose offsets have 32 bits.
    [[nodiscard]] std::uint32_t memory_bytes() const noexcept { return memory_bytes_; }

    /// False, with the sentence: they are beyond the memory.
    [[nodiscard]] bool covers(std::uint64_t offset, std::uint64_t bytes) const {
        if (bytes <= memory_bytes_ && offset <= memory_bytes_ - bytes) return true;
        static_cast<void>(rmem::fail(
            RMEM_EINVAL, fmt::format("{} bytes at {:#x} are beyond the memory, which has {}", bytes,
                                     offset, memory_bytes_)));
        return false;
    }
    /// With write-me-last, after a transfer: as on a card, what is read back next is the new. What
    /// does not come round within a while is not waited for.
    void await_own() const {
        const Lock lock(mutex_);
        static_cast<void>(rmem_flush(*this, kLongestRoundNs));
    }
    /// For plain stores.
    [[nodiscard]] int map(void*& memory) const {
        const Lock lock(mutex_);
        return rmem_stores(*this, RMEM_STORES_DEFAULT, &memory);
    }
    /// Makes the call, under the lock, until it finds room, as a card's bus waits: what it returns,
    /// or RMEM_ETIMEDOUT.
    template <class Call>
    [[nodiscard, gnu::always_inline]] int send_out(Call&& call) const {
        std::int64_t until_ns = 0;
        do {
            const Lock lock(mutex_);
            const int code = call();
            if (code != RMEM_EAGAIN) [[likely]]
                return code;
        } while (await_room(until_ns));
        return RMEM_ETIMEDOUT;
    }
    /// How long the next piece of a transfer is: it finds room on every link, and the last word is
    /// a piece of its own, so that it can be a flag for the others.
    [[nodiscard]] static constexpr std::size_t piece_of(std::size_t left) {
        constexpr std::size_t kMaxBytesAtOnce = 4096;
        if (left <= kWordBytes) return left;
        return std::min((left - 1) / kWordBytes * kWordBytes, kMaxBytesAtOnce);
    }

    // ---- Under the lock
    [[nodiscard, gnu::always_inline]] int write(std::size_t place, const void* from,
                                                std::size_t bytes) const {
        RMEM_CHECK_IF(false, mutex_.is_own());
        if (bytes != kWordBytes || place % kWordBytes != 0)
            return rmem_write(*this, place, from, bytes);
        std::uint32_t word = 0;
        std::memcpy(&word, from, sizeof word);
        return rmem_write_word(*this, place, word);
    }
    [[nodiscard]] std::uint64_t count_of(const char* counter) const {
        RMEM_CHECK_IF(false, mutex_.is_own());
        std::uint64_t value = 0;
        static_cast<void>(rmem_counter(*this, counter, &value));
        return value;
    }
    [[nodiscard]] bool is_member() const {
        RMEM_CHECK_IF(false, mutex_.is_own());
        return rmem_is_member(*this) == 1;
    }
    /// A node is there while a program of it runs, or `rmem node` keeps it.
    [[nodiscard]] bool is_present(unsigned node) const {
        RMEM_CHECK_IF(false, mutex_.is_own() && node < nodes_);
        return rmem_is_present(*this, static_cast<int>(node)) == 1;
    }
    [[nodiscard]] unsigned present_nodes() const {
        unsigned present = 0;
        for (unsigned node = 0; node < nodes_; ++node) present += is_present(node) ? 1U : 0U;
        return present;
    }
    /// How long what is sent now takes until every node has it; nothing: the ring does not answer.
    [[nodiscard]] std::optional<std::int64_t> measure_round() const {
        RMEM_CHECK_IF(false, mutex_.is_own());
        const std::int64_t begin_ns = rmem::now_ns();
        if (rmem_send_interrupt(*this, RMEM_ALL_NODES, kRoundTimeNumber, 0) != RMEM_OK ||
            rmem_flush(*this, kLongestRoundNs) < RMEM_OK)
            return std::nullopt;
        return rmem::now_ns() - begin_ns;
    }
    /// The numbers of interrupts that raise here.
    [[nodiscard]] int accept(std::uint64_t numbers) const {
        RMEM_CHECK_IF(false, mutex_.is_own());
        RMEM_CHECK(numbers < std::uint64_t{1} << kRingTestNumber);
        return rmem_accept_interrupts(*this, numbers);
    }
    /// Those that have come are dropped.
    void drop_interrupts() const {
        constexpr int kMore = 2048;  // than a node keeps
        RMEM_CHECK_IF(false, mutex_.is_own());
        rmem_interrupt stale;
        for (int i = 0; i < kMore && rmem_next_interrupt(*this, &stale, 0) == RMEM_OK; ++i) {
        }
    }

private:
    static constexpr std::int64_t kLongestRoundNs = 10'000'000;

    [[nodiscard]] static std::uint32_t whole_words(std::size_t bytes) {
        constexpr std::size_t kMax = 0xFFFFF000;
        return static_cast<std::uint32_t>(std::min(bytes, kMax) / kWordBytes * kWordBytes);
    }
    /// False, with the sentence: that was long enough.
    [[gnu::cold]] bool await_room(std::int64_t& until_ns) const {
        const std::int64_t now_ns = rmem::now_ns();
        if (until_ns == 0) until_ns = now_ns + rmem::kLongestWaitForRoomNs;
        if (now_ns >= until_ns) {
            static_cast<void>(rmem::fail(
                RMEM_ETIMEDOUT, fmt::format("the ring had no room for {} s; find out which node "
                                            "does not take what is sent (rmem top)",
                                            rmem::kLongestWaitForRoomNs / 1'000'000'000)));
            return false;
        }
        static_cast<void>(rmem_poll(*this));
        std::this_thread::yield();
        return true;
    }

    const unsigned unit_;
    mutable OwnedMutex mutex_;
    const OwnNode node_;
    const unsigned id_;
    const unsigned nodes_;
    const std::uint32_t memory_bytes_;
};

/// What a counter of the node stands for in a card's registers.
struct CountedError {
    std::uint32_t bits;
    const char* counter;  ///< null: that the others have dropped the node, once
};

/// The errors that have been since a register, or an interrupt, told of them; at first all that
/// have ever been. Calls are made under the node's lock.
class CountedErrors {
public:
    static constexpr std::uint32_t kAll = 0xFFFFFFFF;

    CountedErrors(const CardNode& node, std::span<const CountedError> errors)
        : node_(node), errors_(errors), told_(errors.size()) {}

    /// The bits of those that are news.
    [[nodiscard]] std::uint32_t news() const {
        auto told = told_;
        return update(told, kAll);
    }
    /// The same, of `bits`, which are told now.
    std::uint32_t tell(std::uint32_t bits = kAll) { return update(told_, bits); }
    /// How many there have been, of `bits`.
    [[nodiscard]] std::uint64_t sum(std::uint32_t bits = kAll) const {
        std::uint64_t sum = 0;
        for (const CountedError& error : errors_)
            if ((error.bits & bits) != 0) sum += count(error);
        return sum;
    }

private:
    [[nodiscard]] std::uint64_t count(const CountedError& error) const {
        if (error.counter == nullptr) return node_.is_member() ? 0 : 1;
        return node_.count_of(error.counter);
    }
    [[nodiscard]] std::uint32_t update(std::vector<std::uint64_t>& told, std::uint32_t bits) const {
        std::uint32_t news = 0;
        for (std::size_t i = 0; i < errors_.size(); ++i) {
            const std::uint64_t now = (errors_[i].bits & bits) != 0 ? count(errors_[i]) : 0;
            if (now > told[i]) news |= errors_[i].bits;
            told[i] = std::max(told[i], now);
        }
        return news;
    }

    const CardNode& node_;
    const std::span<const CountedError> errors_;
    std::vector<std::uint64_t> told_;
};

}  // namespace cards
