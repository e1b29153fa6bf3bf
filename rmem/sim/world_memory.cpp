// SPDX-License-Identifier: Apache-2.0

/// Changes of the banks: stores, and writes that the wire brings.

#include "rmem/sim/world.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/word_block.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rmem::sim {

// ---- Stores

void World::store(Process& process, std::size_t offset, const void* from, std::size_t bytes,
                  OwnBank own) {
    if (is_left_over(process)) return;
    const std::int64_t cost = config_.host.store_ns;
    const std::size_t piece = cost == 0 ? bytes : kWordBytes;
    const auto* source = static_cast<const std::byte*>(from);
    for (std::size_t done = 0; done < bytes; done += piece) {
        const std::size_t part = std::min(piece, bytes - done);
        begin_store(process);
        if (own == OwnBank::at_return) {
            send(process, offset + done, source + done, part, own);
            continue;
        }
        std::byte* const to = nodes_[process.node_].bank.data() + offset + done;
        if (to != source + done) std::memcpy(to, source + done, part);
        send(process, offset + done, to, part, own);
    }
}

void World::begin_store(Process& process) {
    process.clock_ns_ += config_.host.store_ns;
    if (++process.accesses_ >= process.fault_at_access_) run_access_actions(process);
    settle(process);
    await_fifo(process);
}

/// A card that sends whole words takes the rest from its memory.
void World::store_part(Process& process, std::size_t offset, std::uint32_t value, WordPart part,
                       OwnBank own) {
    if (is_left_over(process)) return;
    begin_store(process);
    std::byte* const to = nodes_[process.node_].bank.data() + offset;
    std::uint32_t whole = 0;
    std::memcpy(&whole, to, sizeof whole);
    whole = with_part(whole, value, part);
    if (own == OwnBank::at_once) std::memcpy(to, &whole, sizeof whole);
    if (config_.ring.timing.whole_words != 0) part = kWholeWord;
    send(process, offset, reinterpret_cast<const std::byte*>(&whole), kWordBytes, own, part);
}

/// With hold-off, a card whose FIFO is full lets the host's store wait.
void World::await_fifo(Process& process) {
    const TimingProfile& timing = config_.ring.timing;
    if (timing.fifo_words == 0 || timing.overflow == FifoPolicy::lose) return;
    if (has_room(process)) return;
    process.awaits_room_ = true;
    suspend(process);  // until the scheduler has seen that there is room
    process.awaits_room_ = false;
}

/// Room for a word, at the process's time or once it has waited; false when the scheduler must go
/// on first, and then ask again.
bool World::has_room(Process& process) {
    while (fifo_words(process) >= config_.ring.timing.fifo_words) {
        const std::int64_t leaves = wire_.next_word_ns(process.node_);
        if (leaves == kNever) {
            await_start(process);
            return false;
        }
        process.clock_ns_ = leaves;
        if (!catch_up(process)) return false;
    }
    return true;
}

/// Until words of its node leave the FIFO.
void World::await_start(Process& process) {
    process.state_ = Process::State::ready;
    process.queued_as_ = 0;
    auto& stalled = nodes_[process.node_].stalled;
    if (std::find(stalled.begin(), stalled.end(), &process) == stalled.end()) {
        stalled.push_back(&process);
    }
    wire_.report_next_sent(process.node_);
}

void World::wake_stalled(Node& node) {
    for (Process* process : node.stalled) queue(*process, std::max(process->clock_ns_, now_ns_));
    node.stalled.clear();
}

/// Of the process's node, at its time; all that was due before has happened.
std::uint32_t World::fifo_words(const Process& process) {
    wire_.bring_to(process.node_, process.clock_ns_);
    return wire_.fifo_occupancy(process.node_);
}

/// When to look again whether a full FIFO has room for as many words: never too late.
std::int64_t World::room_at(const Process& process, std::uint32_t words) {
    const std::int64_t room = wire_.room_at(process.node_, words);
    if (room > process.clock_ns_) return room;
    // A lower bound, and it has passed: something must happen on the wire first.
    return std::max(wire_.next_time_ns(), process.clock_ns_ + 1);
}

