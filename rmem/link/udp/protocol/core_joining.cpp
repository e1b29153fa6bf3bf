// SPDX-License-Identifier: Apache-2.0
// How a node becomes a member, and what members do for one that joins.
#include "rmem/link/udp/protocol/core.hpp"

namespace rmem::udp {

bool Core::is_connected(unsigned node, std::uint64_t incarnation) const noexcept {
    return exchange_->takes(node) && others_[node].incarnation == incarnation;
}

/// This incarnation of the node is a receiver from the next own batch on, if it is not one already.
/// False while its former incarnation is not completed.
bool Core::admit(unsigned node, std::uint64_t incarnation, std::int64_t now) {
    Other& other = others_[node];
    if (incarnation != other.incarnation) {
        leave(node, now);
        // First the survivors agree on what there is of the former incarnation.
        if (!exchange_->ended().is_completed(node, now)) return false;
        Other fresh;
        fresh.incarnation = incarnation;
        fresh.heard_joining_ns = other.heard_joining_ns;
        other = fresh;
    }
    if (!exchange_->out().receivers().contains(node))
        other.admitted_from = exchange_->admit(node, now);
    return true;
}

/// From now on each of the two takes the other's stream.
void Core::connect(unsigned node, std::uint64_t incarnation, std::uint64_t first,
                   std::int64_t now) {
    if (is_connected(node, incarnation) || !admit(node, incarnation, now)) return;
    exchange_->begin(node, incarnation, first, now);
    if (is_member_) exchange_->defer(node);  // until it says that it is a member of this ring
    others_[node].ended = false;
    if (taker_) taker_->note_admission(node, first);
}

/// The lowest member's bank is the one that stands where members differ.
bool Core::is_donor() const noexcept {
    return is_member_ && view_.lowest() == me();
}

void Core::on_join(const Header& header, const Join& join, std::int64_t now) {
    const unsigned node = header.origin;
    others_[node].heard_joining_ns = now;
    const bool is_over = others_[node].ended && others_[node].incarnation == header.incarnation;
    if (is_over && is_member_) return send_refusal(node, join.cookie, now);
    // An old join: what was applied of that incarnation is not to be applied again.
    if (is_over && exchange_->ended().has_applied(node, header.incarnation))
        return next_incarnation(now);
    // Where many join at a time, answers to each join of each would be more than anybody can read.
    const bool knows = join.admitted_by.contains(me()) && is_connected(node, header.incarnation);
    if (!admit(node, header.incarnation, now)) return;
    // A node that has written already says itself from where on its stream is to be taken.
    const std::uint64_t first = config_.exchange.first_sequence;
    const bool has_written = header.newest != static_cast<std::uint32_t>(first - 1);
    if (!has_written) connect(node, header.incarnation, first, now);
    if (is_donor() && !view_.contains(node)) owe_welcome(node, join.cookie, now);
    if (!knows) owe_admit(node, join.cookie, now);
}

void Core::on_welcome(const Header& header, const Welcome& welcome, std::int64_t now) {
    if (is_member_ || welcome.joiner() != my_incarnation() || welcome.cookie() != cookie_) return;
    const bool is_same = welcomed_ && welcomed_->donor == header.origin &&
                         welcomed_->donor_incarnation == header.incarnation;
    // One will do; of two that disagree the lower one stands.
    if (welcomed_ && !is_same && welcomed_->donor < header.origin &&
        is_connected(welcomed_->donor, welcomed_->donor_incarnation)) {
        return;
    }
    // Parts from two donors make no bank: a node that came and went between is in neither's
    // stream.
    const MemberIncarnation donor{header.origin, header.incarnation};
    if (taker_->parts_here() != 0 && donor != parts_from_) return next_incarnation(now);
    parts_from_ = donor;
    if (!is_same) {
        welcomed_.emplace();
        welcomed_->donor = header.origin;
        welcomed_->donor_incarnation = header.incarnation;
        taker_->forget_requests();
    }
    welcomed_->heard_ns = now;
    welcomed_->ring_incarnation = welcome.ring_incarnation();
    welcomed_->view = welcome.view();
    for (const MemberIncarnation& member : welcome.incarnations()) {
        if (member.node < others_.size()) welcomed_->incarnations[member.node] = member.incarnation;
    }
}

void Core::on_admit(const Header& header, const Admit& admit, std::int64_t now) {
    if (admit.joiner != my_incarnation()) return;
    // No stream gets that far. One that began near the end would come to 0, which is no sequence.
    if (admit.first > UINT64_MAX / 2) return;
    if (admit.first == 0) return is_member_ ? drop_out(now) : next_incarnation(now);
    const unsigned node = header.origin;
    if (is_connected(node, header.incarnation)) {
        // It had ended this node meanwhile, or not met it before, and does not keep what is still
        // missing.
        if (admit.first > exchange_->applied(node) + 1) {
            return is_member_ ? drop_out(now) : next_incarnation(now);
        }
        others_[node].has_admitted = true;
        return;
    }
    // What it wrote while it counted as dead here is not kept for this incarnation. Of two members
    // the views say who goes.
    if (others_[node].ended && others_[node].incarnation == header.incarnation) {
        if (!is_member_) next_incarnation(now);
        return;
    }
    // What it wrote before that may be missing in what is here of the bank already.
    const bool is_late = admit.first > config_.exchange.first_sequence;
    if (is_late && is_member_) {
        // Another ring's statuses say which of the two stands. In one ring each of the two lacks
        // what the other wrote, if both have written; one that has not lacks something alone.
        const bool has_written =
            exchange_->out().next_sequence() != config_.exchange.first_sequence;
        const bool goes = !has_written || node < me();
        if (admit.ring_incarnation == ring_incarnation_ && goes) drop_out(now);
        return;
    }
    if (is_late && taker_->parts_here() != 0) return next_incarnation(now);
    connect(node, header.incarnation, admit.first, now);
    others_[node].has_admitted = is_connected(node, header.incarnation);
    if (exchange_->out().next_sequence() != config_.exchange.first_sequence) {
        owe_admit(node, admit.cookie, now);
    }
}

bool Core::all_have_admitted() const noexcept {
    if (!welcomed_) return false;
    bool all = true;
    welcomed_->view.for_each([&](unsigned node) {
        if (node == me()) return;
        const bool has = node < others_.size() && welcomed_->incarnations[node] != 0 &&
                         is_connected(node, welcomed_->incarnations[node]);
        all = all && has;
    });
    return all;
}

void Core::advance_joining(std::int64_t now) {
    // A donor that died before the two were connected is missed by nobody.
    if (welcomed_ && now - welcomed_->heard_ns > kFormNs &&
        !is_connected(welcomed_->donor, welcomed_->donor_incarnation)) {
        welcomed_.reset();
    }
    if (may_form(now)) return form(now);
    leave_other_rings(now);
    if (must_restart_) return next_incarnation(now);
    if (!all_have_admitted()) return;
    if (exchange_->ended().differs_from().contains(welcomed_->donor)) return next_incarnation(now);
    const auto applied = [this](unsigned node) { return exchange_->applied(node); };
    if (taker_->is_complete(applied) && exchange_->ended().all_completed(now) && knows_rings()) {
        // What others gave of it, or it wrote in a part of the ring that is not the donor's, may be
        // in no bank but this one.
        if (!exchange_->ended().agrees(welcomed_->donor)) return next_incarnation(now);
        NodeSet view;
        for (unsigned node = 0; node < others_.size(); ++node) {
            if (exchange_->takes(node) && is_of_ring(node)) view.insert(node);
        }
        return become_member(view, welcomed_->ring_incarnation, now);
    }
    if (now >= taker_->request_due_ns()) request(now);
}

/// It is a member of the ring that this node joins: so said who welcomed it, or itself.
bool Core::is_of_ring(unsigned node) const noexcept {
    if (!welcomed_) return false;
    const Other& other = others_[node];
    const bool is_named =
        welcomed_->view.contains(node) && welcomed_->incarnations[node] == other.incarnation;
    return is_named || other.ring_incarnation == welcomed_->ring_incarnation;
}

void Core::leave_other_rings(std::int64_t now) {
    for (unsigned node = 0; welcomed_ && node < others_.size(); ++node) {
        const bool is_other = others_[node].ring_incarnation != 0 && !is_of_ring(node);
        if (is_other && exchange_->takes(node)) leave(node, now);
    }
}

/// Of whom something was applied here is known to be of this ring.
bool Core::knows_rings() const noexcept {
    for (unsigned node = 0; node < others_.size(); ++node) {
        if (exchange_->has_applied(node) && !is_of_ring(node)) return false;
    }
    return true;
}

unsigned Core::joiners(std::int64_t now) const noexcept {
    unsigned count = 0;
    for (unsigned node = 0; node < others_.size(); ++node) {
        const std::int64_t heard = others_[node].heard_joining_ns;
        const std::int64_t lately = view_.contains(node) ? kFormNs : kGiveWayNs;
        if (heard >= 0 && now - heard < lately) ++count;
    }
    return count;
}

bool Core::all_are_joining(std::int64_t now) const noexcept {
    for (unsigned node = 0; node < others_.size(); ++node) {
        const std::int64_t heard = others_[node].heard_joining_ns;
        if (node != me() && (heard < 0 || now - heard >= kFormNs / 2)) return false;
    }
    return heard_member_ns_ < 0;
}

/// Its number is another process's, so says that one itself, or a node that believes it.
void Core::on_taken(const Header& header, const Greeting& greeting, std::int64_t now) {
    if (is_member_) return;
    const bool is_itself = header.origin == me();
    const bool gives_way = (greeting.flags & Greeting::kIsMember) == 0 &&
                           config_.exchange.first_incarnation < header.incarnation;
    if (is_itself && gives_way) return;
    // A node that was started again at once is told so, too, until its former incarnation has been
    // silent for long enough.
    if (now - taken_ns_ > kGiveWayNs) taken_since_ns_ = now;
    taken_ns_ = now;
    if (!is_itself && now - taken_since_ns_ < 2 * kNamesakeNs) return;
    edge_.on_odd(Odd::namesake, header, {});
}

bool Core::may_form(std::int64_t now) const noexcept {
    if (welcomed_ || now - taken_ns_ < kGiveWayNs) return false;
    if (me() == 0 && all_are_joining(now)) return true;  // nobody is left who might be a member
    const std::int64_t silence = config_.exchange.is_reliable ? kFormConnectedNs : kFormNs;
    if (now - joining_since_ns_ < silence) return false;
    // A node that was heard may only be waiting for its processor: two rings formed at a time cost
    // one of them its incarnation.
    if (heard_member_ns_ >= 0 && now - heard_member_ns_ < kGiveWayNs) return false;
    for (unsigned node = 0; node < me(); ++node) {
        const std::int64_t heard = others_[node].heard_joining_ns;
        if (heard >= 0 && now - heard < kGiveWayNs) return false;
    }
    return true;
}

void Core::form(std::int64_t now) {
    // Members that have heard this incarnation may take what it writes for their own ring's.
    if (heard_member_ns_ >= 0) next_incarnation(now);
    ++counters_.rings_formed;
    edge_.clear_bank();
    // Of two rings the older one stands; no two nodes form one with the same number.
    const std::uint64_t wall_ns = first_wall_ns_ + static_cast<std::uint64_t>(now - first_ns_);
    become_member(NodeSet(), (wall_ns & ~std::uint64_t{kMaxNodes - 1}) | me(), now);
}

void Core::request(std::int64_t now) {
    taker_->set_times({exchange_->round_trip(welcomed_->donor).empty()
                           ? kFirstRoundTripNs
                           : exchange_->round_trip(welcomed_->donor).smoothed_ns(),
                       0});
    const NodeIncarnation donor = NodeIncarnation::of(static_cast<std::uint16_t>(welcomed_->donor),
                                                      welcomed_->donor_incarnation);
    while (taker_->request(exchange_->begin_other(now), donor, now)) exchange_->send_other(now);
}

std::uint64_t Core::incarnation_sum_of(const NodeSet& nodes) const noexcept {
    std::uint64_t sum = 0;
    nodes.for_each([&](unsigned node) {
        if (node >= others_.size()) return;
        sum += sum_of_incarnations(
            node, node == me() ? config_.exchange.incarnation : others_[node].incarnation);
    });
    return sum;
}

void Core::on_snapshot_request(const Header& header, const SnapshotRequest& request,
                               std::int64_t now) {
    if (!is_member_ || request.request_id().to != my_incarnation()) return;
    if (!is_connected(header.origin, header.incarnation)) return;
    // A node that comes after a death gets nothing more of that node: the bank must have all that
    // any survivor has.
    if (!exchange_->ended().all_completed(now)) return;
    exchange_->close_ended(now);
    // What is begun leaves first: the own position then covers what the bank holds. A request that
    // is not answered is made again.
    if (!edge_.hand_over_all(now)) return;
    exchange_->commit(now);
    ++counters_.requests_answered;
    for (unsigned node = 0; node < others_.size(); ++node) {
        others_[node].served = others_[node].served || !view_.contains(node);  // all hear it
    }
    DonorView view;
    view.bank = edge_.bank();
    view.is_blank = [this](const Place& place) { return edge_.is_blank(place.index, place.words); };
    if (holds_answers_) {
        given_.resize(view.bank.size() / kWordBytes / kPartWords + 1);
        view.given = &given_;
    }
    for (unsigned node = 0; node < others_.size(); ++node) {
        if (node != me() && !exchange_->takes(node)) continue;
        view.origins.insert(node);
        view.positions[node] =
            node == me() ? exchange_->out().newest() : exchange_->published(node);
    }
    view.incarnation_sum = incarnation_sum_of(view.origins);
    answer(
        NodeIncarnation::of(header.origin, header.incarnation), request, view,
        [&]() -> DatagramWriter& { return exchange_->begin_other(now); },
        [&] { exchange_->send_other(now); });
}

}  // namespace rmem::udp
