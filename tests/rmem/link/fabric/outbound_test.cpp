// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/fabric/outbound.hpp"

#include <gmock/gmock.h>

#include <deque>
#include <map>
#include <random>
#include <vector>

namespace rmem::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A provider that takes, refuses and fails as it is told.
class FakeWire final : public Wire {
public:
    struct Has {
        unsigned peer;
        Piece* piece;
        unsigned address;
    };

    Given give(unsigned peer, const Piece& piece, unsigned racks) noexcept override {
        const Given answer = answers[peer];
        if (answer == Given::taken) {
            arrived[peer].push_back(static_cast<int>(piece.length));
            marks[peer] = racks;
        }
        if (answer == Given::taken)
            has.push_back({peer, &const_cast<Piece&>(piece), addresses[peer]});
        return answer;
    }

    std::map<unsigned, unsigned> addresses;
    std::map<unsigned, Given> answers;
    std::map<unsigned, std::vector<int>> arrived;  ///< numbers of pieces
    std::map<unsigned, unsigned> marks;
    std::deque<Has> has;
};

class OutboundTo : public ::testing::Test {
protected:
    static constexpr std::int64_t kSecond = 1'000'000'000;

    void SetUp() override {
        for (unsigned n = 0; n < 3; ++n) wire_.answers[n] = Wire::Given::taken;
    }
    /// A piece of that number, to these.
    void send(int number, std::initializer_list<unsigned> peers, std::int64_t now = 0,
              unsigned racks = 0) {
        Piece* const piece = pieces_.take(100);
        ASSERT_NE(piece, nullptr);
        piece->length = static_cast<std::size_t>(number);
        piece->datagrams = 1;
        for (const unsigned peer : peers) outbound_.send(peer, *piece, racks, now);
        pieces_.leave(*piece);
    }
    void reach_next() {
        const auto done = wire_.has.front();
        wire_.has.pop_front();
        outbound_.has_reached(done.peer, done.address, *done.piece);
    }
    void fail_next(std::int64_t now) {
        const auto failed = wire_.has.front();
        wire_.has.pop_front();
        outbound_.has_failed(failed.peer, failed.address, *failed.piece, now);
    }
    void complete() {
        while (!wire_.has.empty()) reach_next();
    }
    void meet(unsigned peer) {
        send(0, {peer});
        complete();
        wire_.arrived[peer].clear();
        ASSERT_TRUE(outbound_.is_met(peer));
    }

    FakeWire wire_;
    Pieces pieces_{nullptr};
    Outbound outbound_{3, Outbound::kMaxGiven, pieces_, wire_};
};

TEST_F(OutboundTo, keeps_a_piece_until_each_peer_has_it) {
    send(1, {0, 1, 2});
    EXPECT_EQ(pieces_.in_use(), 1U);
    for (int left = 3; left > 0; --left) {
        EXPECT_EQ(pieces_.in_use(), 1U);
        reach_next();
    }
    EXPECT_EQ(pieces_.in_use(), 0U);
    EXPECT_EQ(outbound_.sent(), 3U);
    EXPECT_EQ(outbound_.under_way(), 0U);
}

TEST_F(OutboundTo, keeps_the_order_of_a_peer_that_has_no_room) {
    meet(1);
    send(1, {1});
    wire_.answers[1] = Wire::Given::full;
    send(2, {1});
    wire_.answers[1] = Wire::Given::taken;
    send(3, {1});
    EXPECT_THAT(wire_.arrived[1], ElementsAre(1)) << "the third one waits behind the second";
    EXPECT_NE(outbound_.due_ns(), kNever);
    outbound_.retry(kSecond);
    EXPECT_THAT(wire_.arrived[1], ElementsAre(1, 2, 3));
    EXPECT_EQ(outbound_.due_ns(), kNever);
    complete();
    EXPECT_EQ(pieces_.in_use(), 0U);
}

TEST_F(OutboundTo, lets_no_peer_wait_for_another_one) {
    meet(0), meet(1), meet(2);
    wire_.answers[1] = Wire::Given::full;
    for (int i = 1; i < 50; ++i) send(i, {0, 1, 2});
    EXPECT_EQ(wire_.arrived[0].size(), 49U);
    EXPECT_EQ(wire_.arrived[2].size(), 49U);
    EXPECT_THAT(wire_.arrived[1], IsEmpty());
}

