// SPDX-License-Identifier: Apache-2.0
//
// The MPI device directly on the billboard, on every kind of ring.
#include "mpi_channel/billboard_transport.hpp"

#include "mpi_channel/channel.hpp"
#include "tests/support/messenger.hpp"

namespace rmem::test {
namespace {

using mpi_channel::BillboardTransport;
using mpi_channel::Channel;

class BillboardTransportOn : public Conformance {};
RMEM_ON_ALL_RINGS(BillboardTransportOn);

TEST_P(BillboardTransportOn, messages_of_all_sizes_cross_between_all_ranks) {
    run(3, [](Rank& me) { messages_cross<BillboardTransport>(me); });
}

TEST_P(BillboardTransportOn, many_messages_to_a_rank_that_does_not_receive_leave_room_for_its_own) {
    run(2, [](Rank& me) { many_messages_wait<BillboardTransport>(me, thrifty(400)); });
}

TEST_P(BillboardTransportOn, groups_of_ranks_do_what_they_do_together) {
    run(3, [](Rank&) { groups_work<BillboardTransport>(thrifty(50)); });
}

TEST_P(BillboardTransportOn, ranks_with_and_without_the_channel_interface_understand_each_other) {
    run(3, [](Rank& me) {
        if (me.rank == 1)
            messages_cross<Channel>(me);
        else
            messages_cross<BillboardTransport>(me);
    });
}

TEST_P(BillboardTransportOn, a_packet_stays_where_it_is_until_the_next_call) {
    run(2, [](Rank& me) {
        BillboardTransport transport(*billboard::Endpoint::of_bbp_init());
        const auto packet = bytes_of(700, 3);
        const auto header = std::span(packet).first(20), message = std::span(packet).subspan(20);
        if (me.rank == 1) {
            await([&] { return transport.send_control_block(header, message, 0) == BBP_OK; },
                  "room for a packet");
        } else {
            std::span<const std::byte> come;
            unsigned from = 9;
            await([&] { return transport.recv_any_control(&come, &from) == BBP_OK; }, "a packet");
            check_equal(from, 1U, "its sender");
            check(std::equal(come.begin(), come.end(), packet.begin(), packet.end()), "its bytes");
            check_equal(transport.recv_any_control(&come, &from), static_cast<int>(BBP_EAGAIN),
                        "nothing more");
        }
        check_ok(bbp_barrier());
    });
}

}  // namespace
}  // namespace rmem::test
