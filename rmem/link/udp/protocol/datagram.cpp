// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/datagram.hpp"

#include <algorithm>

namespace rmem::udp {

namespace {

using Bytes = std::span<const std::byte>;

/// The biggest section that cannot be divided fits the least datagram.
static_assert(kEnvelopeBytes + kSectionHeadBytes + Vector::kHeadBytes + 4 * kMaxNodes <=
              kLeastPayload);

Refusal check_node(std::uint16_t node) noexcept {
    return node < kMaxNodes ? Refusal::none : Refusal::node;
}

Refusal check_place(const Place& place) noexcept {
    if (place.words == 0) return Refusal::record_empty;
    if (place.part() != kWholeWord && place.words != 1) return Refusal::record_part;
    return place.index + place.words <= kPlaceIndices ? Refusal::none : Refusal::record_wraps;
}

Refusal check_batch(Bytes body) noexcept {
    if (body.size() < Batch::kHeadBytes) return Refusal::section_size;
    if (Batch(body).sequence() == 0) return Refusal::sequence;
    for (Bytes left = body.subspan(Batch::kHeadBytes); !left.empty();) {
        if (left.size() < Place::kBytes) return Refusal::record_overrun;
        const Refusal refusal = check_place(Place::read(left.data()));
        if (refusal != Refusal::none) return refusal;
        const std::size_t extent = Record::extent(left.data());
        if (extent > left.size()) return Refusal::record_overrun;
        left = left.subspan(extent);
    }
    return Refusal::none;
}

Refusal check_forwarded(Bytes body) noexcept {
    if (body.size() < ForwardedBatch::kHeadBytes) return Refusal::section_size;
    const Refusal refusal = check_node(MemberIncarnation::read(body.data()).node);
    return refusal != Refusal::none ? refusal
                                    : check_batch(body.subspan(ForwardedBatch::kHeadBytes));
}

Refusal check(const Ack& ack) noexcept {
    return check_node(ack.origin.node);
}
Refusal check(const Echo& echo) noexcept {
    return check_node(echo.node.node);
}
Refusal check(const MemberIncarnation& member) noexcept {
    return check_node(member.node);
}
Refusal check(const Place& place) noexcept {
    return check_place(place);
}
Refusal check(const Greeting& greeting) noexcept {
    return check_node(greeting.to);
}
Refusal check(const Nak& nak) noexcept {
    return nak.count == 0 ? Refusal::record_empty : check_node(nak.origin.node);
}

template <class T>
Refusal check_list(Bytes body) noexcept {
    if (body.size() % T::kBytes != 0) return Refusal::section_size;
    for (const T& entry : Run<T>(body)) {
        const Refusal refusal = check(entry);
        if (refusal != Refusal::none) return refusal;
    }
    return Refusal::none;
}

/// A head that names a node first, then a list.
template <class T>
Refusal check_addressed_list(Bytes body, std::size_t head_bytes) noexcept {
    if (body.size() < head_bytes) return Refusal::section_size;
    const Refusal refusal = check_node(NodeIncarnation::read(body.data()).node);
    return refusal != Refusal::none ? refusal : check_list<T>(body.subspan(head_bytes));
}

Refusal check_size(Bytes body, std::size_t bytes) noexcept {
    return body.size() == bytes ? Refusal::none : Refusal::section_size;
}

Refusal check_admit(Bytes body) noexcept {
    if (body.size() != Admit::kBytes) return Refusal::section_size;
    return check_node(Admit::read(body.data()).joiner.node);
}

Refusal check_vector(Bytes body) noexcept {
    if (body.size() < Vector::kHeadBytes) return Refusal::section_size;
    const std::size_t origins = NodeSet::read(body.data() + RequestId::kBytes + 8).size();
    if (body.size() != Vector::kHeadBytes + origins * sizeof(std::uint32_t)) {
        return Refusal::section_size;
    }
    return check_node(RequestId::read(body.data()).to.node);
}

Refusal check_chunk(Bytes body, bool zeros) noexcept {
    if (body.size() < Chunk::kHeadBytes) return Refusal::section_size;
    const Refusal refusal = check_node(RequestId::read(body.data()).to.node);
    if (refusal != Refusal::none) return refusal;
    const Place place = Place::read(body.data() + RequestId::kBytes);
    const std::size_t bytes = zeros ? 0 : place.words * kWordBytes;
    if (body.size() != Chunk::kHeadBytes + bytes) return Refusal::record_overrun;
    return check_place(place);
}

Refusal check(const Section& section) noexcept {
    const Bytes body = section.body();
    switch (section.type()) {
        case SectionType::batch: return check_batch(body);
        case SectionType::forwarded: return check_forwarded(body);
        case SectionType::acks: return check_list<Ack>(body);
        case SectionType::nak: return check_list<Nak>(body);
        case SectionType::echo: return check_list<Echo>(body);
        case SectionType::status: return check_size(body, Status::kBytes);
        case SectionType::join: return check_size(body, Join::kBytes);
        case SectionType::welcome:
            return check_addressed_list<MemberIncarnation>(body, Welcome::kHeadBytes);
        case SectionType::admit: return check_admit(body);
        case SectionType::snapshot_request:
            return check_addressed_list<Place>(body, RequestId::kBytes);
        case SectionType::vector: return check_vector(body);
        case SectionType::chunk: return check_chunk(body, (section.flags() & Section::kZeros) != 0);
        case SectionType::greeting: return check_list<Greeting>(body);
        case SectionType::padding:
        case SectionType::about: return Refusal::none;
    }
    return Refusal::none;  // a type that this version does not know
}

/// Whether what its head says lies inside `left`.
Refusal check_extent(Bytes left) noexcept {
    if (left.size() < kSectionHeadBytes) return Refusal::section_overrun;
    const std::size_t extent = Section::extent(left.data());
    if (extent > left.size()) return Refusal::section_overrun;
    return extent % kWordBytes == 0 ? Refusal::none : Refusal::misaligned;
}

}  // namespace

const char* name_of(Refusal refusal) noexcept {
    switch (refusal) {
        case Refusal::none: return "none";
        case Refusal::too_short: return "too-short";
        case Refusal::too_long: return "too-long";
        case Refusal::magic: return "magic";
        case Refusal::version: return "version";
        case Refusal::other_ring: return "other-ring";
        case Refusal::tag_kind: return "tag-kind";
        case Refusal::origin: return "origin";
        case Refusal::length: return "length";
        case Refusal::section_overrun: return "section-overrun";
        case Refusal::misaligned: return "misaligned";
        case Refusal::section_size: return "section-size";
        case Refusal::sequence: return "sequence";
        case Refusal::record_overrun: return "record-overrun";
        case Refusal::record_empty: return "record-empty";
        case Refusal::record_wraps: return "record-wraps";
        case Refusal::record_part: return "record-part";
        case Refusal::node: return "node";
        case Refusal::kCount: break;
    }
    return "unknown";
}

bool Batch::is_inside(std::uint64_t bank_bytes) const noexcept {
    const Run<Record> all = records();
    return std::all_of(all.begin(), all.end(), [bank_bytes](const Record& record) {
        return record.place.is_inside(bank_bytes);
    });
}

std::size_t length_of_first(Bytes bytes) noexcept {
    if (bytes.size() < kEnvelopeBytes || load<std::uint32_t>(bytes.data()) != kMagic) {
        return bytes.size();
    }
    const std::size_t length = kEnvelopeBytes + load<std::uint16_t>(bytes.data() + kLengthAt);
    return std::min(length, bytes.size());
}

Refusal read_datagram(Bytes bytes, std::uint64_t ring, std::size_t limit,
                      Datagram& datagram) noexcept {
    if (bytes.size() < kEnvelopeBytes) return Refusal::too_short;
    if (bytes.size() > limit) return Refusal::too_long;
    const std::byte* at = bytes.data();
    if (load<std::uint32_t>(at) != kMagic) return Refusal::magic;
    if (load<std::uint8_t>(at + kVersionAt) != kVersion) return Refusal::version;
    const Header header = Header::read(at);
    if (header.ring != ring) return Refusal::other_ring;
    if (header.tag_kind >= TagKind::kCount) return Refusal::tag_kind;
    if (header.origin >= kMaxNodes) return Refusal::origin;
    const std::size_t covered = kHeaderBytes + load<std::uint16_t>(at + kLengthAt);
    if (covered + kTagBytes != bytes.size()) return Refusal::length;
    datagram.header_ = header;
    datagram.bytes_ = at;
    datagram.covered_ = covered;
    return Refusal::none;
}

Refusal read_sections(const Datagram& datagram, Sections& sections) noexcept {
    sections = {};
    const Bytes all = datagram.covered().subspan(kHeaderBytes);
    for (Bytes left = all; !left.empty();) {
        Refusal refusal = check_extent(left);
        if (refusal != Refusal::none) return refusal;
        refusal = check(Section::read(left.data()));
        if (refusal != Refusal::none) return refusal;
        left = left.subspan(Section::extent(left.data()));
    }
    sections.all_ = Run<Section>(all);
    return Refusal::none;
}

}  // namespace rmem::udp
