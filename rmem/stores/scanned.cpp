// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/scanned.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/ring/segment.hpp"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace rmem::stores {

namespace {

constexpr std::int64_t kLongestSleepNs = 1'000'000'000;
constexpr std::int64_t kShortestSleepNs = 2000;
constexpr std::int64_t kStuckNs = 10'000'000;
constexpr int kLastLooks = 100;
constexpr std::size_t kMaxPagesAtOnce = 64;
constexpr std::size_t kMaxTaken = 1U << 16;  // words, before they are sent
constexpr std::size_t kMaxRunWords = 256;    // so that it finds room
constexpr std::size_t kBlock = Twin::kBlockBytes;

}  // namespace

ScannedStores::ScannedStores(const Ring& ring, unsigned node, StoreTaker& taker,
                             std::optional<PageWatchKind> watching)
    : bytes_(ring.config().user_bytes),
      whole_words_(ring.config().timing.whole_words != 0),
      mapping_(ring.segment().map_again(ring.bank(node), round_up(bytes_, kPageBytes),
                                        Mapping::Access::load_and_store)),
      taker_(taker),
      twin_(ring, node, Deadline::in(kDefaultJoinTimeoutNs)),
      watch_(watch_pages({memory(), mapping_.size()}, watching)),
      is_hot_(mapping_.size() / kPageBytes),
      thread_(
          "rmem-scan", [this] { work(); }, [this] { watch_->wake(); }) {}

ScannedStores::~ScannedStores() = default;

void ScannedStores::set_sync(std::size_t offset, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (std::size_t at = offset; at < offset + bytes; at += kWordBytes) {
        const std::size_t block = at / kBlock * kBlock;
        const std::uint64_t word = std::uint64_t{1} << (at - block) / kWordBytes;
        const auto place =
            std::lower_bound(sync_.begin(), sync_.end(), std::pair{block, std::uint64_t{0}});
        if (place != sync_.end() && place->first == block) {
            place->second |= word;
        } else {
            sync_.insert(place, {block, word});
        }
    }
}

bool ScannedStores::await_taken(Deadline deadline) {
    // (1) - this acquire-load synchronizes-with the release-add (2)
    const std::uint64_t next = begun_.load(std::memory_order_acquire) + 1;
    // relaxed is enough, three times: the thread looks at it whenever it is woken
    std::uint64_t awaited = awaited_.load(std::memory_order_relaxed);
    while (awaited < next &&
           !awaited_.compare_exchange_weak(awaited, next, std::memory_order_relaxed)) {
    }
    watch_->wake();
    // (3) - this acquire-load synchronizes-with the release-store (4)
    while (finished_.load(std::memory_order_acquire) < next) {
        if (deadline.passed(now_ns())) return false;
        ::sched_yield();
    }
    return true;
}

// ---- The thread

void ScannedStores::work() {
    if (!HelperThread::ask_for_real_time()) ::prctl(PR_SET_TIMERSLACK, 1);
    while (!thread_.is_stopping()) {
        // relaxed is enough, twice: this thread writes the one, and is woken for the other
        const bool is_wanted =
            awaited_.load(std::memory_order_relaxed) > finished_.load(std::memory_order_relaxed);
        if (hot_.empty()) {
            looked_ns_ = 0;
            wait(is_wanted ? 0 : kLongestSleepNs);
            if (hot_.empty() && !is_wanted) continue;
        } else {
            sleep_on();
        }
        if (!thread_.is_stopping()) look();
    }
    // What the program has stored last, if it finds room.
    is_whole_ = false;
    for (int tries = 0; tries < kLastLooks && !is_whole_; ++tries) {
        wait(0);
        look();
    }
}

/// Until the next look.
void ScannedStores::sleep_on() {
    const std::int64_t since = now_ns();
    const std::int64_t left = looked_ns_ + kPeriodNs - since;
    // Never without any sleep: a program may want this processor.
    const std::int64_t asked =
        looked_ns_ == 0 ? 0 : std::max(left - oversleep_ns_, kShortestSleepNs);
    wait(asked);
    if (asked != 0) oversleep_ns_ += (now_ns() - since - asked - oversleep_ns_) / 8;
}

void ScannedStores::wait(std::int64_t ns) {
    watch_->wait(ns, [this](std::size_t page) { return heat(page); });
}

/// The page gets hot, and with it those behind it, if the program goes through its memory.
std::size_t ScannedStores::heat(std::size_t page) {
    pages_at_once_ = page == next_page_ ? std::min(2 * pages_at_once_, kMaxPagesAtOnce) : 1;
    const std::size_t count = std::min(pages_at_once_, is_hot_.size() - page);
    next_page_ = page + count;
    const std::int64_t now = now_ns();
    for (std::size_t next = page; next < next_page_; ++next) {
        if (is_hot_[next]) continue;
        is_hot_[next] = true;
        hot_.push_back({next, now});
    }
    return count;
}