/// Hands the words in which these bytes lie to the wire, whole, as they are from there on.
void World::send(Process& process, std::size_t offset, const std::byte* from, std::size_t bytes,
                 OwnBank own, WordPart part) {
    const auto origin = static_cast<std::uint16_t>(process.node_);
    Node& node = nodes_[origin];
    const std::size_t words = (bytes + kWordBytes - 1) / kWordBytes;
    const std::uint32_t index = flight_.add(origin);
    WriteInFlight& write = flight_[index];
    write.offset = offset;
    write.bytes = static_cast<std::uint32_t>(words * kWordBytes);
    write.rank = process.rank_;
    write.stored_ns = std::max(process.clock_ns_, now_ns_);
    write.repeats = false;
    write.interrupts = node.interrupts && node.interrupts->is_marked(offset, write.bytes);
    write.shows_at_return = own == OwnBank::at_return;
    write.part = part;
    write.data.assign(from, from + write.bytes);
    ++writes_;
    Counters& counters = *ranks_[process.rank_].link;
    counters.add(LinkCounter::writes_sent);
    counters.add(LinkCounter::bytes_sent, write.bytes);
    if (!node.applied.empty()) node.applied[origin] = write.number;
    tell(EventKind::stored, origin, &write, write.stored_ns, process.rank_);
    wake_watchers(node, offset, write.bytes, write.stored_ns);

    WireWrite out;
    out.origin = origin;
    out.interrupt = write.interrupts;
    out.bytes = write.bytes;
    out.offset = offset;
    out.time_ns = write.stored_ns;
    out.tag = index;
    if (!spoil(process, write, out)) wire_.submit(out);
    horizon_ns_ = std::min(horizon_ns_, wire_.next_time_ns());
}

/// Faults that meet a write before it is on the wire. True if it never gets there.
bool World::spoil(Process& process, WriteInFlight& write, WireWrite& out) {
    Node& node = nodes_[out.origin];
    WriteFaults::Verdict verdict;
    if (WriteFaults* faults = ranks_[process.rank_].faults.get()) verdict = faults->next();
    const auto is_due = [&](std::uint64_t& due) {
        if (due == 0) return false;
        --due;
        ++verdict.injected;
        return true;
    };
    if (is_due(node.repeats_due)) write.repeats = true;
    std::int64_t delay = verdict.delay_ns;
    if (is_due(node.delays_due)) delay += node.delay_ns;
    if (is_due(node.losses_due)) verdict.lose = true;
    if (verdict.injected == 0) return false;
    ranks_[process.rank_].link->add(LinkCounter::faults_injected, verdict.injected);
    if (verdict.lose) {
        note_lost(node, write, LinkCounter::lost_on_wire);
        tell(EventKind::lost, out.origin, &write, out.time_ns, process.rank_);
        return true;
    }
    out.extra_delay_ns = delay;
    if (delay != 0) {
        tell(EventKind::delayed, out.origin, &write, out.time_ns, process.rank_,
             static_cast<std::uint32_t>(std::min<std::int64_t>(delay, UINT32_MAX)));
    }
    return false;
}

void World::note_lost(Node& origin, const WriteInFlight& write, LinkCounter why) {
    ++lost_;
    origin.finished = std::max(origin.finished, write.number);
    origin.link->add(why);
}

// ---- What the wire brings

void World::on_outcome(const WireOutcome& outcome) {
    const auto index = static_cast<std::uint32_t>(outcome.tag);
    WriteInFlight& write = flight_[index];
    Node& origin = nodes_[outcome.origin];
    switch (outcome.kind) {
        case WireOutcomeKind::arrived: return apply(outcome, write);
        case WireOutcomeKind::sent:
            if (!origin.stalled.empty()) wake_stalled(origin);
            return tell(EventKind::sent, outcome.node, &write, outcome.time_ns);
        case WireOutcomeKind::stray:  // its place in the pool may be another write's by now
            return tell(EventKind::stray, outcome.node, nullptr, outcome.time_ns);
        case WireOutcomeKind::lost:
            if (!origin.stalled.empty()) wake_stalled(origin);
            note_lost(origin, write,
                      outcome.cause == WireLoss::fifo_full ? LinkCounter::writes_lost_fifo
                                                           : LinkCounter::lost_on_wire);
            return tell(EventKind::lost, outcome.node, &write, outcome.time_ns);
        case WireOutcomeKind::returned:
            finish_returned(outcome, write);
            return flight_.forget_through(index);
    }
}

void World::finish_returned(const WireOutcome& outcome, const WriteInFlight& write) {
    Node& origin = nodes_[outcome.origin];
    origin.finished = std::max(origin.finished, write.number);
    tell(EventKind::returned, outcome.node, &write, outcome.time_ns);
    if (!write.shows_at_return) return;
    write.store_into(origin.bank.data());
    wake_watchers(origin, write.offset, write.bytes, outcome.time_ns);
}

