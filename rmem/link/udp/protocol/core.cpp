// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/core.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/random.hpp"
#include "rmem/wire/faults.hpp"

#include <algorithm>
#include <utility>

namespace rmem::udp {

namespace {

constexpr unsigned kCrowd = 8;

}  // namespace

Core::Core(const CoreConfig& config, const Authenticator& authenticator, CoreEdge& edge,
           std::int64_t now)
    : config_(config),
      authenticator_(authenticator),
      edge_(edge),
      others_(config.exchange.nodes),
      random_state_(config.seed),
      first_ns_(now),
      first_wall_ns_(config.exchange.incarnation) {
    config_.exchange.hear_ns = config.dead_ns + 2 * std::max(kStatusNs, heartbeat_ns());
    config_.exchange.first_incarnation = config.exchange.incarnation;
    begin_incarnation(now);
}

/// What it makes need not be secret, only different each time.
std::uint64_t Core::random() noexcept {
    return next_random(random_state_);
}

// ---- Incarnations

void Core::begin_incarnation(std::int64_t now) {
    ExchangeEdge& edge = *this;
    config_.exchange.seed = random();
    exchange_ = std::make_unique<Exchange>(config_.exchange, authenticator_, edge, outgoing_);
    exchange_->hold_answers(holds_answers_);
    pending_.clear();
    owed_admits_.clear();
    owed_welcomes_.clear();
    is_member_ = false;
    view_ = NodeSet();
    ring_incarnation_ = 0;
    heard_member_ns_ = -1;
    cookie_ = random();
    joins_ = 0;
    joining_since_ns_ = excused_ns_ = now;
    welcomed_.reset();
    must_restart_ = false;
    taker_.emplace(config_.exchange.bank_bytes / kWordBytes, config_.exchange.first_sequence, me(),
                   config_.exchange.nodes);
    join_due_ns_ = now;
    status_interval_ns_ = std::min(kStatusNs, heartbeat_ns());
    status_due_ns_ = now + status_interval_ns_;
    look_due_ns_ = now + kJoinNs;
}

/// Others have dropped this node: what it is to them is a new incarnation.
void Core::drop_out(std::int64_t now) {
    ++counters_.dropped;
    edge_.was_dropped(now);
    next_incarnation(now);
}

void Core::next_incarnation(std::int64_t now) {
    former_ = exchange_counters();
    ++config_.exchange.incarnation;
    config_.exchange.salt = random();
    // Incarnations that it has ended itself may well be what stands: they are met as if for the
    // first time.
    for (Other& other : others_) other = Other{};
    begin_incarnation(now);
}

void Core::become_member(const NodeSet& view, std::uint64_t ring_incarnation, std::int64_t now) {
    is_member_ = true;
    member_since_ns_ = now;
    view_ = view;
    view_.insert(me());
    ring_incarnation_ = ring_incarnation;
    welcomed_.reset();
    taker_.reset();
    join_due_ns_ = kNever;
    ++counters_.joined;
    for (unsigned node = 0; node < others_.size(); ++node) {
        if (!view_.contains(node)) exchange_->defer(node);
    }
    update_window();
    edge_.has_joined(now);
    view_.for_each([&](unsigned node) {
        if (node == me()) return;
        ++counters_.members_came;
        edge_.member_came(node, now);
    });
    send_status(now);
}

// ---- Members

void Core::leave(unsigned node, std::int64_t now) {
    if (!exchange_->takes(node) && !exchange_->out().receivers().contains(node)) return;
    others_[node].ended = true;
    others_[node].served = false;
    const auto is_its = [node](const Owed& owed) { return owed.node == node; };
    std::erase_if(owed_admits_, is_its);
    std::erase_if(owed_welcomes_, is_its);
    exchange_->belief().doubt(node, others_[node].incarnation);
    const bool has_written =
        exchange_->takes(node) && exchange_->applied(node) >= config_.exchange.first_sequence;
    const bool has_begun = exchange_->has_applied(node);
    const bool was_member = view_.contains(node);
    exchange_->end(node, was_member ? view_ : NodeSet(), now);
    if (taker_) {
        taker_->note_departure(node);
        // What is here of its writes does not go away with parts that are here already.
        must_restart_ |= has_begun && !is_of_ring(node) && taker_->parts_here() != 0;
    }
    if (welcomed_) {
        welcomed_->view.erase(node);
        if (welcomed_->donor == node) welcomed_.reset();
    }
    if (was_member || has_written) end_served(now);
    if (!was_member) return;
    view_.erase(node);
    ++counters_.members_left;
    update_window();
    edge_.member_left(node, now);
    say_again(now);
    status_due_ns_ = now;  // so that it learns of it, should it live
}

/// A joiner has parts of the bank from before, and may never have had the stream that ended: it
/// begins again.
void Core::end_served(std::int64_t now) {
    for (unsigned node = 0; node < others_.size(); ++node) {
        if (others_[node].served && !view_.contains(node)) leave(node, now);
    }
}

/// Of two that have different banks, since nobody could give what one of them lacks of a node that
/// is dead, the lower one stands. True when this node goes.
bool Core::resolve_differences(std::int64_t now) {
    const NodeSet differs = exchange_->ended().differs_from();
    bool goes = false;
    differs.for_each([&](unsigned node) { goes = goes || (node < me() && view_.contains(node)); });
    if (goes) {
        drop_out(now);
    } else {
        differs.for_each([&](unsigned node) { leave(node, now); });
    }
    return goes;
}

/// What others were silent while this node did not run counts for nobody's death: they may have
/// spoken.
void Core::note_absence(std::int64_t now) {
    if (!is_member_ && now > join_due_ns_) {
        joining_since_ns_ += now - std::max(join_due_ns_, excused_ns_);
        excused_ns_ = now;
    }
    const std::int64_t away_ns = now - look_due_ns_;
    if (away_ns <= config_.dead_ns / 4) return;
    exchange_->belief().excuse(away_ns, now);
    look_due_ns_ = now;
    if (away_ns > config_.dead_ns / 2) returned_until_ns_ = now + config_.dead_ns;
}

void Core::look_for_the_dead(std::int64_t now) {
    RMEM_CHECK(is_member_ == view_.contains(me()));
    look_due_ns_ = now + heartbeat_ns();
    for (unsigned node = 0; node < others_.size(); ++node) {
        const std::int64_t heard = exchange_->takes(node) ? exchange_->belief().heard_ns(node)
                                                          : others_[node].heard_joining_ns;
        if (now - heard > config_.dead_ns) {
            leave(node, now);
        } else if (now - heard > config_.dead_ns / 2 && view_.contains(node)) {
            say_again(now);
        }
    }
    exchange_->belief().doubt_silent_since(now - config_.dead_ns);
}

void Core::on_status(const Header& header, const Status& status, std::int64_t now) {
    const unsigned node = header.origin;
    const bool is_member = status.is_member();
    if (is_member) heard_member_ns_ = now;
    if (is_member && is_member_ && status.ring_incarnation != ring_incarnation_) {
        return stands_against_ring(status.ring_incarnation) ? leave(node, now) : drop_out(now);
    }
    if (!is_connected(node, header.incarnation)) {
        if (is_member && is_member_ && !agrees(header, status, now)) return;
        // An incarnation that it has not met; one that it has ended learns that from its view.
        if (!has_met(node, header.incarnation)) {
            join_due_ns_ = std::min(join_due_ns_, std::max(now, joined_at_ns_ + join_ns()));
        }
        return;
    }
    if (status.state == Status::State::leaving) return leave(node, now);
    if (is_member) others_[node].ring_incarnation = status.ring_incarnation;
    if (!is_member || !is_member_) return;
    others_[node].socket_room = status.socket_room;
    // Of one that goes at once nothing is applied, and no other member is held for its heir.
    if (!agrees(header, status, now)) return;
    if (!view_.contains(node)) {
        view_.insert(node);
        ++counters_.members_came;
        edge_.member_came(node, now);
        exchange_->release(node, now);
        say_again(now);
    }
    // A member that a heartbeat wakes sends its own: so idle members wake together.
    const bool is_quiet = status_interval_ns_ >= heartbeat_ns();
    if (is_quiet && status_due_ns_ - now <= heartbeat_ns() / 2) status_due_ns_ = now;
    update_window();
}

/// Of two rings that were formed apart the older one; so their members come to the same answer,
/// whichever of them have met.
bool Core::stands_against_ring(std::uint64_t ring_incarnation) const noexcept {
    return ring_incarnation_ < ring_incarnation;
}

/// Returns false if another member's view of this ring shows that one of the two has left it.
/// Of two that disagree one goes, and both come to the same answer, whichever of them has ended the
/// other.
bool Core::agrees(const Header& header, const Status& status, std::int64_t now) {
    const unsigned node = header.origin;
    Other& other = others_[node];
    const bool has_me = status.view.contains(me());
    const bool is_known = has_met(node, header.incarnation);
    const bool ended_it = is_known && !exchange_->takes(node);
    if (is_known) other.view = status.view;
    if (is_known && has_me && !ended_it) other.had_me = true;
    // Whose view has not had this node yet may just not have heard of it.
    const bool has_heard = (is_known && other.had_me) || now - member_since_ns_ > config_.dead_ns;
    if (!ended_it && (has_me || !has_heard)) return true;
    if (!stands_against(node, status, ended_it, now)) {
        drop_out(now);
    } else if (is_known || admit(node, header.incarnation, now)) {
        leave(node, now);  // one that was not met is over, too
    }
    return false;
}

/// docs/design/udp-link.md: Disagreement.
bool Core::stands_against(unsigned node, const Status& status, bool ended_it,
                          std::int64_t now) const noexcept {
    const bool it_returned = status.state == Status::State::returned;
    if (it_returned != (now < returned_until_ns_)) return it_returned;
    const unsigned mine = supporters(), its = supporters_of(node, status.view);
    if (mine != its) return mine > its;
    const bool has_me = status.view.contains(me());
    if (has_me && ended_it) return true;
    if (!has_me && !ended_it && !has_ended_any_of(status.view)) return false;
    const unsigned my_lowest = view_.lowest(), its_lowest = status.view.lowest();
    return my_lowest != its_lowest ? my_lowest < its_lowest : me() < node;
}

/// Then it has noticed that there are two parts of the ring.
bool Core::has_ended_any_of(const NodeSet& nodes) const noexcept {
    bool has = false;
    nodes.for_each(
        [&](unsigned node) { has = has || (node < others_.size() && others_[node].ended); });
    return has;
}

/// Members that are with this one, itself among them, as their last statuses say.
unsigned Core::supporters() const noexcept {
    unsigned count = 1;
    view_.for_each([&](unsigned node) {
        if (node != me() && others_[node].view.contains(me())) ++count;
    });
    return count;
}

/// The same of another member. What one says that is not heard here, it has to know.
unsigned Core::supporters_of(unsigned node, const NodeSet& view) const noexcept {
    unsigned count = 1;
    view.for_each([&](unsigned other) {
        if (other == node || other >= others_.size()) return;
        const bool is_heard = other == me() || exchange_->takes(other);
        const NodeSet& its = other == me() ? view_ : others_[other].view;
        if (!is_heard || its.contains(node)) ++count;
    });
    return count;
}

/// What the smallest socket holds is shared by all who may send to it at once.
void Core::update_window() noexcept {
    std::size_t least = config_.socket_room;
    view_.for_each([&](unsigned node) {
        const std::size_t room = others_[node].socket_room;
        if (node != me() && room != 0) least = std::min(least, room);
    });
    const unsigned senders = std::max(view_.size(), 2U) - 1;
    exchange_->set_window(least / senders);
}

// ---- What comes

void Core::apply(unsigned origin, const Batch& batch, std::int64_t now) {
    RMEM_CHECK_IF(false, others_[origin].incarnation != 0);
    edge_.apply(origin, batch, now);
    if (!taker_) return;
    // A batch of a node that is gone: parts that come from now on have it. Written into parts that
    // are here, it is right if the node is of this ring; else all of them have to come again.
    if (!exchange_->takes(origin)) {
        must_restart_ |= !is_of_ring(origin) && taker_->parts_here() != 0;
        // Older than each answer, but the part is not blank any more.
        for (const Record& record : batch.records()) taker_->note_write(origin, 0, record.place);
        return;
    }
    for (const Record& record : batch.records()) {
        taker_->note_write(origin, batch.sequence(), record.place);
    }
}

void Core::on_section(const Header& header, const Section& section, std::int64_t) {
    if (section.type() == SectionType::vector || section.type() == SectionType::chunk) {
        // What others have asked for comes to all.
        if (!taker_ || !is_of_donor(header) || !all_have_admitted()) return;
        if (section.type() == SectionType::vector) {
            const Vector vector(section);
            return taker_->on_vector(vector, incarnation_sum_of(vector.origins()),
                                     [this](unsigned node) { return exchange_->applied(node); });
        }
        const Chunk chunk(section);
        return taker_->on_chunk(
            chunk, [this](std::uint64_t index, std::uint32_t value) { edge_.store(index, value); },
            [this](const Place& place) { return edge_.is_blank(place.index, place.words); });
    }
    const std::byte* const from = section.body().data() - kSectionHeadBytes;
    pending_.push_back({header, {from, from + Section::extent(from)}});
}

void Core::deal_with(const Header& header, const Section& section, std::int64_t now) {
    switch (section.type()) {
        case SectionType::status: return on_status(header, entry_of<Status>(section), now);
        case SectionType::join: return on_join(header, entry_of<Join>(section), now);
        case SectionType::welcome: return on_welcome(header, Welcome(section), now);
        case SectionType::admit: return on_admit(header, entry_of<Admit>(section), now);
        case SectionType::snapshot_request:
            return on_snapshot_request(header, SnapshotRequest(section), now);
        default: return;  // of a later version
    }
}

void Core::on_datagram(std::span<const std::byte> bytes, std::int64_t now) {
    exchange_->on_datagram(bytes, now);
    if (pending_.empty() && is_member_) [[likely]]
        return;
    note_absence(now);
    for (const Pending& pending : std::exchange(pending_, {})) {
        deal_with(pending.header, Section::read(pending.bytes.data()), now);
    }
    if (!is_member_) advance_joining(now);
}

// ---- Timers

std::int64_t Core::due_ns() const noexcept {
    std::int64_t due = std::min({exchange_->due_ns(), exchange_->belief().due_ns(), admit_due_ns(),
                                 join_due_ns_, status_due_ns_, look_due_ns_});
    if (!is_member_ && all_have_admitted()) due = std::min(due, taker_->request_due_ns());
    return due;
}

void Core::on_tick(std::int64_t now) {
    note_absence(now);
    given_.clear();
    exchange_->on_tick(now);
    if (is_member_ && !exchange_->ended().differs_from().empty() && resolve_differences(now))
        return;
    if (now >= look_due_ns_ || now >= status_due_ns_) look_for_the_dead(now);
    if (now >= exchange_->belief().due_ns()) send_greetings(now);
    if (now >= admit_due_ns()) send_admits(now);
    if (now >= join_due_ns_) send_join(now);
    if (now >= status_due_ns_) send_status(now);
    if (!is_member_) advance_joining(now);
}

// ---- Sending

/// What others need first to believe the rest of the datagram.
DatagramWriter& Core::begin_greeting(std::int64_t now) {
    DatagramWriter& writer = exchange_->begin_other(now);
    exchange_->belief().add_greetings(writer, greeting_flags(), now);
    return writer;
}

/// A node that is greeted by a joiner hears the join with it; but all answer joins, so where many
/// join at a time not each greeting has one.
void Core::send_greetings(std::int64_t now) {
    const std::int64_t nodes = config_.exchange.nodes;
    const std::int64_t gap = nodes > kCrowd ? kGreetNs * nodes : 0;
    const bool is_time = !is_member_ && now - joined_at_ns_ >= gap;
    if (is_time && exchange_->belief().owes_greetings(now)) send_join(now);
    exchange_->send_greetings(greeting_flags(), now);
}

/// Also in a status now and then: of another ring's, people read that of both.
void Core::send_join(std::int64_t now) {
    join_due_ns_ = is_member_ ? kNever : now + (join_ns() << std::min(joins_++, 2U));
    joined_at_ns_ = now;
    ++counters_.joins_sent;
    Join join{cookie_, {}};
    // A node that takes a stream because it heard the other's join may not have been heard itself:
    // that counts for nothing.
    for (unsigned node = 0; node < others_.size(); ++node) {
        if (exchange_->takes(node) && others_[node].has_admitted) join.admitted_by.insert(node);
    }
    if (!is_member_) exchange_->belief().greet_namesakes(now);
    DatagramWriter& writer = exchange_->begin_other(now);
    // A greeting that found no room leaves with the next datagram, a text with the next join.
    if (!exchange_->belief().owes_greetings(now)) writer.add_about(config_.about);
    exchange_->belief().add_greetings(writer, greeting_flags(), now);
    writer.add_join(join);
    exchange_->send_other(now);
}

void Core::depart(std::int64_t now) {
    if (is_member_) send_status(Status::State::leaving, now);
}

void Core::send_status(std::int64_t now) {
    const bool has_returned = now < returned_until_ns_;
    send_status(!is_member_    ? Status::State::joining
                : has_returned ? Status::State::returned
                               : Status::State::member,
                now);
}

/// What others are told is new: the next statuses follow soon.
void Core::say_again(std::int64_t now) noexcept {
    status_interval_ns_ = std::min(kStatusNs, heartbeat_ns());
    status_due_ns_ = std::min(status_due_ns_, now + status_interval_ns_);
}

void Core::send_status(Status::State state, std::int64_t now) {
    status_due_ns_ = now + status_interval_ns_;
    if (is_member_) status_interval_ns_ = std::min(2 * status_interval_ns_, heartbeat_ns());
    Status status;
    status.ring_incarnation = ring_incarnation_;
    status.socket_room = static_cast<std::uint32_t>(config_.socket_room);
    status.state = state;
    status.view = view_;
    DatagramWriter& writer = exchange_->begin_other(now);
    const bool has_about = statuses_++ % kStatusesAnAbout == 0;
    if (has_about) writer.add_about(config_.about);
    writer.add_status(status);
    exchange_->ended().add_to(writer, now);
    has_about ? exchange_->send_other_at_length(now) : exchange_->send_other(now);
}

void Core::send_welcome(const Owed& owed, std::int64_t now) {
    if (!is_donor()) return;
    ++counters_.welcomes_sent;
    const NodeIncarnation joiner =
        NodeIncarnation::of(static_cast<std::uint16_t>(owed.node), others_[owed.node].incarnation);
    NodeSet view = view_;
    view.erase(owed.node);
    const auto begin = [&] {
        begin_greeting(now).begin_welcome(joiner, owed.cookie, ring_incarnation_, view);
    };
    begin();
    view.for_each([&](unsigned member) {
        const std::uint64_t incarnation =
            member == me() ? config_.exchange.incarnation : others_[member].incarnation;
        const MemberIncarnation entry{static_cast<std::uint16_t>(member), incarnation};
        if (exchange_->other().add_incarnation(entry)) return;
        exchange_->send_other(now);
        begin();
        exchange_->other().add_incarnation(entry);
    });
    // A second one goes where long datagrams do not, too.
    const bool is_first = !std::exchange(others_[owed.node].was_shown, true);
    is_first ? exchange_->send_other_at_length(now) : exchange_->send_other(now);
}

/// That incarnation of the node is over here.
void Core::send_refusal(unsigned node, std::uint64_t cookie, std::int64_t now) {
    const NodeIncarnation joiner =
        NodeIncarnation::of(static_cast<std::uint16_t>(node), others_[node].incarnation);
    begin_greeting(now).add_admit({joiner, cookie, 0, ring_incarnation_});
    exchange_->send_other(now);
}

/// At once, if none has just left: where many join at a time they leave together.
void Core::owe_admit(unsigned node, std::uint64_t cookie, std::int64_t now) {
    std::erase_if(owed_admits_, [&](const Owed& owed) { return owed.node == node; });
    owed_admits_.push_back({node, cookie});
    if (now >= admit_next_ns_ && !holds_answers_) send_admits(now);
}

void Core::owe_welcome(unsigned node, std::uint64_t cookie, std::int64_t now) {
    if (!holds_answers_) return send_welcome({node, cookie}, now);
    std::erase_if(owed_welcomes_, [&](const Owed& owed) { return owed.node == node; });
    owed_welcomes_.push_back({node, cookie});
}

void Core::send_admits(std::int64_t now) {
    for (const Owed& owed : std::exchange(owed_welcomes_, {})) send_welcome(owed, now);
    if (owed_admits_.empty()) return;
    admit_next_ns_ = now + kAdmitNs;
    DatagramWriter* writer = &begin_greeting(now);
    for (const Owed& owed : std::exchange(owed_admits_, {})) {
        const Other& other = others_[owed.node];
        const Admit admit{
            NodeIncarnation::of(static_cast<std::uint16_t>(owed.node), other.incarnation),
            owed.cookie, other.admitted_from, ring_incarnation_};
        if (writer->add_admit(admit)) continue;
        exchange_->send_other(now);
        writer = &exchange_->begin_other(now);
        writer->add_admit(admit);
    }
    exchange_->send_other(now);
}

}  // namespace rmem::udp
