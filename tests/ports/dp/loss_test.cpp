// SPDX-License-Identifier: Apache-2.0
// Directed Point on a network that loses datagrams: the link retransmits, so a raw message
// is lost to a full pool only.
#include "tests/ports/dp/points.hpp"

namespace rmem::test {
namespace {

TEST(DirectedPointOnALossyNetwork, loses_nothing_that_finds_room_and_keeps_the_order) {
    RingSetup setup;
    setup.link = "udp";
    setup.partition = kPartition;
    setup.extra["RMEM_FAULTS"] = "seed=1; drop:share=5%";
    RankProcesses ring(setup);
    ring.start_all([](Rank& me) {
        constexpr std::uint64_t kMessages = 300;
        Point point(1), reliable(2);
        point.to(1 - me.rank, 1);
        reliable.to(1 - me.rank, 2);
        check_equal(dp_reliable(reliable.fd(), 1), 0, "dp_reliable");
        all_are_open(me);
        for (std::uint64_t i = 0; i < kMessages; ++i) {
            point.write(i % 3 == 0 ? 900 : 8, i);
            reliable.write(16, i);
            if (i % 30 != 29) continue;
            for (std::uint64_t n = i - 29; n <= i; ++n) {
                point.read(n % 3 == 0 ? 900 : 8, n);
                reliable.read(16, n);
            }
        }
        check_equal(dp_drain(reliable.fd(), 20'000 * kMillisecond), 0, "dp_drain");
        me.raise(0);
        await(
            [&] {
                dp_drain(reliable.fd(), 0);
                return me.shared[0] == 2;
            },
            "the other to be done");
    });
    ring.finish();
}

}  // namespace
}  // namespace rmem::test
