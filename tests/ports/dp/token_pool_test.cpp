// SPDX-License-Identifier: Apache-2.0
#include "ports/dp/token_pool.hpp"

#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>
#include <vector>

namespace ports::dp {
namespace {

constexpr std::size_t kPage = 4096;

void put(TokenPool& pool, std::size_t length, unsigned char what) {
    std::byte* at = pool.put(length);
    ASSERT_NE(at, nullptr);
    std::memset(at, what, length);
}

TEST(TokenPool, takes_memory_by_the_length_of_the_message) {
    TokenPool pool(kPage);
    unsigned small = 0;
    while (pool.put(16) != nullptr) ++small;
    EXPECT_EQ(small, kPage / 32);
    TokenPool other(kPage);
    EXPECT_NE(other.put(kPage - 16), nullptr);
    EXPECT_EQ(other.put(0), nullptr);
}

TEST(TokenPool, refuses_what_is_larger_than_itself) {
    TokenPool pool(kPage);
    EXPECT_EQ(pool.put(kPage), nullptr);
    EXPECT_FALSE(pool.has_room(kPage));
    EXPECT_NE(pool.put(8), nullptr);
}

TEST(TokenPool, a_message_that_lands_lies_where_it_came_behind_its_header_and_has_been_read) {
    TokenPool pool(kPage);
    put(pool, 8, 1);
    pool.read();  // and not flushed: the landing is behind it
    std::byte* landing = pool.landing();
    ASSERT_NE(landing, nullptr);
    EXPECT_EQ(pool.used(), 1U) << "nothing is in the pool before it has come";
    std::memset(landing, 7, TokenPool::kLandingBytes);
    const std::byte* at = pool.land(20);
    EXPECT_EQ(at, landing + 8);
    EXPECT_EQ(at[19], std::byte{7});
    EXPECT_EQ(pool.unread(), 0U);
    EXPECT_EQ(pool.used(), 2U);
    EXPECT_EQ(pool.flush(2), 2U);
    EXPECT_EQ(pool.used(), 0U);
    while (pool.put(100) != nullptr) {
    }
    EXPECT_EQ(pool.landing(), nullptr) << "a full pool takes none";
}

TEST(TokenPool, behaves_as_a_queue_of_messages_whatever_is_done) {
    struct Message {
        std::size_t length;
        unsigned char what;
        const std::byte* at = nullptr;
        bool skipped = false;
    };
    for (unsigned seed = 1; seed <= 20; ++seed) {
        std::mt19937 random(seed);
        TokenPool pool(kPage);
        std::deque<Message> model;
        std::size_t read = 0;  // of the model, from the front
        unsigned char next = 0;
        unsigned refused = 0;
        const auto drop = [&] {
            model.pop_front();
            --read;
        };
        for (unsigned step = 0; step < 20'000; ++step) {
            const auto what = random() % 100;
            if (what < 10 && pool.unread() == 0) {
                const std::size_t length = random() % (TokenPool::kLandingBytes - 8);
                std::byte* landing = pool.landing();
                if (landing == nullptr) {
                    ++refused;
                    continue;
                }
                std::memset(landing, ++next, TokenPool::kLandingBytes);
                model.push_back({length, next, pool.land(length)});
                ++read;
            } else if (what < 45) {
                const std::size_t length = random() % 10 == 0 ? random() % 3000 : random() % 100;
                std::byte* at = pool.put(length);
                if (at == nullptr) {
                    ++refused;
                    continue;
                }
                ASSERT_TRUE(at >= pool.base() && at + length <= pool.base() + pool.size());
                ASSERT_EQ((at - pool.base()) % 16, 0);
                std::memset(at, ++next, length);
                model.push_back({length, next, at});
            } else if (what < 90 && read < model.size()) {
                Message& m = model[read++];
                ASSERT_EQ(pool.next_length(), m.length);
                ASSERT_EQ(pool.next(), m.at);
                m.skipped = random() % 4 == 0;
                m.skipped ? pool.skip() : pool.read();
            } else {
                const auto asked = static_cast<std::uint32_t>(random() % 4);
                std::uint32_t flushed = 0;
                for (; read != 0 && flushed != asked; drop()) {
                    if (!model.front().skipped) ++flushed;
                }
                ASSERT_EQ(pool.flush(asked), flushed);
            }
            while (read != 0 && model.front().skipped) drop();
            ASSERT_EQ(pool.unread(), model.size() - read);
            // Seldom: asking collects what else the next put does.
            if (step % 16 == 0) {
                ASSERT_EQ(pool.used(), model.size());
            }
            for (const Message& m : model) {
                ASSERT_TRUE(
                    m.skipped || m.length == 0 ||
                    (m.at[0] == std::byte{m.what} && m.at[m.length - 1] == std::byte{m.what}));
            }
        }
        EXPECT_GT(refused, 0U) << "the pool was never full";
    }
}

TEST(TokenPoolDeathTest, checks_that_nothing_is_read_twice) {
    TokenPool pool(kPage);
    put(pool, 10, 1);
    pool.read();
    EXPECT_BROKEN_WHERE_CHECKED(pool.read());
}

}  // namespace
}  // namespace ports::dp