TEST_F(OutboundTo, drops_the_oldest_for_a_peer_that_was_never_met) {
    wire_.answers[2] = Wire::Given::full;
    for (int i = 1; i <= 20; ++i) send(i, {2});
    EXPECT_EQ(outbound_.under_way(), Outbound::kMaxUnmet);
    EXPECT_EQ(outbound_.not_sent().no_room, 20 - Outbound::kMaxUnmet);
    wire_.answers[2] = Wire::Given::taken;
    outbound_.retry(kSecond);
    EXPECT_EQ(wire_.arrived[2].front(), static_cast<int>(21 - Outbound::kMaxUnmet));
    EXPECT_EQ(wire_.arrived[2].back(), 20);
}

TEST_F(OutboundTo, bounds_what_waits_and_what_the_provider_has) {
    meet(0);
    const auto most = Outbound::kMaxGiven + Outbound::kMaxWaiting;
    for (unsigned i = 0; i < most + 10; ++i) send(1, {0});
    EXPECT_EQ(wire_.has.size(), Outbound::kMaxGiven);
    EXPECT_EQ(outbound_.under_way(), most);
    EXPECT_EQ(outbound_.not_sent().no_room, 10U);
}

TEST_F(OutboundTo, leaves_a_peer_alone_for_longer_each_time_it_fails) {
    wire_.answers[1] = Wire::Given::failed;
    std::int64_t now = 0, pause = Outbound::kLeastPauseNs;
    for (int tries = 0; tries < 12; ++tries) {
        send(1, {1}, now);
        EXPECT_TRUE(outbound_.is_out(1));
        wire_.answers[1] = Wire::Given::taken;
        send(2, {1}, now + pause - 1);
        EXPECT_THAT(wire_.arrived[1], IsEmpty()) << "after " << tries << " failures";
        wire_.answers[1] = Wire::Given::failed;
        now += pause;
        pause = std::min(2 * pause, Outbound::kMaxPauseNs);
    }
    EXPECT_EQ(outbound_.not_sent().refused, 24U);
    now -= Outbound::kMaxPauseNs - 1;
    outbound_.may_be_back(1);
    send(3, {1}, now);
    wire_.answers[1] = Wire::Given::taken;
    send(4, {1}, now + 2 * Outbound::kLeastPauseNs);
    complete();
    EXPECT_FALSE(outbound_.is_out(1));
    EXPECT_TRUE(outbound_.is_met(1));
}

