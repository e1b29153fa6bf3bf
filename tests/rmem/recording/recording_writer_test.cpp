// SPDX-License-Identifier: Apache-2.0
#include "rmem/recording/recording_writer.hpp"

#include "tests/rmem/recording/recording_fixture.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <limits>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;
using RecordingWriterTest = RecordingTest;

/// While it exists, this process makes no file longer than `bytes`.
class FileLimit {
public:
    explicit FileLimit(rlim_t bytes) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit now{bytes, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &now);
        handler_ = ::signal(SIGXFSZ, SIG_IGN);
    }
    ~FileLimit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        ::signal(SIGXFSZ, handler_);
    }
    FileLimit(const FileLimit&) = delete;
    FileLimit& operator=(const FileLimit&) = delete;

private:
    rlimit before_{};
    sighandler_t handler_ = SIG_DFL;
};

TEST_F(RecordingWriterTest, what_is_written_is_read_with_all_that_belongs_to_it) {
    std::vector<OwnedWrite> made = {numbered(1, info.start_ns, 1),
                                    numbered(2, info.start_ns + 1, 256),
                                    numbered(3, info.start_ns + 1, 2)};
    made[0].flags = RecordedWrite::kInterrupt | RecordedWrite::kMeLast;
    made[1].flags = RecordedWrite::kAtStart;
    made.push_back(numbered(4, info.start_ns + 2, 1));
    made[3].flags = RecordedWrite::flags_of(0b0110);
    made[2].offset = info.config.bank_bytes() - 8;
    made.push_back({info.start_ns + 5, 2, 6, 0, RecordedWrite::kMissed, {}});
    RecordingWriter writer(path, info);
    for (const auto& write : made) EXPECT_TRUE(writer.add(write.view()));
    EXPECT_TRUE(writer.close());
    EXPECT_EQ(writer.kept().writes, 5u);
    EXPECT_EQ(writer.kept().bytes, std::filesystem::file_size(path));

    RecordingReader reader(path);
    EXPECT_EQ(read_all(reader), made);
    EXPECT_TRUE(reader.report().whole());
}

TEST_F(RecordingWriterTest, the_header_keeps_the_ring_and_both_clocks) {
    { RecordingWriter writer(path, info); }
    RecordingReader reader(path);
    const RecordingInfo& read = reader.info();
    EXPECT_EQ(read.config.name, info.config.name);
    EXPECT_EQ(read.config.hash(), info.config.hash());
    EXPECT_EQ(read.config.timing, info.config.timing);
    EXPECT_EQ(read.start_wall_ns, info.start_wall_ns);
    EXPECT_EQ(read.start_ns, info.start_ns);
    EXPECT_EQ(read.wall_ns(info.start_ns + 7), info.start_wall_ns + 7);
}

TEST_F(RecordingWriterTest, every_timing_profile_fits_the_header) {
    for (const std::string& name : timing_profile_names()) {
        info.config.timing = parse_timing(name);
        { RecordingWriter writer(path, info, replacing()); }
        EXPECT_EQ(RecordingReader(path).info().config.timing, info.config.timing) << name;
    }
}

TEST_F(RecordingWriterTest, times_that_do_not_fit_a_block_begin_another) {
    constexpr std::int64_t kRange = std::int64_t{1} << 31;
    const std::vector<std::int64_t> times = {0,
                                             kRange - 1,
                                             -kRange,
                                             kRange,
                                             -1,
                                             0,
                                             3 * kRange,
                                             -5 * kRange,
                                             kRange - 1,
                                             kMaxRecordedTimeNs - 1,
                                             1 - kMaxRecordedTimeNs};
    std::vector<OwnedWrite> made;
    RecordingWriter writer(path, info);
    for (const std::int64_t time : times) {
        made.push_back(numbered(static_cast<std::uint32_t>(made.size()), time));
        EXPECT_TRUE(writer.add(made.back().view()));
    }
    EXPECT_TRUE(writer.close());
    EXPECT_EQ(writer.kept().blocks, 9u);  // the end's included
    RecordingReader reader(path);
    EXPECT_EQ(read_all(reader), made);
}

TEST_F(RecordingWriterTest, a_long_write_becomes_several_records_without_a_gap) {
    const OwnedWrite whole = numbered(0, info.start_ns, 3 * kMaxRecordedBytes / kWordBytes + 1);
    RecordingWriter writer(path, info);
    EXPECT_TRUE(writer.add(whole.view()));
    EXPECT_TRUE(writer.close());
    RecordingReader reader(path);
    std::vector<std::byte> joined;
    for (const auto& part : read_all(reader)) {
        EXPECT_EQ(part.offset, joined.size());
        joined.insert(joined.end(), part.words.begin(), part.words.end());
    }
    EXPECT_EQ(joined, whole.words);
    EXPECT_EQ(reader.report().writes, 4u);
}

