// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/datagram_writer.hpp"

#include "tests/rmem/link/udp/protocol/datagram_fixture.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace rmem::udp {
namespace {

using UdpDatagramWriter = UdpDatagram;

// ---- Round trips

TEST_F(UdpDatagramWriter, the_header_is_read_as_it_was_written) {
    const Bytes bytes = finished();
    ASSERT_EQ(bytes.size(), kEnvelopeBytes);
    ASSERT_EQ(refusal(bytes), Refusal::none);
    Bytes again = bytes;
    std::fill(again.begin() + kTagKindAt, again.end() - kTagBytes, std::byte{0});
    datagram.header().write(again.data());
    EXPECT_EQ(again, bytes);
    EXPECT_EQ(sections.begin(), sections.end());
}

TEST_F(UdpDatagramWriter, its_bytes_are_where_the_design_says) {
    ASSERT_TRUE(writer.begin_batch(0x1122334455667788, 0x99));
    const std::uint32_t word = 0xaabbccdd;
    ASSERT_TRUE(writer.add_record({0x0102030405, 1, Place::kInterrupt}, &word));
    const Bytes bytes = finished();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 4), "RMEU");
    const std::pair<std::size_t, unsigned> kExpected[] = {
        {4, kVersion}, {5, 2},     {6, 7},     {8, 0xef}, {32, 42}, {48, 99},
        {52, 32},      {54, 0x28}, {55, 0x23}, {56, 1},   {58, 28}, {60, 0x88},
        {68, 0x99},    {76, 0x05}, {80, 0x01}, {81, 1},   {82, 0},  {83, Place::kInterrupt},
        {84, 0xdd}};
    for (const auto& [at, value] : kExpected) {
        EXPECT_EQ(std::to_integer<unsigned>(bytes[at]), value) << "byte " << at;
    }
    EXPECT_EQ(bytes.size(), 88U + kTagBytes);
}

TEST_F(UdpDatagramWriter, a_batch_is_read_as_it_was_written) {
    const auto words = numbers(5, 1000);
    const Place last{kPlaceIndices - 1, 1, Place::kInterrupt};
    ASSERT_TRUE(writer.begin_batch(17, -5, Section::kAckAtOnce));
    ASSERT_TRUE(writer.add_record({3, 4}, words.data()));
    ASSERT_TRUE(writer.add_record(last, &words[4]));
    const auto kept = writer.end_batch();
    const Section read = section();
    EXPECT_EQ(read.type(), SectionType::batch);
    EXPECT_EQ(read.flags(), Section::kAckAtOnce);
    const Batch batch(read);
    EXPECT_TRUE(std::equal(kept.begin(), kept.end(), batch.body().begin(), batch.body().end()));
    EXPECT_EQ(batch.sequence(), 17U);
    EXPECT_EQ(batch.first_store_ns(), -5);
    const auto all = batch.records();
    const std::vector<Record> records(all.begin(), all.end());
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[0].place, (Place{3, 4, 0}));
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(records[0].words[i], words[i]);
    EXPECT_EQ(records[1].place, last);
    EXPECT_EQ(records[1].words[0], words[4]);
}

TEST_F(UdpDatagramWriter, a_kept_batch_is_retransmitted_and_forwarded_as_it_was) {
    ASSERT_TRUE(writer.begin_batch(17, 5));
    ASSERT_TRUE(writer.add_record({3, 4}, numbers(4, 0).data()));
    const auto kept = writer.end_batch();
    const Bytes body(kept.begin(), kept.end());
    writer.begin(some_header());
    ASSERT_TRUE(writer.add_batch(body, Section::kAckAtOnce));
    EXPECT_EQ(writer.record_room(), 0U);
    ASSERT_TRUE(writer.add_forwarded({200, 0x123456789}, body));
    const auto all = written();
    const auto again = Batch(all.at(0)).body();
    EXPECT_TRUE(std::equal(again.begin(), again.end(), body.begin(), body.end()));
    const ForwardedBatch forwarded(all.at(1));
    EXPECT_EQ(forwarded.origin().node, 200);
    EXPECT_EQ(forwarded.origin().incarnation, 0x123456789U);
    const auto passed = forwarded.batch().body();
    EXPECT_TRUE(std::equal(passed.begin(), passed.end(), body.begin(), body.end()));
}