TEST_F(OutboundTo, leaves_a_peer_alone_once_for_all_that_fails_together) {
    meet(1);
    for (int i = 1; i <= 4; ++i) send(i, {1});
    for (int i = 1; i <= 4; ++i) fail_next(5);
    send(5, {1}, 5 + Outbound::kLeastPauseNs);
    EXPECT_THAT(wire_.arrived[1], ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(OutboundTo, drops_what_waits_for_a_peer_whose_connection_breaks) {
    meet(1);
    const std::uint64_t changes = outbound_.changes();
    send(1, {1});
    wire_.answers[1] = Wire::Given::full;
    send(2, {1});
    send(3, {1});
    fail_next(5);
    EXPECT_FALSE(outbound_.is_met(1));
    EXPECT_NE(outbound_.changes(), changes);
    EXPECT_EQ(outbound_.not_sent().refused, 3U);
    EXPECT_EQ(outbound_.under_way(), 0U);
    EXPECT_EQ(pieces_.in_use(), 0U);
}

TEST_F(OutboundTo, asks_less_and_less_often_a_provider_that_connects_and_gives_up) {
    meet(1);
    wire_.answers[1] = Wire::Given::full;
    send(1, {1}, 1);
    unsigned tries = 0;
    std::int64_t now = 1;
    while (!outbound_.is_out(1) && tries < 1000) {
        now = outbound_.due_ns();
        ASSERT_NE(now, kNever);
        outbound_.retry(now);
        ++tries;
    }
    EXPECT_LT(tries, 60U);
    EXPECT_GE(now, Outbound::kConnectNs);
    EXPECT_LT(now, 2 * Outbound::kConnectNs);
    outbound_.retry(outbound_.due_ns());
    EXPECT_EQ(outbound_.due_ns(), kNever);
    EXPECT_EQ(pieces_.in_use(), 0U);
}

TEST_F(OutboundTo, tries_again_as_soon_as_something_has_ended) {
    meet(1);
    send(1, {1});
    wire_.answers[1] = Wire::Given::full;
    send(2, {1});
    wire_.answers[1] = Wire::Given::taken;
    complete();
    outbound_.retry(1);
    EXPECT_THAT(wire_.arrived[1], ElementsAre(1, 2));
}

TEST_F(OutboundTo, owes_nothing_to_the_former_address_of_a_peer) {
    meet(1);
    for (unsigned i = 0; i < Outbound::kMaxGiven + 5; ++i) send(1, {1});
    const std::uint64_t changes = outbound_.changes();
    outbound_.has_moved(1);
    wire_.addresses[1] = outbound_.address_of(1);
    EXPECT_FALSE(outbound_.is_met(1));
    EXPECT_NE(outbound_.changes(), changes);
    outbound_.retry(kSecond);
    EXPECT_EQ(wire_.has.size(), Outbound::kMaxGiven + 5) << "it is as free as a new one";
    fail_next(kSecond);
    EXPECT_FALSE(outbound_.is_out(1)) << "that was where it had been";
    complete();
    EXPECT_TRUE(outbound_.is_met(1));
    EXPECT_EQ(pieces_.in_use(), 0U);
}

TEST_F(OutboundTo, marks_what_a_head_is_to_pass_on_also_when_it_waited) {
    wire_.answers[0] = Wire::Given::full;
    send(1, {0}, 0, 5);
    wire_.answers[0] = Wire::Given::taken;
    outbound_.retry(kSecond);
    EXPECT_EQ(wire_.marks[0], 5U);
}

TEST_F(OutboundTo, holds_its_invariants_whatever_the_provider_answers) {
    std::mt19937 random(7);
    std::int64_t now = 0;
    std::map<unsigned, int> last;
    for (int i = 1; i < 20'000; ++i) {
        now += static_cast<std::int64_t>(random() % 3'000'000);
        for (unsigned n = 0; n < 3; ++n) {
            if (random() % 8 == 0) wire_.answers[n] = static_cast<Wire::Given>(random() % 3);
        }
        send(i, {0, 1, 2}, now);
        if (random() % 3 == 0) outbound_.retry(now);
        if (random() % 500 == 0) {
            outbound_.has_moved(1);
            wire_.addresses[1] = outbound_.address_of(1);
        }
        for (auto left = random() % 6; left > 0 && !wire_.has.empty(); --left) {
            random() % 50 == 0 ? fail_next(now) : reach_next();
        }
        for (auto& [peer, numbers] : wire_.arrived) {
            for (const int number : numbers) {
                ASSERT_GT(number, last[peer]) << "peer " << peer << " got them out of order";
                last[peer] = number;
            }
            numbers.clear();
        }
    }
    for (unsigned n = 0; n < 3; ++n) wire_.answers[n] = Wire::Given::taken;
    complete();
    outbound_.retry(now);
    complete();
    EXPECT_EQ(outbound_.under_way(), 0U);
    EXPECT_EQ(pieces_.in_use(), 0U);
}

TEST(Pieces, are_used_again_and_bounded) {
    Pieces pieces(nullptr);
    Piece* const first = pieces.take(10);
    EXPECT_GE(first->room, 10U);
    first->length = first->datagrams = 3;
    pieces.leave(*first);
    ASSERT_EQ(pieces.take(10), first);
    EXPECT_EQ(first->length + first->datagrams, 0U);
    EXPECT_GE(pieces.take(kMaxPieceBytes)->room, kMaxPieceBytes);
    std::size_t bytes = 0;
    while (const Piece* piece = pieces.take(kMaxPieceBytes)) bytes += piece->room;
    EXPECT_LE(bytes, Pieces::kMaxBytes);
    EXPECT_GE(bytes, Pieces::kMaxBytes / 2);
}

}  // namespace
}  // namespace rmem::fabric
