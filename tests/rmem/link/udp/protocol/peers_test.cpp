// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/peers.hpp"

#include "tests/rmem/link/udp/protocol/exchange_fixture.hpp"

#include <gtest/gtest.h>

namespace rmem::udp {
namespace {

TEST(Peers, takes_another_incarnation_for_no_member) {
    Parts parts;
    parts.peers.begin(1, 101, 1, 0);
    EXPECT_EQ(parts.peers.find(MemberIncarnation{1, 101}), &parts.peers.stream(1));
    EXPECT_EQ(parts.peers.find(NodeIncarnation{1, 101}), &parts.peers.stream(1));
    EXPECT_EQ(parts.peers.find(MemberIncarnation{1, 100}), nullptr);
    EXPECT_EQ(parts.peers.find(NodeIncarnation{1, 100}), nullptr);
    EXPECT_EQ(parts.peers.find(NodeIncarnation{2, 101}), nullptr) << "no node of the ring";
    EXPECT_EQ(parts.peers.end(1).incarnation, 101U);
    EXPECT_EQ(parts.peers.find(MemberIncarnation{1, 101}), nullptr) << "it is over";
}

}  // namespace
}  // namespace rmem::udp
