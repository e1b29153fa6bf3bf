// SPDX-License-Identifier: Apache-2.0

/// What bridges say of themselves in a ring's table, and which of them would send words in a
/// circle.

#include "bridge/table.hpp"

#include "tests/support/broken.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>

namespace bridge {
namespace {

using ::testing::ElementsAre;

using State = Slot::State;
using Use = Slot::Use;
constexpr std::int64_t kMs = 1'000'000;

Slot slot(Use use, std::uint64_t offset, std::uint64_t hop, Path path = {},
          State state = State::open) {
    return {use, state, offset, 256, hop, std::move(path)};
}

TEST(Slots, are_read_as_written_and_not_at_all_when_a_bit_is_wrong) {
    const Slot written = slot(Use::brings, 4096, 0x1122334455667788, {1, 2, 3});
    SlotBytes bytes = encoded(written);
    EXPECT_EQ(read_slot(bytes), written);
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        bytes[bit / 8] ^= std::byte{1} << bit % 8;
        EXPECT_NE(read_slot(bytes), written) << bit;
        bytes[bit / 8] ^= std::byte{1} << bit % 8;
    }
    EXPECT_FALSE(read_slot(SlotBytes{}));
    const Stamp stamp{7, 2, 1234567890123456789, 40, 5};
    const StampBytes there = encoded(stamp);
    const Stamp back = read_stamp(there);
    EXPECT_EQ(std::memcmp(&back, &stamp, sizeof stamp), 0);
}

TEST(Slots, count_while_their_beat_changes) {
    std::vector<std::byte> table(2 * kTableBytes);
    const auto beat = [&](std::size_t index, std::uint32_t value) {
        rmem::store(table.data() + index * kSlotBytes + kBeatAt, value);
    };
    for (const std::size_t index : {std::size_t{0}, kSlots + 3}) {
        const SlotBytes bytes = encoded(slot(Use::takes, 0, index + 1));
        std::copy(bytes.begin(), bytes.end(),
                  table.begin() + static_cast<std::ptrdiff_t>(index * kSlotBytes));
    }
    TableWatch watch;
    watch.look(table, kMs);
    EXPECT_EQ(watch.live().size(), 2U);
    beat(0, 1);
    watch.look(table, 900 * kMs);
    EXPECT_EQ(watch.live().size(), 2U);
    watch.look(table, 1001 * kMs);
    ASSERT_EQ(watch.live().size(), 1U);
    EXPECT_EQ(watch.live()[0].hop, 1U);
    beat(kSlots + 3, 1);
    watch.look(table, 1002 * kMs);
    EXPECT_EQ(watch.live().size(), 2U);
}

TEST(Paths, have_the_hops_of_all_that_bring_words_to_the_range) {
    const std::vector<Slot> live = {slot(Use::brings, 0, 11, {10, 11}),
                                    slot(Use::brings, 128, 12, {10, 12}),
                                    slot(Use::brings, 1024, 13, {13}), slot(Use::takes, 0, 14),
                                    slot(Use::brings, 0, 15, {15}, State::refused)};
    EXPECT_THAT(path_to(live, 0, 256, 99), ElementsAre(10, 11, 12, 99));
    EXPECT_THAT(path_to(live, 384, 256, 99), ElementsAre(99));
    EXPECT_EQ(path_to(std::vector<Slot>{slot(Use::brings, 0, 1, {1, 2, 3, 4, 5, 6, 7, 8})}, 0, 4, 9)
                  .size(),
              kMaxHops + 1);
}

TEST(Circles, are_found_where_a_hop_of_the_path_takes_what_is_brought) {
    const std::vector<Slot> live = {slot(Use::takes, 0, 7)};
    EXPECT_NE(circle_through(live, 128, 256, {7, 9}, State::waiting), nullptr);
    EXPECT_EQ(circle_through(live, 256, 256, {7, 9}, State::waiting), nullptr);
    EXPECT_EQ(circle_through(live, 128, 256, {8, 9}, State::waiting), nullptr);
    EXPECT_EQ(circle_through(std::vector<Slot>{slot(Use::takes, 0, 7, {}, State::refused)}, 0, 256,
                             {7, 9}, State::waiting),
              nullptr);
}

/// Each of some bridges in a circle sees the next one's slot alone.
TEST(Circles, lose_one_hop_at_least_and_not_all) {
    for (unsigned states = 0; states < 8; ++states) {
        for (const Path& hops : {Path{1, 2, 3}, Path{3, 1, 2}, Path{2, 1, 3}}) {
            unsigned refused = 0;
            for (unsigned i = 0; i < 3; ++i) {
                const auto state_of = [&](unsigned n) {
                    return (states >> n & 1) != 0 ? State::open : State::waiting;
                };
                const unsigned next = (i + 1) % 3;
                const std::vector<Slot> live = {
                    slot(Use::takes, 0, hops[next], {}, state_of(next))};
                const Path path = {hops[next], hops[(i + 2) % 3], hops[i]};
                if (circle_through(live, 0, 256, path, state_of(i)) != nullptr) ++refused;
            }
            EXPECT_GE(refused, 1U);
            EXPECT_LE(refused, 2U);
        }
    }
}

TEST(TableInvariants, a_table_is_whole_slots) {
    TableWatch watch;
    EXPECT_BROKEN(watch.look(std::vector<std::byte>(kSlotBytes + 4), 0));
}

}  // namespace
}  // namespace bridge
