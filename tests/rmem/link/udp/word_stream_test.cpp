// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
#include "rmem/link/udp/word_stream.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <thread>

namespace rmem::udp {
namespace {

constexpr std::uint64_t kAll = WordStream::kEntries;

ShortWrite write_of(std::uint64_t number) {
    ShortWrite write;
    write.written_ns = static_cast<std::int64_t>(number);
    write.place = {number, 1, 0};
    write.words = {static_cast<std::uint32_t>(number), 0};
    return write;
}

TEST(WordStream, gives_what_was_put_in_its_order_and_once) {
    WordStream stream;
    EXPECT_TRUE(stream.is_empty());
    std::uint64_t put = 0, read = 0;
    for (int round = 0; round < 5; ++round) {
        for (std::uint64_t i = 0; i < kAll / 3 * 2; ++i) ASSERT_TRUE(stream.put(write_of(put++)));
        while (!stream.is_empty()) {
            const auto waiting = stream.waiting();
            for (const ShortWrite& write : waiting) ASSERT_EQ(write.place.index, read++);
            stream.pass(waiting.size());
        }
    }
    EXPECT_EQ(read, put);
}

TEST(WordStream, refuses_what_it_has_no_room_for_until_some_is_read) {
    WordStream stream;
    for (std::uint64_t i = 0; i < kAll; ++i) ASSERT_TRUE(stream.put(write_of(i)));
    EXPECT_FALSE(stream.put(write_of(kAll)));
    stream.pass(3);
    EXPECT_TRUE(stream.has_room(3));
    EXPECT_FALSE(stream.has_room(4));
    EXPECT_EQ(stream.waiting().front().place.index, 3U);
}

TEST(WordStream, forgets_all_at_once) {
    WordStream stream;
    for (std::uint64_t i = 0; i < kAll / 2; ++i) ASSERT_TRUE(stream.put(write_of(i)));
    stream.clear();
    for (std::uint64_t i = 0; i < kAll; ++i) ASSERT_TRUE(stream.put(write_of(i)));
    stream.clear();
    EXPECT_TRUE(stream.is_empty());
    EXPECT_TRUE(stream.has_room(kAll));
}

TEST(WordStream, carries_writes_from_one_thread_to_another) {
    const auto stream = std::make_unique<WordStream>();
    constexpr std::uint64_t kWrites = 100'000;
    std::thread writer([&] {
        for (std::uint64_t i = 0; i < kWrites; ++i) {
            while (!stream->put(write_of(i))) std::this_thread::yield();
        }
    });
    std::uint64_t read = 0, wrong = 0;
    while (read < kWrites) {
        const auto waiting = stream->waiting();
        for (const ShortWrite& write : waiting) {
            if (write.place.index != read || write.words[0] != read) ++wrong;
            ++read;
        }
        stream->pass(waiting.size());
        if (waiting.empty()) std::this_thread::yield();
    }
    writer.join();
    EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace rmem::udp
