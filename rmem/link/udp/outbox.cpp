// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/outbox.hpp"

#include "rmem/base/check.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/ring/node_slot.hpp"

#include <algorithm>

namespace rmem::udp {

namespace {

constexpr std::size_t kPlaceWords = 2;      // a record's place takes as much of a datagram
constexpr std::uint32_t kLongWords = 2048;  // of a block, in one record

}  // namespace

Outbox::Outbox(Ring& ring, unsigned node, Core& core, Tap& tap)
    : ring_(ring),
      board_(ring.board()),
      slot_(ring.node(node)),
      bank_(ring, node),
      applier_(ring, ring.board().applier),
      bank_bytes_(ring.config().bank_bytes()),
      core_(core),
      tap_(tap),
      node_(node),
      words_(kMaxRecordWords * kWordBytes) {
    for (unsigned r = 0; r < ring.config().ranks; ++r) {
        logs_.emplace_back(ring.log(r));
    }
    begin_incarnation();
}

bool Outbox::has_room(std::size_t bytes) const noexcept {
    // A batch to spare: what is begun may leave before the group comes, and the engine itself
    // writes a word at times.
    constexpr unsigned kSpare = 1;
    return core_.has_room(bytes / kWordBytes + kPlaceWords * kMaxGroupWrites, kSpare) &&
           delayed_.size() + kMaxGroupWrites <= kMostDelayed;
}

std::size_t Outbox::most_group_bytes() const noexcept {
    return std::min(core_.exchange().out().window(), kMostWindowBytes) / 8;
}

bool Outbox::put(const LogRecord& record, const void* words, std::int64_t now) {
    RMEM_CHECK_IF(false, is_possible(record));
    if (!delayed_.empty() || record.delay_ns != 0) {
        if (delayed_.size() >= kMostDelayed) return false;
        const auto* bytes = static_cast<const std::byte*>(words);
        const std::int64_t due = delayed_.empty() ? 0 : delayed_.back().due_ns;
        delayed_.push_back({record,
                            {bytes, bytes + record.words * kWordBytes},
                            std::max(due, record.written_ns + record.delay_ns)});
        return true;
    }
    if (!core_.has_room(record.words)) return false;
    write(record, words, now);
    return true;
}

std::size_t Outbox::put_some(const LogRecord& record, const std::byte* words) {
    LogRecord part = record;
    std::size_t done = 0;
    // A card shows its first word before it has the last.
    const bool keeps_time = ring_.config().timing.instant == 0;
    const bool waits = record.delay_ns != 0 || !delayed_.empty();
    const std::uint32_t most = keeps_time || waits ? kMaxRecordWords : kLongWords;
    for (; done < record.words; done += part.words) {
        part.offset = record.offset + done * kWordBytes;
        part.words = std::min(record.words - static_cast<std::uint32_t>(done), most);
        if (!core_.has_room(part.words)) part.words = std::min(part.words, kMaxRecordWords);
        if (!put(part, words + done * kWordBytes, record.written_ns)) break;
    }
    return done;
}

void Outbox::write(const LogRecord& record, const void* words, std::int64_t now) {
    std::uint8_t flags = 0;
    if ((record.flags & LogRecord::kInterrupt) != 0) flags = Place::kInterrupt;
    core_.write(record.offset / kWordBytes, record.words, words, record.written_ns, flags);
    if ((record.flags & LogRecord::kMeLast) != 0) {
        const auto* bytes = static_cast<const std::byte*>(words);
        own_later_.push_back({core_.exchange().out().next_sequence(),
                              record.offset,
                              {bytes, bytes + record.words * kWordBytes}});
    }
    coalescer_.on_write(now);
    if (tap_.is_open()) [[unlikely]]
        show(record, words, now);
}

void Outbox::show(const LogRecord& record, const void* words, std::int64_t now) noexcept {
    TappedWrite shown;
    shown.origin = node_;
    shown.written_ns = record.written_ns;
    shown.applied_ns = now;
    shown.offset = record.offset;
    shown.is_interrupt = (record.flags & LogRecord::kInterrupt) != 0;
    shown.is_me_last = (record.flags & LogRecord::kMeLast) != 0;
    tap_.show(shown, {static_cast<const std::byte*>(words), record.words * kWordBytes});
}

void Outbox::show(std::span<const ShortWrite> writes, std::int64_t now) noexcept {
    for (const ShortWrite& write : writes) {
        LogRecord record;
        record.written_ns = write.written_ns;
        record.offset = write.place.index * kWordBytes;
        record.words = write.place.words;
        if ((write.place.flags & Place::kInterrupt) != 0) record.flags = LogRecord::kInterrupt;
        show(record, write.words.data(), now);
    }
}

void Outbox::commit(std::int64_t now) {
    if (coalescer_.on_commit(now)) send_open(now);
}

void Outbox::send_open(std::int64_t now) {
    coalescer_.on_sent();
    core_.commit(now);
}

// ---- Logs of others

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

void Outbox::find_clients(std::optional<unsigned> own_rank) {
    clients_.clear();
    for (unsigned r = 0; r < ring_.config().ranks; ++r) {
        if (!has_opened(r)) continue;
        // relaxed is enough: (3)
        const std::uint64_t begun = board_.begun[r].load(std::memory_order_relaxed);
        if (begun > logs_[r].position()) pass_over(r, begun);
        // (1) - this acquire-load synchronizes-with the release-store rmem/ring.cpp (4)
        const auto state = ring_.rank(r).state.load(std::memory_order_acquire);
        if (r == own_rank || state == static_cast<std::uint32_t>(RankState::elsewhere)) continue;
        const LogArea log(ring_.log(r));
        // relaxed is enough: what a rank wrote that has left or died is looked at next time, too
        const bool has_more =
            log.header().head.load(std::memory_order_relaxed) != logs_[r].position();
        if (state == static_cast<std::uint32_t>(RankState::joined) || has_more)
            clients_.push_back(r);
    }
}

std::uint64_t Outbox::committed(unsigned rank) const noexcept {
    // (2) - this acquire-load synchronizes-with the release-store rmem/link/udp/memory.cpp (6)
    return board_.committed[rank].load(std::memory_order_acquire);
}

void Outbox::show_consumed(unsigned rank, std::uint64_t position) noexcept {
    // (4) - this release-store synchronizes-with the acquire-load rmem/link/udp/memory.cpp (3)
    board_.consumed[rank].store(position, std::memory_order_release);
}

void Outbox::show_completed(unsigned rank, std::uint64_t position) noexcept {
    // (6) - this release-store synchronizes-with the acquire-load rmem/link/udp/memory.cpp (4)
    board_.completed[rank].store(position, std::memory_order_release);
}

bool Outbox::has_news() const noexcept {
    return std::any_of(clients_.begin(), clients_.end(),
                       [this](unsigned r) { return committed(r) > logs_[r].position(); });
}

void Outbox::take_logs(bool all, std::int64_t now) {
    bool any = false;
    for (const unsigned r : clients_) {
        const std::uint64_t until = all ? UINT64_MAX : committed(r);
        if (logs_[r].position() < until) any = take_log(r, until, now) || any;
    }
    if (any) commit(now);
}

bool Outbox::take_own(std::int64_t now) {
    std::size_t moved = 0;
    for (auto waiting = own_.waiting(); !waiting.empty(); waiting = own_.waiting()) {
        const std::size_t count = delayed_.empty() ? core_.write(waiting, now) : 0;
        if (tap_.is_open()) [[unlikely]]
            show(waiting.first(count), now);
        own_.pass(count);
        moved += count;
        if (count < waiting.size()) break;
    }
    streamed_ += moved;
    if (moved != 0)
        coalescer_.on_streamed(static_cast<unsigned>(moved), core_.exchange().open_since_ns());
    return own_.is_empty();
}

std::int64_t Outbox::own_due_ns() const noexcept {
    const auto waiting = own_.waiting();
    return waiting.empty() ? kNever : waiting.front().written_ns + kLazyNs;
}

/// True if anything was consumed.
bool Outbox::take_log(unsigned rank, std::uint64_t until, std::int64_t now) {
    const std::uint64_t before = logs_[rank].position();
    move_log(rank, until, now);
    if (logs_[rank].position() == before) return false;
    const bool in_stream = delayed_.empty();
    consumed_.push_back({in_stream ? core_.exchange().out().next_sequence() : kLater, rank,
                         logs_[rank].position()});
    return true;
}

/// Puts what the log has, as far as there is room.
void Outbox::move_log(unsigned rank, std::uint64_t until, std::int64_t now) {
    LogReader& log = logs_[rank];
    LogReader::Entry entry;
    while (log.position() < until && log.refresh()) {
        const LogReader::Found found = log.peek(entry);
        if (found == LogReader::Found::none) break;
        if (found != LogReader::Found::record || !is_possible(entry.record) ||
            !log.copy_words(entry, words_.data())) {
            slot_.link.add(LinkCounter::records_refused);
            log.skip_all();
            break;
        }
        if (!put(entry.record, words_.data(), now)) break;
        log.pass(entry);
    }
    show_consumed(rank, log.position());
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
    return std::min(coalescer_.due_ns(), waits ? kNever : delayed_.front().due_ns);
}

void Outbox::on_time(std::int64_t now) {
    while (!delayed_.empty() && delayed_.front().due_ns <= now) {
        const Delayed& next = delayed_.front();
        if (!core_.has_room(next.record.words)) break;
        // By itself, so that it says when it was stored.
        send_open(now);
        write(next.record, next.words.data(), now);
        send_open(now);
        delayed_.pop_front();
        if (delayed_.empty()) place_consumed();
    }
    if (now >= coalescer_.due_ns()) send_open(now);
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
        const Words words(write.words);
        const Applying applying(applier_, write.offset, words.size());
        for (std::size_t i = words.size(); i-- > 0;)  // as in BankWriter::post
            bank_.store_word(write.offset + i * kWordBytes, words[i], applying.any_twin());
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
    clients_.clear();
    own_.clear();
    coalescer_ = Coalescer();
    completed_ = 0;
    for (unsigned r = 0; r < logs_.size(); ++r) {
        logs_[r].refresh();
        logs_[r].skip_all();
        show_consumed(r, logs_[r].position());
        show_completed(r, logs_[r].position());
    }
}

}  // namespace rmem::udp
