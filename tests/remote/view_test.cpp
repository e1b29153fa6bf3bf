// SPDX-License-Identifier: Apache-2.0

/// The memory that a program elsewhere maps: which stores are found, and which changes count.

#include "remote/view.hpp"

#include "remote/protocol.hpp"
#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

namespace remote {
namespace {

constexpr std::size_t kViewBytes = 4 * kPageBytes;

class ViewTest : public ::testing::Test {
protected:
    ViewTest() : words(reinterpret_cast<std::uint32_t*>(view.memory())) {
        view.map(0, 2 * kPageBytes);
    }

    using Store = std::pair<std::uint64_t, std::vector<std::uint32_t>>;
    /// What is found in the whole memory, each as the next own write.
    std::vector<Store> collect() {
        std::vector<Store> found;
        view.collect(0, kViewBytes, [&](std::uint64_t offset, std::span<const std::byte> data) {
            std::vector<std::uint32_t> stored(data.size() / kWordBytes);
            std::memcpy(stored.data(), data.data(), data.size());
            found.emplace_back(offset, stored);
            return ++writes;
        });
        return found;
    }
    void change(std::uint64_t offset, std::vector<std::uint32_t> values, std::uint64_t known) {
        view.changed(offset, std::as_bytes(std::span(values)), known);
    }

    View view{kViewBytes};
    std::uint32_t* words;
    std::uint64_t writes = 0;
};

TEST_F(ViewTest, collect_finds_each_stretch_of_stores_once_and_in_mapped_pages_alone) {
    words[1] = 11;
    words[2] = 12;
    words[1023] = 13;
    words[1024] = 14;
    words[2048] = 15;  // not mapped
    view.memory()[20] = std::byte{7};
    EXPECT_EQ(collect(),
              (std::vector<Store>{{4, {11, 12}}, {20, {7}}, {4092, {13}}, {4096, {14}}}));
    EXPECT_TRUE(collect().empty());
    words[1] = 0;
    EXPECT_EQ(collect(), (std::vector<Store>{{4, {0}}}));
}

TEST_F(ViewTest, changed_is_seen_and_is_no_store_of_the_program) {
    change(8, {1, 2}, 0);
    EXPECT_EQ(words[2], 1U);
    EXPECT_EQ(words[3], 2U);
    EXPECT_TRUE(collect().empty());
}

TEST_F(ViewTest, changed_leaves_a_store_that_was_not_sent_yet_which_is_the_later_one) {
    words[2] = 5;
    change(8, {9}, 0);
    EXPECT_EQ(words[2], 5U);
    EXPECT_EQ(collect(), (std::vector<Store>{{8, {5}}}));
}

TEST_F(ViewTest, changed_leaves_what_an_own_write_on_its_way_replaces) {
    words[2] = 5;
    ASSERT_EQ(collect().size(), 1U);  // write 1
    change(8, {9}, 0);                // the node had not made it
    EXPECT_EQ(words[2], 5U);
    EXPECT_TRUE(collect().empty());
    change(8, {9}, 1);  // another's, after it
    EXPECT_EQ(words[2], 9U);
    EXPECT_TRUE(collect().empty());
}

TEST_F(ViewTest, wrote_shows_a_calls_bytes_and_leaves_the_programs_beside_them) {
    words[0] = 0x11111111;
    const std::vector<std::byte> two(2, std::byte{0x22});
    view.wrote(1, two, ++writes);
    EXPECT_EQ(words[0], 0x11222211U);
    EXPECT_EQ(collect(), (std::vector<Store>{{0, {0x11222211}}}));
    const std::vector<std::byte> page(kPageBytes + 8, std::byte{0x33});
    view.wrote(2 * kPageBytes - 8, page, ++writes);
    EXPECT_EQ(words[2047], 0x33333333U);
    EXPECT_EQ(words[2048], 0U) << "is not mapped, and stays as a map begins: zero";
    EXPECT_TRUE(collect().empty());
    change(2 * kPageBytes - 4, {1}, writes - 1);
    EXPECT_EQ(words[2047], 0x33333333U);
}

TEST(ViewInvariants, numbers_rise_and_all_that_is_told_lies_within_the_memory) {
    View view(kViewBytes);
    view.map(0, kPageBytes);
    const std::vector<std::byte> words(8);
    view.wrote(0, words, 2);
    EXPECT_BROKEN(view.wrote(0, words, 2));
    EXPECT_BROKEN(view.wrote(kViewBytes - 4, words, 3));
    EXPECT_BROKEN(view.changed(kViewBytes - 4, words, 0));
    EXPECT_BROKEN(view.changed(2, words, 0));
    EXPECT_BROKEN(view.map(kPageBytes, kViewBytes));
    EXPECT_BROKEN(view.map(0, 4));
}

}  // namespace
}  // namespace remote
