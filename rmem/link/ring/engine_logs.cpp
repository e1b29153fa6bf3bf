// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/engine_logs.hpp"

#include "rmem/ring/applied.hpp"
#include "rmem/ring/delivery_board.hpp"

#include <algorithm>
#include <utility>

namespace rmem {

namespace {

constexpr std::int64_t kForgetNs = 5'000'000;  // what is older, and here, the wire has forgotten
constexpr std::uint64_t kUnitsAway = 256;      // unread of a log: then one looks how far it is over
constexpr std::int64_t kRestNs = 20'000;       // at least, since the wire was quiet

}  // namespace

EngineLogs::EngineLogs(EngineNode& own, const EngineWire& wire, EngineMembers& members)
    : own_(own),
      wire_(wire),
      members_(members),
      ranks_(own.config.seats()),
      is_delivered_(own.config.seats()) {
    for (unsigned r = 0; r < own_.config.seats(); ++r) logs_.emplace_back(own_.ring.log(r));
    news_.reserve(logs_.size());
}

std::int64_t EngineLogs::restart() {
    lapped_ = false;
    in_flight_ = 0;
    std::int64_t oldest = own_.time.now();
    own_.seats.set(own_.ring.seats());
    for (unsigned r = 0; r < own_.seats.get(); ++r) {
        const std::int64_t first = begin(r);
        members_.take_over(r, first != kNever);
        oldest = std::min(oldest, first);
    }
    return oldest;
}

/// Goes to what the bank lacks of the rank's. Returns the time of the first write in it; kNever: it
/// lacks nothing.
std::int64_t EngineLogs::begin(unsigned rank) {
    LogReader& log = logs_[rank];
    ranks_[rank].flights = Flights();
    log.seek(std::max(applied_of(own_.ring, own_.node, rank), log.oldest()));
    pass(rank, log.position());
    forget_deliverer(rank);
    LogReader::Entry entry;
    return log.peek(entry) == LogReader::Found::record ? entry.record.written_ns : kNever;
}

void EngineLogs::find_news(Which which) {
    which_ = which;
    news_.clear();
    // (2) - this acquire-load synchronizes-with the release-add rmem/ring/delivery_board.hpp (1)
    const std::uint32_t changes = own_.ring.delivery().changes.load(std::memory_order_acquire);
    if (changes != changes_seen_.get() || members_.is_tick_due(own_.time.now())) {
        for (unsigned r = 0; r < own_.seats.get(); ++r) forget_deliverer(r);
        const unsigned all = own_.ring.seats();
        for (unsigned r = own_.seats.get(); r < all; ++r) static_cast<void>(begin(r));
        own_.seats.set(all);
        if (changes_seen_.get() != changes) members_.meet_new();
        changes_seen_.set(changes);
    }
    for (unsigned r = 0; r < own_.seats.get(); ++r) {
        if (!is_delivered_[r].get() && has_news(r)) news_.push_back(r);
    }
}

bool EngineLogs::has_any_news() {
    for (unsigned r = 0; r < own_.seats.get(); ++r) {
        if (!is_delivered_[r].get() && has_news(r)) return true;
    }
    return false;
}

bool EngineLogs::has_news(unsigned rank) {
    LogReader& log = logs_[rank];
    if (!log.refresh()) return false;
    if (wire_.takes_time()) {
        pass_quiet(rank);
        return log.refresh();
    }
    if (which_ == Which::all) return true;  // the copied bank may lack what was delivered since
    const LogHeader& header = log.header();
    // (3) - this acquire-load synchronizes-with the release-stores delivery.cpp (5), delivery.cpp
    // (6) and delivery.cpp (7)
    const std::uint32_t deliverer = header.deliverer.load(std::memory_order_acquire);
    if (deliverer != 0 && !members_.was_found_dead(rank, deliverer)) {
        is_delivered_[rank].set(true);
        return false;
    }
    // (4) - this acquire-load synchronizes-with the release-stores delivery.hpp (2) and
    // delivery.cpp (3)
    const std::uint64_t everywhere = header.everywhere.load(std::memory_order_acquire);
    if (log.position() < everywhere) log.seek(everywhere);
    return log.refresh();
}

/// Of a node that was away: what its bank has, and had left the wire before that was quiet, it need
/// not read.
void EngineLogs::pass_quiet(unsigned rank) noexcept {
    LogReader& log = logs_[rank];
    if (written(rank) - log.position() < kUnitsAway || !flights(rank).empty()) return;
    TimingProfile profile = own_.config.timing;
    profile.promised_ns = 0;  // what the wire needs is asked for
    const std::int64_t rest = std::max(kRestNs, 2 * bound_ns(profile, own_.config.nodes));
    const std::uint64_t quiet = log.quiet_before(own_.time.now() - rest);
    if (quiet <= log.position() || quiet > applied_of(own_.ring, own_.node, rank)) return;
    log.seek(quiet);
    pass(rank, quiet);
}

bool EngineLogs::peek(unsigned rank, LogReader::Entry& entry) {
    LogReader& log = logs_[rank];
    const LogRecord& record = entry.record;
    LogReader::Found found = log.peek(entry);
    // Where the writer has brought it long ago: what the wire does now does not depend on it.
    while (found == LogReader::Found::record && record.written_ns < own_.time.now() - kForgetNs &&
           own_.has_applied(rank, entry)) {
        log.pass(entry);
        pass(rank, entry.next);
        found = log.peek(entry);
    }
    if (found == LogReader::Found::none) return false;
    if (found == LogReader::Found::record && members_.node_of(rank) != EngineMembers::kNoNode &&
        is_in_bank(record))
        return true;
    if (found == LogReader::Found::lapped) {
        lapped_ = true;
        return false;
    }
    own_.slot.link.add(LinkCounter::records_refused);
    log.skip_all();
    drop_before(rank, flights(rank).end());
    own_.set_applied(rank, log.position());
    return false;
}

bool EngineLogs::peek_news() {
    std::erase_if(news_, [this](unsigned r) {
        members_.meet(r);
        return !peek(r, ranks_[r].next);
    });
    return !news_.empty();
}

bool EngineLogs::is_in_bank(const LogRecord& record) const noexcept {
    const std::uint64_t bytes = std::uint64_t{record.words} * kWordBytes;
    const std::size_t all = own_.config.bank_bytes();
    return bytes <= all && record.offset <= all - bytes;
}

std::uint64_t EngineLogs::take_up(unsigned rank, const LogReader::Entry& entry) {
    Rank& read = ranks_[rank];
    RMEM_CHECK_IF(false, logs_[rank].position() == entry.position);
    Flight flight;
    flight.entry = entry;
    flight.before = std::exchange(read.fed, entry.next);
    if (entry.record.offset < own_.config.user_bytes) read.users_end = entry.next;
    logs_[rank].pass(entry);
    add_flight(rank, flight);
    return read.flights.end() - 1;
}

void EngineLogs::drop_before(unsigned rank, std::uint64_t until) noexcept {
    for (const Flights& all = flights(rank); all.first() < until; pop_flight(rank)) {
        const LogReader::Entry& entry = all.front().entry;
        if (!members_.is_of_node(rank) && !own_.has_applied(rank, entry))
            own_.slot.link.add(LinkCounter::lost_on_wire);
        own_.set_applied(rank, entry.next);
    }
}

bool EngineLogs::is_claimed(unsigned rank) const noexcept {
    // (5) - this acquire-load synchronizes-with the release-stores delivery.cpp (5), delivery.cpp
    // (8) and delivery.cpp (9)
    const std::uint32_t claimer = logs_[rank].header().deliverer.load(std::memory_order_acquire);
    return claimer != 0 && !members_.was_found_dead(rank, claimer);
}

void EngineLogs::note_idleness() noexcept {
    bool is_idle = !wire_.takes_time();
    for (unsigned r = 0; is_idle && r < own_.seats.get(); ++r) {
        if (r == own_.rank || is_delivered_[r].get()) continue;
        const RankSlot& slot = own_.ring.rank(r);
        // relaxed is enough, throughout: one that comes notes a change after it has said so
        const bool is_member = slot.state.load(std::memory_order_relaxed) ==
                               static_cast<std::uint32_t>(RankState::joined);
        const auto deliverer =
            logs_[r].header().deliverer.load(std::memory_order_relaxed);  // enough: as above
        const auto incarnation =
            slot.incarnation.load(std::memory_order_relaxed);  // enough: as above
        is_idle = !is_member || deliverer != 0 || members_.was_found_dead(r, incarnation);
    }
    is_idle_.set(is_idle);
}

bool EngineLogs::is_idle() const noexcept {
    // relaxed is enough: a look that comes a little later is soon enough
    return is_idle_.get() &&
           own_.ring.delivery().changes.load(std::memory_order_relaxed) == changes_seen_.get();
}

std::uint64_t EngineLogs::written(unsigned rank) const noexcept {
    // relaxed is enough: it is compared, and run() looks before it reads
    return logs_[rank].header().head.load(std::memory_order_relaxed);
}

std::uint64_t EngineLogs::written_in_all() const noexcept {
    std::uint64_t all = 0;
    for (unsigned r = 0; r < own_.seats.get(); ++r) {
        if (!is_delivered_[r].get()) all += written(r);
    }
    return all;
}

bool EngineLogs::lacks_writes(bool own) const noexcept {
    for (unsigned r = 0; r < own_.seats.get(); ++r) {
        // relaxed is enough: a hint, as is the position that is looked at
        const bool is_brought = logs_[r].header().deliverer.load(std::memory_order_relaxed) != 0;
        if (is_delivered_[r].get() || (!own && (r == own_.rank || is_brought))) continue;
        if (applied_of(own_.ring, own_.node, r) < written(r)) return true;
    }
    return false;
}

}  // namespace rmem
