// SPDX-License-Identifier: Apache-2.0
//
// The channel interface, and the MPI device over it, on every kind of ring.
#include "mpi_channel/channel.hpp"

#include "tests/support/messenger.hpp"

#include <algorithm>

namespace rmem::test {
namespace {

using mpi_channel::Channel;

/// A rank's channel, and calls that wait.
class Station {
public:
    Station() : channel(*billboard::Endpoint::of_bbp_init()) {}

    void send(const std::vector<std::byte>& packet, unsigned to) {
        await([&] { return sent(channel.send_control(packet, to)); }, "room for a packet");
    }
    void send_bulk(std::span<const std::byte> bulk, unsigned to) {
        await(
            [&] {
                std::size_t count = 0;
                sent(channel.send_channel(bulk, to, &count));
                bulk = bulk.subspan(count);
                return bulk.empty();
            },
            "room for bulk");
    }
    /// The next packet's sender.
    unsigned receive(std::vector<std::byte>& packet) {
        unsigned from = 0;
        await(
            [&] {
                Channel::Bytes bytes;
                const int result = channel.recv_any_control(&bytes, &from);
                if (result == BBP_EAGAIN) return false;
                check_code(result, BBP_OK);
                packet.assign(bytes.begin(), bytes.end());
                return true;
            },
            "a packet");
        return from;
    }
    std::vector<std::byte> receive_bulk(std::size_t size, unsigned from, std::size_t room) {
        std::vector<std::byte> bulk(size);
        std::size_t come = 0;
        channel.expect_bulk(from, size);
        await(
            [&] {
                std::size_t count = 0;
                const auto rest = std::span(bulk).subspan(come);
                const int result = channel.recv_from_channel(
                    rest.first(std::min(rest.size(), room)), from, &count);
                if (result == BBP_OK)
                    come += count;
                else
                    check_code(result, BBP_EAGAIN);
                return come == size;
            },
            "bulk");
        return bulk;
    }

    Channel channel;

private:
    static bool sent(int result) {
        if (result != BBP_EAGAIN) check_code(result, BBP_OK);
        return result == BBP_OK;
    }
};

class ChannelOn : public Conformance {};
RMEM_ON_ALL_RINGS(ChannelOn);

TEST_P(ChannelOn, packets_come_to_whom_they_are_sent_in_their_order) {
    run(3, [](Rank& me) {
        Station station;
        const auto rank = static_cast<unsigned>(me.rank);
        const std::size_t sizes[] = {1, 20, 28, 29, 60, 61, 500, station.channel.packet_most()};
        std::vector<std::byte> packet;
        std::size_t next[3] = {};
        const auto take = [&] {
            const unsigned from = station.receive(packet);
            const std::size_t i = next[from]++;
            check(packet == bytes_of(sizes[i % 8], from * 1000 + i),
                  "the next packet of its sender");
        };
        for (std::size_t i = 0; i < 24; ++i) {
            for (unsigned to = 0; to < 3; ++to) {
                if (to != rank) station.send(bytes_of(sizes[i % 8], rank * 1000 + i), to);
            }
            take();
            take();
        }
        check(!station.channel.control_msg_avail(), "all packets have been received");
        check_equal(station.channel.counters().packets_sent, 48U, "packets sent");
        check_equal(station.channel.counters().packets_received, 48U, "packets received");
    });
}

TEST_P(ChannelOn, a_multicast_is_one_post) {
    run(4, [](Rank& me) {
        Station station;
        const auto header = bytes_of(20, 1), message = bytes_of(400, 2);
        if (me.rank == 0) {
            const int others[] = {1, 2, 3};
            await([&] { return station.channel.mcast_control(header, message, others) == BBP_OK; },
                  "room for a multicast");
            check_equal(station.channel.counters().multicasts, 1U, "multicasts");
            check_equal(station.channel.counters().packets_sent, 0U, "packets");
        } else {
            std::vector<std::byte> packet, expected = header;
            expected.insert(expected.end(), message.begin(), message.end());
            check_equal(station.receive(packet), 0U, "sender");
            check(packet == expected, "the multicast's bytes");
        }
    });
}

TEST_P(ChannelOn, bulk_follows_its_packet_whatever_the_room) {
    run(3, [](Rank& me) {
        Station station;
        for (const std::size_t size : {std::size_t{1}, std::size_t{5000}, std::size_t{60'000}}) {
            if (me.rank != 0) {
                const auto rank = static_cast<unsigned>(me.rank);
                station.send(bytes_of(20, rank), 0);
                station.send_bulk(bytes_of(size, rank), 0);
                station.send(bytes_of(21, rank), 0);
                check_ok(bbp_barrier());
                continue;
            }
            std::vector<std::byte> packet;
            unsigned next[3] = {};
            for (unsigned taken = 0; taken < 4; ++taken) {
                const unsigned from = station.receive(packet);
                check(packet == bytes_of(20 + next[from], from),
                      "the packet before the bulk, or after");
                if (next[from]++ != 0) continue;
                check(station.receive_bulk(size, from, size / 3 + 1) == bytes_of(size, from),
                      "bulk");
            }
            check_ok(bbp_barrier());
        }
    });
}

TEST_P(ChannelOn, who_announced_bulk_is_not_asked_for_packets) {
    run(2, [](Rank& me) {
        Station station;
        if (me.rank == 1) {
            station.send(bytes_of(20, 1), 0);
            station.send_bulk(bytes_of(100, 2), 0);
            return;
        }
        std::vector<std::byte> packet;
        station.receive(packet);
        station.channel.expect_bulk(1, 100);
        await(
            [&] {
                Channel::Bytes bytes;
                unsigned from = 9;
                const int result = station.channel.recv_any_control(&bytes, &from);
                if (result == BBP_EAGAIN) return false;
                check_equal(result, mpi_channel::kBulk, "what comes next");
                check_equal(from, 1U, "of whom");
                return true;
            },
            "the bulk");
        std::vector<std::byte> bulk(100);
        std::size_t size = 0;
        check_code(station.channel.recv_from_channel(bulk, 1, &size), BBP_OK);
        check(bulk == bytes_of(100, 2), "bulk");
    });
}

TEST_P(ChannelOn, messages_of_the_program_are_not_touched) {
    run(2, [](Rank& me) {
        Station station;
        std::vector<std::byte> packet;
        if (me.rank == 0) {
            send(1, 40, 7);
            station.send(bytes_of(30, 1), 1);
            send(1, 40, 8);
        } else {
            check_equal(station.receive(packet), 0U, "sender");
            check(packet == bytes_of(30, 1), "the packet");
            receive(0, 40, 7);
            receive(BBP_ANY, 40, 8);
            check(!station.channel.control_msg_avail(), "nothing else");
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
