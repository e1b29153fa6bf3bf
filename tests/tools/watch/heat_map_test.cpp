// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/heat_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tools {
namespace {

constexpr std::size_t kBank = 1 << 20;

class HeatMapTest : public ::testing::Test {
protected:
    void look() { map_.look(std::as_bytes(std::span(bank_))); }
    std::size_t warm_cells() const {
        return static_cast<std::size_t>(
            std::count_if(map_.cells().begin(), map_.cells().end(),
                          [](const HeatMap::Cell& cell) { return cell.heat > 0; }));
    }

    std::vector<std::uint32_t> bank_ = std::vector<std::uint32_t>(kBank / 4);
    HeatMap map_;
};

TEST_F(HeatMapTest, is_cold_at_the_first_look_whatever_the_bank_holds) {
    std::fill(bank_.begin(), bank_.end(), 7U);
    look();
    EXPECT_EQ(map_.cells().size() * map_.cell_bytes(), kBank);
    EXPECT_EQ(warm_cells(), 0U);
}

TEST_F(HeatMapTest, shows_the_cell_of_a_word_that_changed) {
    look();
    const std::size_t offset = 5 * map_.cell_bytes() + 12;
    ++bank_[offset / 4];
    look();
    EXPECT_EQ(warm_cells(), 1U);
    EXPECT_DOUBLE_EQ(map_.cells()[5].heat, 1.0 / HeatMap::kParts);
}

TEST_F(HeatMapTest, shows_how_much_of_a_cell_changed) {
    look();
    const std::size_t words = map_.cell_bytes() / 4;
    for (std::size_t i = 0; i < words / 2; ++i) ++bank_[i];
    look();
    EXPECT_DOUBLE_EQ(map_.cells()[0].heat, 0.5);
}

TEST_F(HeatMapTest, cools_down_and_remembers) {
    look();
    ++bank_[0];
    look();
    const double hot = map_.cells()[0].heat;
    look();
    EXPECT_DOUBLE_EQ(map_.cells()[0].heat, hot / 2);
    for (int i = 0; i < 20; ++i) look();
    EXPECT_LT(map_.cells()[0].heat, 0.001);
    EXPECT_TRUE(map_.cells()[0].ever);
    EXPECT_FALSE(map_.cells()[1].ever);
}

TEST_F(HeatMapTest, covers_banks_of_any_size) {
    for (const std::size_t bytes : {4UL, 100UL, 4096UL, 5000UL, kBank - 4}) {
        bank_.assign((bytes + 3) / 4, 0);
        HeatMap map;
        map.look(std::as_bytes(std::span(bank_)));
        EXPECT_GE(map.cells().size() * map.cell_bytes(), bytes);
        EXPECT_LE(map.cells().size(), HeatMap::kCells);
        bank_.back() = 1;
        map.look(std::as_bytes(std::span(bank_)));
        EXPECT_TRUE(map.cells().back().ever) << bytes;
    }
}

TEST_F(HeatMapTest, shows_single_words_of_a_small_part) {
    const auto look_at = [this](std::size_t from) {
        map_.look(std::as_bytes(std::span(bank_)).subspan(from, 4096), from, 1024);
    };
    look_at(4096);
    EXPECT_EQ(map_.cell_bytes(), 4U);
    ++bank_[1024 + 7];
    look_at(4096);
    EXPECT_EQ(warm_cells(), 1U);
    EXPECT_DOUBLE_EQ(map_.cells()[7].heat, 1.0);
    look_at(0);
    EXPECT_EQ(warm_cells(), 0U) << "another place has nothing to compare with";
    map_.look(std::as_bytes(std::span(bank_)).subspan(0, 4096), 0, 200);
    EXPECT_EQ(map_.cell_bytes(), 32U);
    ++bank_[9];
    map_.look(std::as_bytes(std::span(bank_)).subspan(0, 4096), 0, 200);
    EXPECT_DOUBLE_EQ(map_.cells()[1].heat, 1.0 / 8) << "parts of a word each";
}

TEST_F(HeatMapTest, looks_at_some_lines_of_a_bank_that_is_too_large) {
    bank_.assign(HeatMap::kMaxBytes / 4 + 1024, 0);
    look();
    EXPECT_EQ(map_.line_step(), 3U) << "odd, for patterns of powers of two";
    bank_.assign((HeatMap::kMaxBytes * 4) / 4, 0);
    look();
    EXPECT_EQ(map_.line_step(), 5U);
    for (auto& word : bank_) ++word;
    look();
    EXPECT_EQ(warm_cells(), map_.cells().size()) << "some line of each part";
}

TEST_F(HeatMapTest, begins_again_with_a_bank_of_another_size) {
    look();
    bank_.assign(4096, 1);
    look();
    EXPECT_EQ(warm_cells(), 0U);
}

}  // namespace
}  // namespace tools
