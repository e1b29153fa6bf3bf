// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/engine.hpp"

#include "rmem/base/fence.hpp"
#include "rmem/link/fabric/make_endpoint.hpp"
#include "rmem/link/udp/socket.hpp"
#include "rmem/ring/twin.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sodium.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace rmem::udp {

namespace {

constexpr unsigned kMostReceives = 4;          // calls in one run
constexpr unsigned kMostTaken = 256;           // in one turn
constexpr std::int64_t kServeNs = 50'000'000;  // after a request of a node that joins

/// No earlier incarnation may have the same: the wall clock, in nanoseconds.
std::uint64_t new_incarnation() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t true_random() {
    std::uint64_t value = 0;
    ::randombytes_buf(&value, sizeof value);
    return value;
}

/// This engine comes after all others of the segment.
NodeBoard& counted(NodeBoard& board) {
    // relaxed is enough: rmem/ring/interrupts.cpp (3) publishes it to its readers
    board.engines.fetch_add(1, std::memory_order_relaxed);
    return board;
}

std::unique_ptr<Carrier> make_carrier(const Ring& ring, const EngineSettings& settings) {
    const RingConfig& config = ring.config();
    if (settings.fabric)
        return fabric::make_endpoint(
            {*settings.fabric, config.name, ring.own_node(), config.nodes});
    SocketSettings socket;
    socket.endpoints = settings.endpoints;
    socket.node = ring.own_node();
    socket.nodes = config.nodes;
    return std::make_unique<Socket>(socket);
}

CoreConfig core_config(const Ring& ring, const EngineSettings& settings, const Carrier& carrier) {
    CoreConfig config;
    config.exchange.node = static_cast<std::uint16_t>(ring.own_node());
    config.exchange.nodes = ring.config().nodes;
    config.exchange.ring = ring_id(ring.config());
    config.exchange.incarnation = new_incarnation();
    config.exchange.salt = true_random();
    config.exchange.bank_bytes = ring.config().bank_bytes();
    config.exchange.payload = settings.payload;
    if (settings.fabric || !settings.endpoints.leave_host())
        config.exchange.sure = settings.payload;
    config.dead_ns = settings.dead_ns;
    config.socket_room = carrier.bytes_held();
    config.exchange.is_reliable = carrier.is_reliable();
    config.seed = true_random();
    config.about = about(ring.config());
    return config;
}

}  // namespace

Engine::Engine(Ring& ring, EngineSettings settings, EngineKind kind,
               std::optional<unsigned> own_rank)
    : ring_(ring),
      node_(ring.own_node()),
      own_rank_(own_rank),
      board_(counted(ring.board())),
      carrier_(make_carrier(ring, settings)),
      bell_(Bell::make(ring.segment_name(), ring.group())),
      faults_(settings.faults, node_, now_ns()),
      authenticator_(settings.key ? Authenticator(std::move(*settings.key)) : Authenticator()),
      interrupts_(InterruptBoard::of_engine(ring, node_)),
      roster_(ring, node_),
      tap_(ring),
      arrivals_(ring, node_, interrupts_, roster_, tap_),
      touched_(ring, node_),
      oddities_(ring.config().name, node_, about(ring.config())),
      core_(core_config(ring, settings, *carrier_), authenticator_, *this, now_ns()),
      outbox_(ring, node_, core_, tap_, own_rank) {
    mend_applier(ring, board_.applier);
    // relaxed is enough for these: the release (4), or that of a word in the bank (3), publishes
    // them to programs that rely on them
    board_.asleep.store(0, std::memory_order_relaxed);
    board_.real_time.store(0, std::memory_order_relaxed);
    board_.kind.store(static_cast<std::uint32_t>(kind), std::memory_order_relaxed);
    board_.pid.store(static_cast<std::uint32_t>(::getpid()), std::memory_order_relaxed);
    board_.started_ns.store(now_ns(), std::memory_order_relaxed);
    board_.socket_room.store(
        static_cast<std::uint32_t>(carrier_->bytes_held() / bytes_charged(kDefaultPayload)),
        std::memory_order_relaxed);
    for (std::size_t i = 0; i < former_.size(); ++i) {
        former_[i] = board_.counters.get(static_cast<UdpCounter>(i));
    }
    // relaxed is enough: only engines change it, one at a time. The incarnation of one that was
    // killed is over.
    if (board_.membership_epoch.load(std::memory_order_relaxed) % 2 == 1) advance_epoch(false);
    roster_.lose_unless([](unsigned) { return false; });
    outbox_.find_programs();
    board_.notice.say("");
    carrier_->ask_for_senders(true);
}

