// SPDX-License-Identifier: Apache-2.0

/// MU-Net's relay and the program's side of an endpoint, without processes: what munet.h promises,
/// and what the relay does about programs that lie. Several nodes of one process meet by a wire.

#include "tests/support/broken.hpp"
#include "tests/support/munet_node.hpp"
#include "tests/support/patterns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace ports::munet {

struct PlantedBug {
    static void miscount_the_backlog(Relay& relay) { ++relay.backlogged_; }
};

}  // namespace ports::munet

namespace rmem::test {
namespace {

using namespace ports::munet;
using ports::munet::Counter;

/// For what must come, on any host.
Deadline patience() {
    return Deadline::in(30'000'000'000);
}

int send(MunetEndpoint& from, MunetEndpoint& to, const std::vector<std::byte>& data,
         bool dma = false, Deadline deadline = patience()) {
    auto& program = from.program();
    return dma ? program.send_dma(to.address(), data.data(), data.size(), deadline)
               : program.send(to.address(), data.data(), data.size(), deadline);
}
int send(MunetEndpoint& from, MunetEndpoint& to, std::uint32_t number) {
    return from.program().send(to.address(), &number, sizeof number, Deadline::now());
}

/// Sends, and lets it come to where it goes.
void deliver(MunetNode& node, MunetEndpoint& from, MunetEndpoint& to,
             const std::vector<std::byte>& data, bool dma = false) {
    EXPECT_EQ(send(from, to, data, dma), 0);
    node.settle();
}
void deliver(MunetNode& node, MunetEndpoint& from, MunetEndpoint& to, std::uint32_t number) {
    EXPECT_EQ(send(from, to, number), 0);
    node.settle();
}

/// The next message; empty where there is none.
std::vector<std::byte> next_of(MunetEndpoint& at, Address* from = nullptr) {
    std::vector<std::byte> data(1 << 20);
    const int result = at.program().recv(data.data(), data.size(), from);
    data.resize(static_cast<std::size_t>(std::max(result, 0)));
    return data;
}
/// What a receive returns; the message is gone.
int take(MunetEndpoint& at, Address* from = nullptr) {
    std::vector<std::byte> data(1 << 20);
    return at.program().recv(data.data(), data.size(), from);
}
std::uint32_t next_number(MunetEndpoint& at) {
    std::uint32_t number = ~0U;
    const int result = at.program().recv(&number, sizeof number, nullptr);
    EXPECT_EQ(result, 4);
    return number;
}

/// Writes a descriptor as no library would: in place of the program, which must not send
/// afterwards.
class Liar {
public:
    explicit Liar(MunetEndpoint& endpoint) : endpoint_(endpoint), next_(0) {}
    void write(Kind kind, std::uint8_t slot, std::uint32_t length, std::uint64_t credit = 0,
               std::uint64_t first_word = 0) {
        DescriptorEntry& entry = endpoint_.words().descriptors()[next_ % kDescriptors];
        std::memcpy(entry.data.data(), &first_word, sizeof first_word);
        entry.credit = credit;
        const auto mark = static_cast<std::uint8_t>(1 + next_ / kDescriptors % 2);
        // relaxed is enough: one thread
        entry.control.store(
            Control{.mark = mark, .kind = kind, .index = slot, .length = length}.word(),
            std::memory_order_relaxed);
        ++next_;
    }
    /// As many as the endpoint's program has written by itself.
    void skip(unsigned descriptors) { next_ += descriptors; }

private:
    MunetEndpoint& endpoint_;
    unsigned next_;
};

/// A node with two endpoints.
struct MunetPair : testing::Test {
    MunetNode node;
    MunetEndpoint &a = node.create(), &b = node.create();
};

// ---- Messages

TEST(MunetRelay, carries_messages_of_all_sizes_by_both_sends) {
    MunetNode node(2);
    auto &a = node.create(1 << 18, 1 << 19), &b = node.create(1 << 18, 1 << 19);
    unsigned seed = 0;
    for (const bool dma : {false, true}) {
        for (const std::size_t size : std::initializer_list<std::size_t>{
                 0,   1,   8,   47,  48,   49,   111,   112,   113,   127,    128,
                 129, 240, 248, 249, 1000, 4096, 16384, 16385, 65536, 100'000}) {
            const auto data = pattern(size, ++seed);
            ASSERT_EQ(send(a, b, data, dma), 0) << size;
            node.settle();
            Address from{9, 9};
            EXPECT_EQ(b.program().probe(nullptr), static_cast<int>(size));
            EXPECT_EQ(next_of(b, &from), data) << size << " dma " << dma;
            EXPECT_EQ(from, a.address());
        }
    }
    EXPECT_EQ(b.count(Counter::no_room), 0U);
}

TEST_F(MunetPair, has_no_message_where_none_was_sent_and_tells_it_from_an_empty_one) {
    EXPECT_EQ(take(b), -EAGAIN);
    deliver(node, a, b, std::vector<std::byte>());
    EXPECT_EQ(take(b), 0);
    EXPECT_EQ(take(b), -EAGAIN);
}

TEST(MunetRelay, keeps_the_order_of_one_sender_over_all_sizes_and_many_laps) {
    MunetNode node(2);
    auto &a = node.create(4096, 8192), &b = node.create(4096, 8192);
    std::mt19937 random(7);
    unsigned sent = 0, received = 0;
    while (received < 5000) {
        const std::size_t size = 4 + random() % 600;
        std::vector<std::byte> data(size);
        std::memcpy(data.data(), &sent, sizeof sent);
        if (sent < 5000 && send(a, b, data, random() % 2 == 0, Deadline::now()) == 0) ++sent;
        node.turn();
        if (random() % 2 == 0) continue;
        const auto found = next_of(b);
        if (found.empty()) continue;
        // One in parts whose sender found no room for the rest is never seen, so numbers may repeat
        // but not go back.
        unsigned number = 0;
        std::memcpy(&number, found.data(), sizeof number);
        ASSERT_EQ(number, received);
        ++received;
    }
    EXPECT_EQ(b.count(Counter::no_room), 0U);
    EXPECT_EQ(a.count(Counter::over_credit), 0U);
}

TEST(MunetRelay, keeps_messages_of_several_senders_whole_that_come_in_parts_at_once) {
    MunetNode node(3);
    auto &b = node.create(0, 1 << 16), &a = node.create(), &c = node.create();
    const auto from_a = pattern(5000, 1), from_c = pattern(7000, 2);
    // Each send waits for descriptors, and the node's turns in between let the other's parts in.
    node.others = [&, done = false]() mutable {
        if (std::exchange(done, true)) return;
        ASSERT_EQ(send(c, b, from_c), 0);
    };
    ASSERT_EQ(send(a, b, std::vector<std::byte>(1)), 0);
    deliver(node, a, b, from_a);
    std::vector<std::vector<std::byte>> found;
    for (int i = 0; i < 3; ++i) found.push_back(next_of(b));
    EXPECT_EQ(std::count(found.begin(), found.end(), from_a), 1);
    EXPECT_EQ(std::count(found.begin(), found.end(), from_c), 1);
}

TEST_F(MunetPair, leaves_a_message_that_is_too_long_for_the_buffer_given) {
    for (const std::size_t size : {100UL, 1000UL}) {
        deliver(node, a, b, pattern(size, 3));
        std::byte small[8];
        EXPECT_EQ(b.program().recv(small, sizeof small, nullptr), -EMSGSIZE);
        EXPECT_EQ(b.program().probe(nullptr), static_cast<int>(size));
        EXPECT_EQ(next_of(b), pattern(size, 3));
    }
}

TEST(MunetRelay, refuses_messages_that_can_never_fit) {
    MunetNode node(4);
    auto &a = node.create(1024, 65536), &b = node.create();
    const auto most = static_cast<std::size_t>(a.program().most(b.address(), patience()));
    EXPECT_EQ(most, most_bytes(node.geometry(0, 65536).share()));
    EXPECT_EQ(send(a, b, pattern(most + 1, 1)), -EMSGSIZE);
    EXPECT_EQ(send(a, b, pattern(1025, 1), true), -EMSGSIZE) << "the send buffer is of 1024 bytes";
    ASSERT_EQ(send(a, b, pattern(most, 1), false, Deadline::in(100'000'000)), -ETIMEDOUT)
        << "in parts it takes more lines than the share, and nobody receives";
}

TEST(MunetRelay, sends_the_longest_message_over_and_over) {
    MunetNode node(4);
    auto &a = node.create(65536, 65536), &b = node.create();
    const auto most = static_cast<std::size_t>(a.program().most(b.address(), patience()));
    for (unsigned i = 0; i < 50; ++i) {
        ASSERT_EQ(send(a, b, pattern(most, i), true), 0) << i;
        node.settle();
        ASSERT_EQ(next_of(b), pattern(most, i));
    }
}

// ---- send_DMA -----------------------------------------------------------------------------------

TEST_F(MunetPair, fetches_long_messages_by_itself_and_lets_short_ones_go_as_by_send) {
    deliver(node, a, b, pattern(128, 1), true);
    EXPECT_EQ(a.count(Counter::moved), 0U);
    ASSERT_EQ(send(a, b, pattern(129, 1), true), 0);
    next_of(b);
    EXPECT_EQ(take(b), -EAGAIN) << "the call moves nothing by itself";
    node.settle();
    EXPECT_EQ(take(b), 129);
    EXPECT_EQ(a.count(Counter::moved), 1U);
}

TEST_F(MunetPair, copies_what_is_sent_so_that_it_may_be_changed_after_the_call) {
    auto data = pattern(3000, 1);
    ASSERT_EQ(send(a, b, data, true), 0);
    std::fill(data.begin(), data.end(), std::byte{0});
    node.settle();
    EXPECT_EQ(next_of(b), pattern(3000, 1));
}

TEST(MunetRelay, reuses_the_send_buffer_as_messages_leave_it) {
    MunetNode node(1);
    auto &a = node.create(4096, 65536), &b = node.create(0, 65536);
    std::mt19937 random(3);
    for (unsigned i = 0; i < 2000; ++i) {
        const auto data = pattern(129 + random() % 1800, i);
        ASSERT_EQ(send(a, b, data, true), 0);
        if (random() % 3 != 0) continue;
        node.settle();
        while (take(b) >= 0) {
        }
    }
    EXPECT_EQ(a.count(Counter::bad_descriptors), 0U);
}

TEST(MunetRelay, moves_a_long_message_in_pieces_and_others_in_between) {
    MunetNode node(2);
    auto &a = node.create(1 << 18, 1 << 19), &b = node.create(1 << 18, 1 << 19);
    auto &c = node.create(), &d = node.create();
    deliver(node, c, d, 0);
    ASSERT_EQ(next_number(d), 0U);
    ASSERT_EQ(send(a, b, pattern(100'000, 1), true), 0);
    node.turn();
    EXPECT_EQ(take(b), -EAGAIN) << "100 kB take more than one turn";
    ASSERT_EQ(send(c, d, 1), 0);
    node.turn();
    EXPECT_EQ(next_number(d), 1U) << "others do not wait for it";
    node.settle();
    EXPECT_EQ(next_of(b), pattern(100'000, 1));
}

TEST(MunetRelay, shows_nothing_old_behind_what_came_while_a_long_message_was_moved) {
    MunetNode node(2);
    auto& c = node.create();  // first, so that its turn comes before the rest of a's message
    auto &a = node.create(1 << 16, 1 << 16), &b = node.create(0, 1 << 16);
    for (std::uint32_t i = 0; i < 300; ++i) {
        const auto data = pattern(17'000, i);
        ASSERT_EQ(send(a, b, data, true), 0);
        node.turn();
        deliver(node, c, b, i);
        ASSERT_EQ(next_of(b), data) << i;
        ASSERT_EQ(next_number(b), i);
        ASSERT_EQ(take(b), -EAGAIN) << i;
    }
}

// ---- Credit

TEST_F(MunetPair, lets_a_sender_wait_once_its_share_is_used_up_and_go_on_when_it_was_received) {
    const unsigned share = node.geometry(0, 65536).share();
    unsigned sent = 0;
    while (send(a, b, sent) == 0) {
        ++sent;
        node.settle();
    }
    EXPECT_EQ(sent, share);
    EXPECT_EQ(send(a, b, sent), -ETIMEDOUT);
    for (unsigned i = 0; i < share; ++i) EXPECT_EQ(next_number(b), i);
    node.settle();
    EXPECT_EQ(send(a, b, 5), 0);
    EXPECT_EQ(b.count(Counter::credits), 4U) << "one for each quarter of the share";
}

TEST_F(MunetPair, returns_credit_with_messages_the_other_way) {
    for (unsigned i = 0; i < 20'000; ++i) {
        ASSERT_EQ(send(a, b, i), 0) << i;
        node.settle();
        ASSERT_EQ(next_number(b), i);
        ASSERT_EQ(send(b, a, i), 0) << i;
        node.settle();
        ASSERT_EQ(next_number(a), i);
    }
    EXPECT_EQ(a.count(Counter::credits) + b.count(Counter::credits), 0U)
        << "no message only for credit";
}

TEST(MunetRelay, drops_what_a_liar_sends_without_credit_and_counts_it) {
    MunetNode node(2);
    auto &b = node.create(), &liar = node.create(), &a = node.create();
    ASSERT_EQ(send(liar, b, 0), 0);
    deliver(node, a, b, 0);
    const unsigned share = node.geometry(0, 65536).share();
    Liar lies(liar);
    lies.skip(2);  // asking, and the first message
    for (unsigned i = 0; i < 3 * share; ++i) {
        lies.write(Kind::whole, 0, 4, 0, i);
        node.settle();
    }
    EXPECT_EQ(liar.count(Counter::over_credit), 3 * share - (share - 1));
    deliver(node, a, b, 1);
    EXPECT_EQ(b.count(Counter::received), share + 2);
    EXPECT_EQ(b.count(Counter::no_room), 0U);
}

TEST_F(MunetPair, believes_nobody_credit_for_what_was_not_sent) {
    deliver(node, a, b, 0);
    Liar lies(b);
    lies.write(Kind::credit, 0, 0, Credit{true, 0, 1}.word());
    lies.write(Kind::credit, 0, 0, Credit{true, 0, 1000}.word());
    lies.write(Kind::credit, 0, 0, Credit{true, 1, 1}.word());
    lies.write(Kind::credit, 0, 0, Credit{true, 200, 1}.word());
    lies.write(Kind::credit, 0, 0, Credit{false, 0, 1}.word());
    node.settle();
    EXPECT_EQ(b.count(Counter::bad_credits), 4U);
    // relaxed is enough: one thread
    EXPECT_EQ(a.words().daemon().returned[0].load(std::memory_order_relaxed), 1U);
}

TEST_F(MunetPair,
       drops_messages_for_an_endpoint_that_gave_credit_without_room_and_harms_nobody_else) {
    auto& c = node.create();
    ASSERT_EQ(send(a, c, 0), 0);
    Liar lies(b);
    unsigned sent = 0;
    for (; sent < 3000; ++sent) {
        ASSERT_EQ(send(a, b, sent), 0) << sent;
        lies.write(Kind::credit, 0, 0, Credit{true, 0, sent}.word());  // never consumes
        node.settle();
    }
    EXPECT_GT(b.count(Counter::no_room), 1000U);
    deliver(node, a, c, 1);
    EXPECT_EQ(next_number(c), 0U);
    EXPECT_EQ(next_number(c), 1U);
}

TEST_F(MunetPair, believes_nobody_to_have_consumed_what_was_never_there) {
    while (send(a, b, 1) == 0) node.settle();
    // relaxed is enough: one thread
    b.words().program().consumed.store(1'000'000, std::memory_order_relaxed);
    auto& c = node.create();
    deliver(node, c, b, 1);
    EXPECT_GT(b.count(Counter::bad_consumed), 0U);
}

TEST_F(MunetPair, lets_nobody_make_a_receiver_keep_more_than_the_longest_message) {
    auto& c = node.create();
    ASSERT_EQ(send(a, b, 0), 0);
    deliver(node, c, b, 0);
    next_number(b);
    next_number(b);
    const std::size_t most = most_bytes(node.geometry(0, 65536).share());
    Liar lies(a);
    lies.skip(2);  // asking, and the first message
    const std::size_t parts = (most + sizeof(std::uint64_t)) / kInline + 2;
    lies.write(Kind::first, 0, kInline, 0, parts * kInline - sizeof(std::uint64_t));
    for (std::size_t i = 1; i < parts; ++i) {
        lies.write(i + 1 == parts ? Kind::last : Kind::more, 0, kInline);
        node.settle();
        ASSERT_EQ(take(b), -EAGAIN) << i;
        node.settle();
    }
    EXPECT_EQ(a.count(Counter::over_credit), 0U) << "all of it came";
    deliver(node, c, b, 5);
    EXPECT_EQ(next_number(b), 5U);
}

// ---- Destinations

TEST(MunetRelay, admits_no_more_senders_than_places_and_gives_those_of_the_dead_to_others) {
    MunetNode node(4);
    auto& b = node.create();
    std::vector<MunetEndpoint*> senders;
    for (int i = 0; i < 5; ++i) senders.push_back(&node.create());
    for (int i = 0; i < 4; ++i) EXPECT_EQ(send(*senders[static_cast<unsigned>(i)], b, 1), 0);
    EXPECT_EQ(send(*senders[4], b, 1), -EUSERS);
    EXPECT_EQ(b.count(Counter::turned_away), 1U);
    node.destroy(*senders[0]);
    EXPECT_EQ(send(*senders[4], b, 1), -EUSERS) << "what the dead one sent still takes its share";
    EXPECT_EQ(next_number(b), 1U);
    EXPECT_EQ(send(*senders[4], b, 1), 0);
}

TEST(MunetRelay, lets_no_user_take_all_places_of_another) {
    MunetNode node(4);
    auto& b = node.create(0, 65536, 1);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(send(node.create(0, 65536, 2), b, 1), 0);
    EXPECT_EQ(send(node.create(0, 65536, 2), b, 1), -EUSERS);
    EXPECT_EQ(send(node.create(0, 65536, 3), b, 1), 0);
    EXPECT_EQ(send(node.create(0, 65536, 1), b, 1), 0) << "of the same user";
}

TEST_F(MunetPair, tells_senders_once_that_an_endpoint_is_gone_and_they_may_reach_its_successor) {
    const Address there = b.address();
    deliver(node, a, b, 1);
    node.destroy(b);
    EXPECT_EQ(a.program().send(there, "x", 1, Deadline::now()), -ECONNRESET);
    EXPECT_EQ(a.program().send(there, "x", 1, Deadline::now()), -ECONNREFUSED);
    auto& c = node.create();
    ASSERT_EQ(c.address(), there);
    deliver(node, a, c, 3);
    EXPECT_EQ(next_number(c), 3U) << "and nothing that was sent to its predecessor";
}

TEST(MunetRelay, takes_what_an_endpoint_had_sent_before_it_was_destroyed) {
    MunetNode node(2);
    auto &a = node.create(1 << 18, 1 << 19), &b = node.create(1 << 18, 1 << 19);
    ASSERT_EQ(send(a, b, 1), 0);
    ASSERT_EQ(send(a, b, pattern(60'000, 4), true), 0);
    ASSERT_EQ(send(a, b, 2), 0);
    node.destroy(a);
    EXPECT_EQ(next_number(b), 1U);
    EXPECT_EQ(next_of(b), pattern(60'000, 4));
    EXPECT_EQ(next_number(b), 2U);
}

TEST(MunetRelay, goes_on_when_a_destination_ends_while_a_message_is_moved_to_it) {
    MunetNode node(2);
    auto &a = node.create(1 << 18, 1 << 19), &b = node.create(1 << 18, 1 << 19), &c = node.create();
    ASSERT_EQ(send(a, c, 1), 0);
    ASSERT_EQ(send(a, b, pattern(100'000, 4), true), 0);
    ASSERT_EQ(send(a, c, 2), 0);
    node.turn();
    node.destroy(b);
    node.settle();
    EXPECT_EQ(a.count(Counter::undelivered), 1U);
    EXPECT_EQ(next_number(c), 1U);
    EXPECT_EQ(next_number(c), 2U);
}

TEST(MunetRelay, has_numbers_for_256_endpoints_and_gives_them_out_again) {
    MunetNode node(1);
    for (unsigned i = 0; i < kEndpoints; ++i) EXPECT_EQ(node.create(0, 1024).number(), i);
    std::vector<std::byte> none(8192);
    rmem::Counters counters{};
    EXPECT_EQ(node.relay.open(none, node.geometry(0, 1024), 0, {&counters, 1}), -1);
    node.destroy(*node.endpoints[100]);
    EXPECT_EQ(node.relay.active(), 255U);
    EXPECT_EQ(node.create(0, 1024).number(), 100U);
}

TEST(MunetRelay, has_no_more_than_256_destinations_for_an_endpoint) {
    MunetWire wire(2);
    MunetNode here(4, &wire, 0), there(4, &wire, 1);
    here.others = [&] { there.turn(); };
    auto& a = here.create();
    for (unsigned i = 0; i < kEndpoints; ++i) {
        ASSERT_EQ(a.program().send(there.create(0, 2048).address(), "x", 1, Deadline::now()), 0);
    }
    EXPECT_EQ(send(a, a, 1), -ENOBUFS);
}

// ---- Turns

TEST(MunetRelay, takes_a_bounded_number_of_each_endpoint_in_a_turn) {
    MunetNode node(2);
    auto &flood = node.create(), &a = node.create(), &b = node.create();
    ASSERT_EQ(send(flood, b, 0), 0);
    deliver(node, a, b, 0);
    for (unsigned i = 0; i < 60; ++i) ASSERT_EQ(send(flood, b, i), 0);
    ASSERT_EQ(send(a, b, 1), 0);
    node.relay.turn();
    EXPECT_EQ(a.count(Counter::sent), 2U);
    EXPECT_EQ(flood.count(Counter::sent), 1U + kTurnMessages);
}

TEST_F(MunetPair, wakes_programs_that_sleep_and_no_others) {
    deliver(node, a, b, 0);
    EXPECT_TRUE(node.wakes.empty());
    // relaxed is enough: one thread
    b.words().program().sleeps.store(1, std::memory_order_relaxed);
    deliver(node, a, b, 1);
    EXPECT_EQ(node.wakes[b.number()], 1U);
    EXPECT_EQ(node.wakes.count(a.number()), 0U);
}

TEST_F(MunetPair, is_rung_for_only_when_it_says_that_it_sleeps) {
    ASSERT_EQ(send(a, b, 0), 0);
    EXPECT_EQ(a.rings, 0U);
    // relaxed is enough: one thread
    a.words().daemon().sleeps.store(1, std::memory_order_relaxed);
    ASSERT_EQ(send(a, b, 0), 0);
    EXPECT_EQ(a.rings, 1U);
}

TEST(RelayDeathTest, checks_that_it_knows_what_waits_for_a_link) {
    MunetWire wire(2);
    MunetNode node(4, &wire, 0);
    node.relay.lose(1);
    EXPECT_BROKEN(PlantedBug::miscount_the_backlog(node.relay); node.relay.lose(1));
}

}  // namespace
}  // namespace rmem::test
