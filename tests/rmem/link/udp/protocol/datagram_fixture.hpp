// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the tests of datagrams share: one that is written into a buffer, and how it is read.

#include "rmem/link/udp/protocol/datagram.hpp"
#include "rmem/link/udp/protocol/datagram_writer.hpp"
#include "tests/support/datagram_walk.hpp"

#include <gtest/gtest.h>

#include <array>
#include <iterator>
#include <numeric>
#include <ostream>
#include <vector>

namespace rmem::udp {
using Bytes = std::vector<std::byte>;

inline constexpr std::size_t kTagKindAt = 5;
inline constexpr std::uint64_t kRing = 0x0123'4567'89ab'cdef;

inline Header some_header() {
    return {TagKind::chacha20_poly1305, 7,  kRing, 1'900'000'000'000'000'123, 0xfeed, 42,
            123'456'789'012'345,        99, 9000};
}

/// For GoogleTest's messages.
inline void PrintTo(Refusal refusal, std::ostream* out) {
    *out << name_of(refusal);
}

/// A datagram that is written, and how it is read.
struct UdpDatagram : ::testing::Test {
    std::array<std::byte, kMaxPayload> buffer{};
    DatagramWriter writer{buffer};
    Datagram datagram;
    Sections sections;
    Bytes made;  // by refusal_of(): `sections` points into them

    void SetUp() override { writer.begin(some_header()); }

    Bytes finished() {
        const auto bytes = writer.finish();
        return {bytes.begin(), bytes.end()};
    }
    Refusal header_refusal(std::span<const std::byte> bytes) {
        return read_datagram(bytes, kRing, kDefaultPayload, datagram);
    }
    Refusal refusal(std::span<const std::byte> bytes) {
        const Refusal first = header_refusal(bytes);
        return first != Refusal::none ? first : read_sections(datagram, sections);
    }
    /// All that has been written.
    std::vector<Section> written() {
        EXPECT_EQ(refusal(writer.finish()), Refusal::none);
        return {sections.begin(), sections.end()};
    }
    /// The only section of what has been written.
    Section section() {
        const auto all = written();
        EXPECT_EQ(all.size(), 1U);
        return all.front();
    }
    /// What a datagram with this one section would be refused for; the body is as given.
    Refusal refusal_of(SectionType type, const Bytes& body, std::uint8_t flags = 0) {
        writer.begin(some_header());
        made = finished();
        Bytes section{static_cast<std::byte>(type), static_cast<std::byte>(flags),
                      static_cast<std::byte>(body.size() & 0xffU),
                      static_cast<std::byte>(body.size() >> 8U)};
        section.insert(section.end(), body.begin(), body.end());
        made.insert(made.begin() + kHeaderBytes, section.begin(), section.end());
        store(made.data() + kLengthAt, static_cast<std::uint16_t>(section.size()));
        EXPECT_NO_THROW(test::DatagramWalk::run(made, kRing, kDefaultPayload));
        return refusal(made);
    }
    static std::vector<std::uint32_t> numbers(std::size_t count, std::uint32_t first) {
        std::vector<std::uint32_t> made(count);
        std::iota(made.begin(), made.end(), first);
        return made;
    }
    /// One with a section of each type.
    void write_all_types() {
        const RequestId id{{3, 4}, 5};
        ASSERT_TRUE(writer.begin_batch(100, 1));
        ASSERT_TRUE(writer.add_record({10, 2}, numbers(2, 1).data()));
        ASSERT_TRUE(writer.add_record({20, 1, Place::kInterrupt}, numbers(1, 9).data()));
        const auto body = writer.end_batch();
        ASSERT_TRUE(writer.add_forwarded({9, 77}, body));
        ASSERT_TRUE(writer.add_ack({{1, 2}, 3}) && writer.add_ack({{2, 2}, 4}));
        ASSERT_TRUE(writer.add_nak({{1, 2}, 3, 4}));
        ASSERT_TRUE(writer.add_echo({{1, 2}, 3, 4}));
        ASSERT_TRUE(writer.add_status({}) && writer.add_join({8, {}}));
        ASSERT_TRUE(writer.begin_welcome({1, 2}, 3, 4, {}) && writer.add_incarnation({5, 6}));
        ASSERT_TRUE(writer.add_admit({{1, 2}, 3, 4}));
        ASSERT_TRUE(writer.begin_snapshot_request(id) && writer.add_part({5, 6}));
        NodeSet origins;
        origins.insert(200);
        ASSERT_TRUE(writer.add_vector(id, 5, origins, std::array<std::uint64_t, kMaxNodes>{}));
        ASSERT_NE(writer.add_chunk(id, {30, 1}), nullptr);
        ASSERT_TRUE(writer.add_zeros(id, {40, 1000}));
        ASSERT_TRUE(writer.add_greeting({.to = 1, .nonce = 2, .answer = 3}));
        ASSERT_TRUE(writer.add_about("ring x"));
    }
};

}  // namespace rmem::udp
