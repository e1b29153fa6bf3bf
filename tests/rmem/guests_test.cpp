// SPDX-License-Identifier: Apache-2.0
// Programs of a node beside its ranks, on each link.
#include "rmem/node.hpp"
#include "rmem/ring/segment.hpp"
#include "tests/support/child.hpp"
#include "tests/support/refused.hpp"
#include "tests/support/test_ring.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr unsigned kPrograms = 64;

struct GuestsWay {
    LinkKind link;
    const char* timing;
};

/// Of memory that the segment takes.
std::size_t bytes_of(const Ring& ring) {
    struct stat found {};
    EXPECT_EQ(::stat(Segment::object_name(ring.segment_name()).c_str(), &found), 0);
    return static_cast<std::size_t>(found.st_blocks) * 512;
}

class Guests : public ::testing::TestWithParam<GuestsWay> {
protected:
    Node guest(unsigned node) const { return Node(pair.ring(node), {Member::kGuest, node}); }
    static void write(Node& node, std::size_t offset, std::uint32_t value) {
        write_word(node, offset, value);
        ASSERT_TRUE(node.flush(Deadline::in(kPatienceNs)));
    }
    bool is_remote() const { return pair.config().is_remote(); }

    TestRing pair{{.link = GetParam().link,
                   .timing = GetParam().timing,
                   .user_bytes = kUdpBytes,
                   .joins = true}};
};

INSTANTIATE_TEST_SUITE_P(
    EachLink, Guests,
    ::testing::Values(GuestsWay{LinkKind::direct, "none"}, GuestsWay{LinkKind::ring, "none"},
                      GuestsWay{LinkKind::ring, "gt200"}, GuestsWay{LinkKind::udp, "none"}),
    [](const auto& way) { return std::string(name_of(way.param.link)) + "_" + way.param.timing; });

TEST_P(Guests, write_and_read_as_the_ranks_do) {
    Node one = guest(0), other = guest(0), there = guest(1);
    EXPECT_GE(one.rank(), pair.config().ranks);
    EXPECT_NE(one.rank(), other.rank());
    EXPECT_EQ(there.id(), 1U);
    EXPECT_EQ(pair.ring()->joined_ranks(), is_remote() ? 1U : 2U) << "they are no ranks";
    write(one, 0x40, 7);
    write(other, 0x44, 8);
    write(there, 0x48, 9);
    pair.flush();
    for (Node* node : {&pair.node(0), &pair.node(1), &one, &other, &there}) {
        node->poll();
        EXPECT_EQ(node->load(0x40), 7U) << node->rank();
        EXPECT_EQ(node->load(0x44), 8U) << node->rank();
        EXPECT_EQ(node->load(0x48), 9U) << node->rank();
    }
}

TEST_P(Guests, are_interrupted_and_interrupt) {
    Node here = guest(0), there = guest(1);
    here.watch(0x40, 4);
    pair.node(1).watch(0x80, 4);
    here.mark(0x80, 4);
    there.mark(0x40, 4);
    write(there, 0x40, 5);
    auto interrupt = here.next_interrupt(Deadline::in(kPatienceNs));
    ASSERT_TRUE(interrupt);
    EXPECT_EQ(interrupt->origin, 1U);
    EXPECT_EQ(interrupt->value, 5U);
    write(here, 0x80, 6);
    interrupt = pair.node(1).next_interrupt(Deadline::in(kPatienceNs));
    ASSERT_TRUE(interrupt);
    EXPECT_EQ(interrupt->origin, 0U);
    here.accept_interrupts(2);
    EXPECT_EQ(there.send_interrupt(0, 1, 77), WriteResult::ok);
    interrupt = here.next_interrupt(Deadline::in(kPatienceNs));
    ASSERT_TRUE(interrupt);
    EXPECT_EQ(interrupt->value, 77U);
}

TEST_P(Guests, are_woken_by_others_and_by_their_own_node) {
    Node waiting = guest(1);
    const auto wakes = [&](Node& writer, std::size_t offset) {
        std::uint32_t seen = 0;
        std::thread waiter(
            [&] { seen = waiting.wait_change(offset, 0, Deadline::in(kPatienceNs)); });
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        write(writer, offset, 3);
        waiter.join();
        EXPECT_EQ(seen, 3U) << offset;
    };
    wakes(pair.node(0), 0x40);
    wakes(pair.node(1), 0x44);
    Node far = guest(0), near = guest(1);
    wakes(far, 0x48);
    wakes(near, 0x4c);
}

TEST_P(Guests, are_as_many_as_a_card_has_programs) {
    std::vector<std::unique_ptr<Node>> all;
    for (unsigned i = 0; i < kPrograms; ++i) {
        all.push_back(std::make_unique<Node>(pair.ring(0), Member{Member::kGuest, 0}));
        write_word(*all.back(), 0x100 + 4 * i, i + 1);
    }
    EXPECT_THAT(refused(Errc::rank_taken, [&] { guest(0); }),
                AllOf(HasSubstr("node 0 "), HasSubstr("64 programs beside its ranks")));
    Node elsewhere = guest(1);
    for (auto& node : all) ASSERT_TRUE(node->flush(Deadline::in(kPatienceNs)));
    elsewhere.poll();
    for (unsigned i = 0; i < kPrograms; ++i) EXPECT_EQ(elsewhere.load(0x100 + 4 * i), i + 1);
    const unsigned seat = all[5]->rank();
    all[5].reset();
    EXPECT_EQ(guest(0).rank(), seat);
}