TEST_F(UdpDatagramWriter, acks_with_other_flags_make_a_section_of_their_own) {
    ASSERT_TRUE(writer.add_ack({{1, 5}, 7}, Section::kEnded));
    ASSERT_TRUE(writer.add_ack({{2, 5}, 8}));
    ASSERT_TRUE(writer.add_ack({{3, 5}, 9}));
    const auto all = written();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].flags(), Section::kEnded);
    EXPECT_EQ(list_of<Ack>(all[0]).size(), 1U);
    EXPECT_EQ(all[1].flags(), 0);
    EXPECT_EQ(list_of<Ack>(all[1]).size(), 2U);
}

TEST_F(UdpDatagramWriter, acks_missing_and_echoes_in_a_row_make_one_section_each) {
    for (std::uint16_t node = 0; node < 3; ++node) {
        ASSERT_TRUE(writer.add_ack({{node, 5}, node + 100U}));
    }
    ASSERT_TRUE(writer.add_nak({{4, 6}, 0xffff'fff0, 0x20}));
    ASSERT_TRUE(writer.add_echo({{255, 7}, 1'000'000'000'000, -3}));
    ASSERT_TRUE(writer.add_echo({{254, 7}, 2, 4}));
    const auto all = written();
    ASSERT_EQ(all.size(), 3U);
    const auto acks = list_of<Ack>(all[0]);
    ASSERT_EQ(acks.size(), 3U);
    for (const Ack& ack : acks) EXPECT_EQ(ack.up_to, ack.origin.node + 100U);
    const Nak nak = *list_of<Nak>(all[1]).begin();
    EXPECT_EQ(nak.origin, (NodeIncarnation{4, 6}));
    EXPECT_EQ(nak.first, 0xffff'fff0U);
    EXPECT_EQ(nak.count, 0x20U);
    const auto echoes = list_of<Echo>(all[2]);
    ASSERT_EQ(echoes.size(), 2U);
    EXPECT_EQ((*echoes.begin()).sent_ns, 1'000'000'000'000);
    EXPECT_EQ((*echoes.begin()).held_ns, -3);
    EXPECT_EQ((*++echoes.begin()).node.node, 254);
}

TEST_F(UdpDatagramWriter, a_status_is_read_as_it_was_written) {
    Status sent{0x8877665544332211, 256, Status::State::leaving, 12, {}};
    for (const unsigned node : {0U, 63U, 64U, 255U}) sent.view.insert(node);
    ASSERT_TRUE(writer.add_status(sent));
    const Status read = entry_of<Status>(section());
    EXPECT_EQ(read.ring_incarnation, sent.ring_incarnation);
    EXPECT_EQ(read.socket_room, 256U);
    EXPECT_EQ(read.state, Status::State::leaving);
    EXPECT_EQ(read.ranks, 12);
    EXPECT_EQ(read.view, sent.view);
    EXPECT_EQ(read.view.size(), 4U);
}

TEST_F(UdpDatagramWriter, join_and_admit_are_read_as_they_were_written) {
    Join sent{0xfedcba9876543210, {}};
    for (const unsigned node : {0U, 65U, 255U}) sent.admitted_by.insert(node);
    ASSERT_TRUE(writer.add_join(sent));
    ASSERT_TRUE(writer.add_admit({{9, 8}, 0xfedcba9876543210, 1ULL << 40U}));
    const auto all = written();
    const Join join = entry_of<Join>(all.at(0));
    EXPECT_EQ(join.cookie, 0xfedcba9876543210U);
    EXPECT_EQ(join.admitted_by, sent.admitted_by);
    const Admit admit = entry_of<Admit>(all.at(1));
    EXPECT_EQ(admit.joiner, (NodeIncarnation{9, 8}));
    EXPECT_EQ(admit.cookie, join.cookie);
    EXPECT_EQ(admit.first, 1ULL << 40U);
}

TEST_F(UdpDatagramWriter, three_welcomes_tell_the_incarnations_of_256_members) {
    NodeSet view;
    for (unsigned node = 0; node < kMaxNodes; ++node) view.insert(node);
    std::set<unsigned> told;
    unsigned datagrams = 0;
    for (std::uint16_t next = 0; next < kMaxNodes; ++datagrams) {
        writer.begin(some_header());
        ASSERT_TRUE(writer.begin_welcome({9, 8}, 77, 66, view));
        while (next < kMaxNodes && writer.add_incarnation({next, 1'000'000ULL * next})) ++next;
        const Welcome welcome(section());
        EXPECT_EQ(welcome.joiner(), (NodeIncarnation{9, 8}));
        EXPECT_EQ(welcome.cookie(), 77U);
        EXPECT_EQ(welcome.ring_incarnation(), 66U);
        EXPECT_EQ(welcome.view(), view);
        for (const MemberIncarnation& member : welcome.incarnations()) {
            EXPECT_EQ(member.incarnation, 1'000'000ULL * member.node);
            told.insert(member.node);
        }
    }
    EXPECT_EQ(told.size(), kMaxNodes);
    EXPECT_EQ(datagrams, 3U);
}

TEST_F(UdpDatagramWriter, a_snapshot_request_is_read_as_it_was_written) {
    ASSERT_TRUE(writer.begin_snapshot_request({{1, 2}, 3}));
    ASSERT_TRUE(writer.add_part({0, 65535}) && writer.add_part({65535, 1}));
    const SnapshotRequest request(section());
    EXPECT_EQ(request.request_id(), (RequestId{{1, 2}, 3}));
    ASSERT_EQ(request.parts().size(), 2U);
    EXPECT_EQ(*request.parts().begin(), (Place{0, 65535}));
    EXPECT_EQ(*++request.parts().begin(), (Place{65535, 1}));
}

TEST_F(UdpDatagramWriter, the_vector_of_256_streams_fits_the_least_datagram) {
    DatagramWriter least(buffer, kLeastPayload);
    least.begin(some_header());
    NodeSet origins;
    std::array<std::uint64_t, kMaxNodes> positions{};
    for (unsigned node = 0; node < kMaxNodes; ++node) {
        origins.insert(node);
        positions[node] = (std::uint64_t{node} << 32U) + 1000 + node;
    }
    ASSERT_TRUE(least.add_vector({{1, 2}, 3}, 4, origins, positions));
    ASSERT_EQ(refusal(least.finish()), Refusal::none);
    const Vector vector(*sections.begin());
    EXPECT_EQ(vector.request_id(), (RequestId{{1, 2}, 3}));
    EXPECT_EQ(vector.incarnation_sum(), 4U);
    unsigned visited = 0;
    vector.for_each([&](unsigned origin, std::uint32_t low) {
        EXPECT_EQ(origin, visited++);
        EXPECT_EQ(widened(low, positions[origin] - 300), positions[origin]);
    });
    EXPECT_EQ(visited, kMaxNodes);
}

TEST_F(UdpDatagramWriter, chunks_are_read_as_they_were_written) {
    const auto words = static_cast<std::uint16_t>(writer.chunk_room() - 10);
    std::byte* to = writer.add_chunk({{1, 2}, 3}, {500, words});
    ASSERT_NE(to, nullptr);
    for (std::uint32_t i = 0; i < words; ++i) store(to + i * kWordBytes, i);
    ASSERT_TRUE(writer.add_zeros({{1, 2}, 3}, {9000, 65535}));
    const auto all = written();
    const Chunk chunk(all.at(0));
    EXPECT_EQ(chunk.place(), (Place{500, words}));
    EXPECT_FALSE(chunk.is_zeros());
    ASSERT_EQ(chunk.words().size(), words);
    for (std::uint32_t i = 0; i < words; ++i) EXPECT_EQ(chunk.words()[i], i);
    const Chunk zeros(all.at(1));
    EXPECT_EQ(zeros.request_id(), (RequestId{{1, 2}, 3}));
    EXPECT_EQ(zeros.place(), (Place{9000, 65535}));
    EXPECT_TRUE(zeros.is_zeros());
    EXPECT_EQ(zeros.words().size(), 0U);
}

TEST_F(UdpDatagramWriter, the_tag_is_zero_and_behind_what_it_covers) {
    buffer.fill(std::byte{0xff});
    writer.begin(some_header());
    ASSERT_TRUE(writer.add_ack({{1, 2}, 3}));
    const auto bytes = writer.finish();
    EXPECT_EQ(writer.covered().size(), kHeaderBytes + 12);
    EXPECT_EQ(writer.tag().data(), bytes.data() + writer.covered().size());
    for (const std::byte byte : writer.tag()) EXPECT_EQ(byte, std::byte{0});
    ASSERT_EQ(header_refusal(bytes), Refusal::none);
    EXPECT_EQ(datagram.covered().data(), bytes.data());
    EXPECT_EQ(datagram.covered().size(), writer.covered().size());
    EXPECT_EQ(datagram.tag().data(), writer.tag().data());
    EXPECT_EQ(datagram.tag().size(), kTagBytes);
}

TEST_F(UdpDatagramWriter, low_bits_are_widened_to_the_nearest_sequence) {
    EXPECT_EQ(widened(5, 3), 5U);
    EXPECT_EQ(widened(0xffff'ffff, 0x1'0000'0002), 0xffff'ffffU);
    EXPECT_EQ(widened(2, 0xffff'ffff), 0x1'0000'0002U);
    EXPECT_EQ(widened(7, 0x5'0000'0007), 0x5'0000'0007U);
}

// ---- Room

TEST_F(UdpDatagramWriter, a_datagram_is_filled_to_its_limit_and_not_beyond) {
    for (const std::size_t limit : {kLeastPayload, kDefaultPayload, kMaxPayload}) {
        Bytes exact(limit + 8, std::byte{0x5a});
        DatagramWriter filled({exact.data(), limit}, limit);
        filled.begin(some_header());
        while (filled.add_ack({{1, 2}, 3})) {
        }
        EXPECT_LT(filled.room(), Ack::kBytes);
        const auto bytes = filled.finish();
        EXPECT_LE(bytes.size(), limit);
        EXPECT_EQ(read_datagram(bytes, kRing, limit, datagram), Refusal::none);
        EXPECT_EQ(read_sections(datagram, sections), Refusal::none);
        for (std::size_t i = limit; i < exact.size(); ++i) EXPECT_EQ(exact[i], std::byte{0x5a});
    }
}

TEST_F(UdpDatagramWriter, a_padded_datagram_has_the_full_length_and_says_nothing_more) {
    for (unsigned words = 0; words < 60; ++words) {
        Bytes exact(kDefaultPayload, std::byte{0x5a});
        DatagramWriter padded(exact, kDefaultPayload);
        padded.begin(some_header());
        ASSERT_TRUE(padded.begin_batch(1, 2));
        const auto most = static_cast<std::uint16_t>(padded.record_room());
        const auto count = static_cast<std::uint16_t>(most - words);
        ASSERT_TRUE(padded.add_record({0, count}, numbers(count, 1).data()));
        padded.end_batch();
        const unsigned acks = words % 4;
        for (unsigned i = 0; i < acks; ++i) padded.add_ack({{1, 2}, i});
        padded.pad();
        const auto bytes = padded.finish();
        EXPECT_EQ(bytes.size(), kDefaultPayload) << words;
        ASSERT_EQ(read_datagram(bytes, kRing, kDefaultPayload, datagram), Refusal::none);
        ASSERT_EQ(read_sections(datagram, sections), Refusal::none);
        const Section first = *sections.begin();
        EXPECT_EQ(first.type(), SectionType::batch);
        EXPECT_EQ((*Batch(first).records().begin()).words[0], 1U);
        for (const Section& section : sections) {
            if (section.type() != SectionType::padding) continue;
            for (const std::byte byte : section.body()) EXPECT_EQ(byte, std::byte{0});
        }
    }
}

TEST_F(UdpDatagramWriter, the_largest_batch_can_be_forwarded) {
    for (const std::size_t limit : {kLeastPayload, kDefaultPayload, kMaxPayload}) {
        DatagramWriter filled(buffer, limit);
        filled.begin(some_header());
        ASSERT_TRUE(filled.begin_batch(1, 2));
        const auto words = static_cast<std::uint16_t>(most_batch_words(limit));
        EXPECT_EQ(filled.record_room(), words);
        const auto from = numbers(words + 1U, 0);
        EXPECT_FALSE(filled.add_record({0, static_cast<std::uint16_t>(words + 1)}, from.data()));
        ASSERT_TRUE(filled.add_record({0, words}, from.data()));
        EXPECT_EQ(filled.record_room(), 0U);
        EXPECT_FALSE(filled.add_record({0, 1}, from.data()));
        const auto body = filled.end_batch();
        const Bytes kept(body.begin(), body.end());
        filled.begin(some_header());
        ASSERT_TRUE(filled.add_forwarded({1, 2}, kept));
        EXPECT_EQ(read_datagram(filled.finish(), kRing, limit, datagram), Refusal::none);
        EXPECT_EQ(read_sections(datagram, sections), Refusal::none);
    }
}

TEST_F(UdpDatagramWriter, what_does_not_fit_leaves_the_datagram_as_it_was) {
    ASSERT_TRUE(writer.begin_batch(1, 2));
    const auto words = static_cast<std::uint16_t>(writer.record_room());
    ASSERT_TRUE(writer.add_record({0, words}, numbers(words, 0).data()));
    const std::size_t room = writer.room();
    EXPECT_LT(room, 20U);
    EXPECT_FALSE(writer.add_status({}));
    EXPECT_FALSE(writer.add_join({}));
    EXPECT_FALSE(writer.add_echo({}));
    EXPECT_FALSE(writer.add_nak({}));
    EXPECT_FALSE(writer.begin_welcome({}, 0, 0, {}));
    EXPECT_FALSE(writer.add_incarnation({}));
    EXPECT_FALSE(writer.add_part({0, 1}));
    EXPECT_FALSE(writer.begin_batch(2, 2));
    EXPECT_EQ(writer.add_chunk({}, {0, 1}), nullptr);
    EXPECT_FALSE(writer.add_batch(Bytes(100)));
    EXPECT_EQ(writer.chunk_room(), 0U);
    EXPECT_EQ(writer.room(), room);
    EXPECT_EQ(Batch(section()).sequence(), 1U);
}

TEST_F(UdpDatagramWriter, a_record_that_a_reader_would_refuse_is_not_written) {
    const std::uint32_t word = 0;
    EXPECT_FALSE(writer.add_record({0, 1}, &word)) << "no batch has begun";
    EXPECT_TRUE(writer.end_batch().empty());
    ASSERT_TRUE(writer.begin_batch(1, 2));
    EXPECT_FALSE(writer.add_record({0, 0}, &word));
    EXPECT_FALSE(writer.add_record({kPlaceIndices, 1}, &word));
    EXPECT_FALSE(writer.add_record({kPlaceIndices - 1, 2}, &word));
    EXPECT_FALSE(writer.add_record({~0ULL, 1}, &word));
    ASSERT_TRUE(writer.add_ack({}));
    EXPECT_FALSE(writer.add_record({0, 1}, &word)) << "another section has begun";
}

TEST_F(UdpDatagramWriter, limits_and_buffers_that_cannot_be_are_refused) {
    EXPECT_THROW(DatagramWriter(buffer, kLeastPayload - 1), Error);
    EXPECT_THROW(DatagramWriter(buffer, kMaxPayload + 1), Error);
    EXPECT_THROW(DatagramWriter(std::span(buffer).first(kDefaultPayload - 1)), Error);
}

}  // namespace
}  // namespace rmem::udp