Engine::~Engine() {
    const std::lock_guard lock(mutex_);
    // relaxed is enough: (4) publishes it
    board_.pid.store(0, std::memory_order_relaxed);
    was_dropped(now_ns());
    core_.depart(now_ns());
    flush();
    show_counters();
}

void Engine::join(Deadline deadline) {
    turn_ns_ = turn_ns();
    while (!is_member()) {
        run();
        if (is_member()) return;
        if (deadline.passed(now_ns())) {
            const std::string odd = board_.notice.text();
            throw Error(
                Errc::timed_out,
                fmt::format("node {} found no way into ring '{}' ({})", node_, ring_.config().name,
                            !odd.empty() ? odd
                            : carrier_->counters().last_error != 0
                                ? std::strerror(carrier_->counters().last_error)
                                : "no member answered; `rmem doctor` looks for what is wrong with "
                                  "the network"));
        }
        const std::int64_t turn = turn_ns();
        if (turn == 0) {
            rest(kRestNs);
        } else {
            std::this_thread::sleep_for(std::chrono::nanoseconds(turn));
        }
    }
}

bool Engine::is_member() const noexcept {
    // (1) - this acquire-load synchronizes-with the release-store (2)
    return is_member_.load(std::memory_order_acquire);
}

// ---- Running

void Engine::run() {
    std::unique_lock lock(mutex_);
    takes_ = Outbox::Take::committed;
    run_locked(now_ns());
    const bool is_stood_by = take_stand_by(ran_ns_);
    end_run(lock);
    if (is_stood_by) [[unlikely]]
        bell_.ring();
}

/// Gives the lock back, and calls who wants to hear of what the run has found.
void Engine::end_run(std::unique_lock<SpinThenSleep>& lock) {
    const std::vector<BoundViolation> violations = arrivals_.take_violations();
    const ViolationHook hook = violations.empty() ? ViolationHook() : hook_;
    lock.unlock();
    if (!hook) return;
    for (const BoundViolation& violation : violations) hook(violation);
}

void Engine::run_locked(std::int64_t now) {
    if (is_lost_.get()) return;
    ran_ns_ = now;
    arrivals_.punctuality().begin(now);
    take_news(now);
    flush();  // before anything is waited for
    if (turn_ns_ != 0 && is_member()) [[unlikely]] {
        if (now < turn_until_ns_) return arrivals_.punctuality().end();
        turn_until_ns_ = now + turn_ns_;
    }
    const bool has_come = receive(now);
    has_news_to_keep_ = has_news_to_keep_ || has_come;
    has_come_ = has_come_ || has_come;
    bool is_due = now >= idle_until_ns_ || has_calls();
    // What has come may be answered in one.
    if (has_come && !arrivals_.has_news()) is_due = is_due || now >= core_.due_ns();
    if (has_come && !is_due) {  // the waiting program gets it first
        idle_until_ns_ = 0;
        tell_programs();
        flush();
    } else if (has_come || is_due) {
        do_what_is_due(now);
        flush();
        idle_until_ns_ = due_ns();
        turn_ns_ = turn_ns();
    }
    deferred_until_ns_.set(std::min(arrivals_.due_ns(), faults_.due_ns()));
    arrivals_.punctuality().end();
}

// ---- Writes

