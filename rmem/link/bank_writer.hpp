// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How a rank writes on links with a bank per node: into the own bank, and out to the others.
///
/// The common part of such links in the Memory concept (rmem/link/memory.hpp) and of the card's
/// options, and the rank's log, from which the link takes its writes. The link itself is the class
/// `Link`, which derives from this one and has
///
///     void send(std::size_t offset, const void* from, std::size_t words, std::uint32_t flags);
///     std::uint32_t mark_of(std::size_t offset, std::size_t bytes) const noexcept;
///     bool is_heard() const noexcept;
///     void announce() noexcept;
///
/// The own bank, and what send() stores into those of others, is stored under this rank's Applying.
/// send() takes the words on their way, with the flags of LogRecord; mark_of() is
/// LogRecord::kInterrupt where the node's writes to that range carry it. is_heard() is false when
/// nobody hears the rank any more: then it leaves the bank alone, too. announce() wakes who sleeps
/// and may want what was written; without one of its own, all that have asked for anything.
///
/// Threads: one; `load` and `data` from any.

#include "rmem/base/check.hpp"
#include "rmem/base/fence.hpp"
#include "rmem/base/word_block.hpp"
#include "rmem/link/changed_runs.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/ring/bank.hpp"
#include "rmem/ring/counters.hpp"
#include "rmem/ring/unsent.hpp"
#include "rmem/ring/waiting/waiting.hpp"
#include "rmem/ring/write_log.hpp"
#include "rmem/wire/faults.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rmem {

template <class Link>
class BankWriter {
public:
    static constexpr bool kReplicated = true;
    static constexpr bool kHasDescriptors = true;

    std::uint32_t load(std::size_t offset) const noexcept {
        // (1) - this acquire-load synchronizes-with the release-stores
        // rmem/base/word_block.hpp (1), rmem/link/udp/engine_work.cpp (3) and
        // rmem/link/udp/roster.cpp (3)
        return word(offset).load(std::memory_order_acquire);
    }
    const std::byte* data(std::size_t offset, std::size_t) const noexcept { return bank_ + offset; }
    std::byte* own(std::size_t offset) const noexcept { return bank_ + offset; }

    void write(std::size_t offset, const void* from, std::size_t bytes);
    /// Bytes of a word, at the word's offset.
    void write_part(std::size_t offset, std::uint32_t value, WordPart part);
    void publish(std::size_t offset, std::size_t bytes) {
        forward(offset, bank_ + offset, (bytes + kWordBytes - 1) / kWordBytes);
    }
    /// Words that the own bank has already go to the others.
    void forward(std::size_t offset, const void* from, std::size_t words) {
        const Applying applying(applier_, offset, words, kWholeWord, log_.head());
        link().send(offset, from, words, link().mark_of(offset, words * kWordBytes));
        unannounced_ = true;
    }
    /// As forward(), bytes of a word.
    void forward_part(std::size_t offset, std::uint32_t value, WordPart part) {
        const Applying applying(applier_, offset, 1, part, log_.head());
        send_part(offset, value, part, link().mark_of(offset, kWordBytes));
    }
    void post_word(std::size_t offset, std::uint32_t value) {
        write_words(offset, &value, 1);
        if (unannounced_) link().announce();
    }
    void write_lazy(std::size_t offset, std::uint32_t value) {
        if (!link().is_heard()) return;
        if (filter_) return write_changed(offset, &value, 1);
        pass(offset, &value, 1);
    }
    /// Positions of the rank's log: of its end, and up to which all have come round, as far as is
    /// known.
    std::uint64_t written() const noexcept { return log_.head(); }
    void notify(unsigned rank) const noexcept { waiter_.notify(rank); }

    static void expect_write(std::size_t, std::size_t) noexcept {}  // no other has the bank's lines
    static void expect_read(std::size_t, std::size_t) noexcept {}
    static void stamp(std::size_t, std::uint32_t) noexcept {}  // each record has its time
    static void seen(std::size_t, std::uint32_t, std::int64_t) noexcept {}
    static constexpr unsigned brief_polls() noexcept { return 0; }  // nothing arrives by itself
    bool is_crowded() noexcept { return waiter_.is_crowded(); }
    void give_way() noexcept { waiter_.give_way(); }
    void begin_wait() noexcept { waiter_.begin(); }
    void end_wait() noexcept { waiter_.end(); }
    static std::int64_t now_ns() noexcept { return rmem::now_ns(); }