TEST_F(RecordingWriterTest, a_write_that_the_ring_cannot_have_had_is_refused_and_counted) {
    const OwnedWrite good = numbered(0, info.start_ns);
    std::vector<OwnedWrite> bad(10, good);
    bad[0].node = info.config.nodes;
    bad[1].rank = info.config.ranks;
    bad[2].offset = 2;
    bad[3].offset = info.config.bank_bytes();
    bad[4].offset = std::numeric_limits<std::uint64_t>::max() - 3;
    bad[5].words.resize(3);
    bad[6].words.clear();
    bad[7].flags = RecordedWrite::kMissed;
    bad[9].flags = RecordedWrite::flags_of(1);
    bad[9].words.resize(8);
    bad[8].time_ns = std::numeric_limits<std::int64_t>::min();
    RecordingWriter writer(path, info);
    for (const auto& write : bad) EXPECT_FALSE(writer.add(write.view()));
    EXPECT_FALSE(writer.failed());
    EXPECT_TRUE(writer.add(good.view()));
    EXPECT_TRUE(writer.close());
    EXPECT_EQ(writer.kept().refused, bad.size());
    RecordingReader reader(path);
    EXPECT_EQ(read_all(reader), std::vector<OwnedWrite>{good});
}

TEST_F(RecordingWriterTest,
       a_block_goes_out_when_its_first_write_is_old_enough_to_a_file_of_its_owner_alone) {
    RecordingWriter::Options options;
    options.flush_ns = 1000;
    RecordingWriter writer(path, info, options);
    EXPECT_TRUE(writer.flush_old(info.start_ns + 5000));
    EXPECT_EQ(writer.kept().blocks, 0u);  // nothing to send
    EXPECT_TRUE(writer.add(numbered(0, info.start_ns).view()));
    EXPECT_TRUE(writer.flush_old(info.start_ns + 999));
    EXPECT_EQ(writer.kept().writes, 0u);
    EXPECT_TRUE(writer.flush_old(info.start_ns + 1000));
    EXPECT_EQ(writer.kept().writes, 1u);
    EXPECT_EQ(std::filesystem::status(path).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    RecordingReader reader(path);  // while it is being written
    EXPECT_EQ(read_all(reader).size(), 1u);
    EXPECT_FALSE(reader.report().closed);
    EXPECT_EQ(reader.report().tail_bytes, 0u);
    EXPECT_TRUE(writer.close());
    EXPECT_FALSE(writer.add(numbered(1, info.start_ns).view()));
}

TEST_F(RecordingWriterTest, a_full_disk_is_told_with_what_was_kept_and_leaves_a_whole_file) {
    const FileLimit limit(200'000);
    std::uint64_t kept = 0;
    {
        RecordingWriter writer(path, info);
        std::uint32_t i = 0;
        while (writer.add(numbered(i, info.start_ns + i).view())) ++i;
        EXPECT_FALSE(writer.add(numbered(i, info.start_ns + i).view()));
        EXPECT_FALSE(writer.close());
        const auto failure = writer.failure();
        ASSERT_TRUE(failure.has_value());
        EXPECT_EQ(failure->code(), Errc::no_space);
        EXPECT_THAT(failure->what(), HasSubstr(std::to_string(writer.kept().writes) + " writes"));
        EXPECT_EQ(writer.kept().bytes, std::filesystem::file_size(path));
        EXPECT_EQ(writer.kept().writes + writer.kept().lost, i + 2u);
        kept = writer.kept().writes;
    }
    RecordingReader reader(path);
    EXPECT_EQ(read_all(reader).size(), kept);
    EXPECT_GT(kept, 0u);
    EXPECT_EQ(reader.report().tail_bytes, 0u);
    EXPECT_FALSE(reader.report().closed);
}

TEST_F(RecordingWriterTest, a_disk_that_is_full_from_the_start_throws) {
    refused(Errc::no_space, [&] { RecordingWriter writer("/dev/full", info, replacing()); });
}

TEST_F(RecordingWriterTest, a_file_that_is_there_is_kept_unless_it_may_be_replaced) {
    write_file(path, {'x'});
    refused(Errc::invalid_argument, [&] { RecordingWriter writer(path, info); });
    EXPECT_EQ(read_file(path), Bytes{'x'});
    RecordingWriter::Options options = replacing();
    options.sync_at_close = true;
    RecordingWriter writer(path, info, options);
    EXPECT_TRUE(writer.close());
}

TEST_F(RecordingWriterTest, blocks_too_small_for_the_longest_write_are_refused) {
    RecordingWriter::Options options;
    options.block_bytes = RecordingWriter::kMinBlockBytes - 1;
    EXPECT_THROW(RecordingWriter(path, info, options), Error);
    options.block_bytes = recording_format::kMaxPayloadBytes + 1;
    EXPECT_THROW(RecordingWriter(path, info, options), Error);
    EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace rmem::test
