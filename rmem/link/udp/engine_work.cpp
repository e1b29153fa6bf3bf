// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/engine_work.hpp"

#include "rmem/base/fence.hpp"
#include "rmem/ring/twin.hpp"

#include <algorithm>
#include <utility>

namespace rmem::udp {

namespace {

constexpr unsigned kMaxReceives = 4;           // calls in one run
constexpr unsigned kMaxTaken = 256;            // in one turn
constexpr std::int64_t kServeNs = 50'000'000;  // after a request of a node that joins
constexpr std::int64_t kBegunNs = 250'000;     // for a write without a commit

/// This engine comes after all others of the segment.
NodeBoard& counted(NodeBoard& board) {
    // relaxed is enough: rmem/ring/interrupts.cpp (3) publishes it to its readers
    board.engines.fetch_add(1, std::memory_order_relaxed);
    return board;
}

}  // namespace

EngineWork::EngineWork(Ring& ring, EngineSettings settings, EngineKind kind,
                       std::optional<unsigned> own_rank, Rest& rest)
    : ring_(ring),
      node_(ring.own_node()),
      own_rank_(own_rank),
      board_(counted(ring.board())),
      carrier_(settings.make_carrier(ring)),
      care_(*carrier_),
      rest_(rest),
      crowd_(ring.config().nodes, allowed_processors(), [this] { return nodes_here(); }),
      faults_(settings.faults, node_, now_ns()),
      authenticator_(settings.key ? Authenticator(std::move(*settings.key)) : Authenticator()),
      interrupts_(InterruptBoard::of_engine(ring, node_)),
      roster_(ring, node_),
      tap_(ring),
      arrivals_(ring, node_, interrupts_, roster_, tap_),
      touched_(ring, node_),
      oddities_(ring.config().name, node_, about(ring.config())),
      core_(settings.core_config(ring, *carrier_), authenticator_, *this, now_ns()),
      outbox_(ring, core_, tap_, roster_, own_rank),
      shown_(ring, kind, {core_, *carrier_, faults_, arrivals_, oddities_}),
      departures_(core_, outbox_, *carrier_, board_) {
    mend_applier(ring, board_.applier);
    // relaxed is enough: only engines change it, one at a time. The incarnation of one that was
    // killed is over.
    if (board_.membership_epoch.load(std::memory_order_relaxed) % 2 == 1) advance_epoch(false);
    roster_.lose_unless([](unsigned) { return false; });
    outbox_.find_programs();
    carrier_->ask_for_senders(true);
}

EngineWork::~EngineWork() {
    // relaxed is enough: (4) publishes it
    board_.pid.store(0, std::memory_order_relaxed);
    was_dropped(now_ns());
    core_.depart(now_ns());
    departures_.flush();
    shown_.show_counters();
}

bool EngineWork::is_member() const noexcept {
    // (1) - this acquire-load synchronizes-with the release-store (2)
    return is_member_.load(std::memory_order_acquire);
}

// ---- Running

void EngineWork::run(Outbox::Take what, std::int64_t now) {
    if (departures_.is_closed()) return;
    ran_ns_ = now;
    takes_ = what;
    arrivals_.punctuality().begin(now);
    take_news(now);
    departures_.flush();  // before anything is waited for
    if (is_member() && !crowd_.take_turn(now)) return arrivals_.punctuality().end();
    const bool has_come = receive(now);
    has_news_to_keep_ = has_news_to_keep_ || has_come;
    if (has_come) rest_.note_come();
    bool is_due =
        now >= idle_until_ns_ || outbox_.have_programs_changed() || outbox_.has_news(takes_);
    // What has come may be answered in one.
    if (has_come && !arrivals_.has_news()) is_due = is_due || now >= core_.due_ns();
    if (has_come && !is_due) {  // the waiting program gets it first
        idle_until_ns_ = 0;
        tell_programs();
        departures_.flush();
    } else if (has_come || is_due) {
        do_what_is_due(now);
        departures_.flush();
        idle_until_ns_ = due_ns();
        static_cast<void>(find_turn());
    }
    deferred_until_ns_.set(std::min(arrivals_.due_ns(), faults_.due_ns()));
    arrivals_.punctuality().end();
}

// ---- Writes

void EngineWork::take(Outbox::Take what, Leaving leaving, std::int64_t now) {
    // The helper may have run since.
    if (departures_.take(what, leaving, std::max(now, ran_ns_)))
        idle_until_ns_ = std::min(idle_until_ns_, due_ns());
}

/// What programs have committed and not handed over, or where what has come has made room.
void EngineWork::take_news(std::int64_t now) {
    if (outbox_.has_news(takes_)) take(takes_, Leaving::all, now);
}

void EngineWork::ask_for_acks(std::int64_t now) {
    core_.ask_for_acks(now);
    departures_.flush();
}

/// Acknowledges what a timing profile deferred.
void EngineWork::apply_due(std::int64_t now) {
    if (now < arrivals_.due_ns()) return;
    arrivals_.apply_due(now);
    arrivals_.take_published().for_each([&](unsigned node) { core_.has_published(node, now); });
}

void EngineWork::do_what_is_due(std::int64_t now) {
    apply_due(now);
    if (outbox_.have_programs_changed()) keep_roster(now);
    take_news(now);
    if (now >= outbox_.due_ns()) outbox_.on_time(now);
    if (now >= core_.due_ns()) core_.on_tick(now);
    departures_.flush();
    if (outbox_.complete()) wake_programs();
    tell_programs();
    if (now >= next_keep_ns_) {
        keep(now);
        departures_.flush();
    }
}

/// True if anything came.
bool EngineWork::receive(std::int64_t& now) {
    bool any = false;
    const bool naps = rest_.take_nap(now), takes_all = naps || crowd_.turn_ns() != 0;
    core_.hold_answers(takes_all);
    const unsigned most = takes_all ? kMaxTaken : kMaxReceives;
    for (auto held = faults_.next(now); !held.empty(); held = faults_.next(now)) {
        core_.on_datagram(held, now);
        departures_.flush();
        any = true;
    }
    for (unsigned i = 0; i < most; ++i) {
        const auto datagrams = carrier_->receive();
        if (datagrams.empty()) return any;
        any = true;
        for (place_ = 0; place_ < datagrams.size(); ++place_) {
            const auto datagram = datagrams[place_];
            if (!faults_.empty() && !faults_.pass(datagram, now)) continue;
            const std::uint64_t taken = core_.exchange().counters().datagrams_taken;
            core_.on_datagram(datagram, now);
            if (core_.exchange().counters().datagrams_taken != taken) carrier_->has_taken(datagram);
            departures_.flush();
        }
        place_ = SIZE_MAX;
        // They may be what the program waits for: to ask for more would make it wait longer, and
        // their senders for room that the program makes.
        if (arrivals_.has_news() && !takes_all) return true;
        now = now_ns();
    }
    return any;
}

void EngineWork::tell_programs() noexcept {
    if (!arrivals_.take_news()) return;
    // relaxed is enough: programs ask whether it has changed
    if (arrivals_.take_news_of_users()) board_.arrivals.fetch_add(1, std::memory_order_relaxed);
    wake_programs();
}

/// A sleeping rank of this node may be waiting for what was applied; one that waits for an
/// interrupt is woken when that is raised. The rank that runs the engine sleeps here, not on its
/// wake word.
void EngineWork::wake_programs() noexcept {
    rest_.call_to_look();
    light_fence();
    for (unsigned r = 0; r < ring_.seats(); ++r) {
        // relaxed is enough: the fence orders this load after the stores before it
        std::uint32_t asked = ring_.attention()[r].load(std::memory_order_relaxed) & kPostsWake;
        if (r == own_rank_) asked &= ~kAttentionSleeping;
        if (asked != 0) [[unlikely]]
            wake_asked(ring_, r, asked);
    }
}

// ---- The core's edge

/// No rank reads a joining node's bank yet, and a node that has left holds up no other.
void EngineWork::apply(unsigned origin, const Batch& batch, std::int64_t now) {
    const bool is_member = core_.view().contains(origin);
    heard_from_.set(origin);
    arrivals_.take(origin, batch,
                   core_.exchange().round_trip(origin).own_time(batch.first_store_ns(), now), now,
                   is_member ? Arrivals::Showing::in_time : Arrivals::Showing::at_once);
}

std::atomic<std::uint32_t>* EngineWork::words() const noexcept {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(ring_.bank(node_));
}

void EngineWork::store(std::uint64_t index, std::uint32_t value) {
    // (3) - this release-store synchronizes-with the acquire-load rmem/link/bank_writer.hpp (1)
    words()[index].store(value, std::memory_order_release);
}

/// A write that a program is about to append may be in the bank already, as one that waits for the
/// lock.
bool EngineWork::hand_over_all(std::int64_t now) {
    serves_until_ns_ = now + kServeNs;
    if (!serves_.get()) {
        serves_.set(true);
        heavy_fence();  // the program sees it, or what it has appended is seen here
    }
    take(Outbox::Take::all, Leaving::all, now);
    return outbox_.has_all();
}

std::span<const std::byte> EngineWork::bank() {
    touched_.restart();
    return {ring_.bank(node_), ring_.config().bank_bytes()};
}

void EngineWork::clear_bank() {
    const std::size_t size = ring_.config().bank_bytes();
    touched_.restart();
    for (std::size_t at = 0; (at = touched_.begin(at)) < size; at += kWordBytes) {
        store(at / kWordBytes, 0);
    }
}

bool EngineWork::is_blank(std::uint64_t index, std::size_t words) {
    if (touched_in_ != core_.incarnation()) touched_.restart();
    touched_in_ = core_.incarnation();
    return touched_.begin(index * kWordBytes) >= (index + words) * kWordBytes;
}

void EngineWork::has_joined(std::int64_t now) {
    arrivals_.apply_all(now);
    outbox_.begin_incarnation();
    tap_.show_gap(now);
    // One that joins at the same time may have said so already, and be in the view only later.
    roster_.read_all([this](unsigned node) { return core_.exchange().takes(node); });
    // relaxed is enough for these: for people
    board_.incarnation.store(core_.incarnation(), std::memory_order_relaxed);
    board_.ring_incarnation.store(core_.ring_incarnation(), std::memory_order_relaxed);
    shown_.show_members();
    advance_epoch(true);
}

void EngineWork::was_dropped(std::int64_t now) {
    arrivals_.apply_all(now);
    if (!is_member()) return;
    advance_epoch(false);
    roster_.lose_unless([](unsigned) { return false; });
    wake_programs();
}

void EngineWork::advance_epoch(bool member) noexcept {
    // (4) - this release-add synchronizes-with the acquire-load rmem/link/udp/memory.hpp (1): who
    // sees the new incarnation sees its bank
    board_.membership_epoch.fetch_add(1, std::memory_order_release);
    // (2) - this release-store synchronizes-with the acquire-load (1)
    is_member_.store(member, std::memory_order_release);
}

void EngineWork::member_came(unsigned, std::int64_t) {
    shown_.show_members();
}

void EngineWork::member_left(unsigned node, std::int64_t now) {
    arrivals_.apply_all_of(node, now);
    shown_.show_members();
}

void EngineWork::on_odd(Odd odd, const Header& header, std::string_view text) {
    oddities_.note(odd, header.origin, carrier_->sender(place_), text, ran_ns_);
}

// ---- Now and then

void EngineWork::keep_roster(std::int64_t now) {
    outbox_.keep_roster([&] { take(Outbox::Take::all, Leaving::all, now); }, now);
}

void EngineWork::keep(std::int64_t now) {
    next_keep_ns_ = now + kKeepNs;
    has_news_to_keep_ = false;
    tap_.keep(now);
    take(Outbox::Take::all, Leaving::all, now);
    keep_roster(now);
    roster_.lose_unless([&](unsigned node) {
        return core_.exchange().takes(node) || !core_.exchange().ended().is_completed(node, now);
    });
    keep_carrier(now);
    shown_.show_counters();
    shown_.show_nodes(now);
}

/// A program may close what is not its own.
void EngineWork::keep_carrier(std::int64_t now) {
    const bool is_ours = carrier_->is_ours() && rest_.has_bell();
    const std::string problem = is_ours ? care_.keep(now) : kDescriptorsClosed;
    if (!is_ours) {
        was_dropped(now);
        departures_.close();
    }
    // Where datagrams come from costs time, so it is asked only while a process may want to know.
    const bool wants_senders = !core_.is_member() || oddities_.are_recent(now);
    if (wants_senders != carrier_->asks_for_senders()) carrier_->ask_for_senders(wants_senders);
    const std::string odd = oddities_.text(now);
    shown_.say(odd + (odd.empty() || problem.empty() ? "" : "; ") + problem);
}

// ---- Times

std::int64_t EngineWork::due_ns() const noexcept {
    return std::min({core_.due_ns(), keep_due_ns(), exact_due_ns()});
}

/// What is not late by kTailNs without harm.
std::int64_t EngineWork::exact_due_ns() const noexcept {
    return std::min({core_.repair_due_ns(), outbox_.due_ns(), arrivals_.due_ns(), faults_.due_ns(),
                     carrier_->due_ns()});
}

/// The same for a thread that stands by: what the program has begun it mostly ends itself.
std::int64_t EngineWork::until_exact(std::int64_t now) noexcept {
    const std::int64_t until = std::max<std::int64_t>(exact_due_ns() - now, 0);
    return outbox_.is_committed() ? until : std::min(until, kBegunNs);
}

/// Where nothing has changed, the next heartbeat will do: unless there are clients, which may have
/// died, or not committed what they wrote.
std::int64_t EngineWork::keep_due_ns() const noexcept {
    return has_news_to_keep_ || outbox_.has_clients() ? next_keep_ns_ : kNever;
}

/// Of a rank that something has woken that it does not wait for: for so long no datagram does, and
/// what comes is taken together. None where each node of the host has a processor.
std::int64_t EngineWork::nap_ns(std::int64_t now) {
    if (outbox_.has_clients()) return 0;
    return std::clamp<std::int64_t>(exact_due_ns() - now, 0, crowd_.nap_ns(now));
}

std::int64_t EngineWork::find_turn() {
    return crowd_.find_turn(is_member() ? core_.joiners(ran_ns_) : Crowd::kMax, ran_ns_);
}

unsigned EngineWork::nodes_here() const noexcept {
    try {
        return static_cast<unsigned>(Segment::list_of(ring_.config().name).size());
    } catch (const std::exception&) {  // no memory for the names: as if it were alone
        return 1;
    }
}

}  // namespace rmem::udp