/// Full datagrams leave when they are worth a call of the host.
void Engine::take_locked(Outbox::Take what, Leaving leaving, std::int64_t now) {
    const std::size_t worth_a_call =
        std::min(Carrier::kMostInBatch, Carrier::kMostBytesInBatch / core_.exchange().payload());
    const std::int64_t then = std::max(now, ran_ns_);  // the helper may have run since
    unsent_since_ns_ = open_since_locked();
    bool any = false;
    const auto takes_more = [&] {
        if (core_.outgoing().count() >= worth_a_call) {
            flush();
            unsent_since_ns_ = outbox_.open_since_ns();
        }
        return outbox_.take(what, worth_a_call, then);
    };
    while (takes_more()) any = true;
    lacks_room_ = outbox_.is_behind();
    const bool leaves = leaving > Leaving::what_is_full &&
                        (leaving == Leaving::all || then - unsent_since_ns_ >= kLazyNs);
    if (leaves && core_.exchange().open_since_ns() != kNever) core_.commit(then);
    if (leaves) flush();
    if (!any && !leaves) return;
    written_ns_ = now;
    idle_until_ns_ = std::min(idle_until_ns_, due_ns());
}

std::int64_t Engine::open_since_locked() noexcept {
    const std::int64_t open = outbox_.open_since_ns();
    return core_.outgoing().is_empty() ? open : std::min(open, unsent_since_ns_);
}

/// What programs have committed and not handed over, or where what has come has made room.
void Engine::take_news(std::int64_t now) {
    if (outbox_.has_news(takes_)) take_locked(takes_, Leaving::all, now);
}

std::int64_t Engine::take(Leaving leaving, std::int64_t now) {
    std::unique_lock lock(mutex_);
    take_locked(Outbox::Take::committed, leaving, now);
    if (now >= serves_until_ns_) serves_.set(false);
    const std::int64_t open_since = open_since_locked();
    if (take_stand_by(now)) [[unlikely]] {
        lock.unlock();
        bell_.ring();
    }
    return open_since;
}

bool Engine::has_room(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    return outbox_.has_room(bytes);
}

void Engine::take_all() {
    std::unique_lock lock(mutex_);
    const std::int64_t begin = now_ns();
    takes_ = Outbox::Take::committed;
    run_locked(begin);  // what has come may have made room
    take_locked(Outbox::Take::all, Leaving::all, begin);
    end_run(lock);
}

void Engine::leave_some() {
    std::unique_lock lock(mutex_);
    if (take_stand_by(now_ns())) [[unlikely]] {
        lock.unlock();
        bell_.ring();
    }
}

std::int64_t Engine::open_since_ns() {
    const std::lock_guard lock(mutex_);
    return open_since_locked();
}

void Engine::take_and_ask() {
    const std::lock_guard lock(mutex_);
    const std::int64_t now = now_ns();
    take_locked(Outbox::Take::committed, Leaving::what_is_full, now);
    core_.ask_for_acks(now);  // and the rest leaves
    flush();
}

/// Whether other programs of this host want something.
bool Engine::has_calls() const noexcept {
    // relaxed is enough: a program that is not seen now rings the bell, or is seen by keep()
    return board_.membership_changes.load(std::memory_order_relaxed) != membership_changes_seen_ ||
           outbox_.has_news(takes_);
}

/// Acknowledges what a timing profile deferred.
void Engine::apply_due(std::int64_t now) {
    if (now < arrivals_.due_ns()) return;
    arrivals_.apply_due(now);
    arrivals_.take_published().for_each([&](unsigned node) { core_.has_published(node, now); });
}

void Engine::do_what_is_due(std::int64_t now) {
    apply_due(now);
    // relaxed is enough: as said in has_calls()
    if (board_.membership_changes.load(std::memory_order_relaxed) != membership_changes_seen_)
        keep_roster(now);
    take_news(now);
    if (now >= outbox_.due_ns()) outbox_.on_time(now);
    if (now >= core_.due_ns()) core_.on_tick(now);
    flush();
    if (outbox_.complete()) wake_programs();
    tell_programs();
    if (now >= next_keep_ns_) {
        keep(now);
        flush();
    }
}

/// What the core has filled. Many datagrams leave with one call: under load, and of one group.
void Engine::send_filled() noexcept {
    show_processor();
    const bool is_one = core_.outgoing().count() == 1;
    core_.outgoing().drain([&](const OutgoingDatagram& datagram) {
        if (datagram.to == OutgoingDatagram::To::namesakes) [[unlikely]] {
            carrier_->send_to_namesakes(datagram.bytes);
        } else if (is_one) {
            carrier_->send(datagram.bytes);
        } else {
            carrier_->queue(datagram.bytes);
        }
    });
    carrier_->flush();
}

