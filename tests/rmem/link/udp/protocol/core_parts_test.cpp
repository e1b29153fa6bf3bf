// SPDX-License-Identifier: Apache-2.0

/// A ring in parts that do not hear each other, and nodes that meet more than one of them.

#include "tests/rmem/link/udp/protocol/core_fixture.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

namespace rmem::udp {
namespace {

/// A ring whose nodes hear each other, or not.
class RingInParts : public Ring {
public:
    explicit RingInParts(unsigned count) : Ring(count) {
        is_cut = [this](unsigned from, unsigned to) { return silent.contains({from, to}); };
    }
    /// Neither of the two hears the other.
    void cut(unsigned one, unsigned other) {
        silent.emplace(one, other);
        silent.emplace(other, one);
    }
    void mend(unsigned one, unsigned other) {
        silent.erase({one, other});
        silent.erase({other, one});
    }

    std::set<std::pair<unsigned, unsigned>> silent;  ///< from, to: nothing comes through
};

/// Of a ring of `count` nodes, the last of which is late, node 1 is apart from the others. The late
/// one meets node 0 and joins node 1: these two meet a part that stays.
void meet_a_newcomer_of_the_other_part(unsigned count) {
    RingInParts ring(count);
    const unsigned late = count - 1;
    ring.start_ring(late);
    ring.write_for(10, {0});
    for (unsigned node = 0; node < late; ++node) {
        if (node != 1) ring.cut(1, node);
        if (node != 0) ring.cut(late, node);
    }
    ring.write_for(300, {1});  // not 0, whose length the late one will name
    ring.start(late);
    ASSERT_TRUE(
        ring.run_until([&] { return ring[0].core.exchange().takes(late); }, 100 * kMillisecond));
    ring.silent.emplace(0, late);
    ring.mend(1, late);
    ASSERT_TRUE(ring.becomes_member(late));
    EXPECT_EQ(ring[late].words, ring[1].words);
    ring.write_something(late);
    ring.run(200 * kMillisecond);
    const std::vector<std::uint32_t> written = ring[0].words;
    ring.silent.clear();
    EXPECT_TRUE(ring.becomes_whole(300 * kMillisecond))
        << "nobody waits for what another should have of the newcomer" << ring.describe();
    ASSERT_TRUE(ring.becomes_whole()) << ring.describe();
    ring.expect_dropped({1, late});
    for (unsigned node = 0; node < count; ++node) EXPECT_EQ(ring[node].words, written) << node;
}

TEST(CoreInParts, a_newcomer_of_the_other_part_drops_nobody_of_one_as_great) {
    meet_a_newcomer_of_the_other_part(4);
}

TEST(CoreInParts, a_newcomer_of_the_other_part_that_is_less_leaves_nothing_behind) {
    meet_a_newcomer_of_the_other_part(5);
}

/// Node 0 and node 3, which got its bank from node 4, have never met: two parts. Node 1 has met
/// both, so it cannot join, but it gives node 2, which joins node 3, what node 0 writes.
TEST(CoreInParts, a_node_that_was_given_what_its_donor_never_had_begins_again) {
    RingInParts ring(5);
    ring.start(0);
    ring.start(4);
    ASSERT_TRUE(ring.becomes_whole());
    ring.cut(0, 4);
    ring.cut(0, 3);
    ring.run(300 * kMillisecond);
    ring.start(3);
    ASSERT_TRUE(ring.becomes_member(3));
    ring.kill(4);
    ring.write_for(300, {0});
    ASSERT_EQ(ring[3].core.ring_incarnation(), ring[0].core.ring_incarnation());
    ring.start(1);
    ring.start(2);
    ring.write_for(100, {0});
    ASSERT_TRUE(ring[2].core.exchange().has_applied(0));
    ring.silent.emplace(0, 2);
    for (int i = 0; i < 2000 && !ring[2].core.is_member(); ++i) ring.write_for(1, {0});
    ASSERT_TRUE(ring[2].core.is_member()) << ring.describe();
    EXPECT_EQ(ring[2].words, ring[3].words);
    EXPECT_FALSE(ring[1].core.is_member());
    ring.silent.clear();
    ring.expect_to_become_whole_with_equal_banks();
}

/// Node 3 has met all but the donor, which undoes what node 2 writes. It gets node 2's write from
/// node 1 when node 2 is dead, and then the donor's bank.
TEST(CoreInParts, a_blank_part_that_others_gave_something_of_is_blank_no_more) {
    RingInParts ring(4);
    ring.start_ring(3);
    ring.cut(0, 3);
    ring.start(3).began_blank = true;
    ASSERT_TRUE(ring.run_until(
        [&] {
            return ring[2].core.exchange().takes(3) && ring[3].core.exchange().takes(2) &&
                   ring[3].core.exchange().takes(1);
        },
        100 * kMillisecond));
    ring.silent.emplace(2, 3);
    const auto write = [&](unsigned node, std::uint32_t value) {
        ring[node].words[5] = value;
        ring[node].core.write(5, 1, &value, ring.now);
        ring[node].core.commit(ring.now);
        ring.run(kMillisecond);
    };
    write(2, 7);
    write(0, 0);
    ring.kill(2);
    ASSERT_TRUE(ring.run_until([&] { return ring[3].words[5] == 7; }, 300 * kMillisecond));
    ring.silent.clear();
    ring.expect_to_become_whole_with_equal_banks();
    EXPECT_EQ(ring[3].words[5], 0U);
}

}  // namespace
}  // namespace rmem::udp
