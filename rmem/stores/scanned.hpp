// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A view into which a program stores as into any memory: a thread finds what it has stored, by
/// comparing the bank with its twin (rmem/ring/twin.hpp).
///
/// States of a page
///   cold  nobody stores there: the first store is told of (rmem/stores/page_watch.hpp)
///   hot   compared in each look, kPeriodNs after the one before, until the whole memory stays the
///         same for kHotNs; where there are more than a few, each until it does so itself
/// While no page is hot the thread sleeps. A store that is replaced by the next one before a look
/// does not travel.
///
/// A look                            so that
///   1. read the sync words            what was stored before them is seen in 3
///   2. learn which pages are hot
///   3. compare these, but for the sync words
///   4. send what differs, then the sync words as they were in 1
///
/// Invariants: a page is compared once in a look: it is in the list while it is hot. What the taker
///     has sent is of what it was given.
/// Thread safety: as rmem/stores/stores.hpp; set_sync() and await_taken() from any thread.
/// Progress: what finds no room is looked for once more in the next look.
/// Errors: as Twin's and watch_pages().

#include "rmem/base/helper_thread.hpp"
#include "rmem/ring/mapping.hpp"
#include "rmem/ring/twin.hpp"
#include "rmem/stores/page_watch.hpp"
#include "rmem/stores/stores.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace rmem::stores {

class RMEM_API ScannedStores final : public Stores {
public:
    static constexpr std::int64_t kPeriodNs = 30'000;
    static constexpr std::int64_t kLateNs = 50'000;  ///< a look that comes later is counted
    static constexpr std::int64_t kHotNs = 100'000'000;
    static constexpr std::size_t kFewPages = 64;

    /// `watching`: the first kind that the system has, if it is not given.
    ScannedStores(const Ring& ring, unsigned node, StoreTaker& taker,
                  std::optional<PageWatchKind> watching = std::nullopt);
    ~ScannedStores() override;

    std::byte* memory() const noexcept override { return mapping_.data(); }
    [[nodiscard]] bool await_taken(Deadline deadline) override;
    void set_sync(std::size_t offset, std::size_t bytes) override;

private:
    struct HotPage {
        std::size_t page;
        std::int64_t changed_ns;
    };
    /// A word that is to be sent; it is seen again if it finds no room.
    struct Taken {
        std::size_t offset;
        std::uint32_t now, before;
    };

    void work();
    void sleep_on();
    void wait(std::int64_t ns);
    [[nodiscard]] std::size_t heat(std::size_t page);
    void look();
    [[nodiscard]] bool read_sync_words();
    void compare(HotPage& hot);
    [[nodiscard]] bool has_cooled(const HotPage& hot);
    void take(std::size_t offset, const Twin::Seen& seen, std::uint64_t words);
    [[nodiscard]] std::uint64_t sync_words_at(std::size_t block) noexcept;
    void send();

    const std::size_t bytes_;
    const bool whole_words_;  ///< the card sends no bytes
    const Mapping mapping_;
    StoreTaker& taker_;
    Twin twin_;
    std::unique_ptr<PageWatch> watch_;

    // The thread's
    std::vector<HotPage> hot_;
    std::vector<bool> is_hot_;       ///< each page
    std::size_t next_page_ = 0;      ///< behind the last that got hot…
    std::size_t pages_at_once_ = 1;  ///< …and how many do so next if it is that one
    std::vector<Taken> taken_;  ///< in this look, in the order of their places but for sync words
    std::vector<std::uint32_t> words_;  ///< theirs
    std::vector<StoredWords> runs_;
    std::vector<std::pair<std::size_t, Twin::Seen>> sync_seen_;  ///< in this look, by block
    bool is_whole_ = false;                                      ///< this look has left nothing
    std::int64_t now_ns_ = 0;                                    ///< when this look began
    std::int64_t looked_ns_ = 0;     ///< when the last one began; 0: all was cold
    std::int64_t changed_ns_ = 0;    ///< when anything was different
    std::int64_t oversleep_ns_ = 0;  ///< of late
    std::int64_t sought_ns_ = 0;

    std::mutex mutex_;                                         ///< the sync words
    std::vector<std::pair<std::size_t, std::uint64_t>> sync_;  ///< blocks, and words in them
    std::atomic<std::uint64_t> begun_{0}, finished_{0};        ///< looks
    std::atomic<std::uint64_t> awaited_{0};                    ///< the look that a thread waits for
    HelperThread thread_;                                      // last: it uses all of this
};

}  // namespace rmem::stores