/// A process of this host that takes its datagrams runs best there (rmem/link/udp/neighbours.hpp).
void Engine::show_processor() noexcept {
    const int processor = ::sched_getcpu();
    if (processor == processor_) return;
    processor_ = processor;
    board_.processor.set(static_cast<std::uint32_t>(processor + 1));
}

/// True if anything came.
bool Engine::receive(std::int64_t& now) {
    bool any = false;
    const bool takes_all = turn_ns_ != 0 || nap_until_ns_.get() != 0;
    if (nap_until_ns_.get() <= now) nap_until_ns_.set(0);
    core_.hold_answers(takes_all);
    const unsigned most = takes_all ? kMostTaken : kMostReceives;
    for (auto held = faults_.next(now); !held.empty(); held = faults_.next(now)) {
        core_.on_datagram(held, now);
        flush();
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
            flush();
        }
        place_ = SIZE_MAX;
        // They may be what the program waits for: to ask for more would make it wait longer, and
        // their senders for room that the program makes.
        if (arrivals_.has_news() && !takes_all) return true;
        now = now_ns();
    }
    return any;
}

void Engine::on_bound_violation(ViolationHook hook) {
    const std::lock_guard lock(mutex_);
    hook_ = std::move(hook);
}

void Engine::tell_programs() noexcept {
    if (!arrivals_.take_news()) return;
    // relaxed is enough: programs ask whether it has changed
    if (arrivals_.take_news_of_users()) board_.arrivals.fetch_add(1, std::memory_order_relaxed);
    wake_programs();
}

/// A sleeping rank of this node may be waiting for what was applied; one that waits for an
/// interrupt is woken when that is raised. The rank that runs the engine sleeps here, not on its
/// wake word.
void Engine::wake_programs() noexcept {
    is_to_look_ = true;
    if (sleeps()) interrupt();
    light_fence();
    for (unsigned r = 0; r < ring_.config().ranks; ++r) {
        // relaxed is enough: the fence orders this load after the stores before it
        std::uint32_t asked = ring_.attention()[r].load(std::memory_order_relaxed) & kPostsWake;
        if (r == own_rank_) asked &= ~kAttentionSleeping;
        if (asked != 0) [[unlikely]]
            wake_asked(ring_, r, asked);
    }
}

// ---- The core's edge

/// No rank reads a joining node's bank yet, and a node that has left holds up no other.
void Engine::apply(unsigned origin, const Batch& batch, std::int64_t now) {
    const bool is_member = core_.view().contains(origin);
    heard_from_.set(origin);
    arrivals_.take(origin, batch,
                   core_.exchange().round_trip(origin).own_time(batch.first_store_ns(), now), now,
                   is_member ? Arrivals::Showing::in_time : Arrivals::Showing::at_once);
}

std::atomic<std::uint32_t>* Engine::words() const noexcept {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(ring_.bank(node_));
}

void Engine::store(std::uint64_t index, std::uint32_t value) {
    // (3) - this release-store synchronizes-with the acquire-load rmem/link/bank_writer.hpp (1)
    words()[index].store(value, std::memory_order_release);
}

/// A write that a program is about to append may be in the bank already, as one that waits for the
/// lock.
bool Engine::hand_over_all(std::int64_t now) {
    serves_until_ns_ = now + kServeNs;
    if (!serves_.get()) {
        serves_.set(true);
        heavy_fence();  // the program sees it, or what it has appended is seen here
    }
    take_locked(Outbox::Take::all, Leaving::all, now);
    return outbox_.has_all();
}

std::span<const std::byte> Engine::bank() {
    touched_.restart();
    return {ring_.bank(node_), ring_.config().bank_bytes()};
}

void Engine::clear_bank() {
    const std::size_t size = ring_.config().bank_bytes();
    touched_.restart();
    for (std::size_t at = 0; (at = touched_.begin(at)) < size; at += kWordBytes) {
        store(at / kWordBytes, 0);
    }
}

