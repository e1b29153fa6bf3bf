// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/joiner.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>

namespace rmem::udp {

namespace {

constexpr unsigned kCrowd = 8;

}  // namespace

void Joiner::begin(std::int64_t now) {
    heard_member_ns_ = -1;
    cookie_ = own_.random();
    joins_ = 0;
    joining_since_ns_ = excused_ns_ = join_due_ns_ = now;
    welcomed_.reset();
    must_restart_ = false;
    const ExchangeConfig& config = own_.config.exchange;
    taker_.emplace(config.bank_bytes / kWordBytes, config.first_sequence, own_.me(), config.nodes);
}

void Joiner::end() noexcept {
    welcomed_.reset();
    taker_.reset();
    join_due_ns_ = kNever;
}

void Joiner::excuse(std::int64_t now) noexcept {
    if (!taker_ || now <= join_due_ns_) return;
    joining_since_ns_ += now - std::max(join_due_ns_, excused_ns_);
    excused_ns_ = now;
}

// ---- What comes

void Joiner::note_applied(unsigned origin, const Batch& batch) {
    if (!taker_) return;
    const bool takes = own_.exchange->takes(origin);
    // A batch of a node that is gone: parts that come from now on have it. Written into parts that
    // are here, it is right if the node is of this ring; else all of them have to come again.
    must_restart_ |= !takes && !is_of_ring(origin) && has_parts();
    for (const Record& record : batch.records()) {
        // Of such a node it is older than each answer, but the part is not blank any more.
        taker_->note_write(origin, takes ? batch.sequence() : 0, record.place);
    }
}

void Joiner::note_departure(unsigned node, bool has_begun) {
    if (taker_) {
        taker_->note_departure(node);
        // What is here of its writes does not go away with parts that are here already.
        must_restart_ |= has_begun && !is_of_ring(node) && has_parts();
    }
    if (!welcomed_) return;
    welcomed_->view.erase(node);
    if (welcomed_->donor == node) welcomed_.reset();
}

/// What others have asked for comes to all.
void Joiner::take_answer(const Header& header, const Section& section) {
    const bool is_donors = welcomed_ && header.origin == welcomed_->donor &&
                           header.incarnation == welcomed_->donor_incarnation;
    if (!taker_ || !is_donors || !all_have_admitted()) return;
    RMEM_CHECK(parts_from_ == (MemberIncarnation{header.origin, header.incarnation}));
    if (section.type() == SectionType::vector) {
        const Vector vector(section);
        return taker_->on_vector(vector, own_.incarnation_sum_of(vector.origins()),
                                 [this](unsigned node) { return own_.exchange->applied(node); });
    }
    taker_->on_chunk(
        Chunk(section),
        [this](std::uint64_t index, std::uint32_t value, WordPart part) {
            if (part != kWholeWord) {
                const std::byte* const here = own_.edge.bank().data() + index * kWordBytes;
                value = with_part(load<std::uint32_t>(here), value, part);
            }
            own_.edge.store(index, value);
        },
        [this](const Place& place) { return own_.edge.is_blank(place.index, place.words); });
}

bool Joiner::on_welcome(const Header& header, const Welcome& welcome, std::int64_t now) {
    if (own_.is_member || welcome.joiner() != own_.my_incarnation() || welcome.cookie() != cookie_)
        return true;
    const bool is_same = welcomed_ && welcomed_->donor == header.origin &&
                         welcomed_->donor_incarnation == header.incarnation;
    // One will do; of two that disagree the lower one stands.
    if (welcomed_ && !is_same && welcomed_->donor < header.origin &&
        own_.is_connected(welcomed_->donor, welcomed_->donor_incarnation)) {
        return true;
    }
    // Parts from two donors make no bank: a node that came and went between is in neither's
    // stream.
    const MemberIncarnation donor{header.origin, header.incarnation};
    if (has_parts() && donor != parts_from_) return false;
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
        if (member.node < own_.others.size())
            welcomed_->incarnations[member.node] = member.incarnation;
    }
    return true;
}

bool Joiner::all_have_admitted() const noexcept {
    if (!welcomed_) return false;
    bool all = true;
    welcomed_->view.for_each([&](unsigned node) {
        if (node == own_.me()) return;
        const bool has = node < own_.others.size() && welcomed_->incarnations[node] != 0 &&
                         own_.is_connected(node, welcomed_->incarnations[node]);
        all = all && has;
    });
    return all;
}

Joiner::Verdict Joiner::advance(std::int64_t now) {
    if (must_restart_) return Verdict::restart;
    if (!all_have_admitted()) return Verdict::go_on;
    const EndedStreams& ended = own_.exchange->ended();
    if (ended.differs_from().contains(welcomed_->donor)) return Verdict::restart;
    const auto applied = [this](unsigned node) { return own_.exchange->applied(node); };
    if (taker_->is_complete(applied) && ended.all_completed(now) && knows_rings()) {
        // What others gave of it, or it wrote in a part of the ring that is not the donor's, may be
        // in no bank but this one.
        return ended.agrees(welcomed_->donor) ? Verdict::join : Verdict::restart;
    }
    if (now >= taker_->request_due_ns()) request(now);
    return Verdict::go_on;
}

NodeSet Joiner::ring() const noexcept {
    NodeSet view;
    for (unsigned node = 0; node < own_.others.size(); ++node) {
        if (own_.exchange->takes(node) && is_of_ring(node)) view.insert(node);
    }
    return view;
}