TEST_P(Guests, leave_their_seat_and_what_they_wrote_when_killed) {
    Child child([&] {
        Node node(pair.open(0), {Member::kGuest, 0});
        write_word(node, 0x40, 11);
        if (!node.flush(Deadline::in(kPatienceNs))) return;
        ::raise(SIGSTOP);
    });
    child.await_stop();
    child.kill();
    Node next = guest(0);
    EXPECT_EQ(next.rank(), pair.config().guest_seat(1, 0));
    write(next, 0x44, 12);
    pair.node(1).poll();
    EXPECT_EQ(pair.node(1).load(0x40), 11U);
    EXPECT_EQ(pair.node(1).load(0x44), 12U);
}

TEST(GuestsAlone, are_a_nodes_only_programs_as_well) {
    for (const LinkKind link : {LinkKind::direct, LinkKind::ring}) {
        const TestRing ring({.link = link});
        Node a(ring.ring(), {Member::kGuest, 0});
        write_word(a, 0x40, 7);
        EXPECT_TRUE(a.flush(Deadline::in(kPatienceNs)));
        EXPECT_TRUE(ring.ring()->is_present(0));
        EXPECT_FALSE(ring.ring()->is_present(1));
        Node b(ring.ring(), {Member::kGuest, 1});  // from the bank of the one that is there
        EXPECT_EQ(b.load(0x40), 7U);
        EXPECT_EQ(ring.ring()->joined_ranks(), 0U);
        EXPECT_THAT(refused(Errc::bad_rank,
                            [&] {
                                Node(ring.ring(), {Member::kGuest, 2});
                            }),
                    HasSubstr("a guest on node 2 is outside ring"));
    }
}

TEST(GuestsAlone, bring_their_node_into_a_ring_whose_wire_takes_time) {
    const TestRing ring({.timing = "gt200"});
    RingRank here(ring, 0, still());
    RingRank guest(ring.ring(), {Member::kGuest, 1}, still());
    guest.memory.post_word(0x40, 7);
    here.await(0x40, 7);
    EXPECT_EQ(ring.count(0, LinkCounter::lost_on_wire), 0U);
}

TEST(GuestsAlone, have_seats_beside_as_many_ranks_and_nodes_as_there_can_be) {
    const TestRing ring({.link = LinkKind::direct, .nodes = kMaxNodes, .ranks = kMaxRanks});
    EXPECT_EQ(ring.config().seats(), kMaxSeats);
    Node last(ring.ring(), {Member::kGuest, kMaxNodes - 1});
    EXPECT_EQ(last.rank(), kMaxSeats - 1);
    last.watch(0x40, 4);
    Node writer = ring.join(0);
    write_word(writer, 0x40, 7);
    const auto interrupt = last.next_interrupt(Deadline::in(kPatienceNs));
    ASSERT_TRUE(interrupt);
    EXPECT_EQ(interrupt->value, 7U);
    EXPECT_THAT(refused(Errc::rank_taken,
                        [&] {
                            Node(ring.ring(), {Member::kGuest, 255});
                        }),
                HasSubstr("1 programs beside"));
}

TEST(GuestsAlone, take_no_memory_before_they_come) {
    const TestRing ring({.link = LinkKind::ring});
    const std::size_t before = bytes_of(*ring.ring());
    EXPECT_LE(before, SegmentLayout(ring.config()).reserved + kPageBytes);
    const Membership guest(ring.ring(), {Member::kGuest, 0});
    EXPECT_GE(bytes_of(*ring.ring()), before + kClientLogBytes);
    EXPECT_LE(bytes_of(*ring.ring()), before + kClientLogBytes + 16 * kPageBytes);
}

TEST(GuestsAlone, begin_again_with_a_ring_that_was_left) {
    const RingName name;
    RingConfig config = name.config(2, LinkKind::ring);
    const auto open = [&] { return Ring::open(config, Deadline::in(kPatienceNs)); };
    {
        const auto ring = open();
        ring->set_stays(true);
        Node guest(ring, {Member::kGuest, 1});
        write_word(guest, 0x40, 7);
        EXPECT_TRUE(guest.flush(Deadline::in(kPatienceNs)));
    }
    const auto ring = open();
    EXPECT_EQ(ring->seats(), config.ranks);
    EXPECT_LE(bytes_of(*ring), SegmentLayout(config).reserved + kPageBytes);
    Node rank(ring, {0, 0});
    EXPECT_EQ(rank.load(0x40), 7U);
    Node guest(ring, {Member::kGuest, 1});
    write_word(guest, 0x44, 8);
    EXPECT_TRUE(guest.flush(Deadline::in(kPatienceNs)));
    EXPECT_EQ(rank.load(0x44), 8U);
    ring->set_stays(false);
}

TEST(GuestsAlone, come_while_stores_are_compared_and_are_not_taken_for_these) {
    const TestRing ring({.link = LinkKind::ring, .joins = true});
    const auto sent = [&] { return ring.rank_count(0, LinkCounter::writes_sent); };
    Node& scanned = ring.node(0);
    auto* const own = reinterpret_cast<volatile std::uint32_t*>(scanned.stores(StoresMode::scan));
    const std::uint64_t before = sent();
    Node guest(ring.ring(), {Member::kGuest, 0});
    for (std::uint32_t i = 1; i <= 2000; ++i) write_word(guest, 0x40 + 4 * (i % 512), i);
    EXPECT_TRUE(guest.flush(Deadline::in(kPatienceNs)));
    EXPECT_TRUE(scanned.flush(Deadline::in(kPatienceNs)));
    EXPECT_EQ(sent(), before);
    own[0x1000] = 5;
    EXPECT_TRUE(scanned.flush(Deadline::in(kPatienceNs)));
    EXPECT_EQ(ring.node(1).load(0x4000), 5U);
}

}  // namespace
}  // namespace rmem::test
