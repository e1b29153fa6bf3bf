// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/datagram.hpp"

#include "tests/rmem/link/udp/protocol/datagram_fixture.hpp"

#include <random>
#include <set>
#include <string>

namespace rmem::udp {
namespace {

using test::DatagramWalk;

constexpr std::size_t kOriginAt = 6;
constexpr std::size_t kRingAt = 8;

TEST_F(UdpDatagram, each_wrong_header_has_its_own_refusal) {
    ASSERT_TRUE(writer.add_ack({{1, 2}, 3}));
    const Bytes right = finished();
    const auto with = [&right, this](std::size_t at, unsigned value) {
        Bytes wrong = right;
        wrong[at] = static_cast<std::byte>(value);
        return header_refusal(wrong);
    };
    EXPECT_EQ(header_refusal({}), Refusal::too_short);
    EXPECT_EQ(read_datagram(right, kRing, right.size() - 1, datagram), Refusal::too_long);
    EXPECT_EQ(with(0, 'r'), Refusal::magic);
    EXPECT_EQ(with(kVersionAt, kVersion + 1), Refusal::version);
    EXPECT_EQ(with(kRingAt, 0), Refusal::other_ring);
    EXPECT_EQ(with(kTagKindAt, 3), Refusal::tag_kind);
    EXPECT_EQ(with(kOriginAt + 1, 1), Refusal::origin);
    EXPECT_EQ(with(kLengthAt, 4), Refusal::length);
    EXPECT_EQ(with(kLengthAt, 16), Refusal::length);
    EXPECT_EQ(with(kLengthAt + 1, 255), Refusal::length);
}

TEST_F(UdpDatagram, cut_or_padded_anywhere_it_is_refused) {
    write_all_types();
    Bytes bytes = finished();
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
        EXPECT_EQ(DatagramWalk::run(cut, kRing, kDefaultPayload).refusal,
                  size < kEnvelopeBytes ? Refusal::too_short : Refusal::length);
    }
    bytes.push_back(std::byte{0});
    EXPECT_EQ(header_refusal(bytes), Refusal::length);
    bytes.resize(kDefaultPayload + 1);
    EXPECT_EQ(header_refusal(bytes), Refusal::too_long);
}

TEST_F(UdpDatagram, sections_cut_anywhere_are_taken_at_their_ends_only) {
    write_all_types();
    const Bytes whole = finished();
    ASSERT_EQ(refusal(whole), Refusal::none);
    std::set<std::size_t> ends{0};
    for (const Section& section : sections) {
        ends.insert(*ends.rbegin() + kSectionHeadBytes + section.body().size());
    }
    EXPECT_EQ(ends.size(), 16U);
    for (std::size_t size = 0; size <= whole.size() - kEnvelopeBytes; ++size) {
        Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(kHeaderBytes + size));
        cut.resize(cut.size() + kTagBytes);
        store(cut.data() + kLengthAt, static_cast<std::uint16_t>(size));
        EXPECT_EQ(DatagramWalk::run(cut, kRing, kDefaultPayload).refusal,
                  ends.contains(size) ? Refusal::none : Refusal::section_overrun);
    }
}

TEST_F(UdpDatagram, random_changes_behind_a_right_header_give_no_overrun) {
    write_all_types();
    const Bytes whole = finished();
    const auto walk = DatagramWalk::run(whole, kRing, kDefaultPayload);
    ASSERT_EQ(walk.refusal, Refusal::none);
    EXPECT_EQ(walk.sections, 15U);
    EXPECT_EQ(walk.words, 7U);
    std::mt19937 random(1);
    for (unsigned round = 0; round < 20'000; ++round) {
        Bytes bytes = whole;
        for (unsigned change = 0; change <= round % 4; ++change) {
            const std::size_t at = kHeaderBytes + random() % (bytes.size() - kEnvelopeBytes);
            bytes[at] = static_cast<std::byte>(random());
        }
        EXPECT_NO_THROW(DatagramWalk::run(bytes, kRing, kDefaultPayload)) << "round " << round;
    }
}

TEST_F(UdpDatagram, sections_that_overrun_or_are_misaligned_are_refused) {
    const auto with_length = [this](unsigned length) {
        writer.begin(some_header());
        EXPECT_TRUE(writer.add_ack({{1, 2}, 3}));
        Bytes bytes = finished();
        store(bytes.data() + kHeaderBytes + 2, static_cast<std::uint16_t>(length));
        return refusal(bytes);
    };
    EXPECT_EQ(with_length(8), Refusal::none);
    EXPECT_EQ(with_length(9), Refusal::section_overrun);
    EXPECT_EQ(with_length(12), Refusal::section_overrun);
    EXPECT_EQ(with_length(65535), Refusal::section_overrun);
    EXPECT_EQ(with_length(7), Refusal::misaligned);
    EXPECT_EQ(refusal_of(SectionType{99}, Bytes(3)), Refusal::misaligned);
    EXPECT_EQ(sections.begin(), sections.end());
}