/// It is a member of the ring that this node joins: so said who welcomed it, or itself.
bool Joiner::is_of_ring(unsigned node) const noexcept {
    if (!welcomed_) return false;
    const CoreOwn::Other& other = own_.others[node];
    const bool is_named =
        welcomed_->view.contains(node) && welcomed_->incarnations[node] == other.incarnation;
    return is_named || other.ring_incarnation == welcomed_->ring_incarnation;
}

bool Joiner::is_of_other_ring(unsigned node) const noexcept {
    return welcomed_ && own_.exchange->takes(node) && own_.others[node].ring_incarnation != 0 &&
           !is_of_ring(node);
}

/// Of whom something was applied here is known to be of this ring.
bool Joiner::knows_rings() const noexcept {
    for (unsigned node = 0; node < own_.others.size(); ++node) {
        if (own_.exchange->has_applied(node) && !is_of_ring(node)) return false;
    }
    return true;
}

bool Joiner::all_are_joining(std::int64_t now) const noexcept {
    for (unsigned node = 0; node < own_.others.size(); ++node) {
        const std::int64_t heard = own_.others[node].heard_joining_ns;
        if (node != own_.me() && (heard < 0 || now - heard >= kFormNs / 2)) return false;
    }
    return heard_member_ns_ < 0;
}

/// Its number is another process's, so says that one itself, or a node that believes it.
void Joiner::on_taken(const Header& header, const Greeting& greeting, std::int64_t now) {
    if (own_.is_member) return;
    const bool is_itself = header.origin == own_.me();
    const bool gives_way = (greeting.flags & Greeting::kIsMember) == 0 &&
                           own_.config.exchange.first_incarnation < header.incarnation;
    if (is_itself && gives_way) return;
    // A node that was started again at once is told so, too, until its former incarnation has been
    // silent for long enough.
    if (now - taken_ns_ > kGiveWayNs) taken_since_ns_ = now;
    taken_ns_ = now;
    if (!is_itself && now - taken_since_ns_ < 2 * kNamesakeNs) return;
    own_.edge.on_odd(Odd::namesake, header, {});
}

bool Joiner::may_form(std::int64_t now) noexcept {
    // A donor that died before the two were connected is missed by nobody.
    if (welcomed_ && now - welcomed_->heard_ns > kFormNs &&
        !own_.is_connected(welcomed_->donor, welcomed_->donor_incarnation)) {
        welcomed_.reset();
    }
    if (welcomed_ || now - taken_ns_ < kGiveWayNs) return false;
    if (own_.me() == 0 && all_are_joining(now))
        return true;  // nobody is left who might be a member
    const std::int64_t silence = own_.config.exchange.is_reliable ? kFormConnectedNs : kFormNs;
    if (now - joining_since_ns_ < silence) return false;
    // A node that was heard may only be waiting for its processor: two rings formed at a time cost
    // one of them its incarnation.
    if (heard_member_ns_ >= 0 && now - heard_member_ns_ < kGiveWayNs) return false;
    for (unsigned node = 0; node < own_.me(); ++node) {
        const std::int64_t heard = own_.others[node].heard_joining_ns;
        if (heard >= 0 && now - heard < kGiveWayNs) return false;
    }
    return true;
}

void Joiner::request(std::int64_t now) {
    taker_->set_times({own_.exchange->round_trip(welcomed_->donor).empty()
                           ? kFirstRoundTripNs
                           : own_.exchange->round_trip(welcomed_->donor).smoothed_ns(),
                       0});
    const NodeIncarnation donor = NodeIncarnation::of(static_cast<std::uint16_t>(welcomed_->donor),
                                                      welcomed_->donor_incarnation);
    while (taker_->request(own_.exchange->begin_other(now), donor, now))
        own_.exchange->send_other(now);
}

/// A node that is greeted by a joiner hears the join with it; but all answer joins, so where many
/// join at a time not each greeting has one.
void Joiner::send_greetings(std::int64_t now) {
    const std::int64_t nodes = own_.config.exchange.nodes;
    const std::int64_t gap = nodes > kCrowd ? kGreetNs * nodes : 0;
    const bool is_time = !own_.is_member && now - joined_at_ns_ >= gap;
    if (is_time && own_.exchange->belief().owes_greetings(now)) send_join(now);
    own_.exchange->send_greetings(own_.greeting_flags(), now);
}

/// Also in a status now and then: of another ring's, people read that of both.
void Joiner::send_join(std::int64_t now) {
    join_due_ns_ = own_.is_member ? kNever : now + (join_ns() << std::min(joins_++, 2U));
    joined_at_ns_ = now;
    ++own_.counters.joins_sent;
    Join join{cookie_, {}};
    // A node that takes a stream because it heard the other's join may not have been heard itself:
    // that counts for nothing.
    for (unsigned node = 0; node < own_.others.size(); ++node) {
        if (own_.exchange->takes(node) && own_.others[node].has_admitted)
            join.admitted_by.insert(node);
    }
    if (!own_.is_member) own_.exchange->belief().greet_namesakes(now);
    DatagramWriter& writer = own_.exchange->begin_other(now);
    // A greeting that found no room leaves with the next datagram, a text with the next join.
    if (!own_.exchange->belief().owes_greetings(now)) writer.add_about(own_.config.about);
    own_.exchange->belief().add_greetings(writer, own_.greeting_flags(), now);
    writer.add_join(join);
    own_.exchange->send_other(now);
}

}  // namespace rmem::udp
