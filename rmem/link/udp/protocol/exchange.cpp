// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/exchange.hpp"

#include "rmem/base/check.hpp"
#include "rmem/link/memory.hpp"

#include <algorithm>
#include <utility>

namespace rmem::udp {

namespace {

static_assert(kLinePostWords <= most_batch_words(kLeastPayload));

}  // namespace

Exchange::Exchange(const ExchangeConfig& config, const Authenticator& authenticator,
                   ExchangeEdge& edge, Outgoing& outgoing)
    : own_{config, edge, {}},
      outgoing_(outgoing),
      key_(authenticator.incarnation_key(
          IncarnationId{config.ring, config.node, config.incarnation, config.salt})),
      peers_(config.nodes),
      belief_(own_, authenticator),
      out_(config.most_batches, config.payload, config.first_sequence),
      lengths_(config, out_),
      batch_(outgoing.lend(), kMostPayload),
      other_(outgoing.lend(), kMostPayload) {}

Exchange::~Exchange() {
    outgoing_.give_back(batch_.buffer());
    outgoing_.give_back(other_.buffer());
}

// ---- Members

void Exchange::begin(unsigned node, std::uint64_t incarnation, std::uint64_t first,
                     std::int64_t now) {
    Peer& peer = peers_[node];
    close(peer.ended, now);
    if (peer.ended.incarnation == incarnation) peer.ended = Ended();  // it was not over
    peer.incarnation = incarnation;
    peer.in = std::make_unique<InStream>(first, own_.config.most_batches, kMostBodyBytes);
    peer.is_deferred = false;
    peer.acked = first - 1;
    peer.open_bytes = peer.open_charged = 0;
    belief_.note_heard(node, true, now);
    peer.round_trip = RoundTrip();
    peer.echo_next_ns = now;
    count_nak_backoff();
}

void Exchange::end(unsigned node, const NodeSet& heirs, std::int64_t now) {
    Peer& peer = peers_[node];
    if (peer.in) {
        peer.ended = Ended();
        peer.ended.incarnation = peer.incarnation;
        peer.ended.stream = std::move(peer.in);
        peer.ended.is_deferred = peer.is_deferred;
        peer.ended.since_ns = now;
        peer.ended.heirs = heirs;
        peer.ended.others_have.assign(peers_.size(), Ended::kUnsaid);
    }
    // A later incarnation of the node never had the streams that ended before it.
    for (Peer& other : peers_) {
        if (other.ended.incarnation == 0 || &other == &peer) continue;
        other.ended.heirs.erase(node);
        other.ended.ended_at.erase(node);
        other.ended.others_have[node] = Ended::kUnsaid;
    }
    out_.drop(node);
    lengths_.find();
    acks_due_.erase(node);
    if (acks_due_.empty()) ack_due_ns_ = kNever;
    differs_from_.erase(node);
    if (echo_to_ == static_cast<int>(node)) echo_to_ = -1;
    count_nak_backoff();
}

void Exchange::release(unsigned node, std::int64_t now) {
    Peer& peer = peers_[node];
    if (!peer.in || !std::exchange(peer.is_deferred, false)) return;
    apply_in_order(node, *peer.in, now);
    // Of many that become members together most have written nothing yet, and all hear each answer.
    if (published(node) != peer.acked) owe_ack(peer, true, now);
}

std::uint64_t Exchange::applied(unsigned node) const noexcept {
    return peers_[node].in ? peers_[node].in->applied() : own_.config.first_sequence - 1;
}

std::size_t Exchange::memory_bytes() const noexcept {
    std::size_t bytes = sizeof *this + out_.memory_bytes() + peers_.capacity() * sizeof(Peer);
    for (const Peer& peer : peers_) {
        if (peer.in) bytes += peer.in->memory_bytes();
        if (peer.ended.stream) bytes += peer.ended.stream->memory_bytes();
        bytes += peer.ended.others_have.capacity() * sizeof(std::uint64_t);
    }
    return bytes;
}

/// The member that is named, if it is this incarnation of it.
Exchange::Peer* Exchange::member(const NodeIncarnation& named) noexcept {
    if (named.node >= peers_.size()) return nullptr;
    Peer& peer = peers_[named.node];
    return peer.in && NodeIncarnation::of(named.node, peer.incarnation) == named ? &peer : nullptr;
}

// ---- Timers follow round trips, and the order of NAKs that of the ring

RetransmitTimes Exchange::times_of(const Peer& peer) const noexcept {
    RetransmitTimes times;
    if (own_.config.is_reliable) {
        times.least_probe_ns = kReliableProbeNs;
        times.least_nak_ns = kReliableNakNs;
    }
    if (peer.round_trip.empty()) return times;
    times.round_trip_ns = peer.round_trip.smoothed_ns();
    times.deviation_ns = peer.round_trip.deviation_ns();
    return times;
}

void Exchange::note_round_trip(unsigned node) {
    const Peer& peer = peers_[node];
    const RetransmitTimes times = times_of(peer);
    peer.in->set_times(times, peer.nak_backoff_steps);
    if (node == slowest_) return find_slowest();
    if (times.probe_ns() <= times_of(peers_[slowest_]).probe_ns()) return;
    slowest_ = node;
    out_.set_times(times);
}

void Exchange::find_slowest() {
    std::int64_t longest = -1;
    for (unsigned node = 0; node < peers_.size(); ++node) {
        const std::int64_t probe = times_of(peers_[node]).probe_ns();
        if (!peers_[node].in || probe <= longest) continue;
        longest = probe;
        slowest_ = node;
    }
    out_.set_times(times_of(peers_[slowest_]));
}

void Exchange::count_nak_backoff() {
    for (unsigned node = 0; node < peers_.size(); ++node) {
        Peer& peer = peers_[node];
        if (!peer.in) continue;
        peer.nak_backoff_steps = 0;
        for (unsigned n = (node + 1) % own_.config.nodes; n != own_.config.node;
             n = (n + 1) % own_.config.nodes) {
            if (peers_[n].in) ++peer.nak_backoff_steps;
        }
        peer.in->set_times(times_of(peer), peer.nak_backoff_steps);
    }
    find_slowest();
}

// ---- Sending

std::uint64_t Exchange::admit(unsigned node, std::int64_t now) {
    if (composing_ && lengths_.reaches(node) < open_payload_) send_batch(Length::as_needed, now);
    const std::uint64_t first = out_.admit(node);
    lengths_.find();
    return first;
}

void Exchange::set_window(std::size_t charged) noexcept {
    out_.set_window(std::max(charged, kLeastWindow * bytes_charged(kLeastPayload)));
    lengths_.find();
}

Header Exchange::header(std::int64_t now) {
    Header header;
    header.tag_kind = key_.kind();
    header.origin = own_.config.node;
    header.ring = own_.config.ring;
    header.incarnation = own_.config.incarnation;
    header.salt = own_.config.salt;
    header.number = number_;
    header.sent_ns = now;
    header.newest = static_cast<std::uint32_t>(out_.newest());
    header.payload = static_cast<std::uint16_t>(lengths_.reached_by());
    return header;
}

void Exchange::send(DatagramWriter& writer, std::int64_t now, Length length,
                    OutgoingDatagram::To to) {
    if (to == OutgoingDatagram::To::all_nodes) [[likely]] {
        add_acks(writer);
        add_echo(writer, now);
    }
    if (length == Length::full) writer.pad();
    ++number_;
    writer.restamp(number_, now, static_cast<std::uint32_t>(out_.newest()));
    const std::span<std::byte> datagram = writer.finish();
    key_.sign(number_, writer.covered(), IncarnationKey::Tag(writer.tag().data(), kTagBytes));
    ++own_.counters.datagrams_sent;
    writer.use(outgoing_.take_over(datagram, to));
}

bool Exchange::has_room(std::size_t words, unsigned spare) const noexcept {
    const std::size_t fits = composing_ ? batch_.record_room() : 0;
    if (words <= fits && spare == 0) return true;
    const std::size_t full = most_batch_words(payload());
    const std::size_t begun = composing_ ? 1 : 0;
    const std::size_t left = words - std::min(words, fits);
    const std::size_t more = left <= full ? (left != 0 ? 1 : 0) : (left + full - 1) / full;
    // One place stays free: a node that gives this one up must still find the oldest batch with
    // others when the next one comes.
    return out_.has_room(static_cast<std::uint32_t>(begun + more + spare + 1), payload());
}

void Exchange::write(std::uint64_t index, std::size_t words, const void* from, std::int64_t now,
                     std::uint8_t flags) {
    const auto* data = static_cast<const std::byte*>(from);
    while (words > 0) {
        if (!composing_) compose(now);
        // Usually all of it fits.
        if (batch_.add_record({index, static_cast<std::uint16_t>(words), flags}, data)) return;
        const std::size_t part = std::min(words, batch_.record_room());
        // A flag and what lies behind it (rmem/link/memory.hpp: Posts) come together, or the flag
        // would come first.
        if (part == 0 || (part < words && words <= kLinePostWords)) {
            send_batch(Length::full, now);
            continue;
        }
        batch_.add_record({index, static_cast<std::uint16_t>(part), flags}, data);
        index += part;
        data += part * kWordBytes;
        words -= part;
    }
}

void Exchange::compose(std::int64_t now) {
    open_payload_ = payload();
    batch_.set_limit(open_payload_);
    batch_.begin(header(now));
    composing_ = batch_.begin_batch(out_.next_sequence(), now);
    open_since_ns_ = now;
}

void Exchange::commit(std::int64_t now) {
    if (composing_) send_batch(Length::as_needed, now);
}

/// Full ones are all of one length, whatever they carry besides: so the host takes many of them in
/// one piece.
void Exchange::send_batch(Length length, std::int64_t now) {
    composing_ = false;
    out_.add(batch_.end_batch(), now);
    ++own_.counters.batches_sent;
    send(batch_, now, length);
}

void Exchange::retransmit_batch(std::uint64_t sequence, std::uint8_t flags, std::int64_t now) {
    const auto body = out_.body(sequence);
    if (body.empty()) return;
    begin_other(now, body.size() + kSectionHeadBytes);
    other_.add_batch(body, flags);
    send(other_, now);
}

void Exchange::send_retransmissions(std::int64_t now) {
    while (const auto sequence = out_.next_retransmission(now)) {
        ++own_.counters.retransmissions_sent;
        retransmit_batch(*sequence, 0, now);
    }
}

DatagramWriter& Exchange::begin_other(std::int64_t now, std::size_t bytes) {
    // What was composed when datagrams were longer reaches those for whom it was.
    other_.set_limit(std::clamp(bytes + kEnvelopeBytes, payload(), kMostPayload));
    other_.begin(header(now));
    return other_;
}

void Exchange::send_other(std::int64_t now) {
    send(other_, now);
}

void Exchange::send_other_at_length(std::int64_t now) {
    if (!lengths_.is_unsure()) return send_other(now);
    other_.set_limit(std::max(lengths_.own(), payload()));
    send(other_, now, Length::full);
}

void Exchange::send_greetings(std::uint16_t flags, std::int64_t now) {
    if (belief_.owes_greetings(now)) {
        ++own_.counters.greetings_sent;
        belief_.add_greetings(begin_other(now), flags, now);
        send_other(now);
    }
    if (!belief_.owes_namesakes(now)) return;
    belief_.add_to_namesakes(begin_other(now), flags, now);
    if (!other_.is_empty()) send(other_, now, Length::as_needed, OutgoingDatagram::To::namesakes);
}

// ---- Acknowledging

void Exchange::owe_ack(Peer& peer, bool at_once, std::int64_t now) {
    const auto node = static_cast<unsigned>(&peer - peers_.data());
    acks_due_.insert(node);
    const bool is_much = published(node) - peer.acked >= own_.config.most_batches / kAcksAWindow ||
                         peer.open_bytes >= kMostWindowBytes / kAcksAWindow ||
                         peer.open_charged >= out_.window() / kAcksAWindow;
    ack_due_ns_ = std::min(ack_due_ns_, at_once || is_much ? now : now + kAckNs);
}

void Exchange::add_acks(DatagramWriter& writer) {
    NodeSet left;
    acks_due_.for_each([&](unsigned node) {
        Peer& peer = peers_[node];
        const std::uint64_t up_to = published(node);
        const Ack ack{NodeIncarnation::of(static_cast<std::uint16_t>(node), peer.incarnation),
                      static_cast<std::uint32_t>(up_to)};
        if (writer.add_ack(ack)) {
            peer.acked = up_to;
            // Of what is applied but not published some is open still.
            const bool is_all = up_to == applied(node);
            peer.open_bytes = is_all ? 0 : peer.open_bytes / 2;
            peer.open_charged = is_all ? 0 : peer.open_charged / 2;
        } else {
            left.insert(node);
        }
    });
    acks_due_ = left;
    if (left.empty()) ack_due_ns_ = kNever;
}

void Exchange::add_echo(DatagramWriter& writer, std::int64_t now) {
    if (echo_to_ < 0) return;
    Peer& peer = peers_[static_cast<std::size_t>(echo_to_)];
    const Echo echo{NodeIncarnation::of(static_cast<std::uint16_t>(echo_to_), peer.incarnation),
                    peer.heard_sent_ns, now - belief_.heard_ns(static_cast<unsigned>(echo_to_))};
    if (!writer.add_echo(echo)) return;
    echo_to_ = -1;
    peer.echo_next_ns = now + kEchoNs;
}

// ---- What comes

void Exchange::on_datagram(std::span<const std::byte> bytes, std::int64_t now) {
    Datagram datagram;
    Refusal refusal = read_datagram(bytes, own_.config.ring, kMostPayload, datagram);
    const Header& header = datagram.header();
    if (refusal == Refusal::none && header.origin >= own_.config.nodes) refusal = Refusal::node;
    if (refusal != Refusal::none) return belief_.note_refusal(refusal, bytes);
    if (header.origin == own_.config.node) return belief_.meet_namesake(datagram, now);
    Belief::Fresh fresh;
    const Belief::Standing standing = belief_.standing_of(datagram, fresh);
    if (standing == Belief::Standing::refused) return;
    Sections sections;
    if (refusal = read_sections(datagram, sections); refusal != Refusal::none) {
        return belief_.note_refusal(refusal, bytes);
    }
    Peer& peer = peers_[header.origin];
    if (standing == Belief::Standing::stranger) [[unlikely]] {
        if (!belief_.meet(header, sections, fresh, now)) return;
    }
    ++own_.counters.datagrams_taken;
    lengths_.hear(header, bytes.size());
    const bool is_its = peer.in && peer.incarnation == header.incarnation;
    belief_.note_heard(header.origin, is_its, now);
    if (is_its) {
        peer.heard_sent_ns = header.sent_ns;
        if (now >= peer.echo_next_ns) echo_to_ = header.origin;
    }
    for (const Section& section : sections) take_section(header, section, now);
    if (peer.in && peer.incarnation == header.incarnation) {
        peer.in->note_newest(widened(header.newest, peer.in->applied()), now);
        send_naks(header.origin, *peer.in, peer.incarnation, 0, now);
    }
    send_retransmissions(now);
    if (now >= ack_due_ns_ && !holds_answers_) on_tick(now);
}

void Exchange::take_section(const Header& header, const Section& section, std::int64_t now) {
    const Peer& peer = peers_[header.origin];
    const bool is_member = peer.in && peer.incarnation == header.incarnation;
    switch (section.type()) {
        case SectionType::batch:
            if (!is_member) {
                ++own_.counters.no_member;
                return;
            }
            return take_batch(header.origin, Batch(section),
                              (section.flags() & Section::kAckAtOnce) != 0, now);
        case SectionType::forwarded: return take_forwarded(ForwardedBatch(section), now);
        case SectionType::acks:
            if (is_member) take_acks(header.origin, section, now);
            return;
        case SectionType::nak:
            if (is_member) take_naks(section, now);
            return;
        case SectionType::echo:
            if (is_member) take_echoes(header, section, now);
            return;
        case SectionType::greeting:
            for (const Greeting& greeting : list_of<Greeting>(section)) {
                belief_.take_greeting(header, greeting, now);
            }
            return;
        case SectionType::padding:
        case SectionType::about: return;
        default: return own_.edge.on_section(header, section, now);
    }
}

void Exchange::take_in(unsigned origin, InStream& stream, bool is_deferred, const Batch& batch,
                       std::int64_t now) {
    if (!batch.is_inside(own_.config.bank_bytes)) {
        ++own_.counters.outside;
        return;
    }
    switch (stream.offer(batch.sequence(), batch.body(), now)) {
        case InStream::Offer::taken: break;
        case InStream::Offer::known: ++own_.counters.repeated; return;
        default: ++own_.counters.outside; return;
    }
    if (!is_deferred) apply_in_order(origin, stream, now);
}

void Exchange::apply_in_order(unsigned origin, InStream& stream, std::int64_t now) {
    while (const auto body = stream.take()) {
        const Batch batch(*body);
        RMEM_CHECK_IF(false, batch.sequence() == stream.applied());
        ++own_.counters.batches_applied;
        peers_[origin].open_bytes += body->size();
        peers_[origin].open_charged += bytes_charged(body->size() + kEnvelopeBytes);
        own_.edge.apply(origin, batch, now);
    }
}

void Exchange::take_batch(unsigned origin, const Batch& batch, bool ack_at_once, std::int64_t now) {
    Peer& peer = peers_[origin];
    take_in(origin, *peer.in, peer.is_deferred, batch, now);
    // Of a repeated one, too: the last ack may have been lost.
    if (own_.edge.behind(origin) == 0) owe_ack(peer, ack_at_once, now);
}

void Exchange::has_published(unsigned node, std::int64_t now) {
    if (peers_[node].in) owe_ack(peers_[node], false, now);
}

void Exchange::take_forwarded(const ForwardedBatch& forwarded, std::int64_t now) {
    const MemberIncarnation origin = forwarded.origin();
    if (origin.node >= peers_.size() || origin.node == own_.config.node) return;
    Peer& peer = peers_[origin.node];
    if (peer.in && peer.incarnation == origin.incarnation) {
        take_batch(origin.node, forwarded.batch(), false, now);
    } else if (peer.ended.stream && peer.ended.incarnation == origin.incarnation) {
        take_in(origin.node, *peer.ended.stream, peer.ended.is_deferred, forwarded.batch(), now);
    } else {
        ++own_.counters.no_member;
    }
}

void Exchange::take_acks(unsigned from, const Section& section, std::int64_t now) {
    const bool has_ended = (section.flags() & Section::kEnded) != 0;
    for (const Ack& ack : list_of<Ack>(section)) {
        if (own_.is_me(ack.origin)) {
            out_.on_ack(from, widened(ack.up_to, out_.acked_by(from)), now);
        } else {
            take_position(from, ack, has_ended, now);
        }
    }
}

void Exchange::take_naks(const Section& section, std::int64_t now) {
    const bool from_anybody = (section.flags() & Section::kFromAnybody) != 0;
    for (const Nak& nak : list_of<Nak>(section)) {
        if (own_.is_me(nak.origin)) {
            out_.on_nak(widened(nak.first, out_.newest()), nak.count, now);
        } else if (from_anybody && nak.origin.node < peers_.size()) {
            forward(nak.origin.node, nak, now);
        } else if (Peer* peer = member(nak.origin)) {
            peer->in->on_other_nak(widened(nak.first, peer->in->applied()), nak.count, now);
        }
    }
}

/// What is here of a stream whose node is dead to the NAK's sender.
void Exchange::forward(unsigned node, const Nak& nak, std::int64_t now) {
    const Peer& peer = peers_[node];
    const bool is_here = member(nak.origin) != nullptr;
    const InStream* stream = is_here ? peer.in.get() : peer.ended.stream.get();
    const std::uint64_t incarnation = is_here ? peer.incarnation : peer.ended.incarnation;
    const auto origin = static_cast<std::uint16_t>(node);
    if (stream == nullptr || NodeIncarnation::of(origin, incarnation) != nak.origin) return;
    const std::uint64_t first = widened(nak.first, stream->applied());
    for (std::uint64_t n = 0; n < std::min<std::uint64_t>(nak.count, kMostForwarded); ++n) {
        const auto body = stream->body(first + n);
        if (body.empty() || first + n > stream->applied()) continue;
        ++own_.counters.forwarded;
        begin_other(now, kSectionHeadBytes + ForwardedBatch::kHeadBytes + body.size());
        other_.add_forwarded({origin, incarnation}, body);
        send(other_, now);
    }
}

void Exchange::take_echoes(const Header& header, const Section& section, std::int64_t now) {
    for (const Echo& echo : list_of<Echo>(section)) {
        if (!own_.is_me(echo.node)) continue;
        RoundTrip& round_trip = peers_[header.origin].round_trip;
        if (round_trip.add({echo.sent_ns, echo.held_ns, header.sent_ns, now})) {
            note_round_trip(header.origin);
        }
    }
}

// ---- Timers

void Exchange::send_naks(unsigned node, InStream& stream, std::uint64_t incarnation,
                         std::uint8_t flags, std::int64_t now) {
    if (now < stream.nak_due_ns()) return;
    begin_other(now);
    const NodeIncarnation origin =
        NodeIncarnation::of(static_cast<std::uint16_t>(node), incarnation);
    stream.send_naks(now, [&](std::uint64_t first, std::uint64_t count) {
        ++own_.counters.naks_sent;
        other_.add_nak(
            {origin, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)}, flags);
    });
    if (!other_.is_empty()) send(other_, now);
}

