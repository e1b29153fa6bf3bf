// SPDX-License-Identifier: Apache-2.0
//
// The parts that a device is made of check their invariants. What they do together is in
// device_test.cpp and the files beside it.
#include "mpi_channel/device/bundles.hpp"
#include "mpi_channel/device/credit.hpp"
#include "mpi_channel/device/device.hpp"
#include "tests/support/broken.hpp"
#include "tests/support/pipes.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace mpi_channel {
namespace {

class Deaf final : public Completions, public RemoteEvents {
public:
    void completed(const Completion&) override {}
    void over(const RemoteCompletion&) override {}
    void touched(const RemoteTouch&) override {}
};

/// The parts, as a device of rank 0 has them.
struct PartsOfADeviceDeathTest : ::testing::Test {
    PartsOfADeviceDeathTest() { sending.set_listener(accesses); }

    Pipes pipes{2, 1};
    Pipe& pipe = pipes.of(0);
    Deaf deaf;
    Reach reach{2};
    Sending<Pipe> sending{pipe, deaf, reach};
    IncomingBulk<Pipe> bulk{pipe};
    Receiving<Pipe> receiving{pipe, deaf, reach, sending, bulk};
    Accesses<Pipe> accesses{pipe, reach, sending, bulk};
    Serving<Pipe> serving{pipe, reach, sending, bulk};
};

TEST(CreditDeathTest, checks_that_no_more_is_spent_or_owed_than_there_is) {
    Credit<true> credit;
    EXPECT_BROKEN(credit.spend(kCredit + 1));
    EXPECT_BROKEN(credit.owe(1));
}

TEST(Credit, refuses_what_the_other_side_cannot_mean) {
    Credit<true> credit;
    EXPECT_FALSE(credit.refund(1));
    credit.spend(100);
    EXPECT_TRUE(credit.refund(60));
    EXPECT_FALSE(credit.refund(41));
    EXPECT_EQ(credit.left(), kCredit - 40);
    EXPECT_TRUE(credit.hold(kCredit));
    EXPECT_FALSE(credit.hold(1));
}

TEST(BundleWriterDeathTest, checks_that_what_is_added_has_room) {
    std::array<std::byte, kMaxPacketBytes> room;
    BundleWriter bundle(room);
    EXPECT_FALSE(bundle.has_room(0));
    EXPECT_BROKEN_WHERE_CHECKED(bundle.add(Packet(), nullptr, 0));
}

TEST_F(PartsOfADeviceDeathTest, sending_checks_that_nothing_waits_for_an_unreachable_rank) {
    sending.cut_off(1);
    EXPECT_BROKEN(sending.post(1, Packet()));
}

TEST_F(PartsOfADeviceDeathTest, sending_checks_that_a_sends_rank_is_of_the_ring) {
    SendOrder order;
    order.to = 2;
    EXPECT_BROKEN(sending.send(order));
}

TEST_F(PartsOfADeviceDeathTest, incoming_bulk_checks_that_a_ranks_former_bulk_is_whole) {
    bulk.begin(1, 8, nullptr);
    EXPECT_BROKEN(bulk.begin(1, 8, nullptr));
}

TEST_F(PartsOfADeviceDeathTest, receiving_checks_that_a_message_that_is_not_whole_is_on_its_way) {
    Unexpected message;
    message.envelope = {1, 7, 100};
    EXPECT_BROKEN(receiving.discard(message));
}

TEST_F(PartsOfADeviceDeathTest, accesses_check_that_places_and_parts_have_equal_lengths) {
    std::array<std::byte, 8> bytes{};
    RemoteOrder order;
    order.to = 1;
    order.parts = {{bytes.data(), bytes.size()}};
    order.places.push_back({1, 0, 9});
    EXPECT_BROKEN(accesses.access(order));
}

TEST_F(PartsOfADeviceDeathTest, serving_checks_that_it_has_regions) {
    RemotePacket packet;
    packet.kind = RemoteKind::read;
    EXPECT_BROKEN(static_cast<void>(serving.on_request(1, packet, std::nullopt, {})));
}

}  // namespace
}  // namespace mpi_channel
