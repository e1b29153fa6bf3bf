// SPDX-License-Identifier: Apache-2.0
#include "rmem/recording/pcap_writer.hpp"

#include "tests/rmem/recording/recording_fixture.hpp"
#include "tests/support/tshark.hpp"

#include <gmock/gmock.h>

#include <limits>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using PcapWriterTest = RecordingTest;

template <class T>
T value(const Bytes& bytes, std::size_t at) {
    T read{};
    if (at + sizeof read > bytes.size()) {
        ADD_FAILURE() << "the file ends before " << at;
        return read;
    }
    std::memcpy(&read, bytes.data() + at, sizeof read);
    return read;
}

constexpr std::size_t kFileHeader = 24, kFrame = 16;

TEST_F(PcapWriterTest, the_file_is_a_capture_in_nanoseconds_of_a_user_link) {
    PcapWriter writer(path, info);
    EXPECT_TRUE(writer.close());
    const Bytes file = read_file(path);
    ASSERT_EQ(file.size(), kFileHeader);
    EXPECT_EQ(value<std::uint32_t>(file, 0), 0xa1b23c4du);
    EXPECT_EQ(value<std::uint16_t>(file, 4), 2);
    EXPECT_EQ(value<std::uint16_t>(file, 6), 4);
    EXPECT_GE(value<std::uint32_t>(file, 16), kMaxRecordedBytes + PcapWriter::kPacketHeaderBytes);
    EXPECT_EQ(value<std::uint32_t>(file, 20), 147u);
}

TEST_F(PcapWriterTest, a_packet_is_a_write_at_its_wall_clock_time) {
    OwnedWrite write = numbered(7, info.start_ns + 1'000'000'001, 3);
    write.flags = RecordedWrite::kInterrupt;
    write.offset = 0x1'0000;
    PcapWriter writer(path, info);
    EXPECT_TRUE(writer.add(write.view()));
    EXPECT_TRUE(writer.close());
    const Bytes file = read_file(path);
    const std::size_t packet = kFileHeader + kFrame;
    ASSERT_EQ(file.size(), packet + 28 + 12);
    EXPECT_EQ(value<std::uint32_t>(file, kFileHeader), 1'795'000'001u);
    EXPECT_EQ(value<std::uint32_t>(file, kFileHeader + 4), 123'456'790u);
    EXPECT_EQ(value<std::uint32_t>(file, kFileHeader + 8), 40u);
    EXPECT_EQ(value<std::uint32_t>(file, kFileHeader + 12), 40u);
    EXPECT_EQ(value<std::uint8_t>(file, packet), 1);
    EXPECT_EQ(value<std::uint16_t>(file, packet + 2), RecordedWrite::kInterrupt);
    EXPECT_EQ(value<std::uint16_t>(file, packet + 4), 3);
    EXPECT_EQ(value<std::uint16_t>(file, packet + 6), 7);
    EXPECT_EQ(value<std::int64_t>(file, packet + 8), 1'000'000'001);
    EXPECT_EQ(value<std::uint64_t>(file, packet + 16), 0x1'0000u);
    EXPECT_EQ(value<std::uint16_t>(file, packet + 24), 3);
    EXPECT_EQ(value<std::uint32_t>(file, packet + 28 + 8), 9u);
}

TEST_F(PcapWriterTest, packets_of_all_lengths_follow_each_other_without_a_gap) {
    PcapWriter writer(path, info);
    constexpr std::uint32_t kPackets = 300;
    for (std::uint32_t i = 0; i < kPackets; ++i) {
        EXPECT_TRUE(writer.add(numbered(i, info.start_ns + i, 1 + i * 13 % 4096).view()));
    }
    EXPECT_TRUE(writer.close());
    const Bytes file = read_file(path);
    std::size_t at = kFileHeader;
    for (std::uint32_t i = 0; i < kPackets; ++i) {
        ASSERT_EQ(value<std::uint16_t>(file, at + kFrame + 24), 1 + i * 13 % 4096);
        ASSERT_EQ(value<std::uint32_t>(file, at + kFrame + 28), i);
        at += kFrame + value<std::uint32_t>(file, at + 8);
    }
    EXPECT_EQ(at, file.size());
}

TEST_F(PcapWriterTest, times_that_the_format_cannot_hold_are_its_ends) {
    info.start_wall_ns = 0;
    OwnedWrite write = numbered(0, -kMaxRecordedTimeNs + 1);
    PcapWriter writer(path, info);
    EXPECT_TRUE(writer.add(write.view()));
    info.start_wall_ns = kMaxRecordedTimeNs - 1;
    write.time_ns = kMaxRecordedTimeNs - 1;
    EXPECT_TRUE(writer.add(write.view()));
    EXPECT_TRUE(writer.close());
    const Bytes file = read_file(path);
    EXPECT_EQ(value<std::uint32_t>(file, kFileHeader), 0u);
    EXPECT_EQ(value<std::uint32_t>(file, kFileHeader + kFrame + 32),
              std::numeric_limits<std::uint32_t>::max());
}

TEST_F(PcapWriterTest, a_full_disk_is_told) {
    PcapWriter writer("/dev/full", info, true);
    EXPECT_FALSE(writer.close());
    ASSERT_TRUE(writer.failure().has_value());
    EXPECT_EQ(writer.failure()->code(), Errc::no_space);
}

// ---- What Wireshark makes of it

TEST_F(PcapWriterTest, wireshark_shows_and_finds_a_write_by_its_fields) {
    if (!has_tshark()) GTEST_SKIP() << "there is no tshark here";
    PcapWriter writer(path, info);
    for (std::uint32_t i = 0; i < 8; ++i) {
        EXPECT_TRUE(writer.add(numbered(i, info.start_ns + 1000 * i, 2).view()));
    }
    OwnedWrite missed{info.start_ns + 9000, 1, 5, 0, RecordedWrite::kMissed, {}};
    EXPECT_TRUE(writer.add(missed.view()));
    const OwnedWrite late = numbered(8, info.start_ns + 10'000, 3);
    RecordedWrite applied = late.view();
    applied.flags = RecordedWrite::kApplied;
    applied.delay_ns = 77;
    EXPECT_TRUE(writer.add(applied));
    EXPECT_TRUE(writer.close());

    EXPECT_THAT(tshark(path, "-Y 'rmem.delay == 77' -T fields -e rmem.words"), HasSubstr("3"));
    EXPECT_THAT(tshark(path,
                       "-Y 'rmem.node == 2 && rmem.rank == 6 && rmem.word == 7' -T fields "
                       "-e frame.time_epoch -e rmem.time -e rmem.offset -e rmem.words"),
                HasSubstr("1795000000.123462789\t6000\t0x0000000000000018\t2"));
    EXPECT_THAT(tshark(path, "-Y rmem.flags.missed"), HasSubstr("writes were missed here"));
    EXPECT_THAT(tshark(path, "-Y _ws.malformed"), Not(HasSubstr("rmem")));
}

}  // namespace
}  // namespace rmem::test
