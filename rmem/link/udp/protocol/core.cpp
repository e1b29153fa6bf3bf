// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/core.hpp"

#include "rmem/base/check.hpp"
#include "rmem/link/udp/protocol/agreement.hpp"
#include "rmem/wire/faults.hpp"

#include <algorithm>
#include <utility>

namespace rmem::udp {

Core::Core(const CoreConfig& config, const Authenticator& authenticator, CoreEdge& edge,
           std::int64_t now)
    : own_(config, edge),
      authenticator_(authenticator),
      answers_(own_),
      joiner_(own_),
      first_ns_(now),
      first_wall_ns_(config.exchange.incarnation) {
    own_.config.exchange.hear_ns = config.dead_ns + 2 * std::max(kStatusNs, heartbeat_ns());
    own_.config.exchange.first_incarnation = config.exchange.incarnation;
    begin_incarnation(now);
}

// ---- Incarnations

void Core::begin_incarnation(std::int64_t now) {
    ExchangeEdge& edge = *this;
    own_.config.exchange.seed = own_.random();
    own_.exchange =
        std::make_unique<Exchange>(own_.config.exchange, authenticator_, edge, own_.outgoing);
    own_.exchange->hold_answers(answers_.holds());
    pending_.clear();
    answers_.forget_all();
    own_.is_member = false;
    own_.view = NodeSet();
    own_.ring_incarnation = 0;
    joiner_.begin(now);
    status_interval_ns_ = std::min(kStatusNs, heartbeat_ns());
    status_due_ns_ = now + status_interval_ns_;
    look_due_ns_ = now + kJoinNs;
}

/// Others have dropped this node: what it is to them is a new incarnation.
void Core::drop_out(std::int64_t now) {
    ++own_.counters.dropped;
    own_.edge.was_dropped(now);
    next_incarnation(now);
}

void Core::next_incarnation(std::int64_t now) {
    former_ = exchange_counters();
    ++own_.config.exchange.incarnation;
    own_.config.exchange.salt = own_.random();
    // Incarnations that it has ended itself may well be what stands: they are met as if for the
    // first time.
    std::fill(own_.others.begin(), own_.others.end(), CoreOwn::Other());
    begin_incarnation(now);
}

void Core::become_member(const NodeSet& view, std::uint64_t ring_incarnation, std::int64_t now) {
    own_.is_member = true;
    member_since_ns_ = now;
    own_.view = view;
    own_.view.insert(own_.me());
    own_.ring_incarnation = ring_incarnation;
    joiner_.end();
    ++own_.counters.joined;
    for (unsigned node = 0; node < own_.others.size(); ++node) {
        if (!own_.view.contains(node)) own_.exchange->defer(node);
    }
    own_.update_window();
    own_.edge.has_joined(now);
    own_.view.for_each([&](unsigned node) {
        if (node == own_.me()) return;
        ++own_.counters.members_came;
        own_.edge.member_came(node, now);
    });
    send_status(now);
}

// ---- Members

void Core::leave(unsigned node, std::int64_t now) {
    if (!own_.exchange->takes(node) && !own_.exchange->out().receivers().contains(node)) return;
    own_.others[node].ended = true;
    own_.others[node].served = false;
    answers_.forget(node);
    own_.exchange->belief().doubt(node, own_.others[node].incarnation);
    const bool has_written = own_.exchange->takes(node) &&
                             own_.exchange->applied(node) >= own_.config.exchange.first_sequence;
    const bool has_begun = own_.exchange->has_applied(node);
    const bool was_member = own_.view.contains(node);
    own_.exchange->end(node, was_member ? own_.view : NodeSet(), now);
    joiner_.note_departure(node, has_begun);
    if (was_member || has_written) end_served(now);
    if (!was_member) return;
    own_.view.erase(node);
    ++own_.counters.members_left;
    own_.update_window();
    own_.edge.member_left(node, now);
    say_again(now);
    status_due_ns_ = now;  // so that it learns of it, should it live
}

/// A joiner has parts of the bank from before, and may never have had the stream that ended: it
/// begins again.
void Core::end_served(std::int64_t now) {
    for (unsigned node = 0; node < own_.others.size(); ++node) {
        if (own_.others[node].served && !own_.view.contains(node)) leave(node, now);
    }
}

/// Of two that have different banks, since nobody could give what one of them lacks of a node that
/// is dead, the lower one stands. True when this node goes.
bool Core::resolve_differences(std::int64_t now) {
    const NodeSet differs = own_.exchange->ended().differs_from();
    bool goes = false;
    differs.for_each(
        [&](unsigned node) { goes = goes || (node < own_.me() && own_.view.contains(node)); });
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
    joiner_.excuse(now);
    const std::int64_t away_ns = now - look_due_ns_;
    if (away_ns <= own_.config.dead_ns / 4) return;
    own_.exchange->belief().excuse(away_ns, now);
    look_due_ns_ = now;
    if (away_ns > own_.config.dead_ns / 2) returned_until_ns_ = now + own_.config.dead_ns;
}

void Core::look_for_the_dead(std::int64_t now) {
    RMEM_CHECK(own_.is_member == own_.view.contains(own_.me()));
    look_due_ns_ = now + heartbeat_ns();
    for (unsigned node = 0; node < own_.others.size(); ++node) {
        const std::int64_t heard = own_.exchange->takes(node)
                                       ? own_.exchange->belief().heard_ns(node)
                                       : own_.others[node].heard_joining_ns;
        if (now - heard > own_.config.dead_ns) {
            leave(node, now);
        } else if (now - heard > own_.config.dead_ns / 2 && own_.view.contains(node)) {
            say_again(now);
        }
    }
    own_.exchange->belief().doubt_silent_since(now - own_.config.dead_ns);
}

void Core::on_status(const Header& header, const Status& status, std::int64_t now) {
    const unsigned node = header.origin;
    const bool is_member = status.is_member();
    if (is_member) joiner_.note_member(now);
    if (is_member && own_.is_member && status.ring_incarnation != own_.ring_incarnation) {
        // Of two rings that were formed apart the older one stands; so their members come to the
        // same answer, whichever of them have met.
        return own_.ring_incarnation < status.ring_incarnation ? leave(node, now) : drop_out(now);
    }
    if (!own_.is_connected(node, header.incarnation)) {
        if (is_member && own_.is_member && !agrees(header, status, now)) return;
        // An incarnation that it has not met; one that it has ended learns that from its view.
        if (!own_.has_met(node, header.incarnation)) joiner_.join_again(now);
        return;
    }
    if (status.state == Status::State::leaving) return leave(node, now);
    if (is_member) own_.others[node].ring_incarnation = status.ring_incarnation;
    if (!is_member || !own_.is_member) return;
    own_.others[node].socket_room = status.socket_room;
    // Of one that goes at once nothing is applied, and no other member is held for its heir.
    if (!agrees(header, status, now)) return;
    if (!own_.view.contains(node)) {
        own_.view.insert(node);
        ++own_.counters.members_came;
        own_.edge.member_came(node, now);
        own_.exchange->release(node, now);
        say_again(now);
    }
    // A member that a heartbeat wakes sends its own: so idle members wake together.
    const bool is_quiet = status_interval_ns_ >= heartbeat_ns();
    if (is_quiet && status_due_ns_ - now <= heartbeat_ns() / 2) status_due_ns_ = now;
    own_.update_window();
}

/// Returns false if another member's view of this ring shows that one of the two has left it.
bool Core::agrees(const Header& header, const Status& status, std::int64_t now) {
    const bool is_new = now - member_since_ns_ <= own_.config.dead_ns;
    switch (judge(own_, header, status, {is_new, now < returned_until_ns_})) {
        case Judgement::both_stay: return true;
        case Judgement::this_one_goes: drop_out(now); return false;
        case Judgement::the_other_goes:
            // One that was not met is over, too.
            if (own_.has_met(header.origin, header.incarnation) ||
                admit(header.origin, header.incarnation, now))
                leave(header.origin, now);
    }
    return false;
}

// ---- Joining

/// This incarnation of the node is a receiver from the next own batch on, if it is not one already.
/// False while its former incarnation is not completed.
bool Core::admit(unsigned node, std::uint64_t incarnation, std::int64_t now) {
    CoreOwn::Other& other = own_.others[node];
    if (incarnation != other.incarnation) {
        leave(node, now);
        // First the survivors agree on what there is of the former incarnation.
        if (!own_.exchange->ended().is_completed(node, now)) return false;
        CoreOwn::Other fresh;
        fresh.incarnation = incarnation;
        fresh.heard_joining_ns = other.heard_joining_ns;
        other = fresh;
    }
    if (!own_.exchange->out().receivers().contains(node))
        other.admitted_from = own_.exchange->admit(node, now);
    return true;
}

/// From now on each of the two takes the other's stream.
void Core::connect(unsigned node, std::uint64_t incarnation, std::uint64_t first,
                   std::int64_t now) {
    if (own_.is_connected(node, incarnation) || !admit(node, incarnation, now)) return;
    own_.exchange->begin(node, incarnation, first, now);
    if (own_.is_member)
        own_.exchange->defer(node);  // until it says that it is a member of this ring
    own_.others[node].ended = false;
    joiner_.note_admission(node, first);
}

void Core::on_join(const Header& header, const Join& join, std::int64_t now) {
    const unsigned node = header.origin;
    own_.others[node].heard_joining_ns = now;
    const bool is_over =
        own_.others[node].ended && own_.others[node].incarnation == header.incarnation;
    if (is_over && own_.is_member) return answers_.refuse(node, join.cookie, now);
    // An old join: what was applied of that incarnation is not to be applied again.
    if (is_over && own_.exchange->ended().has_applied(node, header.incarnation))
        return next_incarnation(now);
    // Where many join at a time, answers to each join of each would be more than anybody can read.
    const bool knows =
        join.admitted_by.contains(own_.me()) && own_.is_connected(node, header.incarnation);
    if (!admit(node, header.incarnation, now)) return;
    // A node that has written already says itself from where on its stream is to be taken.
    const std::uint64_t first = own_.config.exchange.first_sequence;
    const bool has_written = header.newest != static_cast<std::uint32_t>(first - 1);
    if (!has_written) connect(node, header.incarnation, first, now);
    if (answers_.is_donor() && !own_.view.contains(node))
        answers_.owe_welcome(node, join.cookie, now);
    if (!knows) answers_.owe_admit(node, join.cookie, now);
}

void Core::on_admit(const Header& header, const Admit& admit, std::int64_t now) {
    if (admit.joiner != own_.my_incarnation()) return;
    // No stream gets that far. One that began near the end would come to 0, which is no sequence.
    if (admit.first > UINT64_MAX / 2) return;
    if (admit.first == 0) return own_.is_member ? drop_out(now) : next_incarnation(now);
    const unsigned node = header.origin;
    if (own_.is_connected(node, header.incarnation)) {
        // It had ended this node meanwhile, or not met it before, and does not keep what is still
        // missing.
        if (admit.first > own_.exchange->applied(node) + 1) {
            return own_.is_member ? drop_out(now) : next_incarnation(now);
        }
        own_.others[node].has_admitted = true;
        return;
    }
    // What it wrote while it counted as dead here is not kept for this incarnation. Of two members
    // the views say who goes.
    if (own_.others[node].ended && own_.others[node].incarnation == header.incarnation) {
        if (!own_.is_member) next_incarnation(now);
        return;
    }
    // What it wrote before that may be missing in what is here of the bank already.
    const bool is_late = admit.first > own_.config.exchange.first_sequence;
    if (is_late && own_.is_member) {
        // Another ring's statuses say which of the two stands. In one ring each of the two lacks
        // what the other wrote, if both have written; one that has not lacks something alone.
        const bool has_written =
            own_.exchange->out().next_sequence() != own_.config.exchange.first_sequence;
        const bool goes = !has_written || node < own_.me();
        if (admit.ring_incarnation == own_.ring_incarnation && goes) drop_out(now);
        return;
    }
    if (is_late && joiner_.has_parts()) return next_incarnation(now);
    connect(node, header.incarnation, admit.first, now);
    own_.others[node].has_admitted = own_.is_connected(node, header.incarnation);
    if (own_.exchange->out().next_sequence() != own_.config.exchange.first_sequence) {
        answers_.owe_admit(node, admit.cookie, now);
    }
}

void Core::advance_joining(std::int64_t now) {
    if (joiner_.may_form(now)) return form(now);
    for (unsigned node = 0; node < own_.others.size(); ++node) {
        if (joiner_.is_of_other_ring(node)) leave(node, now);
    }
    switch (joiner_.advance(now)) {
        case Joiner::Verdict::go_on: return;
        case Joiner::Verdict::restart: return next_incarnation(now);
        case Joiner::Verdict::join:
            return become_member(joiner_.ring(), joiner_.ring_incarnation(), now);
    }
}

void Core::form(std::int64_t now) {
    // Members that have heard this incarnation may take what it writes for their own ring's.
    if (joiner_.has_heard_member()) next_incarnation(now);
    ++own_.counters.rings_formed;
    own_.edge.clear_bank();
    // Of two rings the older one stands; no two nodes form one with the same number.
    const std::uint64_t wall_ns = first_wall_ns_ + static_cast<std::uint64_t>(now - first_ns_);
    become_member(NodeSet(), (wall_ns & ~std::uint64_t{kMaxNodes - 1}) | own_.me(), now);
}

// ---- What comes

void Core::apply(unsigned origin, const Batch& batch, std::int64_t now) {
    RMEM_CHECK_IF(false, own_.others[origin].incarnation != 0);
    own_.edge.apply(origin, batch, now);
    joiner_.note_applied(origin, batch);
}

void Core::on_section(const Header& header, const Section& section, std::int64_t) {
    if (section.type() == SectionType::vector || section.type() == SectionType::chunk) {
        return joiner_.take_answer(header, section);
    }
    const std::byte* const from = section.body().data() - kSectionHeadBytes;
    pending_.push_back({header, {from, from + Section::extent(from)}});
}

void Core::deal_with(const Header& header, const Section& section, std::int64_t now) {
    switch (section.type()) {
        case SectionType::status: return on_status(header, entry_of<Status>(section), now);
        case SectionType::join: return on_join(header, entry_of<Join>(section), now);
        case SectionType::welcome:
            if (!joiner_.on_welcome(header, Welcome(section), now)) next_incarnation(now);
            return;
        case SectionType::admit: return on_admit(header, entry_of<Admit>(section), now);
        case SectionType::snapshot_request:
            return answers_.give_parts(header, SnapshotRequest(section), now);
        default: return;  // of a later version
    }
}

void Core::on_datagram(std::span<const std::byte> bytes, std::int64_t now) {
    own_.exchange->on_datagram(bytes, now);
    if (pending_.empty() && own_.is_member) [[likely]]
        return;
    note_absence(now);
    for (const Pending& pending : std::exchange(pending_, {})) {
        deal_with(pending.header, Section::read(pending.bytes.data()), now);
    }
    if (!own_.is_member) advance_joining(now);
}

// ---- Timers

std::int64_t Core::due_ns() const noexcept {
    return std::min({own_.exchange->due_ns(), own_.exchange->belief().due_ns(), answers_.due_ns(),
                     joiner_.join_due_ns(), joiner_.due_ns(), status_due_ns_, look_due_ns_});
}

void Core::on_tick(std::int64_t now) {
    note_absence(now);
    answers_.end_turn();
    own_.exchange->on_tick(now);
    if (own_.is_member && !own_.exchange->ended().differs_from().empty() &&
        resolve_differences(now))
        return;
    if (now >= look_due_ns_ || now >= status_due_ns_) look_for_the_dead(now);
    if (now >= own_.exchange->belief().due_ns()) joiner_.send_greetings(now);
    if (now >= answers_.due_ns()) answers_.send(now);
    if (now >= joiner_.join_due_ns()) joiner_.send_join(now);
    if (now >= status_due_ns_) send_status(now);
    if (!own_.is_member) advance_joining(now);
}

// ---- Sending

void Core::depart(std::int64_t now) {
    if (own_.is_member) send_status(Status::State::leaving, now);
}

void Core::send_status(std::int64_t now) {
    const bool has_returned = now < returned_until_ns_;
    send_status(!own_.is_member ? Status::State::joining
                : has_returned  ? Status::State::returned
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
    if (own_.is_member) status_interval_ns_ = std::min(2 * status_interval_ns_, heartbeat_ns());
    Status status;
    status.ring_incarnation = own_.ring_incarnation;
    status.socket_room = static_cast<std::uint32_t>(own_.config.socket_room);
    status.state = state;
    status.view = own_.view;
    DatagramWriter& writer = own_.exchange->begin_other(now);
    const bool has_about = statuses_++ % kStatusesAnAbout == 0;
    if (has_about) writer.add_about(own_.config.about);
    writer.add_status(status);
    own_.exchange->ended().add_to(writer, now);
    has_about ? own_.exchange->send_other_at_length(now) : own_.exchange->send_other(now);
}

}  // namespace rmem::udp
