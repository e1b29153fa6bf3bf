// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node's bank, for those who store writes into it: links, engines, writers that deliver.
///
/// Where a program of the node stores by itself and its stores are found by comparing
/// (rmem/stores/scanned.hpp), the bank has a *twin* in the segment: what the bank would hold
/// without those stores. What is stored into the bank as a write goes into the twin, too. So a word
/// that differs was stored by the program, unless somebody is between the two at this moment; that
/// is what *appliers* say.
///
///     applier                                      scanner
///     place = the words, and of a rank log_end
///     count + 1: odd                               counts
///     where there are twins: places += place       bank and twin: what differs…
///     store the words into bank and twin           …but for the places since those counts
///     count + 1
///
/// An applier keeps the places of its last writes, so that a scanner can tell what it has met while
/// many go on. Place and log_end tell what a writer has not sent when it is killed
/// (rmem/ring/unsent.hpp).
///
/// Invariants: an applier's count is odd while it stores. A twin is kept for the user's memory.
/// Thread safety: an applier is one thread's at a time; a Bank may be used by any.
/// Progress: wait-free. Where no twin is kept: two stores and a load for each write.

#include "rmem/base/check.hpp"
#include "rmem/base/fence.hpp"
#include "rmem/base/limits.hpp"
#include "rmem/base/word_block.hpp"
#include "rmem/ring/delivery_board.hpp"
#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/write_log.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rmem {

/// Somebody who stores writes: what it says of that in shared memory, and whether it is asked to.
class ApplierUse {
public:
    ApplierUse(const Ring& ring, Applier& applier) noexcept
        : applier_(&applier), twins_(&ring.delivery().twins) {}

private:
    friend class Applying;
    Applier* applier_;
    const std::atomic<std::uint32_t>* twins_;
};

/// Says that a write is being stored, and where, for as long as it is there.
class Applying {
public:
    static constexpr std::uint64_t kNotOwn = UINT64_MAX;  ///< a write that nobody has to send

    /// `log_end`: of the rank whose own write it is.
    Applying(ApplierUse use, std::size_t offset, std::size_t words, WordPart part = kWholeWord,
             std::uint64_t log_end = kNotOwn) noexcept
        : applier_(*use.applier_),
          // relaxed is enough: this thread alone writes it
          count_(applier_.count.load(std::memory_order_relaxed)) {
        RMEM_CHECK_IF(false, count_ % 2 == 0);
        const std::uint64_t place = Place{offset, words, part}.packed();
        // relaxed is enough, for both: (1)
        applier_.place.store(place, std::memory_order_relaxed);
        applier_.log_end.store(log_end, std::memory_order_relaxed);  // enough: (1)
        // (1) - this release-store synchronizes-with the acquire-loads rmem/ring/twin.cpp (1) and
        // rmem/ring/twin.cpp (4)
        applier_.count.store(count_ + 1, std::memory_order_release);
        light_fence();
        // relaxed is enough: the fence orders it, and who keeps a twin waits for those that have
        // looked before
        any_twin_ = use.twins_->load(std::memory_order_relaxed) != 0;
        if (any_twin_) [[unlikely]] {
            // (3) - this release-store synchronizes-with the acquire-load rmem/ring/twin.cpp (3)
            applier_.places[count_ / 2 % applier_.places.size()].store(place,
                                                                       std::memory_order_release);
        }
    }
    ~Applying() {
        // (2) - this release-store synchronizes-with the acquire-loads rmem/ring/twin.cpp (1),
        // rmem/ring/twin.cpp (2), rmem/ring/twin.cpp (4) and rmem/ring/twin.cpp (5)
        applier_.count.store(count_ + 2, std::memory_order_release);
    }
    Applying(const Applying&) = delete;
    Applying& operator=(const Applying&) = delete;

    [[nodiscard]] bool any_twin() const noexcept { return any_twin_; }

    /// Of a write. kMaxWords: or more of them.
    struct Place {
        static constexpr unsigned kWordsBits = 26, kPartAt = 60;
        static constexpr std::uint64_t kMaxWords = (std::uint64_t{1} << kWordsBits) - 1;

        std::size_t offset, words;
        WordPart part;

        std::uint64_t packed() const noexcept {
            return std::uint64_t{part} << kPartAt | offset / kWordBytes << kWordsBits |
                   (words < kMaxWords ? words : kMaxWords);
        }
        static Place of(std::uint64_t packed) noexcept {
            constexpr std::uint64_t kFirst = (std::uint64_t{1} << (kPartAt - kWordsBits)) - 1;
            return {(packed >> kWordsBits & kFirst) * kWordBytes, packed & kMaxWords,
                    static_cast<WordPart>(packed >> kPartAt)};
        }
    };

private:
    Applier& applier_;
    const std::uint64_t count_;
    bool any_twin_;
};

class Bank {
public:
    Bank(const Ring& ring, unsigned node) noexcept
        : bank_(ring.bank(node)),
          twin_(ring.twin(node)),
          keeps_twin_(&ring.node(node).keeps_twin),
          user_bytes_(ring.config().user_bytes) {}

    [[nodiscard]] std::byte* data() const noexcept { return bank_; }

    /// A write, of whole words, under an Applying, which says whether there is `any_twin`.
    /// `has_flag`: its first word is stored last.
    void store(std::size_t offset, const void* from, std::size_t bytes, bool any_twin,
               bool has_flag = false) const noexcept {
        if (bytes == kWordBytes) {
            std::uint32_t value = 0;
            std::memcpy(&value, from, sizeof value);
            return store_word(offset, value, any_twin);
        }
        has_flag ? store_flagged(bank_ + offset, from, bytes)
                 : store_block(bank_ + offset, from, bytes);
        if (any_twin) [[unlikely]]
            store_into_twin(offset, from, bytes);
    }
    void store_word(std::size_t offset, std::uint32_t value, bool any_twin) const noexcept {
        rmem::store_word(bank_ + offset, value);
        if (any_twin) [[unlikely]]
            store_into_twin(offset, &value, sizeof value);
    }
    /// Bytes of a word.
    void store_part(std::size_t offset, std::uint32_t value, WordPart part,
                    bool any_twin) const noexcept {
        rmem::store_part(bank_ + offset, value, part);
        if (any_twin && has_in_twin(offset)) [[unlikely]]
            rmem::store_part(twin_ + offset, value, part);
    }
    /// A write of one word, or of bytes of it, as logs have it.
    void store_of_word(const LogRecord& record, std::uint32_t value, bool any_twin) const noexcept {
        if (record.part() == kWholeWord) return store_word(record.offset, value, any_twin);
        store_part(record.offset, value, record.part(), any_twin);
    }
    /// A write as logs have it.
    void store(const LogRecord& record, const void* words, bool any_twin) const noexcept {
        if (record.words == 1) {
            std::uint32_t value = 0;
            std::memcpy(&value, words, sizeof value);
            return store_of_word(record, value, any_twin);
        }
        store(record.offset, words, record.words * kWordBytes, any_twin,
              (record.flags & LogRecord::kFlagFirst) != 0);
    }

private:
    bool has_in_twin(std::size_t offset) const noexcept {
        // relaxed is enough: as in Applying
        return keeps_twin_->load(std::memory_order_relaxed) != 0 && offset < user_bytes_;
    }
    void store_into_twin(std::size_t offset, const void* from, std::size_t bytes) const noexcept {
        if (has_in_twin(offset)) store_block(twin_ + offset, from, bytes);
    }

    std::byte* bank_;
    std::byte* twin_;
    const std::atomic<std::uint32_t>* keeps_twin_;
    std::size_t user_bytes_;
};

}  // namespace rmem
