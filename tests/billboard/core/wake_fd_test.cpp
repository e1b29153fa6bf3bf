// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/wake_fd.hpp"

#include "rmem/ring/waiting/waiting.hpp"
#include "tests/support/test_ring.hpp"

#include <poll.h>

namespace billboard {
namespace {

using rmem::BellUse;
using rmem::test::kPatienceNs;
using rmem::test::TestRing;

bool is_readable(const WakeFd& fd, std::int64_t within_ns = 0) {
    pollfd wanted{fd.get(), POLLIN, 0};
    return ::poll(&wanted, 1, static_cast<int>(within_ns / 1'000'000)) == 1;
}

struct WakeFdTest : ::testing::Test {
    TestRing ring{{.link = rmem::LinkKind::direct}};
    rmem::Membership member{ring.ring(), {0, 0}};
    WakeFd fd{*ring.ring(), 0};

    std::uint32_t asked() const { return ring.ring()->attention()[0].load() & rmem::kPostsWake; }
};

TEST_F(WakeFdTest, is_readable_after_a_post_and_not_once_it_is_armed) {
    for (int round = 0; round < 100; ++round) {
        EXPECT_FALSE(is_readable(fd));
        ASSERT_NE(asked(), 0U);
        rmem::wake_asked(*ring.ring(), 0, asked());
        ASSERT_TRUE(is_readable(fd));
        fd.arm();
    }
}

TEST_F(WakeFdTest, is_readable_soon_where_its_bell_cannot_be_rung) {
    auto& place = ring.ring()->rank(0).bells[static_cast<std::size_t>(BellUse::posts)];
    place.descriptor = 1'000'000;  // as in another namespace of processes
    for (int round = 0; round < 3; ++round) {
        rmem::wake_asked(*ring.ring(), 0, asked());
        EXPECT_TRUE(is_readable(fd, kPatienceNs));
        fd.arm();
    }
}

TEST_F(WakeFdTest, is_readable_soon_when_a_poster_was_killed_before_it_rang) {
    ring.ring()->rank(0).bells[static_cast<std::size_t>(BellUse::posts)].rung = 1;
    EXPECT_TRUE(is_readable(fd, kPatienceNs));
}

}  // namespace
}  // namespace billboard
