// SPDX-License-Identifier: Apache-2.0
// Whose datagrams count: tags, greetings, and what is told of the others.
#include "rmem/link/udp/protocol/exchange.hpp"

#include <algorithm>

namespace rmem::udp {

// ---- Tags

bool Exchange::is_tagged(const Datagram& datagram, const IncarnationKey& key) {
    const Header& header = datagram.header();
    if (key.verify(header.number, datagram.covered(),
                   IncarnationKey::ConstTag(datagram.tag().data(), kTagBytes))) [[likely]] {
        return true;
    }
    ++counters_.wrong_tag;
    edge_.on_odd(Odd::wrong_key, header, {});
    return false;
}

/// Tag, then replays: a number from a sender without the key must not move the window. `fresh`: the
/// key of a incarnation that is not the peer's.
Exchange::Standing Exchange::standing_of(const Datagram& datagram,
                                         std::optional<IncarnationKey>& fresh) {
    const Header& header = datagram.header();
    switch (authenticator_.check(static_cast<std::uint8_t>(header.tag_kind))) {
        case Authenticator::Kind::fine: break;
        case Authenticator::Kind::unsigned_:
            ++counters_.unsigned_;
            edge_.on_odd(Odd::no_tag, header, {});
            return Standing::refused;
        case Authenticator::Kind::signed_:
            ++counters_.signed_;
            edge_.on_odd(Odd::not_expected, header, {});
            return Standing::refused;
        default: ++counters_.wrong_tag; return Standing::refused;
    }
    Peer& peer = peers_[header.origin];
    const IncarnationId id{header.ring, header.origin, header.incarnation, header.salt};
    const bool is_peers = peer.believed_id == id && peer.key && peer.key->kind() == header.tag_kind;
    if (!is_peers) fresh.emplace(authenticator_.incarnation_key(id, header.tag_kind));
    if (!is_tagged(datagram, is_peers ? *peer.key : *fresh)) return Standing::refused;
    if (!is_peers || !peer.is_believed) return Standing::stranger;
    if (peer.replays.accept(header.number)) return Standing::believed;
    ++counters_.replayed;
    return Standing::refused;
}

/// Of another ring's only those are looked at that begin with what people are to read.
void Exchange::note_refusal(Refusal refusal, std::span<const std::byte> bytes) {
    ++counters_.refused[static_cast<std::size_t>(refusal)];
    const bool is_other_ring = refusal == Refusal::other_ring;
    if (!is_other_ring && refusal != Refusal::version) return;
    const Header header = Header::read(bytes.data());
    if (!is_other_ring) return edge_.on_odd(Odd::other_version, header, {});
    const bool has_text = static_cast<SectionType>(bytes[kHeaderBytes]) == SectionType::about;
    if (!has_text) return edge_.on_odd(Odd::other_ring, header, {});
    Datagram datagram;
    if (read_datagram(bytes, header.ring, kMostPayload, datagram) != Refusal::none) return;
    Sections sections;
    if (read_sections(datagram, sections) != Refusal::none) return;
    const auto kind = static_cast<std::uint8_t>(header.tag_kind);
    const bool can_check = authenticator_.check(kind) == Authenticator::Kind::fine;
    const IncarnationId id{header.ring, header.origin, header.incarnation, header.salt};
    if (!can_check || !is_tagged(datagram, authenticator_.incarnation_key(id, header.tag_kind)))
        return;
    const auto text = (*sections.begin()).body();
    edge_.on_odd(Odd::other_ring, header,
                 {reinterpret_cast<const char*>(text.data()), text.size()});
}

// ---- Greetings

/// What an incarnation says that is not believed. True if it is from now on.
bool Exchange::meet(const Header& header, const Sections& sections, const IncarnationKey& key,
                    std::int64_t now) {
    bool is_believed = false;
    for (const Section& section : sections) {
        if (section.type() != SectionType::greeting) continue;
        for (const Greeting& greeting : list_of<Greeting>(section)) {
            is_believed = take_greeting(header, greeting, &key, now) || is_believed;
        }
    }
    if (is_believed) return true;
    ++counters_.strangers;
    greet(header.origin, now);
    return false;
}

/// `key`: of a stranger. True if it is believed now.
bool Exchange::take_greeting(const Header& header, const Greeting& greeting,
                             const IncarnationKey* key, std::int64_t now) {
    if (greeting.to != config_.node) return false;
    const unsigned node = header.origin;
    const Peer& peer = peers_[node];
    bool is_believed = key == nullptr;
    if (!is_believed && greeter_.is_answered(node, greeting.answer, now)) {
        // A new incarnation of the same process ends the former one; another process's waits for
        // its silence.
        const std::uint64_t former = believed(node);
        const bool is_its_own = former >= greeting.first_incarnation && former < header.incarnation;
        const bool is_silent = now - std::max(peer.heard_ns, peer.spoke_ns) >= kNamesakeNs;
        is_believed = former == 0 || is_its_own || is_silent;
        if (is_believed) believe(header, *key, now);
    }
    if (greeting.believed == config_.incarnation) return is_believed;
    greeter_.owe(node, greeting.nonce, now);
    const bool is_other =
        greeting.believed != 0 &&
        (greeting.believed < config_.first_incarnation || greeting.believed > config_.incarnation);
    if (is_other && is_believed) edge_.on_taken(header, greeting, now);
    return is_believed;
}

/// What it sent before this datagram is not taken any more.
void Exchange::believe(const Header& header, const IncarnationKey& key, std::int64_t now) {
    Peer& peer = peers_[header.origin];
    peer.believed_id = IncarnationId{header.ring, header.origin, header.incarnation, header.salt};
    if (&key != (peer.key ? &*peer.key : nullptr)) peer.key.emplace(key);
    peer.replays.begin_at(header.number);
    peer.is_believed = true;
    peer.spoke_ns = now;
    greeter_.renew(header.origin);
}

void Exchange::doubt(unsigned node, std::uint64_t incarnation) noexcept {
    if (!peers_[node].is_believed || believed(node) != incarnation) return;
    peers_[node].is_believed = false;
    greeter_.renew(node);
}

void Exchange::doubt_silent_since(std::int64_t then) {
    for (unsigned node = 0; node < peers_.size(); ++node) {
        const Peer& peer = peers_[node];
        if (std::max(peer.heard_ns, peer.spoke_ns) < then) doubt(node, believed(node));
    }
}

void Exchange::excuse(std::int64_t away_ns, std::int64_t now) noexcept {
    for (Peer& peer : peers_) {
        peer.heard_ns = std::min(peer.heard_ns + away_ns, now);
        peer.spoke_ns = std::min(peer.spoke_ns + away_ns, now);
    }
}

void Exchange::add_greetings(DatagramWriter& writer, std::uint16_t flags, std::int64_t now) {
    greeter_.add_to(
        writer, flags, [this](unsigned node) { return believed(node); }, now);
}

void Exchange::send_greetings(std::uint16_t flags, std::int64_t now) {
    if (now >= greeter_.due_ns()) {
        ++counters_.greetings_sent;
        add_greetings(begin_other(now), flags, now);
        send_other(now);
    }
    if (now >= namesakes_.due_ns()) send_to_namesakes(flags, now);
}

// ---- Who has this node's number

/// A datagram of this node: its own, which came back where groups are shared, or another process's.
void Exchange::meet_namesake(const Datagram& datagram, std::int64_t now) {
    const Header& header = datagram.header();
    const bool is_own = header.incarnation >= config_.first_incarnation &&
                        header.incarnation <= config_.incarnation;
    if (is_own && header.incarnation != config_.incarnation) return;
    if (is_own && header.salt == config_.salt) return;
    const auto kind = static_cast<std::uint8_t>(header.tag_kind);
    if (authenticator_.check(kind) != Authenticator::Kind::fine) return;
    const IncarnationId id{header.ring, header.origin, header.incarnation, header.salt};
    if (!is_tagged(datagram, authenticator_.incarnation_key(id, header.tag_kind))) return;
    Sections sections;
    if (read_sections(datagram, sections) != Refusal::none) return;
    for (const Section& section : sections) {
        if (section.type() != SectionType::greeting) continue;
        for (const Greeting& greeting : list_of<Greeting>(section)) {
            if (greeting.to != config_.node) continue;
            if (greeting.answer == 0) {
                namesakes_.owe(config_.node, greeting.nonce, now);
            } else if (namesakes_.is_answered(config_.node, greeting.answer, now)) {
                namesakes_.renew(config_.node);
                edge_.on_taken(header, greeting, now);
            }
        }
    }
}

void Exchange::send_to_namesakes(std::uint16_t flags, std::int64_t now) {
    begin_other(now);
    namesakes_.add_to(
        other_, flags, [](unsigned) { return 0; }, now);
    if (other_.is_empty()) return;
    send(other_, now, Length::as_needed, OutgoingDatagram::To::namesakes);
}

}  // namespace rmem::udp
