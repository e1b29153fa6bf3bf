// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/unsent.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/base/word_block.hpp"
#include "rmem/error.hpp"
#include "rmem/ring/applied.hpp"
#include "rmem/ring/bank.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/segment.hpp"
#include "rmem/ring/touched_part.hpp"
#include "rmem/ring/twin.hpp"
#include "rmem/ring/waiting/sleeping_engines.hpp"
#include "rmem/ring/waiting/word_sleepers.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

namespace rmem {

namespace {

constexpr std::int64_t kTwinNs = 10'000'000;  // for one that is just storing a write

/// Of one rank, whose byte lock is held.
class Sender {
public:
    Sender(const Ring& ring, unsigned rank, unsigned node, LogWriter& log)
        : ring_(ring), rank_(rank), node_(node), log_(log), writer_(ring.rank(rank).writer) {}

    [[nodiscard]] bool send_all() {
        // relaxed is enough, twice: the rank's byte lock orders its processes
        if (writer_.count.load(std::memory_order_relaxed) % 2 != 0 && !send_begun()) return false;
        const auto& twin = ring_.node(node_).keeps_twin;
        return twin.load(std::memory_order_relaxed) == 0 || send_stored();  // enough: above
    }

private:
    /// What it was storing by a call.
    [[nodiscard]] bool send_begun() {
        // relaxed is enough, here and below: the rank's byte lock orders its processes
        const std::uint64_t log_end = writer_.log_end.load(std::memory_order_relaxed);
        if (log_end <= log_.head()) {  // and not kNotOwn
            const auto place = Applying::Place::of(
                writer_.place.load(std::memory_order_relaxed));  // enough: above
            const std::size_t size = ring_.config().bank_bytes() / kWordBytes * kWordBytes;
            const std::size_t begin = std::min(place.offset, size);
            const std::size_t all = (size - begin) / kWordBytes;
            const bool has_end = place.words != Applying::Place::kMaxWords;
            const std::size_t words = has_end ? std::min(place.words, all) : all;
            const bool is_part = words == 1 && ring_.config().timing.whole_words == 0;
            const std::size_t end = begin + words * kWordBytes;
            const WordPart part = is_part ? place.part : kWholeWord;
            std::size_t at = logged_to(log_end, begin, end);
            if (!send(at, end, part)) {
                const Applying::Place rest{at, (end - at) / kWordBytes, part};
                // relaxed is enough, twice: as above
                writer_.place.store(rest.packed(), std::memory_order_relaxed);
                writer_.log_end.store(log_.head(), std::memory_order_relaxed);  // enough: above
                return false;
            }
        }
        mend_applier(ring_, writer_);
        return true;
    }

    /// What its program has stored by itself, and nobody has compared.
    [[nodiscard]] bool send_stored() {
        std::optional<Twin> twin;
        try {
            twin.emplace(ring_, node_, Deadline::in(kTwinNs));
        } catch (const Error&) {
            return true;  // another process keeps it, or was stopped
        }
        // What was sent, and perhaps not put into the twin before it was killed.
        // relaxed is enough: as in all of this
        for_each_logged(ring_.rank(rank_).in_twin.load(std::memory_order_relaxed),
                        [&](const LogReader& log, const LogReader::Entry& entry) {
                            twin->set_logged(entry.record, log.words(entry));
                        });
        const std::size_t size = ring_.config().user_bytes;
        TouchedPart touched(ring_, node_);
        for (std::size_t at = 0; (at = touched.begin(at)) < size;) {
            at = at / Twin::kBlockBytes * Twin::kBlockBytes;
            const std::size_t bytes = std::min(Twin::kBlockBytes, size - at);
            if (twin->differs(at, bytes) && !send_block(*twin, at, bytes)) {
                twin->abandon();
                return false;
            }
            at += bytes;
        }
        return true;
    }

    /// `at`: what is sent lies before it.
    [[nodiscard]] bool send(std::size_t& at, std::size_t end, WordPart part) {
        std::array<std::uint32_t, kMaxRecordWords> words;
        LogRecord record;
        record.written_ns = now_ns();
        for (; at < end; at += record.words * kWordBytes) {
            record.offset = at;
            record.words = static_cast<std::uint32_t>(
                std::min<std::size_t>((end - at) / kWordBytes, words.size()));
            if (!log_.fits(LogArea::units_of(record.words))) return false;
            const std::size_t bytes = record.words * kWordBytes;
            const bool is_marked = marks_.is_marked(at, bytes);
            record.flags = LogRecord::flags_of(part) | (is_marked ? LogRecord::kInterrupt : 0);
            load_block(words.data(), ring_.bank(node_) + at, bytes);
            log_.append(record, words.data());
            WordSleepers(ring_).wake(at, bytes);
        }
        return true;
    }