TEST_F(UdpDatagram, a_section_of_an_unknown_type_is_passed_over) {
    EXPECT_EQ(refusal_of(SectionType{99}, Bytes(20)), Refusal::none);
    EXPECT_EQ(refusal_of(SectionType{0}, Bytes(0)), Refusal::none);
    EXPECT_EQ(std::distance(sections.begin(), sections.end()), 1);
}

TEST_F(UdpDatagram, bodies_of_impossible_sizes_are_refused) {
    for (const auto type :
         {SectionType::batch, SectionType::forwarded, SectionType::acks, SectionType::nak,
          SectionType::echo, SectionType::status, SectionType::join, SectionType::welcome,
          SectionType::admit, SectionType::snapshot_request, SectionType::vector,
          SectionType::chunk}) {
        EXPECT_EQ(refusal_of(type, Bytes(4)), Refusal::section_size) << static_cast<int>(type);
    }
    EXPECT_EQ(refusal_of(SectionType::status, Bytes(Status::kBytes + 4)), Refusal::section_size);
    EXPECT_EQ(refusal_of(SectionType::welcome, Bytes(Welcome::kHeadBytes + 8)),
              Refusal::section_size);
    EXPECT_EQ(refusal_of(SectionType::vector, Bytes(Vector::kHeadBytes + 4)),
              Refusal::section_size);
}

/// The body of a batch with one record that says `place` and has `words` words.
Bytes batch_body(const Place& place, std::size_t words, std::uint64_t sequence = 1) {
    Bytes body(Batch::kHeadBytes + Place::kBytes + words * kWordBytes);
    store(body.data(), sequence);
    place.write(body.data() + Batch::kHeadBytes);
    return body;
}

TEST_F(UdpDatagram, batches_with_wrong_records_are_refused) {
    constexpr auto kBatch = SectionType::batch;
    EXPECT_EQ(refusal_of(kBatch, batch_body({5, 2}, 2)), Refusal::none);
    EXPECT_EQ(refusal_of(kBatch, batch_body({5, 2}, 2, 0)), Refusal::sequence);
    EXPECT_EQ(refusal_of(kBatch, batch_body({5, 3}, 2)), Refusal::record_overrun);
    EXPECT_EQ(refusal_of(kBatch, batch_body({5, 65535}, 2)), Refusal::record_overrun);
    EXPECT_EQ(refusal_of(kBatch, batch_body({5, 1}, 2)), Refusal::record_overrun) << "half a place";
    EXPECT_EQ(refusal_of(kBatch, batch_body({5, 0}, 0)), Refusal::record_empty);
    EXPECT_EQ(refusal_of(kBatch, batch_body({kPlaceIndices - 2, 2}, 2)), Refusal::none);
    EXPECT_EQ(refusal_of(kBatch, batch_body({kPlaceIndices - 1, 2}, 2)), Refusal::record_wraps);
    const std::uint8_t bytes = Place::flags_of(0b0110);
    EXPECT_EQ(refusal_of(kBatch, batch_body({0, 1, bytes}, 1)), Refusal::none);
    EXPECT_EQ(refusal_of(kBatch, batch_body({0, 2, bytes}, 2)), Refusal::record_part);
    EXPECT_EQ(refusal_of(kBatch, batch_body({}, 0, 0)), Refusal::sequence);
    Bytes empty(Batch::kHeadBytes);
    store(empty.data(), std::uint64_t{1});
    EXPECT_EQ(refusal_of(kBatch, empty), Refusal::none);
}

TEST_F(UdpDatagram, nodes_that_no_ring_has_are_refused_wherever_they_are_named) {
    Bytes forwarded(ForwardedBatch::kHeadBytes + Batch::kHeadBytes);
    store(forwarded.data() + ForwardedBatch::kHeadBytes, std::uint64_t{1});
    Bytes nak(Nak::kBytes);
    store(nak.data() + 8, std::uint32_t{1});
    Bytes admit(Admit::kBytes);
    store(admit.data() + 12, std::uint64_t{1});
    Bytes chunk(Chunk::kHeadBytes + kWordBytes);
    Place{3, 1}.write(chunk.data() + RequestId::kBytes);
    const struct {
        SectionType type;
        std::size_t at;
        Bytes body;
    } kNames[] = {
        {SectionType::forwarded, 0, forwarded},
        {SectionType::acks, Ack::kBytes, Bytes(2 * Ack::kBytes)},
        {SectionType::nak, 0, nak},
        {SectionType::echo, 0, Bytes(Echo::kBytes)},
        {SectionType::welcome, 0, Bytes(Welcome::kHeadBytes)},
        {SectionType::welcome, Welcome::kHeadBytes,
         Bytes(Welcome::kHeadBytes + MemberIncarnation::kBytes)},
        {SectionType::admit, 0, admit},
        {SectionType::snapshot_request, 0, Bytes(RequestId::kBytes)},
        {SectionType::vector, 0, Bytes(Vector::kHeadBytes)},
        {SectionType::chunk, 0, chunk},
    };
    for (auto [type, at, body] : kNames) {
        store(body.data() + at, std::uint16_t{kMaxNodes - 1});
        EXPECT_EQ(refusal_of(type, body), Refusal::none) << static_cast<int>(type);
        store(body.data() + at, std::uint16_t{kMaxNodes});
        EXPECT_EQ(refusal_of(type, body), Refusal::node) << static_cast<int>(type);
    }
}

