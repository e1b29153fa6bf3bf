// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// The node behind a card: who is there, writes that wait for room, errors that are told once.

#include "cards/common/card_node.hpp"

#include "tests/support/broken.hpp"
#include "tests/support/card_units.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <future>

namespace rmem::test {
namespace {

using cards::CardNode;
using cards::CountedError;

/// Two nodes with two ranks each.
struct CardNodes : ::testing::Test {
    const CardUnits units{LinkKind::direct, 2, {{"RMEM_RANKS", "4"}}};

    static CardNode open(unsigned unit) {
        int code = RMEM_OK;
        return CardNode(unit, cards::open_unit(unit, code));
    }
    static unsigned present(const CardNode& node) {
        const auto lock = node.lock();
        return node.present_nodes();
    }
};

TEST_F(CardNodes, count_nodes_and_not_programs) {
    const CardNode a = open(1);
    EXPECT_EQ(a.id(), 1U);
    EXPECT_EQ(present(a), 1U);
    const CardNode same = open(1);
    EXPECT_EQ(present(a), 1U);
    const CardNode b = open(0);
    EXPECT_EQ(present(a), 2U);
    EXPECT_EQ(present(b), 2U);
}

TEST_F(CardNodes, cover_the_memory_and_no_more) {
    const CardNode node = open(0);
    const std::uint64_t end = CardUnits::kBytes;
    EXPECT_EQ(node.memory_bytes(), end);
    EXPECT_TRUE(node.covers(0, end));
    EXPECT_TRUE(node.covers(end - 4, 4));
    EXPECT_TRUE(node.covers(end, 0));
    for (const std::uint64_t offset : {end - 4, end, ~std::uint64_t{0} - 3})
        EXPECT_FALSE(node.covers(offset, 8));
    EXPECT_THAT(rmem_last_error(), ::testing::HasSubstr("8 bytes at 0xfffffffffffffffc are bey"));
    EXPECT_FALSE(node.covers(0, end + 1));
}

TEST(PiecesOfATransfer, end_with_a_word_of_their_own) {
    for (const auto& [left, piece] : {std::pair{0, 0},
                                      {3, 3},
                                      {4, 4},
                                      {6, 4},
                                      {8, 4},
                                      {12, 8},
                                      {4096, 4092},
                                      {4100, 4096},
                                      {8192, 4096}})
        EXPECT_EQ(CardNode::piece_of(std::size_t(left)), std::size_t(piece)) << left;
}

TEST_F(CardNodes, send_again_until_there_is_room_and_let_others_in_meanwhile) {
    const CardNode node = open(0);
    bool is_let_in = false;
    std::future<void> other;
    const int code = node.send_out([&]() -> int {
        if (is_let_in) return RMEM_EPEER;
        if (!other.valid()) {
            other = std::async(std::launch::async, [&] {
                const auto lock = node.lock();
                is_let_in = true;
            });
        }
        return RMEM_EAGAIN;
    });
    other.wait();
    EXPECT_EQ(code, RMEM_EPEER);
}

TEST_F(CardNodes, give_up_where_there_is_no_room_for_long) {
    const CardNode node = open(0);
    int calls = 0;
    EXPECT_EQ(node.send_out([&]() -> int { return ++calls, RMEM_EAGAIN; }), RMEM_ETIMEDOUT);
    EXPECT_GT(calls, 1);
    EXPECT_THAT(rmem_last_error(), ::testing::HasSubstr("no room for 2 s"));
}

TEST(CardNodeOfARing, times_no_round_that_does_not_end) {
    const CardUnits units{LinkKind::udp};
    Child other([] {
        const CardNode node = CardNodes::open(1);
        EXPECT_TRUE(comes([&] { return rmem_load(node, 0) == 1; }));
        ::raise(SIGSTOP);
    });
    const CardNode node = CardNodes::open(0);
    EXPECT_EQ(node.send_out([&] { return rmem_write_word(node, 0, 1); }), RMEM_OK);
    other.await_stop();
    const auto round = [&] {
        const auto lock = node.lock();
        return node.measure_round();
    };
    EXPECT_EQ(round(), std::nullopt);
    other.resume();
    EXPECT_EQ(other.wait(), 0);
    EXPECT_TRUE(comes([&] { return round().value_or(0) > 0; }));
}

TEST_F(CardNodes, tell_of_each_error_once) {
    constexpr std::array kErrors = {CountedError{1, "writes_sent"}, CountedError{2, "bytes_sent"},
                                    CountedError{4, nullptr}};
    const CardNode node = open(0);
    const auto lock = node.lock();
    cards::CountedErrors errors(node, kErrors);
    EXPECT_EQ(errors.news(), 0U);
    EXPECT_EQ(node.write(0, "12345678", 8), RMEM_OK);
    cards::CountedErrors later(node, kErrors);
    for (int look = 0; look < 2; ++look) EXPECT_EQ(errors.news(), 3U);
    EXPECT_EQ(errors.tell(1), 1U);
    EXPECT_EQ(errors.news(), 2U);
    EXPECT_EQ(errors.tell(), 2U);
    EXPECT_EQ(errors.tell(), 0U);
    EXPECT_EQ(later.tell(), 3U);
    EXPECT_EQ(errors.sum(1), 1U);
    EXPECT_EQ(errors.sum(2), 8U);
    EXPECT_EQ(errors.sum(), 9U);
    EXPECT_EQ(node.write(4, "abcd", 4), RMEM_OK);
    EXPECT_EQ(errors.news(), 3U);
    EXPECT_EQ(errors.sum(1), 2U);
}

// ---- Invariants

TEST_F(CardNodes, let_nobody_have_the_lock_twice) {
    const CardNode node = open(0);
    const auto lock = node.lock();
    EXPECT_BROKEN_WHERE_CHECKED(static_cast<void>(node.lock()));
}

TEST_F(CardNodes, let_in_no_number_that_raises_nothing) {
    const CardNode node = open(0);
    const auto lock = node.lock();
    EXPECT_EQ(node.accept(cards::numbers_from(0, cards::kRingTestNumber)), RMEM_OK);
    EXPECT_BROKEN(static_cast<void>(node.accept(1ULL << cards::kRingTestNumber)));
}

/// What calls of the node one thread may make at a time.
[[maybe_unused]] void without_lock(const std::string& what, const CardNode& node) {
    if (what == "write") static_cast<void>(node.write(0, "1234", 4));
    if (what == "count") static_cast<void>(node.count_of("writes_sent"));
    if (what == "member") static_cast<void>(node.is_member());
    if (what == "present") static_cast<void>(node.is_present(1));
    if (what == "round") static_cast<void>(node.measure_round());
    if (what == "accept") static_cast<void>(node.accept(0));
    if (what == "drop") node.drop_interrupts();
}

struct CardNodesWithoutLock : CardNodes, ::testing::WithParamInterface<const char*> {};

TEST_P(CardNodesWithoutLock, make_no_call_that_is_one_threads) {
    const CardNode node = open(0);
    EXPECT_BROKEN_WHERE_CHECKED(without_lock(GetParam(), node));
}
INSTANTIATE_TEST_SUITE_P(Calls, CardNodesWithoutLock,
                         ::testing::Values("write", "count", "member", "present", "round", "accept",
                                           "drop"));

TEST_F(CardNodes, ask_for_no_node_that_there_is_not) {
    const CardNode node = open(0);
    const auto lock = node.lock();
    EXPECT_BROKEN_WHERE_CHECKED(static_cast<void>(node.is_present(2)));
}

}  // namespace
}  // namespace rmem::test