    /// Looks again at words that others are just storing, which may be into other banks.
    [[nodiscard]] bool send_block(Twin& twin, std::size_t offset, std::size_t bytes) {
        const Deadline given_up = Deadline::in(kTwinNs);
        for (;; ::sched_yield()) {
            const Twin::Seen seen = twin.look(offset, bytes);
            if (!send_seen(twin, offset, seen)) return false;
            if (seen.undecided == 0 || given_up.passed(now_ns())) return true;
        }
    }

    [[nodiscard]] bool send_seen(Twin& twin, std::size_t offset, const Twin::Seen& seen) {
        for (std::uint64_t left = seen.words; left != 0; left &= left - 1) {
            const auto i = static_cast<unsigned>(std::countr_zero(left));
            std::size_t at = offset + i * kWordBytes;
            const bool has_bytes = ring_.config().timing.whole_words == 0;
            const WordPart part =
                has_bytes ? differing_part(seen.now[i], seen.before[i]) : kWholeWord;
            if (!send(at, at + kWordBytes, part)) return false;
            twin.set_sent(offset + i * kWordBytes, seen.before[i], seen.now[i]);
        }
        return true;
    }

    /// What was logged from that position on, or as much as is left of it.
    template <class Take>
    void for_each_logged(std::uint64_t from, Take take) const {
        LogReader log(ring_.log(rank_), LogReader::Role::observer);
        LogReader::Entry entry;
        if (from > log_.head()) return;
        log.seek(from);
        if (log.peek(entry) == LogReader::Found::lapped) log.seek(log.oldest());
        for (; log.peek(entry) == LogReader::Found::record; log.pass(entry)) take(log, entry);
    }

    /// The end of what was logged of the bytes [begin, end) from that position on.
    std::size_t logged_to(std::uint64_t from, std::size_t begin, std::size_t end) const {
        std::size_t logged = begin;
        for_each_logged(from, [&](const LogReader&, const LogReader::Entry& entry) {
            const std::uint64_t at = entry.record.offset;
            if (at >= begin && at < end) logged = at + entry.record.words * kWordBytes;
        });
        return logged;
    }

    const Ring& ring_;
    const unsigned rank_, node_;
    LogWriter& log_;
    Applier& writer_;
    const InterruptBoard marks_ = InterruptBoard::in_the_name_of(ring_, node_, rank_);
};

/// The node of a rank that has left something, read once; nothing: it has not.
std::optional<unsigned> node_with_unsent(const Ring& ring, unsigned rank) noexcept {
    // relaxed is enough, throughout: as in Sender, and a twin's keeper is dead, or sends it itself
    const RankSlot& slot = ring.rank(rank);
    const unsigned node = slot.node.load(std::memory_order_relaxed);
    if (node >= ring.config().nodes) return std::nullopt;
    const bool was_storing = slot.writer.count.load(std::memory_order_relaxed) % 2 != 0;
    const bool has_twin =
        ring.node(node).keeps_twin.load(std::memory_order_relaxed) != 0;  // enough: above
    return was_storing || has_twin ? std::optional(node) : std::nullopt;
}

/// Up to where all have read the log of a rank that does not look after it any more.
std::uint64_t read_by_all(const Ring& ring, unsigned rank, std::uint64_t head) noexcept {
    // relaxed is enough, twice: an old position only leaves less room
    if (ring.config().is_remote())
        return ring.board().consumed[rank].load(std::memory_order_relaxed);
    for (unsigned n = 0; n < ring.config().nodes; ++n) {
        const bool was_there = ring.node(n).present.load(std::memory_order_relaxed) != 0;
        if (was_there && ring.is_present(n)) head = std::min(head, applied_of(ring, n, rank));
    }
    return head;
}

}  // namespace

bool send_unsent(const Ring& ring, unsigned rank, LogWriter& log) {
    const auto node = node_with_unsent(ring, rank);
    return !node || Sender(ring, rank, *node, log).send_all();
}

bool send_unsent_of_dead(const Ring& ring, unsigned rank) noexcept try {
    if (!node_with_unsent(ring, rank)) return true;
    const auto lock = ring.try_lock_rank(rank);
    if (!lock) return true;
    LogWriter log(ring.log(rank));
    log.reclaim(read_by_all(ring, rank, log.head()));
    const bool is_all = send_unsent(ring, rank, log);
    if (!ring.config().is_remote()) SleepingEngines(ring).wake_others(rank);
    return is_all;
} catch (const Error&) {
    return true;  // the host gives no lock: the next process of that rank sends it
}

}  // namespace rmem
