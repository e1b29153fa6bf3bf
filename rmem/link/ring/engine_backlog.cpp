// SPDX-License-Identifier: Apache-2.0
// What was written while an engine did not run, and must have come round before something else was
// written. Many programs on few processors find that at each turn, and each would compute all of
// the wire for it: the model's work for a write grows with the nodes, as does the number of models.

#include "rmem/link/ring/engine.hpp"

#include <algorithm>

namespace rmem {

/// No packet waits for another one twice, at its source or where it passes: so the wire is clear
/// when each word that was written has had its place on a link twice, and the way round once.
void RingEngine::begin_backlog() {
    const TimingProfile& profile = wire_.model().profile();
    clear_ns_ = kNever;
    if (checker_ || hook_ || wire_.has_faults() || news_.empty()) return;
    if (own_.time.now() - own_.time.read_ns() <= round_ns(profile, own_.config.nodes))
        return;  // mostly
    clear_ns_ = own_.time.read_ns() + round_ns(profile, own_.config.nodes);
    for (const Flights& flights : flights_) {
        for (auto number = flights.first(); number != flights.end(); ++number)
            clear_ns_ += 2 * busy_ns(profile, flights[number].entry.record.words);
    }
}

/// False: nothing is known of the wire, or a fault makes it late.
bool RingEngine::add_to_backlog(unsigned rank, const LogReader::Entry& entry) {
    if (clear_ns_ == kNever) return false;
    const LogRecord& record = entry.record;
    if (record.delay_ns != 0) {
        end_backlog();
        clear_ns_ = kNever;
        return false;
    }
    const std::int64_t published = own_.time.publication_of(record);
    if (published > clear_ns_ && clear_ns_ <= own_.time.now()) pass_backlog();
    take_up(rank, entry);
    backlog_.push_back({rank, flights_[rank].end() - 1, published});
    const std::int64_t round = round_ns(wire_.model().profile(), own_.config.nodes);
    clear_ns_ =
        std::max(clear_ns_, published + round) + 2 * busy_ns(wire_.model().profile(), record.words);
    return true;
}

void RingEngine::end_backlog() {
    if (clear_ns_ <= own_.time.now()) pass_backlog();
    for (const Waiting& write : backlog_) submit(write.rank, write.number, write.published_ns);
    backlog_.clear();
}

/// They have come since, at their times at the earliest: who is late is the host.
void RingEngine::pass_backlog() {
    let_come(clear_ns_);
    if (wire_.model().next_time_ns() != kNever) return;  // they are submitted, with what follows
    for (const Waiting& write : backlog_) {
        Flight& flight = flights_[write.rank][write.number];
        flight.due_ns = flight.entry.record.written_ns;
    }
    // In the order of their times.
    for (const Waiting& write : backlog_) settle(write.rank, write.number + 1);
    drop_if_idle();
    backlog_.clear();
}

}  // namespace rmem
