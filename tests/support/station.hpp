// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A rank's channel interface, with any transport, with calls that wait: the common part of the
/// tests of all transports.
///
///     TEST_P(…) { run(3, [](Rank& me) { Station<Channel> station; packets_cross(station, me); });
///         }

#include "tests/support/messenger.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace rmem::test {

template <class Transport>
class Station {
public:
    Station() : transport(open_transport<Transport>()) {}

    void send(const std::vector<std::byte>& packet, unsigned to) {
        await([&] { return sent(transport.send_control(packet, to)); }, "room for a packet");
    }
    void send_bulk(std::span<const std::byte> bulk, unsigned to) {
        await(
            [&] {
                std::size_t count = 0;
                sent(transport.send_channel(bulk, to, &count));
                bulk = bulk.subspan(count);
                return bulk.empty();
            },
            "room for bulk");
    }
    /// The next packet: its code, and its sender.
    int next(std::vector<std::byte>& packet, unsigned& from) {
        int result = BBP_EAGAIN;
        await(
            [&] {
                typename Transport::Bytes bytes;
                result = transport.recv_any_control(&bytes, &from);
                if (result == BBP_OK) packet.assign(bytes.begin(), bytes.end());
                return result != BBP_EAGAIN;
            },
            "something to come");
        return result;
    }
    /// The next packet's sender.
    unsigned receive(std::vector<std::byte>& packet) {
        unsigned from = 0;
        check_code(next(packet, from), BBP_OK);
        return from;
    }
    /// The expected one.
    std::vector<std::byte> receive_bulk(std::size_t size, unsigned from, std::size_t room) {
        std::vector<std::byte> bulk(size);
        std::size_t come = 0;
        await(
            [&] {
                std::size_t count = 0;
                const auto rest = std::span(bulk).subspan(come);
                const int result = transport.recv_from_channel(
                    rest.first(std::min(rest.size(), room)), from, &count);
                if (result != BBP_EAGAIN) check_code(result, BBP_OK);
                if (result == BBP_OK) come += count;
                return come == size;
            },
            "bulk");
        return bulk;
    }
    /// Until nothing of its own waits to leave.
    void settle() {
        await(
            [&] {
                nothing_comes();
                return !transport.has_backlog();
            },
            "the backlog to leave");
    }
    /// Makes progress.
    void nothing_comes(Place place = Place::here()) {
        typename Transport::Bytes bytes;
        unsigned from = 0;
        check_equal(transport.recv_any_control(&bytes, &from), static_cast<int>(BBP_EAGAIN),
                    "what comes", place);
    }

    /// Makes progress until all ranks have come here; nothing comes.
    void finish(Rank& me) {
        constexpr std::size_t kFinished = 900;
        settle();
        me.raise(kFinished);
        await(
            [&] {
                nothing_comes();
                return me.shared[kFinished] == static_cast<std::uint32_t>(me.ranks);
            },
            "the others");
    }

    Transport transport;

private:
    /// A station that finds no room lets come what may bring it: credit.
    bool sent(int result) {
        if (result != BBP_EAGAIN) check_code(result, BBP_OK);
        if (result == BBP_EAGAIN) static_cast<void>(transport.control_msg_avail());
        return result == BBP_OK;
    }
};

/// Among three ranks: each gets the packets of each of the others, of all sizes, in their order.
template <class Transport>
void packets_cross(Station<Transport>& station, Rank& me) {
    const auto rank = static_cast<unsigned>(me.rank);
    const std::size_t sizes[] = {1, 20, 28, 29, 60, 61, 500, station.transport.packet_most()};
    std::vector<std::byte> packet;
    std::size_t next[3] = {};
    const auto take = [&] {
        const unsigned from = station.receive(packet);
        const std::size_t i = next[from]++;
        check(packet == bytes_of(sizes[i % 8], from * 1000 + i), "the next packet of its sender");
    };
    for (std::size_t i = 0; i < 24; ++i) {
        for (unsigned to = 0; to < 3; ++to) {
            if (to != rank) station.send(bytes_of(sizes[i % 8], rank * 1000 + i), to);
        }
        take();
        take();
    }
    check(!station.transport.control_msg_avail(), "all packets have been received");
    check_equal(station.transport.counters().packets_sent, 48U, "packets sent");
    check_equal(station.transport.counters().packets_received, 48U, "packets received");
}

/// Among four ranks: a multicast is one, and reaches those that are meant.
template <class Transport>
void multicasts_reach(Station<Transport>& station, Rank& me) {
    const auto header = bytes_of(20, 1);
    const std::vector<std::vector<int>> receivers = {{1, 2, 3}, {2, 3}, {1}};
    for (std::size_t i = 0; i < receivers.size(); ++i) {
        const std::vector<int>& to = receivers[i];
        const auto message = bytes_of(400, i);
        if (me.rank == 0) {
            await([&] { return station.transport.mcast_control(header, message, to) == BBP_OK; },
                  "room for a multicast");
        } else if (std::find(to.begin(), to.end(), me.rank) != to.end()) {
            std::vector<std::byte> packet, expected = header;
            expected.insert(expected.end(), message.begin(), message.end());
            check_equal(station.receive(packet), 0U, "sender");
            check(packet == expected, "the multicast's bytes");
        }
    }
    station.finish(me);
    check_equal(station.transport.counters().multicasts, me.rank == 0 ? 3U : 0U, "multicasts");
}

}  // namespace rmem::test
