// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/device/packets.hpp"

#include "mpi_channel/device/credit.hpp"
#include "rmem/base/limits.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace mpi_channel {
namespace {

using Room = std::array<std::byte, kMaxPacketBytes>;

TEST(write, keeps_each_field_whatever_the_others_are) {
    constexpr auto kMax32 = std::numeric_limits<std::uint32_t>::max();
    constexpr auto kMax64 = std::numeric_limits<std::uint64_t>::max();
    PacketHeader fields[6];
    fields[0].type = PacketType::request_get;
    fields[1].untagged = true;
    fields[2].has_data = true;
    fields[3].credit = kCredit;
    fields[4].data = kMax32;
    fields[5].tag = kMax64;
    for (const PacketHeader& header : fields) {
        const Packet packet{header, kMax64, kMax32, 0, kMax64};
        Room room;
        const auto found = read(std::span(room).first(write(packet, room.data())));
        ASSERT_TRUE(found);
        EXPECT_EQ(found->header.type, header.type);
        EXPECT_EQ(found->header.untagged, header.untagged);
        EXPECT_EQ(found->header.has_data, header.has_data);
        EXPECT_EQ(found->header.credit, header.credit);
        EXPECT_EQ(found->header.data, header.data);
        EXPECT_EQ(found->header.tag, header.tag);
        if (header.type != PacketType::request_get) continue;
        EXPECT_EQ(found->size, kMax64);
        EXPECT_EQ(found->send, kMax32);
        EXPECT_EQ(found->address, kMax64);
    }
}

TEST(write, keeps_what_a_request_to_be_read_says_and_its_name_follows) {
    Packet packet{{}, 1, 2, 0, 3};
    packet.header.type = PacketType::request_read;
    packet.key = 4;
    std::array<std::byte, kMaxPacketBytes + 5> room;
    const std::size_t size = write(packet, room.data());
    EXPECT_EQ(size, kMaxPacketBytes);
    for (const std::size_t name : {0U, 5U}) {
        const auto found = read(std::span(room).first(size + name));
        ASSERT_TRUE(found);
        EXPECT_EQ(found->size, 1U);
        EXPECT_EQ(found->send, 2U);
        EXPECT_EQ(found->address, 3U);
        EXPECT_EQ(found->key, 4U);
        EXPECT_EQ(found->name, name);
    }
    EXPECT_FALSE(read(std::span(room).first(size - 1)));
}

TEST(read, refuses_what_is_no_packet) {
    Room room;
    Packet packet;
    packet.header.type = PacketType::done_get;
    const std::size_t size = write(packet, room.data());
    EXPECT_FALSE(read(std::span(room).first(size - 1)));
    EXPECT_FALSE(read(std::span(room).first(kHeaderBytes - 1)));
    for (unsigned type = static_cast<unsigned>(PacketType::request_read) + 1; type < 16; ++type) {
        room[0] = std::byte{static_cast<unsigned char>(type)};
        EXPECT_FALSE(read(std::span(room).first(kHeaderBytes))) << type;
    }
}

TEST(write, leaves_room_in_a_line_for_a_second_message_of_8_bytes) {
    constexpr std::size_t kWord = rmem::kWordBytes;  // before a line, and before a message in it
    EXPECT_LE(kWord + 2 * (kWord + kHeaderBytes + 8), rmem::kLineBytes);
}

}  // namespace
}  // namespace mpi_channel
