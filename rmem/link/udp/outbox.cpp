// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/outbox.hpp"

#include "rmem/base/check.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/unsent.hpp"

#include <algorithm>

namespace rmem::udp {

namespace {

constexpr std::size_t kPlaceWords = 2;      // a record's place takes as much of a datagram
constexpr std::uint32_t kLongWords = 2048;  // of a write in the bank, at a time

}  // namespace

Outbox::Outbox(Ring& ring, Core& core, Tap& tap, Roster& roster, std::optional<unsigned> own_rank)
    : ring_(ring),
      board_(ring.board()),
      slot_(ring.node(ring.own_node())),
      bank_(ring, ring.own_node()),
      applier_(ring, ring.board().applier),
      bank_bytes_(ring.config().bank_bytes()),
      core_(core),
      tap_(tap),
      roster_(roster),
      node_(ring.own_node()),
      own_rank_(own_rank) {
    for (unsigned r = 0; r < ring.config().seats(); ++r) {
        logs_.emplace_back(ring.log(r),
                           r == own_rank ? LogReader::Role::engine : LogReader::Role::member);
    }
    begin_incarnation();
}

bool Outbox::has_room(std::size_t bytes) const noexcept {
    if (is_completed()) return true;  // more room than now there will never be
    const std::size_t window = core_.exchange().out().window();
    const std::size_t least = std::min(bytes, std::min(window, kMaxWindowBytes) / 8);
    // A batch to spare: what is begun may leave before the group comes, and the engine itself
    // writes a word at times.
    constexpr unsigned kSpare = 1;
    return !is_behind() && delayed_.size() + kMaxGroupWrites <= kMaxDelayed &&
           core_.has_room(least / kWordBytes + kPlaceWords * kMaxGroupWrites, kSpare);
}

inline bool Outbox::write(const LogRecord& record, const void* words, std::int64_t now) {
    std::uint8_t flags = Place::flags_of(record.part());
    if ((record.flags & LogRecord::kInterrupt) != 0) flags |= Place::kInterrupt;
    if (!core_.try_write(record.offset / kWordBytes, record.words, words, record.written_ns, flags))
        return false;
    if ((record.flags & LogRecord::kMeLast) != 0) {
        core_.ask_at_once();
        const auto* bytes = static_cast<const std::byte*>(words);
        own_later_.push_back({core_.exchange().out().next_sequence(),
                              record,
                              {bytes, bytes + record.words * kWordBytes}});
    }
    if (tap_.is_open()) [[unlikely]]
        show(record, words, now);
    return true;
}

bool Outbox::put(const LogRecord& record, const void* words, std::int64_t now) {
    RMEM_CHECK_IF(false, is_possible(record));
    if (!delayed_.empty() || record.delay_ns != 0) {
        if (delayed_.size() >= kMaxDelayed) return false;
        const auto* bytes = static_cast<const std::byte*>(words);
        const std::int64_t due = delayed_.empty() ? 0 : delayed_.back().due_ns;
        delayed_.push_back({record,
                            {bytes, bytes + record.words * kWordBytes},
                            std::max(due, record.written_ns + record.delay_ns)});
        return true;
    }
    return write(record, words, now);
}

void Outbox::show(const LogRecord& record, const void* words, std::int64_t now) noexcept {
    TappedWrite shown;
    shown.origin = node_;
    shown.written_ns = record.written_ns;
    shown.applied_ns = now;
    shown.offset = record.offset;
    shown.part = record.part();
    shown.is_interrupt = (record.flags & LogRecord::kInterrupt) != 0;
    shown.is_me_last = (record.flags & LogRecord::kMeLast) != 0;
    tap_.show(shown, {static_cast<const std::byte*>(words), record.words * kWordBytes});
}

// ---- Logs

bool Outbox::has_opened(unsigned rank) const noexcept {
    // (3) - this acquire-load synchronizes-with the release-store rmem/link/udp/memory.cpp (7);
    // relaxed is enough for the incarnation, which only engines change
    return board_.opened[rank].load(std::memory_order_acquire) ==
           board_.membership_epoch.load(std::memory_order_relaxed);
}

/// What a log holds below that position is of a former incarnation.
void Outbox::pass_over(unsigned rank, std::uint64_t position) noexcept {
    logs_[rank].seek(position);
    show_consumed(rank, position);
    show_completed(rank, position);
}

void Outbox::find_programs() {
    // (5) - this acquire-load synchronizes-with the release-add rmem/link/udp/memory.cpp (5)
    changes_seen_ = board_.membership_changes.load(std::memory_order_acquire);
    programs_.clear();
    has_clients_ = false;
    for (unsigned r = 0; r < ring_.seats(); ++r) {
        if (!has_opened(r)) continue;
        // relaxed is enough: (3)
        const std::uint64_t begun = board_.begun[r].load(std::memory_order_relaxed);
        if (begun > logs_[r].position()) pass_over(r, begun);
        // (1) - this acquire-load synchronizes-with the release-store rmem/ring/rank_hold.cpp (4)
        const auto state = ring_.rank(r).state.load(std::memory_order_acquire);
        if (state == static_cast<std::uint32_t>(RankState::elsewhere)) continue;
        // What a rank wrote that has left or died is taken, too.
        if (state != static_cast<std::uint32_t>(RankState::joined) && !logs_[r].refresh()) continue;
        programs_.push_back(r);
        has_clients_ = has_clients_ || r != own_rank_;
    }
}

void Outbox::write_roster(unsigned rank, const RosterEntry& entry, std::int64_t now) {
    RMEM_CHECK(core_.is_member());
    const std::uint32_t word = entry.word();
    LogRecord record;
    record.written_ns = now;
    record.offset = roster_.offset_of(rank);
    record.words = 1;
    if (!put(record, &word, now)) return;
    roster_.store(rank, entry);
    commit(now);
}

void Outbox::keep_roster(const std::function<void()>& take_all, std::int64_t now) {
    find_programs();
    if (!core_.is_member()) return;
    look_after_guests(take_all);
    for (unsigned r = 0; r < ring_.config().ranks; ++r) {
        const RosterEntry entry = roster_.entry(r);
        const bool is_said = entry.joined && entry.node == node_;
        // relaxed is enough: (5)
        const std::uint32_t incarnation = ring_.rank(r).incarnation.load(std::memory_order_relaxed);
        // A live program of this host has the rank, and opened it in this incarnation of the node.
        if (has_opened(r) && roster_.is_here(r)) {
            if (!is_said || entry.incarnation != incarnation)
                write_roster(r, {true, node_, incarnation}, now);
        } else if (is_said) {
            const bool is_all = send_unsent_of_dead(ring_, r);
            take_all();
            if (!is_all) continue;  // no room: the next time
            write_roster(r, {false, node_, entry.incarnation}, now);
        }
    }
}

/// Others know nothing of them; what one that has died leaves is sent.
void Outbox::look_after_guests(const std::function<void()>& take_all) {
    for (unsigned seat = ring_.config().ranks; seat < ring_.seats(); ++seat) {
        std::atomic<std::uint32_t>& state = ring_.rank(seat).state;
        // relaxed is enough, twice: the byte lock decides
        constexpr auto kJoined = static_cast<std::uint32_t>(RankState::joined);
        if (state.load(std::memory_order_relaxed) != kJoined || ring_.is_alive(seat)) continue;
        const bool is_all = send_unsent_of_dead(ring_, seat);
        take_all();
        // Unless another has come meanwhile, who sends it.
        const auto lock = is_all ? ring_.try_lock_rank(seat) : std::nullopt;
        if (lock)  // relaxed is enough: as above
            state.store(static_cast<std::uint32_t>(RankState::lost), std::memory_order_relaxed);
    }
}

std::uint64_t Outbox::committed(unsigned rank) const noexcept {
    // (2) - this acquire-load synchronizes-with the release-store rmem/link/udp/memory.cpp (6)
    return board_.committed[rank].load(std::memory_order_acquire);
}

void Outbox::show_consumed(unsigned rank, std::uint64_t position) noexcept {
    // (4) - this release-store synchronizes-with the acquire-loads rmem/link/udp/memory.cpp (3)
    // and rmem/link/udp/memory.cpp (8)
    board_.consumed[rank].store(position, std::memory_order_release);
}

void Outbox::show_completed(unsigned rank, std::uint64_t position) noexcept {
    // (6) - this release-store synchronizes-with the acquire-load rmem/link/udp/memory.hpp (4)
    board_.completed[rank].store(position, std::memory_order_release);
}

bool Outbox::has_news(Take what) const noexcept {
    const auto is_news = [&](unsigned r) {
        return takes(what, r) && committed(r) > logs_[r].position();
    };
    return std::any_of(programs_.begin(), programs_.end(), is_news) &&
           core_.has_room(kMaxRecordWords);
}

bool Outbox::has_all() noexcept {
    return std::none_of(programs_.begin(), programs_.end(),
                        [this](unsigned r) { return logs_[r].refresh(); });
}

std::int64_t Outbox::open_since_ns() noexcept {
    const std::int64_t open = core_.exchange().open_since_ns();
    LogReader::Entry entry;
    if (!own_rank_ || logs_[*own_rank_].peek(entry) != LogReader::Found::record) return open;
    return std::min(open, entry.record.written_ns);
}

bool Outbox::is_committed() noexcept {
    return !own_rank_ || !logs_[*own_rank_].refresh() || is_behind();
}

bool Outbox::take(Take what, std::size_t datagrams, std::int64_t now) {
    bool any = false;
    for (const unsigned r : programs_) {
        if (!takes(what, r)) continue;
        const std::uint64_t until = what == Take::all ? UINT64_MAX : committed(r);
        if (logs_[r].position() < until) any = take_log(r, until, datagrams, now) || any;
    }
    return any;
}

/// True if anything was put.
bool Outbox::take_log(unsigned rank, std::uint64_t until, std::size_t datagrams, std::int64_t now) {
    LogReader& log = logs_[rank];
    const std::uint64_t before = log.position();
    bool any = false;
    LogReader::Entry entry;
    while (log.position() < until && core_.outgoing().count() < datagrams) {
        const LogReader::Found found = log.peek(entry);
        if (found == LogReader::Found::none) break;
        if (found != LogReader::Found::record || !is_possible(entry.record)) {
            slot_.link.add(LinkCounter::records_refused);
            log.skip_all();
            any = true;
            break;
        }
        const bool is_in_bank = (entry.record.flags & LogRecord::kInBank) != 0;
        const bool is_put =
            is_in_bank ? put_part(entry.record, now) : put(entry.record, log.words(entry), now);
        if (!is_put) break;
        any = true;
        if (is_in_bank) {
            if (words_done_ < entry.record.words) continue;
            words_done_ = 0;
        }
        log.pass(entry);
    }
    if (log.position() == before) return any;
    show_consumed(rank, log.position());
    const bool in_stream = delayed_.empty();
    consumed_.push_back(
        {in_stream ? core_.exchange().out().next_sequence() : kLater, rank, log.position()});
    return true;
}

/// The next part of a write whose words lie in the bank. False: no room.
bool Outbox::put_part(const LogRecord& record, std::int64_t now) {
    // A card shows its first word before it has the last.
    const bool keeps_time = ring_.config().timing.instant == 0;
    LogRecord part = record;
    part.offset += words_done_ * kWordBytes;
    part.words = std::min(record.words - words_done_, keeps_time ? kMaxRecordWords : kLongWords);
    const auto* const words = ring_.bank(node_) + part.offset;
    if (!put(part, words, now)) {
        part.words = std::min(part.words, kMaxRecordWords);
        if (!put(part, words, now)) return false;
    }
    words_done_ += part.words;
    return true;
}

bool Outbox::is_possible(const LogRecord& record) const noexcept {
    const std::size_t bytes = record.words * kWordBytes;
    return record.words != 0 && record.offset % kWordBytes == 0 && record.offset <= bank_bytes_ &&
           bytes <= bank_bytes_ - record.offset;
}

// ---- Later

std::int64_t Outbox::due_ns() const noexcept {
    // Without room there is nothing to do until a datagram makes some.
    const bool waits = delayed_.empty() || !core_.has_room(delayed_.front().record.words);
    return waits ? kNever : delayed_.front().due_ns;
}

void Outbox::on_time(std::int64_t now) {
    while (!delayed_.empty() && delayed_.front().due_ns <= now) {
        const Delayed& next = delayed_.front();
        // By itself, so that it says when it was stored.
        core_.commit(now);
        if (!write(next.record, next.words.data(), now)) break;
        core_.commit(now);
        delayed_.pop_front();
        if (delayed_.empty()) place_consumed();
    }
}

/// What was consumed behind delayed writes is in the stream by now.
void Outbox::place_consumed() noexcept {
    for (Consumed& entry : consumed_) {
        if (entry.sequence == kLater) entry.sequence = core_.exchange().out().newest();
    }
}

bool Outbox::complete() noexcept {
    const std::uint64_t acknowledged = core_.exchange().out().acknowledged();
    if (acknowledged == completed_) return false;
    completed_ = acknowledged;
    bool changed = false;
    while (!own_later_.empty() && own_later_.front().sequence <= completed_) {
        const OwnLater& write = own_later_.front();
        const Applying applying(applier_, write.record.offset, write.record.words,
                                write.record.part());
        bank_.store(write.record, write.words.data(), applying.any_twin());
        own_later_.pop_front();
        changed = true;
    }
    while (!consumed_.empty() && consumed_.front().sequence <= completed_) {
        const Consumed& next = consumed_.front();
        show_completed(next.rank, next.position);
        consumed_.pop_front();
    }
    return changed;
}

bool Outbox::is_completed() const noexcept {
    return delayed_.empty() && core_.is_idle() && own_later_.empty();
}

void Outbox::begin_incarnation() {
    delayed_.clear();
    own_later_.clear();
    consumed_.clear();
    programs_.clear();
    has_clients_ = false;
    words_done_ = 0;
    completed_ = 0;
    for (unsigned r = 0; r < ring_.seats(); ++r) {
        logs_[r].refresh();
        logs_[r].skip_all();
        show_consumed(r, logs_[r].position());
        show_completed(r, logs_[r].position());
    }
}

}  // namespace rmem::udp