bool Engine::is_blank(std::uint64_t index, std::size_t words) {
    if (touched_in_ != core_.incarnation()) touched_.restart();
    touched_in_ = core_.incarnation();
    return touched_.begin(index * kWordBytes) >= (index + words) * kWordBytes;
}

void Engine::has_joined(std::int64_t now) {
    arrivals_.apply_all(now);
    outbox_.begin_incarnation();
    tap_.show_gap(now);
    // One that joins at the same time may have said so already, and be in the view only later.
    roster_.read_all([this](unsigned node) { return core_.exchange().takes(node); });
    // relaxed is enough for these: for people
    board_.incarnation.store(core_.incarnation(), std::memory_order_relaxed);
    board_.ring_incarnation.store(core_.ring_incarnation(), std::memory_order_relaxed);
    show_members();
    advance_epoch(true);
}

void Engine::was_dropped(std::int64_t now) {
    arrivals_.apply_all(now);
    if (!is_member()) return;
    advance_epoch(false);
    roster_.lose_unless([](unsigned) { return false; });
    wake_programs();
}

void Engine::advance_epoch(bool member) noexcept {
    // (4) - this release-add synchronizes-with the acquire-load rmem/link/udp/memory.hpp (1): who
    // sees the new incarnation sees its bank
    board_.membership_epoch.fetch_add(1, std::memory_order_release);
    // (2) - this release-store synchronizes-with the acquire-load (1)
    is_member_.store(member, std::memory_order_release);
}

void Engine::member_came(unsigned, std::int64_t) {
    show_members();
}

void Engine::member_left(unsigned node, std::int64_t now) {
    arrivals_.apply_all_of(node, now);
    show_members();
}

void Engine::on_odd(Odd odd, const Header& header, std::string_view text) {
    if (odd == Odd::namesake) ++namesakes_;
    odd_ns_ = ran_ns_;
    oddities_.note(odd, header.origin, carrier_->sender(place_), text, ran_ns_);
}

// ---- Now and then

void Engine::write_roster(unsigned rank, std::uint32_t incarnation, bool joined, std::int64_t now) {
    const std::uint32_t word = RosterEntry{joined, node_, incarnation}.word();
    LogRecord record;
    record.written_ns = now;
    record.offset = roster_.offset_of(rank);
    record.words = 1;
    if (!outbox_.put(record, &word, now)) return;  // tried again by keep()
    store(record.offset / kWordBytes, word);
    outbox_.commit(now);
}

/// The roster's words of this host's ranks follow their slots: of one that has come, before what it
/// writes; of one that has gone, after.
void Engine::keep_roster(std::int64_t now) {
    // (6) - this acquire-load synchronizes-with the release-add rmem/link/udp/memory.cpp (5)
    membership_changes_seen_ = board_.membership_changes.load(std::memory_order_acquire);
    outbox_.find_programs();
    if (!core_.is_member()) return;
    for (unsigned r = 0; r < ring_.config().ranks; ++r) {
        const RosterEntry entry = roster_.entry(r);
        // relaxed is enough: (6)
        const std::uint32_t incarnation = ring_.rank(r).incarnation.load(std::memory_order_relaxed);
        // A live program of this host has the rank, and opened it in this incarnation of the node.
        if (outbox_.has_opened(r) && roster_.is_here(r)) {
            const bool is_said =
                entry.joined && entry.node == node_ && entry.incarnation == incarnation;
            if (!is_said) write_roster(r, incarnation, true, now);
        } else if (entry.joined && entry.node == node_) {
            take_locked(Outbox::Take::all, Leaving::all, now);
            write_roster(r, entry.incarnation, false, now);
        }
    }
}

void Engine::keep(std::int64_t now) {
    next_keep_ns_ = now + kKeepNs;
    has_news_to_keep_ = false;
    tap_.keep(now);
    take_locked(Outbox::Take::all, Leaving::all, now);
    keep_roster(now);
    roster_.lose_unless([&](unsigned node) {
        return core_.exchange().takes(node) || !core_.exchange().ended().is_completed(node, now);
    });
    keep_carrier(now);
    keep_oddities(now);
    show_counters();
    show_nodes(now);
}

}  // namespace rmem::udp