void World::apply(const WireOutcome& outcome, WriteInFlight& write) {
    RMEM_CHECK(outcome.time_ns >= write.stored_ns);
    Node& node = nodes_[outcome.node];
    if (!node.applied.empty()) {
        std::uint64_t& last = node.applied[outcome.origin];
        if (write.number <= last) {
            return tell(EventKind::repeated, outcome.node, &write, outcome.time_ns);
        }
        last = write.number;
    }
    write.store_into(node.bank.data());
    ++arrivals_;
    node.link->add(LinkCounter::writes_applied);
    node.link->add(LinkCounter::bytes_applied, write.bytes);
    tell(EventKind::arrived, outcome.node, &write, outcome.time_ns);
    measure(node, outcome.node, write, outcome.time_ns);
    if (!node.parked.empty()) wake_watchers(node, write.offset, write.bytes, outcome.time_ns);
    if (node.interrupts) raise_interrupts(node, outcome.node, write, outcome.time_ns);
    if (write.repeats) repeat_later(outcome, write);
}

/// A packet that its source did not remove comes by again, a round later.
void World::repeat_later(const WireOutcome& outcome, const WriteInFlight& write) {
    const std::int64_t round = std::max<std::int64_t>(outcome.time_ns - write.stored_ns, 1);
    at(outcome.time_ns + round,
       [this, second = WireOutcome(outcome), again = write, round]() mutable {
           second.time_ns += round;
           again.repeats = false;
           apply(second, again);
       });
}

void World::measure(Node& node, unsigned id, const WriteInFlight& write, std::int64_t now) {
    const std::int64_t propagation = now - write.stored_ns;
    node.propagation->record(static_cast<std::uint64_t>(propagation));
    if (bound_ns_ == 0 || propagation <= bound_ns_) return;
    node.link->add(LinkCounter::bound_violations);
    tell(EventKind::late, static_cast<std::uint16_t>(id), &write, now);
    if (violations_awaited_) call_on_violation(id, write, propagation);
}

/// A watched word changed: its watchers go on with the poll that sees it.
void World::wake_watchers(Node& node, std::size_t offset, std::size_t bytes, std::int64_t now) {
    for (Process* process : node.parked) {
        Watch& watch = process->watch_;
        if (process->stopped_ || !watch.may_touch(offset, bytes)) continue;
        for (const Watch::Word& word : watch.words()) {
            if (word.offset - offset >= bytes) continue;  // as unsigned: before it, too
            if (std::memcmp(node.bank.data() + word.offset, &word.value, kWordBytes) == 0) continue;
            ++process->changes_seen_;
            const std::int64_t seen = watch.seen_by_poll_at(word, now);
            if (seen < process->queued_for_ns_) queue(*process, seen);
        }
    }
}

// ---- Who is alive

/// A dead rank's writes are still on their way for a while: until then it counts as alive.
bool World::is_alive(unsigned r) const noexcept {
    const Rank& rank = ranks_[r];
    const Node& node = nodes_[rank.node];
    if (rank.held) return true;
    return node.alive ? node.finished < rank.last_write : now_ns_ < node.gone_ns;
}

/// Everybody looks at everybody soon, and from now on once in a while.
void World::note_liveness() {
    ++liveness_changes_;
    for (Rank& rank : ranks_) {
        if (!rank.process) continue;
        Process& process = *rank.process;
        process.checks_due_ = ranks() / 4 + 1;
        if (process.state_ != Process::State::parked) continue;
        const std::int64_t poll = process.watch_.poll_from(now_ns_);
        if (poll < process.queued_for_ns_) queue(process, poll);
    }
}

// ---- What can be seen of it

void World::observe(Observer* observer) noexcept {
    observer_ = observer;
    wire_.report_sent(observer != nullptr);
}

std::uint32_t World::word(unsigned node, std::size_t offset) const noexcept {
    std::uint32_t value;
    std::memcpy(&value, nodes_[node].bank.data() + offset, sizeof value);
    return value;
}

std::uint64_t World::counter(unsigned node, LinkCounter id) const noexcept {
    std::uint64_t sum = nodes_[node].link->get(id);
    for (const Rank& rank : ranks_of(node)) sum += rank.link->get(id);
    return sum;
}

const Counters& World::protocol_counters(unsigned rank) const noexcept {
    return *ranks_[rank].protocol;
}

const Histogram& World::propagation(unsigned node) const noexcept {
    return *nodes_[node].propagation;
}

void World::tell_observer(EventKind kind, std::uint16_t node, const WriteInFlight* write,
                          std::int64_t time, std::uint32_t rank, std::uint32_t value) {
    Event event;
    event.time_ns = time;
    event.kind = kind;
    event.node = node;
    event.rank = rank;
    event.value = value;
    if (write != nullptr) {
        event.origin = write->origin;
        event.number = write->number;
        event.offset = write->offset;
        event.bytes = write->bytes;
        event.stored_ns = write->stored_ns;
        event.data = write->data;
        if (kind != EventKind::delayed) {
            std::memcpy(&event.value, write->data.data(), sizeof event.value);
        }
    }
    observer_->on_event(event);
}

}  // namespace rmem::sim
