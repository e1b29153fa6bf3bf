// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/belief.hpp"

#include "rmem/base/check.hpp"

namespace rmem::udp {

namespace {

IncarnationId id_of(const Header& header) noexcept {
    return {header.ring, header.origin, header.incarnation, header.salt};
}

}  // namespace

Belief::Belief(ExchangeOwn& own, const Authenticator& authenticator)
    : own_(own),
      authenticator_(authenticator),
      nodes_(own.config.nodes),
      greeter_(own.config.nodes, own.config.first_incarnation, own.config.seed),
      namesakes_(own.config.nodes, own.config.first_incarnation, ~own.config.seed) {}

// ---- Tags

bool Belief::is_tagged(const Datagram& datagram, const IncarnationKey& key) {
    const Header& header = datagram.header();
    if (key.verify(header.number, datagram.covered(),
                   IncarnationKey::ConstTag(datagram.tag().data(), kTagBytes))) [[likely]] {
        return true;
    }
    ++own_.counters.wrong_tag;
    own_.edge.on_odd(Odd::wrong_key, header, {});
    return false;
}

bool Belief::has_key(const Datagram& datagram) {
    const TagKind kind = datagram.header().tag_kind;
    return authenticator_.check(static_cast<std::uint8_t>(kind)) == Authenticator::Kind::fine &&
           is_tagged(datagram, authenticator_.incarnation_key(id_of(datagram.header()), kind));
}

Belief::Standing Belief::standing_of(const Datagram& datagram, Fresh& fresh) {
    const Header& header = datagram.header();
    switch (authenticator_.check(static_cast<std::uint8_t>(header.tag_kind))) {
        case Authenticator::Kind::fine: break;
        case Authenticator::Kind::unsigned_:
            ++own_.counters.unsigned_;
            own_.edge.on_odd(Odd::no_tag, header, {});
            return Standing::refused;
        case Authenticator::Kind::signed_:
            ++own_.counters.signed_;
            own_.edge.on_odd(Odd::not_expected, header, {});
            return Standing::refused;
        default: ++own_.counters.wrong_tag; return Standing::refused;
    }
    Node& node = nodes_[header.origin];
    const IncarnationId id = id_of(header);
    const bool is_known = node.id == id && node.key && node.key->kind() == header.tag_kind;
    if (!is_known) fresh.emplace(authenticator_.incarnation_key(id, header.tag_kind));
    if (!is_tagged(datagram, is_known ? *node.key : *fresh)) return Standing::refused;
    if (!is_known || !node.is_believed) return Standing::stranger;
    if (node.replays.accept(header.number)) return Standing::believed;
    ++own_.counters.replayed;
    return Standing::refused;
}

/// Of another ring's only those are looked at that begin with what people are to read.
void Belief::note_refusal(Refusal refusal, std::span<const std::byte> bytes) {
    ++own_.counters.refused[static_cast<std::size_t>(refusal)];
    const bool is_other_ring = refusal == Refusal::other_ring;
    if (!is_other_ring && refusal != Refusal::version) return;
    const Header header = Header::read(bytes.data());
    if (!is_other_ring) return own_.edge.on_odd(Odd::other_version, header, {});
    const bool has_text = static_cast<SectionType>(bytes[kHeaderBytes]) == SectionType::about;
    if (!has_text) return own_.edge.on_odd(Odd::other_ring, header, {});
    Datagram datagram;
    if (read_datagram(bytes, header.ring, kMaxPayload, datagram) != Refusal::none) return;
    Sections sections;
    if (read_sections(datagram, sections) != Refusal::none) return;
    if (!has_key(datagram)) return;
    const auto text = (*sections.begin()).body();
    own_.edge.on_odd(Odd::other_ring, header,
                     {reinterpret_cast<const char*>(text.data()), text.size()});
}

// ---- Greetings

bool Belief::meet(const Header& header, const Sections& sections, const Fresh& fresh,
                  std::int64_t now) {
    const IncarnationKey& key = fresh ? *fresh : *nodes_[header.origin].key;
    bool is_believed = false;
    for (const Section& section : sections) {
        if (section.type() != SectionType::greeting) continue;
        for (const Greeting& greeting : list_of<Greeting>(section)) {
            is_believed = take_greeting(header, greeting, &key, now) || is_believed;
        }
    }
    if (is_believed) return true;
    ++own_.counters.strangers;
    greet(header.origin, now);
    return false;
}

/// `key`: of a stranger. True if it is believed now.
bool Belief::take_greeting(const Header& header, const Greeting& greeting,
                           const IncarnationKey* key, std::int64_t now) {
    if (greeting.to != own_.config.node) return false;
    const unsigned node = header.origin;
    bool is_believed = key == nullptr;
    if (!is_believed && greeter_.is_answered(node, greeting.answer, now)) {
        // A new incarnation of the same process ends the former one; another process's waits for
        // its silence.
        const std::uint64_t former = believed(node);
        const bool is_its_own = former >= greeting.first_incarnation && former < header.incarnation;
        const bool is_silent = now - nodes_[node].silent_since() >= kNamesakeNs;
        is_believed = former == 0 || is_its_own || is_silent;
        if (is_believed) believe(header, *key, now);
    }
    if (greeting.believed == own_.config.incarnation) return is_believed;
    greeter_.owe(node, greeting.nonce, now);
    const bool is_other =
        greeting.believed != 0 && (greeting.believed < own_.config.first_incarnation ||
                                   greeting.believed > own_.config.incarnation);
    if (is_other && is_believed) own_.edge.on_taken(header, greeting, now);
    return is_believed;
}

/// What it sent before this datagram is not taken any more.
void Belief::believe(const Header& header, const IncarnationKey& key, std::int64_t now) {
    RMEM_CHECK(header.origin != own_.config.node);
    Node& node = nodes_[header.origin];
    node.id = id_of(header);
    if (&key != (node.key ? &*node.key : nullptr)) node.key.emplace(key);
    node.replays.begin_at(header.number);
    node.is_believed = true;
    node.spoke_ns = now;
    greeter_.renew(header.origin);
}

void Belief::doubt(unsigned node, std::uint64_t incarnation) noexcept {
    if (!nodes_[node].is_believed || believed(node) != incarnation) return;
    nodes_[node].is_believed = false;
    greeter_.renew(node);
}

void Belief::doubt_silent_since(std::int64_t then) noexcept {
    for (unsigned node = 0; node < nodes_.size(); ++node) {
        if (nodes_[node].silent_since() < then) doubt(node, believed(node));
    }
}

void Belief::excuse(std::int64_t away_ns, std::int64_t now) noexcept {
    for (Node& node : nodes_) {
        node.heard_ns = std::min(node.heard_ns + away_ns, now);
        node.spoke_ns = std::min(node.spoke_ns + away_ns, now);
    }
}

// ---- Who has this node's number

void Belief::meet_namesake(const Datagram& datagram, std::int64_t now) {
    const Header& header = datagram.header();
    const bool is_own = header.incarnation >= own_.config.first_incarnation &&
                        header.incarnation <= own_.config.incarnation;
    if (is_own && header.incarnation != own_.config.incarnation) return;
    if (is_own && header.salt == own_.config.salt) return;
    Sections sections;
    if (!has_key(datagram) || read_sections(datagram, sections) != Refusal::none) return;
    for (const Section& section : sections) {
        if (section.type() != SectionType::greeting) continue;
        for (const Greeting& greeting : list_of<Greeting>(section)) {
            if (greeting.to != own_.config.node) continue;
            if (greeting.answer == 0) {
                namesakes_.owe(own_.config.node, greeting.nonce, now);
            } else if (namesakes_.is_answered(own_.config.node, greeting.answer, now)) {
                namesakes_.renew(own_.config.node);
                own_.edge.on_taken(header, greeting, now);
            }
        }
    }
}

}  // namespace rmem::udp
