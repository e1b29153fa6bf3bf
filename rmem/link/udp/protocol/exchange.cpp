// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/exchange.hpp"

#include "rmem/link/memory.hpp"

#include <algorithm>

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
      belief_(own_, authenticator),
      out_(config.most_batches, config.payload, config.first_sequence),
      lengths_(config, out_),
      peers_(own_, out_, belief_),
      ended_(own_.config, peers_),
      batch_(outgoing.lend(), kMaxPayload),
      other_(outgoing.lend(), kMaxPayload) {}

Exchange::~Exchange() {
    outgoing_.give_back(batch_.buffer());
    outgoing_.give_back(other_.buffer());
}

// ---- Members

void Exchange::begin(unsigned node, std::uint64_t incarnation, std::uint64_t first,
                     std::int64_t now) {
    ended_.begin(node, incarnation, now);
    peers_.begin(node, incarnation, first, now);
    belief_.note_heard(node, true, now);
}

void Exchange::end(unsigned node, const NodeSet& heirs, std::int64_t now) {
    ended_.end(node, peers_.end(node), heirs, now);
    out_.drop(node);
    lengths_.find();
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
        peers_.add_acks(writer);
        peers_.add_echo(writer, now);
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
    other_.set_limit(std::clamp(bytes + kEnvelopeBytes, payload(), kMaxPayload));
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

// ---- What comes

void Exchange::on_datagram(std::span<const std::byte> bytes, std::int64_t now) {
    Datagram datagram;
    Refusal refusal = read_datagram(bytes, own_.config.ring, kMaxPayload, datagram);
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
    if (standing == Belief::Standing::stranger) [[unlikely]] {
        if (!belief_.meet(header, sections, fresh, now)) return;
    }
    ++own_.counters.datagrams_taken;
    lengths_.hear(header, bytes.size());
    TakenStream* const member = peers_.find(MemberIncarnation{header.origin, header.incarnation});
    belief_.note_heard(header.origin, member != nullptr, now);
    if (member != nullptr) peers_.note_heard(header, now);
    for (const Section& section : sections) take_section(header, section, member != nullptr, now);
    if (member != nullptr) {
        member->in->note_newest(widened(header.newest, member->in->applied()), now);
        send_naks(header.origin, *member, 0, now);
    }
    send_retransmissions(now);
    if (now >= peers_.ack_due_ns() && !holds_answers_) on_tick(now);
}

void Exchange::take_section(const Header& header, const Section& section, bool is_member,
                            std::int64_t now) {
    switch (section.type()) {
        case SectionType::batch:
            if (!is_member) {
                ++own_.counters.no_member;
                return;
            }
            return peers_.take_batch(header.origin, Batch(section),
                                     (section.flags() & Section::kAckAtOnce) != 0, now);
        case SectionType::forwarded: return take_forwarded(ForwardedBatch(section), now);
        case SectionType::acks:
            if (is_member) take_acks(header.origin, section, now);
            return;
        case SectionType::nak:
            if (is_member) take_naks(section, now);
            return;
        case SectionType::echo:
            for (const Echo& echo : list_of<Echo>(section)) {
                if (is_member && own_.is_me(echo.node)) peers_.take_echo(header, echo, now);
            }
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

void Exchange::take_forwarded(const ForwardedBatch& forwarded, std::int64_t now) {
    const MemberIncarnation origin = forwarded.origin();
    if (origin.node >= own_.config.nodes || origin.node == own_.config.node) return;
    if (peers_.find(origin) != nullptr) {
        peers_.take_batch(origin.node, forwarded.batch(), false, now);
    } else if (TakenStream* const ended = ended_.find(origin)) {
        peers_.take_in(origin.node, *ended, forwarded.batch(), now);
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
            ended_.take_position(from, ack, has_ended, now);
        }
    }
}

void Exchange::take_naks(const Section& section, std::int64_t now) {
    const bool from_anybody = (section.flags() & Section::kFromAnybody) != 0;
    for (const Nak& nak : list_of<Nak>(section)) {
        if (own_.is_me(nak.origin)) {
            out_.on_nak(widened(nak.first, out_.newest()), nak.count, now);
        } else if (from_anybody) {
            forward(nak, now);
        } else if (TakenStream* const its = peers_.find(nak.origin)) {
            its->in->on_other_nak(widened(nak.first, its->in->applied()), nak.count, now);
        }
    }
}

/// What is here of a stream whose node is dead to the NAK's sender.
void Exchange::forward(const Nak& nak, std::int64_t now) {
    const TakenStream* its = peers_.find(nak.origin);
    if (its == nullptr) its = ended_.find(nak.origin);
    if (its == nullptr) return;
    const InStream* const stream = its->in.get();
    const std::uint64_t first = widened(nak.first, stream->applied());
    for (std::uint64_t n = 0; n < std::min<std::uint64_t>(nak.count, kMaxForwarded); ++n) {
        const auto body = stream->body(first + n);
        if (body.empty() || first + n > stream->applied()) continue;
        ++own_.counters.forwarded;
        begin_other(now, kSectionHeadBytes + ForwardedBatch::kHeadBytes + body.size());
        other_.add_forwarded({nak.origin.node, its->incarnation}, body);
        send(other_, now);
    }
}

// ---- Timers

void Exchange::send_naks(unsigned node, TakenStream& stream, std::uint8_t flags, std::int64_t now) {
    if (now < stream.in->nak_due_ns()) return;
    begin_other(now);
    const NodeIncarnation origin =
        NodeIncarnation::of(static_cast<std::uint16_t>(node), stream.incarnation);
    stream.in->send_naks(now, [&](std::uint64_t first, std::uint64_t count) {
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
    return std::min({out_.probe_due_ns(), peers_.ack_due_ns(), repair_due_ns()});
}

std::int64_t Exchange::repair_due_ns() const noexcept {
    std::int64_t due = out_.probes() != 0 ? out_.probe_due_ns() : kNever;
    for (unsigned node = 0; node < own_.config.nodes; ++node) {
        due = std::min({due, peers_.stream(node).nak_due_ns(), ended_.stream(node).nak_due_ns()});
    }
    return due;
}

void Exchange::on_tick(std::int64_t now) {
    for (unsigned node = 0; node < own_.config.nodes; ++node) {
        if (takes(node)) send_naks(node, peers_.stream(node), 0, now);
        TakenStream* const ended = ended_.awaited(node, now);
        if (ended != nullptr) send_naks(node, *ended, Section::kFromAnybody, now);
    }
    if (const auto sequence = out_.probe(now)) {
        ++own_.counters.probes_sent;
        retransmit_batch(*sequence, Section::kAckAtOnce, now);
    }
    send_retransmissions(now);
    if (now >= peers_.ack_due_ns()) {
        ++own_.counters.acks_alone;
        begin_other(now);
        send(other_, now);
    }
}

}  // namespace rmem::udp
