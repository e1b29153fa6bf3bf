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

using rmem::kWholeWord;
using rmem::WordPart;

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
        parts.clear();
        view.collect(0, kViewBytes,
                     [&](std::uint64_t offset, std::span<const std::byte> data, WordPart part) {
                         std::vector<std::uint32_t> stored(data.size() / kWordBytes);
                         std::memcpy(stored.data(), data.data(), data.size());
                         found.emplace_back(offset, stored);
                         parts.push_back(part);
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
    std::vector<WordPart> parts;  ///< of what was found last
};

TEST_F(ViewTest, collect_finds_each_stretch_of_stores_once_and_in_mapped_pages_alone) {
    words[1] = 0x0101010B;
    words[2] = 0x0101010C;
    words[1023] = 0x0101010D;
    words[1024] = 0x0101010E;
    words[2048] = 15;  // not mapped
    view.memory()[20] = std::byte{7};
    EXPECT_EQ(
        collect(),
        (std::vector<Store>{
            {4, {0x0101010B, 0x0101010C}}, {20, {7}}, {4092, {0x0101010D}}, {4096, {0x0101010E}}}));
    EXPECT_EQ(parts, (std::vector<WordPart>{kWholeWord, 0b0001, kWholeWord, kWholeWord}));
    EXPECT_TRUE(collect().empty());
    words[1] = 0x0101000C;
    EXPECT_EQ(collect(), (std::vector<Store>{{4, {0x0101000C}}}));
    EXPECT_EQ(parts, std::vector<WordPart>{0b0011}) << "the rest may be another's";
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

TEST_F(ViewTest, changed_shows_the_bytes_beside_a_store_that_was_not_sent_yet) {
    view.memory()[9] = std::byte{5};
    change(8, {0x04030201}, 0);
    EXPECT_EQ(words[2], 0x04030501U);
    EXPECT_EQ(collect(), (std::vector<Store>{{8, {0x04030501}}}));
    EXPECT_EQ(parts, std::vector<WordPart>{0b0010});
}

TEST_F(ViewTest, wrote_shows_a_part_of_a_word) {
    words[2] = 0x11111111;
    ASSERT_EQ(collect().size(), 1U);
    const std::uint32_t value = 0x44332211;
    view.wrote(8, std::as_bytes(std::span(&value, 1)), ++writes, 0b0110);
    EXPECT_EQ(words[2], 0x11332211U);
    EXPECT_TRUE(collect().empty());
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