    /// The own bank gets an own write when it has come round. What `own` composed is there already.
    void set_write_me_last(bool on) noexcept { me_last_ = on; }
    /// Words that a write does not change are not sent, unless marked for an interrupt.
    void set_data_filter(bool on) noexcept { filter_ = on; }

protected:
    BankWriter(Ring& ring, unsigned node, unsigned rank, const FaultPlan& faults)
        : ring_(ring),
          rank_(rank),
          bank_(ring.bank(node)),
          own_bank_(ring, node),
          applier_(ring, ring.rank(rank).writer),
          counters_(ring.rank(rank).link),
          attention_(ring.attention()),
          waiter_(ring, rank),
          log_(ring.log(rank)),
          faults_(faults, node, rank) {}

    std::atomic<std::uint32_t>& word(std::size_t offset) const noexcept {
        return *reinterpret_cast<std::atomic<std::uint32_t>*>(bank_ + offset);
    }
    /// In units of the log; of a group that it cannot hold, all that it can.
    std::uint64_t units_of_group(std::size_t bytes) const noexcept {
        return std::min(LogArea::units_of_group(bytes, kMaxGroupWrites),
                        log_.capacity() - LogWriter::kMaxPad);
    }
    /// Injected faults: whether it is lost, or how late it leaves.
    [[nodiscard]] bool is_lost(LogRecord& record) noexcept {
        if (faults_.empty()) return false;
        const WriteFaults::Verdict verdict = faults_.next();
        counters_.add(LinkCounter::faults_injected, verdict.injected);
        record.delay_ns = verdict.delay_ns;
        return verdict.lose;
    }
    /// What a former process of this rank had stored and not sent. `await_room(units)` returns
    /// false if there will be none.
    template <class AwaitRoom>
    void send_unsent_first(AwaitRoom&& await_room) {
        bool goes_on = true;
        while (goes_on && !send_unsent(ring_, rank_, log_))
            goes_on = await_room(LogArea::units_of(kMaxRecordWords));
    }
    /// In registers: to load what was just stored in other pieces takes as long as all the rest.
    [[gnu::always_inline]] void log(const LogRecord& record, const void* words) noexcept {
        log_.append(record, words);
        counters_.add(LinkCounter::writes_sent);
        counters_.add(LinkCounter::bytes_sent, record.words * kWordBytes);
    }
    /// A flag and the words after it, as one write. For links that store the first word of such a
    /// write last in all banks.
    void post(std::size_t offset, const std::uint32_t* words, std::size_t count);
    /// Wakes the ranks of this host that sleep and may want what was written.
    void announce() noexcept;

    Ring& ring_;
    const unsigned rank_;
    std::byte* const bank_;
    const Bank own_bank_;
    const ApplierUse applier_;
    Counters& counters_;
    std::atomic<std::uint32_t>* const attention_;
    Waiter waiter_;
    LogWriter log_;
    WriteFaults faults_;
    bool unannounced_ = false;  ///< written since sleepers were looked for

private:
    Link& link() noexcept { return static_cast<Link&>(*this); }

    std::uint32_t flags_of(std::size_t offset, std::size_t bytes) noexcept {
        return (me_last_ ? LogRecord::kMeLast : 0) | link().mark_of(offset, bytes);
    }
    /// For Applying: with write-me-last nobody has what was not sent.
    std::uint64_t stored_from() const noexcept {
        return me_last_ ? Applying::kNotOwn : log_.head();
    }
    void write_words(std::size_t offset, const void* from, std::size_t words);
    void send_part(std::size_t offset, std::uint32_t value, WordPart part, std::uint32_t flags);
    void write_changed(std::size_t offset, const void* from, std::size_t words);
    /// Into the own bank, and on their way.
    template <std::uint32_t kFlags = 0>
    void pass(std::size_t offset, const void* from, std::size_t words) {
        const Applying applying(applier_, offset, words, kWholeWord, stored_from());
        const std::size_t bytes = words * kWordBytes;
        if (!me_last_) own_bank_.store(offset, from, bytes, applying.any_twin(), kFlags != 0);
        link().send(offset, from, words, kFlags | flags_of(offset, bytes));
    }