void ScannedStores::look() {
    now_ns_ = now_ns();
    if (looked_ns_ != 0) {
        const std::int64_t after = now_ns_ - looked_ns_;
        taker_.note_look(after, after > kLateNs);
    }
    looked_ns_ = now_ns_;
    // (2) - this release-add synchronizes-with the acquire-load (1)
    const std::uint64_t number = begun_.fetch_add(1, std::memory_order_release) + 1;
    is_whole_ = true;
    // What was stored before a sync word may be in a page that has just got hot.
    if (read_sync_words()) wait(0);
    for (HotPage& hot : hot_) {
        compare(hot);
        if (taken_.size() >= kMaxTaken) send();
    }
    send();
    if (is_whole_) {
        for (const auto& [block, seen] : sync_seen_) take(block, seen, seen.words);
        send();
    }
    std::erase_if(hot_, [this](const HotPage& hot) { return has_cooled(hot); });
    if (is_whole_) {
        // (4) - this release-store synchronizes-with the acquire-load (3)
        finished_.store(number, std::memory_order_release);
    } else if (now_ns_ - sought_ns_ >= kStuckNs) {
        sought_ns_ = now_ns_;
        twin_.look_for_the_stuck();
    }
}

/// Whether the program has stored any.
bool ScannedStores::read_sync_words() {
    sync_seen_.clear();
    const std::lock_guard lock(mutex_);
    for (const auto& [block, words] : sync_) {
        const std::size_t bytes = std::min(kBlock, bytes_ - block);
        if (!is_hot_[block / kPageBytes] || !twin_.differs(block, bytes)) continue;
        Twin::Seen seen = twin_.look(block, bytes);
        seen.words &= words;
        if (seen.words != 0) sync_seen_.emplace_back(block, seen);
    }
    return !sync_seen_.empty();
}

std::uint64_t ScannedStores::sync_words_at(std::size_t block) noexcept {
    const std::lock_guard lock(mutex_);
    const auto place =
        std::lower_bound(sync_.begin(), sync_.end(), std::pair{block, std::uint64_t{0}});
    return place != sync_.end() && place->first == block ? place->second : 0;
}

void ScannedStores::compare(HotPage& hot) {
    const std::size_t begin = hot.page * kPageBytes;
    const std::size_t end = std::min(begin + kPageBytes, bytes_);
    if (begin >= end || !twin_.differs(begin, end - begin)) return;
    hot.changed_ns = changed_ns_ = now_ns_;
    for (std::size_t block = begin; block < end; block += kBlock) {
        const std::size_t bytes = std::min(kBlock, end - block);
        if (!twin_.differs(block, bytes)) continue;
        const Twin::Seen seen = twin_.look(block, bytes);
        const std::uint64_t words = seen.words & ~sync_words_at(block);
        take(block, seen, words);
        if (seen.undecided != 0) is_whole_ = false;
    }
}

bool ScannedStores::has_cooled(const HotPage& hot) {
    const bool is_quiet = now_ns_ - changed_ns_ >= kHotNs;
    if (now_ns_ - hot.changed_ns < kHotNs || (!is_quiet && hot_.size() <= kFewPages)) return false;
    RMEM_CHECK(is_hot_[hot.page]);
    const std::size_t begin = hot.page * kPageBytes;
    if (!watch_->protect(hot.page)) return false;
    // Something may have been stored before that.
    if (begin < bytes_ && twin_.differs(begin, std::min(kPageBytes, bytes_ - begin))) return false;
    is_hot_[hot.page] = false;
    return true;
}

void ScannedStores::take(std::size_t offset, const Twin::Seen& seen, std::uint64_t words) {
    RMEM_CHECK((words & ~seen.words) == 0);
    for (std::uint64_t left = words; left != 0; left &= left - 1) {
        const auto i = static_cast<unsigned>(std::countr_zero(left));
        taken_.push_back({offset + i * kWordBytes, seen.now[i], seen.before[i]});
    }
}

/// What was taken, in runs of neighbours. A word of which some bytes are as they were is by itself:
/// these may be another node's. A card that sends whole words sends them so, too.
void ScannedStores::send() {
    if (taken_.empty()) return;
    words_.clear();
    runs_.clear();
    for (const Taken& word : taken_) words_.push_back(word.now);
    const auto part_of = [this](const Taken& word) {
        return whole_words_ ? kWholeWord : differing_part(word.now, word.before);
    };
    for (std::size_t first = 0; first < taken_.size();) {
        const WordPart part = part_of(taken_[first]);
        std::size_t end = first + 1;
        while (part == kWholeWord && end < taken_.size() && end - first < kMaxRunWords &&
               taken_[end].offset == taken_[end - 1].offset + kWordBytes &&
               part_of(taken_[end]) == kWholeWord)
            ++end;
        runs_.push_back(
            {taken_[first].offset, std::as_bytes(std::span(&words_[first], end - first)), part});
        first = end;
    }
    const std::size_t sent = taker_.forward(runs_);
    RMEM_CHECK(sent <= runs_.size());
    std::size_t words = 0;
    for (std::size_t run = 0; run < sent; ++run) words += runs_[run].data.size() / kWordBytes;
    for (std::size_t i = 0; i < words; ++i)
        twin_.set_sent(taken_[i].offset, taken_[i].before, taken_[i].now);
    taker_.note_in_twin();
    if (sent != runs_.size()) is_whole_ = false;
    taken_.clear();
}

}  // namespace rmem::stores
