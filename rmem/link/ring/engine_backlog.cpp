// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/engine_backlog.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>

namespace rmem {

/// No packet waits for another one twice, at its source or where it passes: so the wire is clear
/// when each word that was written has had its place on a link twice, and the way round once.
void EngineBacklog::begin(bool is_watched) {
    RMEM_CHECK_IF(false, waiting_.empty());
    const TimingProfile& profile = wire_.model().profile();
    const std::int64_t round = round_ns(profile, own_.config.nodes);
    clear_ns_ = kNever;
    if (is_watched || wire_.has_faults()) return;
    if (own_.time.now() - own_.time.read_ns() <= round) return;  // mostly
    clear_ns_ = own_.time.read_ns() + round;
    for (unsigned r = 0; r < own_.ranks; ++r) {
        const EngineLogs::Flights& flights = logs_.flights(r);
        for (auto number = flights.first(); number != flights.end(); ++number)
            clear_ns_ += 2 * busy_ns(profile, flights[number].entry.record.words);
    }
}

bool EngineBacklog::add(unsigned rank, const LogReader::Entry& entry) {
    if (clear_ns_ == kNever) return false;
    const LogRecord& record = entry.record;
    if (record.delay_ns != 0) {
        end();
        clear_ns_ = kNever;
        return false;
    }
    const std::int64_t published = own_.time.publication_of(record);
    if (published > clear_ns_ && clear_ns_ <= own_.time.now()) pass();
    waiting_.push_back({rank, transit_.take_up(rank, entry), published});
    const TimingProfile& profile = wire_.model().profile();
    const std::int64_t round = round_ns(profile, own_.config.nodes);
    clear_ns_ = std::max(clear_ns_, published + round) + 2 * busy_ns(profile, record.words);
    return true;
}

void EngineBacklog::end() {
    if (clear_ns_ <= own_.time.now()) pass();
    for (const Waiting& write : waiting_)
        transit_.submit(write.rank, write.number, write.published_ns);
    waiting_.clear();
}

/// They have come since, at their times at the earliest: who is late is the host.
void EngineBacklog::pass() {
    transit_.let_come(clear_ns_);
    if (wire_.model().next_time_ns() != kNever) return;  // they are submitted, with what follows
    for (const Waiting& write : waiting_) {
        Flight& flight = logs_.flights(write.rank)[write.number];
        flight.due_ns = flight.entry.record.written_ns;
    }
    // In the order of their times.
    for (const Waiting& write : waiting_) transit_.settle(write.rank, write.number + 1);
    transit_.drop_if_idle();
    waiting_.clear();
}

}  // namespace rmem