    bool me_last_ = false;
    bool filter_ = false;
};

template <class Link>
void BankWriter<Link>::write(std::size_t offset, const void* from, std::size_t bytes) {
    const std::size_t words = bytes / kWordBytes;
    const std::size_t rest = bytes % kWordBytes;
    if (rest == 0) return write_words(offset, from, words);
    // The word in which it ends travels whole, with the own bank's bytes in the rest of it.
    if (words != 0) write_words(offset, from, words);
    const std::size_t last = offset + words * kWordBytes;
    std::uint32_t value = load(last);
    std::memcpy(&value, static_cast<const std::byte*>(from) + words * kWordBytes, rest);
    write_words(last, &value, 1);
}

template <class Link>
void BankWriter<Link>::write_words(std::size_t offset, const void* from, std::size_t words) {
    if (!link().is_heard()) return;
    if (filter_) return write_changed(offset, from, words);
    pass(offset, from, words);
    unannounced_ = true;
}

template <class Link>
void BankWriter<Link>::post(std::size_t offset, const std::uint32_t* words, std::size_t count) {
    RMEM_CHECK_IF(false, count >= 1 && count <= Link::kMaxPostWords);
    if (filter_) {
        write_words(offset + kWordBytes, words + 1, count - 1);
        return post_word(offset, *words);
    }
    if (!link().is_heard()) return;
    pass<LogRecord::kFlagFirst>(offset, words, count);
    link().announce();
}

template <class Link>
void BankWriter<Link>::write_part(std::size_t offset, std::uint32_t value, WordPart part) {
    if (!link().is_heard()) return;
    if (filter_ && with_part(load(offset), value, part) == load(offset) &&
        link().mark_of(offset, kWordBytes) == 0)
        return counters_.add(LinkCounter::writes_filtered);
    const Applying applying(applier_, offset, 1, part, stored_from());
    if (!me_last_) own_bank_.store_part(offset, value, part, applying.any_twin());
    send_part(offset, value, part, flags_of(offset, kWordBytes));
}

/// A card that sends whole words takes the rest from its memory.
template <class Link>
void BankWriter<Link>::send_part(std::size_t offset, std::uint32_t value, WordPart part,
                                 std::uint32_t flags) {
    if (ring_.config().timing.whole_words != 0) {
        value = with_part(load(offset), value, part);
        part = kWholeWord;
    }
    link().send(offset, &value, 1, flags | LogRecord::flags_of(part));
    unannounced_ = true;
}

/// The data filter: sends the runs of words that change.
template <class Link>
void BankWriter<Link>::write_changed(std::size_t offset, const void* from, std::size_t words) {
    const auto* bytes = static_cast<const std::byte*>(from);
    const auto is_sent = [&](std::size_t i) {
        std::uint32_t value = 0;
        std::memcpy(&value, bytes + i * kWordBytes, kWordBytes);
        const std::size_t at = offset + i * kWordBytes;
        return value != load(at) || link().mark_of(at, kWordBytes) != 0;
    };
    const auto send_run = [&](std::size_t first, std::size_t count) {
        pass(offset + first * kWordBytes, bytes + first * kWordBytes, count);
        unannounced_ = true;
    };
    counters_.add(LinkCounter::writes_filtered, send_runs(words, is_sent, send_run));
}

template <class Link>
void BankWriter<Link>::announce() noexcept {
    unannounced_ = false;
    light_fence();
    for (unsigned r = 0; r < ring_.seats(); ++r) {
        // relaxed is enough: the fence orders this load after the post before it
        const std::uint32_t asked = attention_[r].load(std::memory_order_relaxed) & kWritesWake;
        if (asked != 0 && r != rank_) [[unlikely]] {
            wake_asked(ring_, r, asked);
        }
    }
}

}  // namespace rmem