TEST_F(UdpDatagram, what_requests_nothing_is_refused) {
    EXPECT_EQ(refusal_of(SectionType::nak, Bytes(Nak::kBytes)), Refusal::record_empty);
    EXPECT_EQ(refusal_of(SectionType::snapshot_request, Bytes(RequestId::kBytes + Place::kBytes)),
              Refusal::record_empty);
}

TEST_F(UdpDatagram, a_chunk_has_exactly_the_words_that_it_says) {
    const auto refusal_with = [this](const Place& place, std::size_t words, std::uint8_t flags) {
        Bytes body(Chunk::kHeadBytes + words * kWordBytes);
        place.write(body.data() + RequestId::kBytes);
        return refusal_of(SectionType::chunk, body, flags);
    };
    EXPECT_EQ(refusal_with({7, 3}, 3, 0), Refusal::none);
    EXPECT_EQ(refusal_with({7, 3}, 2, 0), Refusal::record_overrun);
    EXPECT_EQ(refusal_with({7, 3}, 4, 0), Refusal::record_overrun);
    EXPECT_EQ(refusal_with({7, 0}, 0, 0), Refusal::record_empty);
    EXPECT_EQ(refusal_with({kPlaceIndices - 1, 2}, 2, 0), Refusal::record_wraps);
    EXPECT_EQ(refusal_with({7, 3}, 0, Section::kZeros), Refusal::none);
    EXPECT_EQ(refusal_with({7, 3}, 3, Section::kZeros), Refusal::record_overrun);
    EXPECT_EQ(refusal_with({kPlaceIndices - 1, 2}, 0, Section::kZeros), Refusal::record_wraps);
}

TEST_F(UdpDatagram,
       the_first_of_several_is_as_long_as_it_says_if_that_is_an_envelope_and_no_more_than_is_here) {
    ASSERT_TRUE(writer.add_ack({{1, 2}, 3}));
    const Bytes first = finished();
    EXPECT_EQ(length_of_first(first), first.size());
    for (unsigned said = 0; said <= 0xffff; ++said) {
        Bytes row = first;
        row.insert(row.end(), first.begin(), first.end());
        store(row.data() + kLengthAt, static_cast<std::uint16_t>(said));
        ASSERT_EQ(length_of_first(row), std::min(kEnvelopeBytes + said, row.size())) << said;
    }
    for (std::size_t size = 0; size < kEnvelopeBytes; ++size) {
        EXPECT_EQ(length_of_first({first.data(), size}), size) << "too short to be one";
    }
    Bytes strange = first;
    strange[0] ^= std::byte{1};
    strange.resize(3 * first.size());
    EXPECT_EQ(length_of_first(strange), strange.size()) << "of another program";
}

TEST_F(UdpDatagram, a_place_is_inside_of_a_bank_or_not) {
    EXPECT_TRUE((Place{1023, 1}).is_inside(4096));
    EXPECT_FALSE((Place{1024, 1}).is_inside(4096));
    EXPECT_FALSE((Place{1023, 2}).is_inside(4096));
    EXPECT_FALSE((Place{0, 3}).is_inside(8));
    EXPECT_FALSE((Place{~0ULL, 2}).is_inside(4096));
    ASSERT_TRUE(writer.begin_batch(1, 2));
    ASSERT_TRUE(writer.add_record({1, 2}, numbers(2, 0).data()));
    ASSERT_TRUE(writer.add_record({100, 2}, numbers(2, 0).data()));
    const Batch batch(section());
    EXPECT_TRUE(batch.is_inside(408));
    EXPECT_FALSE(batch.is_inside(404));
}

TEST(UdpRefusal, each_has_a_name_of_its_own) {
    std::set<std::string> names;
    for (std::size_t i = 0; i < kRefusals; ++i) names.insert(name_of(static_cast<Refusal>(i)));
    EXPECT_EQ(names.size(), kRefusals);
    EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace rmem::udp
