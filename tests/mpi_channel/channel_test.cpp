// SPDX-License-Identifier: Apache-2.0
// ctest: check
//
// The channel interface, and the MPI device over it, on every kind of ring.
#include "mpi_channel/channel.hpp"

#include "tests/support/station.hpp"

namespace rmem::test {
namespace {

using mpi_channel::Channel;

using ChannelStation = Station<Channel>;

class ChannelOn : public Conformance {};
RMEM_ON_ALL_RINGS(ChannelOn);

TEST_P(ChannelOn, packets_come_to_whom_they_are_sent_in_their_order) {
    run(3, [](Rank& me) {
        ChannelStation station;
        packets_cross(station, me);
    });
}

TEST_P(ChannelOn, a_multicast_is_one_post) {
    run(4, [](Rank& me) {
        ChannelStation station;
        multicasts_reach(station, me);
        check_equal(station.transport.counters().packets_sent, 0U, "packets");
    });
}

TEST_P(ChannelOn, bulk_follows_its_packet_whatever_the_room) {
    run(3, [](Rank& me) {
        ChannelStation station;
        for (const std::size_t size : {std::size_t{1}, std::size_t{5000}, std::size_t{60'000}}) {
            if (me.rank != 0) {
                const auto rank = static_cast<unsigned>(me.rank);
                station.send(pattern(20, rank), 0);
                station.send_bulk(pattern(size, rank), 0);
                station.send(pattern(21, rank), 0);
                check_ok(bbp_barrier());
                continue;
            }
            std::vector<std::byte> packet;
            unsigned next[3] = {};
            for (unsigned taken = 0; taken < 4; ++taken) {
                const unsigned from = station.receive(packet);
                check(packet == pattern(20 + next[from], from),
                      "the packet before the bulk, or after");
                if (next[from]++ != 0) continue;
                station.transport.expect_bulk(from, size);
                check(station.receive_bulk(size, from, size / 3 + 1) == pattern(size, from),
                      "bulk");
            }
            check_ok(bbp_barrier());
        }
    });
}

TEST_P(ChannelOn, a_rank_that_announced_bulk_is_not_asked_for_packets) {
    run(2, [](Rank& me) {
        ChannelStation station;
        if (me.rank == 1) {
            station.send(pattern(20, 1), 0);
            station.send_bulk(pattern(100, 2), 0);
            return;
        }
        std::vector<std::byte> packet;
        station.receive(packet);
        station.transport.expect_bulk(1, 100);
        unsigned from = 9;
        check_equal(station.next(packet, from), mpi_channel::kBulk, "what comes next");
        check_equal(from, 1U, "of whom");
        std::vector<std::byte> bulk(100);
        std::size_t size = 0;
        check_code(station.transport.recv_from_channel(bulk, 1, &size), BBP_OK);
        check(bulk == pattern(100, 2), "bulk");
    });
}

TEST_P(ChannelOn, a_packet_is_read_in_place_and_stays_until_the_next_call) {
    run(2, [](Rank& me) {
        Channel channel(*billboard::Endpoint::of_bbp_init());
        const auto packet = pattern(700, 3);
        const auto header = std::span(packet).first(20), message = std::span(packet).subspan(20);
        if (me.rank == 1) {
            await([&] { return channel.send_control_block(header, message, 0) == BBP_OK; },
                  "room for a packet");
        } else {
            std::span<const std::byte> arrived;
            unsigned from = 9;
            await([&] { return channel.recv_any_control(&arrived, &from) == BBP_OK; }, "a packet");
            check_equal(from, 1U, "its sender");
            check(std::equal(arrived.begin(), arrived.end(), packet.begin(), packet.end()),
                  "its bytes");
            check_equal(channel.recv_any_control(&arrived, &from), static_cast<int>(BBP_EAGAIN),
                        "nothing more");
        }
        check_ok(bbp_barrier());
    });
}

TEST_P(ChannelOn, messages_of_the_program_are_not_touched) {
    run(2, [](Rank& me) {
        ChannelStation station;
        std::vector<std::byte> packet;
        if (me.rank == 0) {
            send(1, 40, 7);
            station.send(pattern(30, 1), 1);
            send(1, 40, 8);
        } else {
            check_equal(station.receive(packet), 0U, "sender");
            check(packet == pattern(30, 1), "the packet");
            receive(0, 40, 7);
            receive(BBP_ANY, 40, 8);
            check(!station.transport.control_msg_avail(), "nothing else");
        }
    });
}

// ---- The device

TEST_P(ChannelOn, messages_of_all_sizes_cross_between_all_ranks) {
    run(3, [](Rank& me) { messages_cross<Channel>(me); });
}

TEST_P(ChannelOn, many_messages_to_a_rank_that_does_not_receive_leave_room_for_its_own) {
    run(2, [](Rank& me) { many_messages_wait<Channel>(me, thrifty(400)); });
}

TEST_P(ChannelOn, groups_of_ranks_do_what_they_do_together) {
    run(3, [](Rank&) { groups_work<Channel>(thrifty(50)); });
}

}  // namespace
}  // namespace rmem::test