void Exchange::ask_for_acks(std::int64_t now) {
    if (composing_) {
        batch_.flag_batch(Section::kAckAtOnce);
        return send_batch(Length::as_needed, now);
    }
    if (!out_.is_idle()) retransmit_batch(out_.newest(), Section::kAckAtOnce, now);
}

std::int64_t Exchange::due_ns() const noexcept {
    return std::min({out_.probe_due_ns(), ack_due_ns_, repair_due_ns()});
}

std::int64_t Exchange::repair_due_ns() const noexcept {
    std::int64_t due = out_.probes() != 0 ? out_.probe_due_ns() : kNever;
    for (const Peer& peer : peers_) {
        if (peer.in) due = std::min(due, peer.in->nak_due_ns());
        if (peer.ended.stream) due = std::min(due, peer.ended.stream->nak_due_ns());
    }
    return due;
}

void Exchange::on_tick(std::int64_t now) {
    for (unsigned node = 0; node < peers_.size(); ++node) {
        Peer& peer = peers_[node];
        if (peer.in) send_naks(node, *peer.in, peer.incarnation, 0, now);
        if (!peer.ended.stream) continue;
        if (now - peer.ended.since_ns >= 2 * own_.config.hear_ns) {
            close(peer.ended, now);
        } else {
            send_naks(node, *peer.ended.stream, peer.ended.incarnation, Section::kFromAnybody, now);
        }
    }
    if (const auto sequence = out_.probe(now)) {
        ++own_.counters.probes_sent;
        retransmit_batch(*sequence, Section::kAckAtOnce, now);
    }
    send_retransmissions(now);
    if (now >= ack_due_ns_ && !acks_due_.empty()) {
        ++own_.counters.acks_alone;
        begin_other(now);
        send(other_, now);
    }
}

}  // namespace rmem::udp
