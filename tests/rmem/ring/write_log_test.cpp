// SPDX-License-Identifier: Apache-2.0
// ctest: check tsan
#include "rmem/ring/write_log.hpp"

#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace rmem {
namespace {

constexpr std::size_t kSmallLog = 100 * kLogUnitBytes;

struct WriteLog : ::testing::Test {
    struct alignas(kLineBytes) Line {
        std::byte bytes[kLineBytes];
    };
    std::vector<Line> memory = std::vector<Line>(kSmallLog / kLineBytes);
    LogHeader header{};
    LogArea log{header, memory[0].bytes, kSmallLog};
    LogWriter writer{log};
    LogReader reader{log};

    static LogRecord record(std::uint64_t offset, std::uint32_t words) {
        LogRecord made;
        made.offset = offset;
        made.words = words;
        return made;
    }
    static std::vector<std::uint32_t> numbers(std::uint32_t count, std::uint32_t first) {
        std::vector<std::uint32_t> made(count);
        for (std::uint32_t i = 0; i < count; ++i) made[i] = first + i;
        return made;
    }
    /// The next record, which must be there.
    static LogReader::Entry next_of(LogReader& from) {
        LogReader::Entry entry{};
        EXPECT_EQ(from.peek(entry), LogReader::Found::record);
        return entry;
    }
    /// Its words, which must be whole.
    static std::vector<std::uint32_t> words_of(LogReader& from, const LogReader::Entry& entry) {
        std::vector<std::uint32_t> words(entry.record.words);
        EXPECT_TRUE(from.copy_words(entry, reinterpret_cast<std::byte*>(words.data())));
        return words;
    }
    /// Appends where there is room.
    bool append(std::uint64_t offset, std::uint32_t words, std::uint32_t first) {
        if (!writer.fits(LogArea::units_of(words))) return false;
        writer.append(record(offset, words), numbers(words, first).data());
        return true;
    }
};

TEST_F(WriteLog, a_record_is_read_as_it_was_written) {
    LogRecord sent = record(kMaxUserBytes + kMaxSystemBytes - kWordBytes, 3);  // the largest
    sent.written_ns = 123'456'789'012'345;
    sent.flags = LogRecord::kInterrupt | LogRecord::kMeLast;
    sent.delay_ns = 4'000'000'000U;
    sent.queued_words = 1023;
    EXPECT_FALSE(reader.refresh());
    writer.append(sent, numbers(3, 7).data());
    LogReader::Entry entry = next_of(reader);
    EXPECT_EQ(entry.record.written_ns, sent.written_ns);
    EXPECT_EQ(entry.record.offset, sent.offset);
    EXPECT_EQ(entry.record.words, sent.words);
    EXPECT_EQ(entry.record.flags, sent.flags);
    EXPECT_EQ(entry.record.delay_ns, sent.delay_ns);
    EXPECT_EQ(entry.record.queued_words, sent.queued_words);
    EXPECT_EQ(words_of(reader, entry), numbers(3, 7));
    reader.pass(entry);
    EXPECT_EQ(reader.peek(entry), LogReader::Found::none);
}

TEST_F(WriteLog, records_of_all_sizes_survive_many_wraps) {
    std::uint32_t written = 0, read = 0;
    for (int round = 0; round < 5000; ++round) {
        const std::uint32_t words = 1 + written % 200;
        if (append(written * 4, words, written)) {
            ++written;
            continue;
        }
        const LogReader::Entry entry = next_of(reader);
        ASSERT_EQ(words_of(reader, entry), numbers(1 + read % 200, read));
        reader.pass(entry);
        writer.reclaim(reader.position());
        ++read;
    }
    EXPECT_GT(read, 1000U);
}

TEST_F(WriteLog, words_that_lie_in_the_bank_are_for_the_engine_alone) {
    LogReader engine(log, LogReader::Role::engine);
    LogRecord long_one = record(64, kMaxBankRecordWords);
    long_one.flags = LogRecord::kInBank;
    writer.append(long_one, nullptr);
    EXPECT_EQ(writer.head(), 1U) << "the place alone";
    LogReader::Entry entry;
    EXPECT_EQ(reader.peek(entry), LogReader::Found::corrupt);
    ASSERT_EQ(engine.peek(entry), LogReader::Found::record);
    EXPECT_EQ(entry.record.words, kMaxBankRecordWords);
    engine.pass(entry);
    ASSERT_TRUE(append(128, 3, 5));
    ASSERT_EQ(engine.peek(entry), LogReader::Found::record);
    EXPECT_EQ(static_cast<const std::uint32_t*>(engine.words(entry))[2], 7U);
}

TEST_F(WriteLog, a_full_log_has_no_room_until_it_is_reclaimed) {
    std::uint32_t written = 0;
    while (append(0, 10, written)) ++written;
    EXPECT_GT(written, 10U);
    EXPECT_FALSE(append(0, 10, 0));
    for (std::uint32_t i = 0; i < written; ++i) reader.pass(next_of(reader));
    EXPECT_FALSE(append(0, 10, 0)) << "the writer has not been told";
    writer.reclaim(reader.position());
    EXPECT_TRUE(append(0, 10, 0));
}

TEST_F(WriteLog, a_reader_that_was_overtaken_notices) {
    ASSERT_TRUE(append(0, 10, 1));
    const LogReader::Entry old = next_of(reader);
    for (int i = 0; i < 100; ++i) {
        writer.reclaim(writer.head());
        ASSERT_TRUE(append(0, 10, 1));
    }
    std::uint32_t words[10];
    EXPECT_FALSE(reader.copy_words(old, reinterpret_cast<std::byte*>(words)));
    LogReader::Entry entry;
    EXPECT_EQ(reader.peek(entry), LogReader::Found::lapped);
    reader.seek(reader.oldest());
    EXPECT_EQ(reader.peek(entry), LogReader::Found::record);
}

TEST_F(WriteLog, an_observer_reads_what_is_reclaimed_until_it_is_overwritten) {
    LogReader observer(log, LogReader::Role::observer);
    LogReader::Entry entry;
    for (std::uint32_t i = 0; i < 30; ++i) ASSERT_TRUE(append(0, 1, i));
    writer.reclaim(writer.head());
    EXPECT_EQ(reader.peek(entry), LogReader::Found::lapped);
    for (std::uint32_t i = 0; i < 30; ++i) {
        entry = next_of(observer);
        EXPECT_EQ(words_of(observer, entry), numbers(1, i));
        observer.pass(entry);
    }
}

TEST_F(WriteLog, an_observer_that_was_overtaken_notices_and_goes_on_with_what_is_whole) {
    LogReader observer(log, LogReader::Role::observer);
    std::uint32_t written = 0;
    for (int round = 0; round < 20; ++round) {
        while (append(0, 1 + written % 20, written)) ++written;
        writer.reclaim(writer.head());
    }
    ASSERT_TRUE(append(0, 1, written));
    LogReader::Entry entry;
    ASSERT_EQ(observer.peek(entry), LogReader::Found::lapped);
    observer.seek(observer.oldest());
    EXPECT_EQ(words_of(observer, next_of(observer)), numbers(1, written));
}

TEST_F(WriteLog,
       an_observer_takes_no_overwritten_words_for_a_record_beside_a_writer_that_never_waits) {
    // Each word of a record is the record's number, and its offset tells the same.
    constexpr std::uint32_t kRecords = 200'000;
    const std::jthread writing([this] {
        for (std::uint32_t i = 0; i < kRecords; ++i) {
            const std::uint32_t words = 1 + i % 40;
            writer.reclaim(writer.head());
            writer.append(record(std::uint64_t{i} * kWordBytes, words),
                          std::vector<std::uint32_t>(words, i).data());
        }
    });
    LogReader observer(log, LogReader::Role::observer);
    std::uint64_t next = 0;
    while (next < kRecords) {
        LogReader::Entry entry;
        const LogReader::Found found = observer.peek(entry);
        ASSERT_NE(found, LogReader::Found::corrupt);
        if (found == LogReader::Found::lapped) observer.seek(observer.oldest());
        if (found == LogReader::Found::none) std::this_thread::yield();
        if (found != LogReader::Found::record) continue;
        const std::uint64_t number = entry.record.offset / kWordBytes;
        ASSERT_GE(number, next);
        ASSERT_EQ(entry.record.words, 1 + number % 40);
        std::vector<std::uint32_t> words(entry.record.words);
        if (observer.copy_words(entry, reinterpret_cast<std::byte*>(words.data()))) {
            ASSERT_EQ(words,
                      std::vector<std::uint32_t>(words.size(), static_cast<std::uint32_t>(number)));
        }
        observer.pass(entry);
        next = number + 1;
    }
}

TEST_F(WriteLog, a_restarted_writer_goes_on_where_its_former_incarnation_stopped) {
    ASSERT_TRUE(append(0, 1, 1));
    LogWriter next(log);
    EXPECT_EQ(next.head(), writer.head());
    next.append(record(4, 1), numbers(1, 2).data());
    reader.pass(next_of(reader));
    EXPECT_EQ(next_of(reader).record.offset, 4U);
}

TEST_F(WriteLog, what_no_writer_writes_is_corrupt) {
    ASSERT_TRUE(append(0, 1, 1));
    LogReader::Entry entry;
    log.unit(0).part[1] = std::uint64_t{kMaxRecordWords + 1} << 48U;
    EXPECT_EQ(reader.peek(entry), LogReader::Found::corrupt);
    reader.skip_all();
    EXPECT_EQ(reader.peek(entry), LogReader::Found::none);
    ASSERT_TRUE(append(8, 1, 2));
    EXPECT_EQ(next_of(reader).record.offset, 8U);
}

TEST_F(WriteLog, a_record_of_bytes_has_one_word_and_stores_these) {
    LogRecord bytes = record(64, 1);
    bytes.flags = LogRecord::kInterrupt | LogRecord::flags_of(0b0110);
    const std::uint32_t value = 0x04030201;
    writer.append(bytes, &value);
    const LogReader::Entry entry = next_of(reader);
    EXPECT_EQ(entry.record.part(), 0b0110);
    std::uint32_t bank = 0x99999999;
    EXPECT_TRUE(reader.copy_words(entry, reinterpret_cast<std::byte*>(&bank)));
    EXPECT_EQ(bank, 0x99030299U);
    reader.pass(entry);
    bytes.words = 2;
    writer.append(bytes, numbers(2, 7).data());
    LogReader::Entry next;
    EXPECT_EQ(reader.peek(next), LogReader::Found::corrupt);
    EXPECT_EQ(record(0, 1).part(), kWholeWord);
    EXPECT_EQ(LogRecord::flags_of(kWholeWord), 0U);
}

TEST_F(WriteLog, a_reader_in_another_thread_sees_whole_records_in_order) {
    constexpr std::uint32_t kRecords = 100'000;
    std::atomic<std::uint64_t> done{0};
    const std::jthread other([&] {
        LogReader::Entry entry;
        for (std::uint32_t expected = 0; expected < kRecords;) {
            if (reader.peek(entry) != LogReader::Found::record) {
                std::this_thread::yield();
                continue;
            }
            std::uint32_t words[64];
            ASSERT_EQ(entry.record.words, 1 + expected % 64);
            ASSERT_TRUE(reader.copy_words(entry, reinterpret_cast<std::byte*>(words)));
            ASSERT_EQ(words[entry.record.words - 1], expected + entry.record.words - 1);
            reader.pass(entry);
            done.store(reader.position(), std::memory_order_release);
            ++expected;
        }
    });
    for (std::uint32_t i = 0; i < kRecords;) {
        if (append(0, 1 + i % 64, i)) {
            ++i;
        } else {
            writer.reclaim(done.load(std::memory_order_acquire));
            std::this_thread::yield();
        }
    }
}

using WriteLogDeathTest = WriteLog;

TEST_F(WriteLogDeathTest, checks_that_nothing_is_overwritten_that_is_not_reclaimed) {
    while (append(0, 1, 1)) continue;
    EXPECT_BROKEN_WHERE_CHECKED(for (int i = 0; i < 100; ++i)
                                    writer.append(record(0, 1), numbers(1, 1).data()));
}

}  // namespace
}  // namespace rmem
