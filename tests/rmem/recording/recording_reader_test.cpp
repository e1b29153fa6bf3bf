// SPDX-License-Identifier: Apache-2.0
#include "rmem/recording/recording_reader.hpp"

#include "tests/rmem/recording/recording_fixture.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>

namespace rmem::test {
namespace {

using recording_format::kBlockHeaderBytes;
using recording_format::kFileHeaderBytes;
using recording_format::kMaxPayloadBytes;
using ::testing::HasSubstr;

struct RecordingReaderTest : RecordingTest {
    static constexpr std::uint32_t kWrites = 40;
    static constexpr std::uint32_t kPerBlock = 8;

    void expect_refused(Errc code) const {
        refused(code, [this] { RecordingReader reader(path); });
    }

    /// How many bytes each block of kPerBlock writes has, from the first of them.
    static std::size_t block_bytes(const std::vector<OwnedWrite>& made, std::size_t first) {
        std::size_t bytes = kBlockHeaderBytes;
        for (std::size_t i = first; i < first + kPerBlock; ++i) {
            bytes += recording_format::record_bytes(made[i].view());
        }
        return bytes;
    }
};

TEST_F(RecordingReaderTest, a_file_cut_at_any_byte_loses_the_block_that_is_cut_and_no_more) {
    const auto made = record(kWrites, kPerBlock);
    const Bytes whole = read_file(path);
    std::size_t expected = 0, end = kFileHeaderBytes;
    for (std::size_t size = kFileHeaderBytes; size < whole.size(); ++size) {
        if (expected < kWrites && size == end + block_bytes(made, expected)) {
            end = size;
            expected += kPerBlock;
        }
        write_file(path, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
        RecordingReader reader(path);
        const auto read = read_all(reader);
        ASSERT_EQ(read.size(), expected) << size;
        ASSERT_TRUE(std::equal(read.begin(), read.end(), made.begin())) << size;
        ASSERT_EQ(reader.report().tail_bytes, size - end) << size;
        ASSERT_EQ(reader.report().lost_blocks, 0u) << size;
        ASSERT_FALSE(reader.report().closed) << size;
    }
}

TEST_F(RecordingReaderTest, keeps_how_long_after_its_time_a_write_was_applied) {
    RecordingWriter writer(path, an_info());
    for (const std::uint32_t i : {0U, 1U, 2U}) {
        const OwnedWrite made = numbered(i, 5'000'000'000 + i, 3);
        RecordedWrite write = made.view();
        if (i == 1) write.flags = RecordedWrite::kApplied;
        write.delay_ns = 77;
        ASSERT_TRUE(writer.add(write));
    }
    ASSERT_TRUE(writer.close());
    RecordingReader reader(path);
    RecordedWrite write;
    for (const std::uint32_t i : {0U, 1U, 2U}) {
        ASSERT_TRUE(reader.next(write));
        EXPECT_EQ(write.delay_ns, i == 1 ? 77U : 0U);
        EXPECT_EQ(write.words.size(), 12U);
    }
    EXPECT_FALSE(reader.next(write));
    EXPECT_TRUE(reader.report().whole());
}

TEST_F(RecordingReaderTest, reads_versions_1_to_3) {
    std::vector<std::byte> header(kFileHeaderBytes);
    recording_format::put_file_header(header.data(), an_info());
    for (const std::uint32_t version : {0U, 1U, 2U, 3U, 4U}) {
        std::memcpy(header.data() + 8, &version, sizeof version);
        const std::uint32_t sum = recording_format::checksum(header.data(), 316);
        std::memcpy(header.data() + 316, &sum, sizeof sum);
        recording_format::Key key = 0;
        const auto read = [&] {
            return recording_format::get_file_header(header.data(), header.size(), "a", key);
        };
        if (version >= 1 && version <= 3) {
            EXPECT_EQ(read().config.name, an_info().config.name);
        } else {
            EXPECT_THROW(read(), Error);
        }
    }
}

TEST_F(RecordingReaderTest, a_file_cut_in_its_header_is_an_error_with_a_sentence) {
    record(1, 1);
    const Bytes whole = read_file(path);
    for (std::size_t size = 0; size < kFileHeaderBytes; ++size) {
        write_file(path, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
        SCOPED_TRACE(size);
        expect_refused(Errc::bad_recording);
    }
}

TEST_F(RecordingReaderTest, a_flipped_byte_in_the_header_is_an_error) {
    record(1, 1);
    const Bytes whole = read_file(path);
    for (std::size_t at = 0; at < kFileHeaderBytes; ++at) {
        Bytes damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
        write_file(path, damaged);
        SCOPED_TRACE(at);
        expect_refused(at >= 8 && at < 12 ? Errc::version_mismatch : Errc::bad_recording);
    }
}

TEST_F(RecordingReaderTest, a_flipped_byte_anywhere_else_loses_its_block_and_is_counted) {
    const auto made = record(kWrites, kPerBlock);
    const Bytes whole = read_file(path);
    std::size_t first = 0, begin = kFileHeaderBytes;
    for (std::size_t at = kFileHeaderBytes; at < whole.size(); ++at) {
        if (first < kWrites && at == begin + block_bytes(made, first)) {
            begin = at;
            first += kPerBlock;
        }
        for (const int bits : {0x01, 0x80, 0xff}) {
            Bytes damaged = whole;
            damaged[at] = static_cast<char>(damaged[at] ^ bits);
            write_file(path, damaged);
            auto expected = made;
            const bool in_end_block = first == kWrites;
            if (!in_end_block) {
                const auto from = expected.begin() + static_cast<std::ptrdiff_t>(first);
                expected.erase(from, from + kPerBlock);
            }
            RecordingReader reader(path);
            ASSERT_EQ(read_all(reader), expected) << at;
            const auto& report = reader.report();
            ASSERT_EQ(report.lost_blocks, in_end_block ? 0u : 1u) << at;
            ASSERT_EQ(report.damaged_bytes, in_end_block ? 0u : block_bytes(made, first)) << at;
            ASSERT_EQ(report.tail_bytes, in_end_block ? kBlockHeaderBytes : 0u) << at;
            ASSERT_FALSE(report.whole()) << at;
        }
    }
}

TEST_F(RecordingReaderTest, bytes_taken_out_or_put_in_cost_only_the_blocks_they_are_in) {
    const auto made = record(kWrites, kPerBlock);
    const Bytes whole = read_file(path);
    const auto third = static_cast<std::ptrdiff_t>(kFileHeaderBytes + block_bytes(made, 0) +
                                                   block_bytes(made, kPerBlock));
    Bytes more = whole;
    more.insert(more.begin() + third, 1000, 'R');
    write_file(path, more);
    RecordingReader with_more(path);
    EXPECT_EQ(read_all(with_more), made);
    EXPECT_EQ(with_more.report().damaged_bytes, 1000u);
    EXPECT_EQ(with_more.report().damaged_at, static_cast<std::uint64_t>(third));
    EXPECT_THAT(to_string(with_more.report()), HasSubstr("at byte " + std::to_string(third)));
    EXPECT_FALSE(with_more.report().whole());

    Bytes less = whole;
    less.erase(less.begin() + third, less.begin() + third + 5);
    write_file(path, less);
    RecordingReader with_less(path);
    EXPECT_EQ(read_all(with_less).size(), kWrites - kPerBlock);
    EXPECT_EQ(with_less.report().lost_blocks, 1u);
    EXPECT_EQ(with_less.report().damaged_block, 2u);
    EXPECT_EQ(with_less.report().damaged_at, static_cast<std::uint64_t>(third));
    EXPECT_THAT(to_string(with_less.report()),
                HasSubstr("the first is block 2 at byte " + std::to_string(third)));
}

TEST_F(RecordingReaderTest, blocks_of_another_recording_are_not_taken_for_its_own) {
    record(kWrites, kPerBlock);
    const Bytes other = read_file(path);
    ++info.start_wall_ns;
    const auto made = record(kPerBlock, kPerBlock);
    Bytes mixed = read_file(path);
    mixed.erase(mixed.end() - std::ptrdiff_t{kBlockHeaderBytes}, mixed.end());  // its end
    mixed.insert(mixed.end(), other.begin() + kFileHeaderBytes, other.end());
    write_file(path, mixed);
    RecordingReader reader(path);
    EXPECT_EQ(read_all(reader), made);
    EXPECT_EQ(reader.report().tail_bytes, other.size() - kFileHeaderBytes);
}

TEST_F(RecordingReaderTest, a_block_with_right_checksums_and_records_that_cannot_be_is_damage) {
    record(1, 1);
    Bytes bytes = read_file(path);
    auto* file = reinterpret_cast<std::byte*>(bytes.data());
    recording_format::Key key = 0;
    recording_format::get_file_header(file, bytes.size(), path, key);
    std::byte* block = file + kFileHeaderBytes;
    auto header = recording_format::get_block_header(block, key);
    ASSERT_TRUE(header.has_value());
    block[kBlockHeaderBytes + 4] = std::byte{200};  // the node
    header->payload_checksum =
        recording_format::checksum(block + kBlockHeaderBytes, header->payload_bytes);
    recording_format::put_block_header(block, *header, key);
    write_file(path, bytes);
    RecordingReader reader(path);
    EXPECT_TRUE(read_all(reader).empty());
    EXPECT_EQ(reader.report().lost_blocks, 1u);
}

TEST_F(RecordingReaderTest, seeking_gives_the_first_write_at_that_time_and_all_behind_it) {
    const auto made = record(kWrites, kPerBlock);
    RecordingReader reader(path);
    for (std::uint32_t i = 0; i < kWrites; ++i) {
        for (const std::int64_t early : {0, 1, 99}) {
            reader.seek(made[i].time_ns - early);
            const auto read = read_all(reader);
            ASSERT_EQ(read, std::vector<OwnedWrite>(made.begin() + i, made.end())) << i;
            ASSERT_TRUE(reader.report().whole());
        }
    }
    reader.seek(made.back().time_ns + 1);
    EXPECT_TRUE(read_all(reader).empty());
    EXPECT_TRUE(reader.report().closed);
    reader.seek(0);
    EXPECT_EQ(read_all(reader), made);
}

TEST_F(RecordingReaderTest, seeking_goes_over_damage) {
    const auto made = record(kWrites, kPerBlock);
    Bytes bytes = read_file(path);
    bytes[kFileHeaderBytes] = 'x';
    write_file(path, bytes);
    RecordingReader reader(path);
    reader.seek(made[0].time_ns);
    EXPECT_EQ(read_all(reader), std::vector<OwnedWrite>(made.begin() + kPerBlock, made.end()));
    reader.seek(made[20].time_ns);
    EXPECT_EQ(read_all(reader), std::vector<OwnedWrite>(made.begin() + 20, made.end()));
}

TEST_F(RecordingReaderTest, seeking_finds_times_that_stepped_back) {
    std::vector<OwnedWrite> made;
    {
        RecordingWriter writer(path, info);
        for (const std::int64_t time : {100, 300, 200, 250, 400, 350}) {
            made.push_back(numbered(static_cast<std::uint32_t>(time), time));
            EXPECT_TRUE(writer.add(made.back().view()));
            if (made.size() % 2 == 0) writer.flush();
        }
    }
    RecordingReader reader(path);
    reader.seek(260);
    EXPECT_EQ(read_all(reader), std::vector<OwnedWrite>(made.begin() + 1, made.end()));
    reader.seek(301);
    EXPECT_EQ(read_all(reader), std::vector<OwnedWrite>(made.begin() + 4, made.end()));
}

TEST_F(RecordingReaderTest, a_file_much_larger_than_the_memory_it_may_use_streams) {
    constexpr std::uint32_t kMany = 100'000;
    {
        RecordingWriter writer(path, info);
        for (std::uint32_t i = 0; i < kMany; ++i) {
            ASSERT_TRUE(writer.add(numbered(i, info.start_ns + i, 64).view()));
        }
        ASSERT_TRUE(writer.close());
    }
    ASSERT_GT(std::filesystem::file_size(path), 20 * kMaxPayloadBytes);
    RecordingReader reader(path);
    RecordedWrite write;
    std::uint32_t i = 0;
    while (reader.next(write)) {
        ASSERT_EQ(owned(write), numbered(i, info.start_ns + i, 64));
        ++i;
    }
    EXPECT_EQ(i, kMany);
    EXPECT_TRUE(reader.report().whole());
}

TEST_F(RecordingReaderTest, what_is_no_recording_is_refused_with_a_sentence) {
    write_file(path, Bytes(1000, 'x'));
    expect_refused(Errc::bad_recording);
    std::filesystem::remove(path);
    expect_refused(Errc::system);
    std::filesystem::create_directory(path);
    expect_refused(Errc::bad_recording);
    std::filesystem::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    expect_refused(Errc::bad_recording);  // at once, not when somebody writes
}

TEST_F(RecordingReaderTest, a_ring_that_cannot_be_is_refused_though_its_checksum_is_right) {
    std::vector<std::byte> header(kFileHeaderBytes);
    info.config.nodes = 0;
    recording_format::put_file_header(header.data(), info);
    recording_format::Key key = 0;
    EXPECT_THROW(recording_format::get_file_header(header.data(), header.size(), "x", key), Error);
}

TEST_F(RecordingReaderTest, the_report_is_a_sentence) {
    RecordingReport report;
    report.writes = 10;
    report.blocks = 3;
    report.closed = true;
    EXPECT_EQ(to_string(report), "10 writes in 3 blocks");
    report.closed = false;
    report.lost_blocks = 2;
    report.damaged_bytes = 99;
    report.tail_bytes = 7;
    EXPECT_THAT(to_string(report), HasSubstr("2 blocks are lost by damage (99 bytes)"));
    EXPECT_THAT(to_string(report), HasSubstr("7 bytes"));
    EXPECT_THAT(to_string(report), HasSubstr("not closed"));
}

}  // namespace
}  // namespace rmem::test
