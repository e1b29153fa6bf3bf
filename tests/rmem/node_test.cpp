// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
#include "rmem/node.hpp"

#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/write_stamps.hpp"
#include "tests/support/child.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <poll.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace rmem::test {
namespace {

struct NodeTest : ::testing::Test {
    RingName name;

    RingConfig config(LinkKind link = LinkKind::direct) const { return name.config(2, link); }
    std::shared_ptr<Ring> open(LinkKind link = LinkKind::direct) const {
        return open(config(link));
    }
    static std::shared_ptr<Ring> open(const RingConfig& config) {
        return Ring::open(config, Deadline::in(kPatienceNs));
    }
    static bool readable(int fd, int within_ms = 0) {
        pollfd one{fd, POLLIN, 0};
        return ::poll(&one, 1, within_ms) == 1 && (one.revents & POLLIN) != 0;
    }
    static bool becomes_readable(int fd) { return readable(fd, 30'000); }
    /// A node whose next write is stamped.
    static Node one_before_its_sample(const std::shared_ptr<Ring>& ring) {
        Node writer(ring, {0, 0});
        for (unsigned i = 1; i < kStampEvery; ++i)
            EXPECT_EQ(writer.write_word(4, i), WriteResult::ok);
        return writer;
    }
};

// ---- Joining

TEST_F(NodeTest, a_link_without_processes_is_refused_and_nothing_left) {
    const auto join = [&] { Node(config(LinkKind::sim), {0, 0}); };
    EXPECT_THAT(refused(Errc::unknown_link, join), ::testing::HasSubstr("sim"));
    EXPECT_FALSE(name.exists());
}

TEST_F(NodeTest, a_moved_node_goes_on) {
    Node first(config(), {0, 0});
    Node moved(std::move(first));
    EXPECT_EQ(moved.write_word(0, 5), WriteResult::ok);
    EXPECT_EQ(moved.load(0), 5U);
}

TEST_F(NodeTest, ranks_of_one_node_share_its_bank_on_every_link) {
    for (const LinkKind link : {LinkKind::direct, LinkKind::ring}) {
        RingConfig shared = config(link);
        shared.ranks = 3;
        const auto ring = open(shared);
        Node a(ring, {0, 0});
        Node b(ring, {1, 0});
        Node other(ring, {2, 1});
        EXPECT_EQ(a.write_word(0, 5), WriteResult::ok);
        EXPECT_EQ(b.load(0), 5U) << name_of(link);
        EXPECT_EQ(b.write_word(4, 6), WriteResult::ok);
        EXPECT_EQ(other.wait_change(4, 0, Deadline::in(kPatienceNs)), 6U);
        EXPECT_EQ(other.wait_change(0, 0, Deadline::in(kPatienceNs)), 5U);
    }
}

TEST_F(NodeTest, a_group_of_writes_is_made_whole_and_in_order_or_not_at_all) {
    for (const LinkKind link : {LinkKind::direct, LinkKind::ring}) {
        const auto ring = open(link);
        Node a(ring, {0, 0}), b(ring, {1, 1});
        const std::uint32_t data[] = {1, 2, 3};
        const std::uint32_t flag = 9;
        const GroupedWrite writes[] = {{64, data, sizeof data}, {0, &flag, 4}, {32, data, 0}};
        ASSERT_EQ(a.write_group(writes), WriteResult::ok);
        EXPECT_EQ(b.wait_change(0, 0, Deadline::in(kPatienceNs)), flag);
        EXPECT_EQ(b.load(72), 3U);
        const GroupedWrite beyond[] = {{100, &flag, 4}, {4094, &flag, 4}};
        EXPECT_THROW(static_cast<void>(a.write_group(beyond)), Error);
        EXPECT_EQ(a.load(100), 0U);
        const std::vector<GroupedWrite> many(kMaxGrouped + 1, GroupedWrite{0, &flag, 4});
        EXPECT_THROW(static_cast<void>(a.write_group(many)), Error);
    }
}

// ---- The interrupt descriptor and callback

struct NodeInterruptTest : NodeTest, ::testing::WithParamInterface<LinkKind> {
    std::shared_ptr<Ring> ring = open(GetParam());
    Node writer{ring, {0, 0}};
    std::optional<Node> watcher{std::in_place, ring, Member{1, 1}};
};

INSTANTIATE_TEST_SUITE_P(EachLink, NodeInterruptTest,
                         ::testing::Values(LinkKind::direct, LinkKind::ring),
                         [](const auto& link) { return std::string(name_of(link.param)); });

TEST_P(NodeInterruptTest, the_descriptor_is_readable_exactly_while_interrupts_wait) {
    const int fd = watcher->interrupt_fd();
    EXPECT_EQ(watcher->interrupt_fd(), fd);
    watcher->watch(0x40, 4);
    EXPECT_FALSE(readable(fd));
    for (std::uint32_t round = 1; round <= 20; ++round) {
        EXPECT_EQ(writer.write_word(0x40, round), WriteResult::ok);
        EXPECT_EQ(writer.write_word(0x40, round), WriteResult::ok);
        ASSERT_TRUE(becomes_readable(fd));
        ASSERT_TRUE(writer.flush(Deadline::in(kPatienceNs)));
        ASSERT_TRUE(watcher->next_interrupt(Deadline::now()));
        ASSERT_TRUE(readable(fd)) << "one more waits";
        ASSERT_TRUE(watcher->next_interrupt(Deadline::now()));
        ASSERT_FALSE(readable(fd)) << "all are taken";
        ASSERT_FALSE(watcher->next_interrupt(Deadline::now()));
    }
}

TEST_P(NodeInterruptTest, one_that_waits_already_makes_a_new_descriptor_readable) {
    watcher->watch(0x40, 4);
    EXPECT_EQ(writer.write_word(0x40, 1), WriteResult::ok);
    ASSERT_TRUE(writer.flush(Deadline::in(kPatienceNs)));
    EXPECT_TRUE(becomes_readable(watcher->interrupt_fd()));
}

TEST_P(NodeInterruptTest, a_callback_gets_each_interrupt_in_order) {
    std::atomic<std::uint32_t> calls = 0;
    std::vector<std::uint32_t> values(100);
    watcher->on_interrupt([&](const Interrupt& interrupt) {
        EXPECT_EQ(interrupt.origin, 0U);
        values[calls.load()] = interrupt.value;
        ++calls;
    });
    watcher->watch(0x40, 4);
    for (std::uint32_t i = 0; i < 100; ++i) {
        while (writer.write_word(0x40, i) != WriteResult::ok) writer.poll();
    }
    ASSERT_TRUE(eventually([&] { return calls == 100; }));
    EXPECT_FALSE(watcher->next_interrupt(Deadline::now()));
    for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(values[i], i);
}

TEST_P(NodeInterruptTest, a_node_with_a_helper_can_leave_at_any_time) {
    watcher->watch(0x40, 4);
    for (int i = 0; i < 20; ++i) {
        (void)watcher->interrupt_fd();
        EXPECT_EQ(writer.write_word(0x40, 1), WriteResult::ok);
        watcher.reset();
        watcher.emplace(ring, Member{1, 1});
        watcher->watch(0x40, 4);
    }
}

// ---- The bound

TEST_F(NodeTest, on_direct_a_sampled_write_is_measured_by_a_reader_that_waits_for_it) {
    const auto ring = open();
    Node writer = one_before_its_sample(ring);
    const std::jthread reader([&] {
        Node node(ring, {1, 1});
        EXPECT_EQ(node.wait_change(0, 0, Deadline::in(kPatienceNs)), 1U);
        EXPECT_EQ(node.propagation().count(), 1U);
        EXPECT_EQ(node.wait_change(0, 1, Deadline::in(kPatienceNs)), 2U);
        EXPECT_EQ(node.propagation().count(), 1U) << "the next one is not sampled";
    });
    // Asleep, so it has begun to wait.
    ASSERT_TRUE(eventually([&] { return ring->attention()[1] != 0; }));
    EXPECT_EQ(writer.write_word(0, 1), WriteResult::ok);
    ASSERT_TRUE(eventually([&] { return ring->node(1).propagation.count() == 1; }));
    EXPECT_EQ(writer.write_word(0, 2), WriteResult::ok);
}

TEST_F(NodeTest, on_direct_what_was_written_before_the_wait_is_not_measured) {
    const auto ring = open();
    Node writer(ring, {0, 0});
    Node reader(ring, {1, 1});
    for (unsigned i = 1; i <= kStampEvery; ++i) EXPECT_EQ(writer.write_word(0, i), WriteResult::ok);
    EXPECT_EQ(reader.wait_change(0, 0, Deadline::in(kPatienceNs)), kStampEvery);
    EXPECT_EQ(reader.propagation().count(), 0U);
}

TEST_F(NodeTest, on_direct_a_sample_beyond_the_bound_is_reported_as_the_hosts) {
    RingConfig bounded = config();
    bounded.bound_ns = 1;  // nothing is that fast
    const auto ring = open(bounded);
    Node writer = one_before_its_sample(ring);
    EXPECT_EQ(writer.bound_ns(), 1);
    const std::jthread reader([&] {
        Node node(ring, {1, 1});
        std::optional<BoundViolation> seen;
        node.on_bound_violation([&](const BoundViolation& violation) { seen = violation; });
        EXPECT_EQ(node.wait_change(0, 0, Deadline::in(kPatienceNs)), 1U);
        ASSERT_TRUE(seen);
        EXPECT_EQ(seen->origin, 0U);
        EXPECT_EQ(seen->offset, 0U);
        EXPECT_TRUE(seen->by_host);
        EXPECT_GT(seen->propagation_ns, 1);
        EXPECT_EQ(node.counter(LinkCounter::bound_missed_by_host), 1U);
        EXPECT_EQ(node.counter(LinkCounter::bound_violations), 0U);
    });
    ASSERT_TRUE(eventually([&] { return ring->attention()[1] != 0; }));
    EXPECT_EQ(writer.write_word(0, 1), WriteResult::ok);
}

// ---- Counters

TEST_F(NodeTest, what_it_sent_is_counted_where_others_can_read_it) {
    const auto ring = open();
    Node node(ring, {1, 1});
    EXPECT_EQ(node.write_word(0, 1), WriteResult::ok);
    const char text[] = "reflective memory";
    EXPECT_EQ(node.write(64, text, 16), WriteResult::ok);
    EXPECT_TRUE(node.flush(Deadline::now()));
    EXPECT_EQ(node.counter(LinkCounter::writes_sent), 2U);
    EXPECT_EQ(node.counter(LinkCounter::bytes_sent), 20U);
    EXPECT_EQ(node.counter(LinkCounter::flushes), 1U);
    EXPECT_EQ(Ring::observe(name.get())->rank(1).link.get(LinkCounter::writes_sent), 2U);
}

}  // namespace
}  // namespace rmem::test
