// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A rank's channel interface, and its MPI device, with any transport, with calls that wait: the
/// common part of the tests of all transports.
///
///     TEST_P(…) { run(3, [](Rank& me) { Station<Channel> station; packets_cross(station, me); });
///         }
///     TEST_P(…) { run(3, [](Rank& me) { messages_cross<Channel>(me); }); }

#include "billboard/endpoint.hpp"
#include "mpi_channel/collectives.hpp"
#include "mpi_channel/device/device.hpp"
#include "tests/support/conformance.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

namespace rmem::test {

/// On the endpoint of bbp_init; tests of transports that are opened otherwise say how.
template <class Transport>
Transport open_transport() {
    return Transport(*billboard::Endpoint::of_bbp_init());
}

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
        check(packet == pattern(sizes[i % 8], from * 1000 + i), "the next packet of its sender");
    };
    for (std::size_t i = 0; i < 24; ++i) {
        for (unsigned to = 0; to < 3; ++to) {
            if (to != rank) station.send(pattern(sizes[i % 8], rank * 1000 + i), to);
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
    const auto header = pattern(20, 1);
    const std::vector<std::vector<int>> receivers = {{1, 2, 3}, {2, 3}, {1}};
    for (std::size_t i = 0; i < receivers.size(); ++i) {
        const std::vector<int>& to = receivers[i];
        const auto message = pattern(400, i);
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

/// A device, and how many requests are still under way.
template <class Transport>
class Messenger final : public mpi_channel::Completions {
public:
    Messenger() : transport_(open_transport<Transport>()), device(transport_, *this) {}

    void completed(const mpi_channel::Completion& completion) override {
        check(completion.status == mpi_channel::Status::ok, "the status of a request");
        --open_;
    }
    void send(unsigned to, std::vector<std::byte>& bytes) {
        ++open_;
        mpi_channel::SendOrder order;
        order.to = to;
        order.parts = {{bytes.data(), bytes.size()}};
        device.send(order);
    }
    void receive(mpi_channel::Source from, std::vector<std::byte>& bytes) {
        ++open_;
        mpi_channel::ReceiveOrder order;
        order.from = from;
        order.parts = {{bytes.data(), bytes.size()}};
        device.receive(order);
    }
    void finish() {
        await(
            [&] {
                device.progress();
                return open_ == 0 && !device.has_backlog();
            },
            "the end of all requests");
    }
    void finish(mpi_channel::Group& group) {
        await(
            [&] {
                const int result = group.go_on();
                if (result != BBP_EAGAIN) check_code(result, BBP_OK);
                device.progress();
                return result == BBP_OK;
            },
            "the end of a group's operation");
    }

private:
    Transport transport_;
    int open_ = 0;

public:
    mpi_channel::Device<Transport> device;
};

/// Among three ranks.
template <class Transport>
void messages_cross(Rank& me) {
    Messenger<Transport> messenger;
    const auto rank = static_cast<unsigned>(me.rank);
    for (const std::size_t size :
         std::initializer_list<std::size_t>{0, 8, 900, 1004, 1005, 40'000, 65'536, 150'000}) {
        std::vector<std::vector<std::byte>> out, in;
        for (unsigned other = 0; other < 3; ++other) {
            out.push_back(pattern(size, rank * 3 + other));
            in.emplace_back(size);
        }
        // In one half receives come first, in the other sends.
        for (const bool sends : {size % 16 == 0, size % 16 != 0}) {
            for (unsigned other = 0; other < 3; ++other) {
                if (sends)
                    messenger.send(other, out[other]);
                else
                    messenger.receive(other, in[other]);
            }
        }
        messenger.finish();
        for (unsigned other = 0; other < 3; ++other) {
            check(in[other] == pattern(size, other * 3 + rank), "a message's bytes");
        }
    }
    check_ok(bbp_barrier());
    messenger.finish();
}

/// Between two ranks.
template <class Transport>
void many_messages_wait(Rank& me, int count) {
    Messenger<Transport> messenger;
    std::vector<std::byte> out = pattern(10'000, 1), in(10'000);
    const auto other = static_cast<unsigned>(1 - me.rank);
    for (int i = 0; i < count; ++i) messenger.send(other, out);
    for (int i = 0; i < count; ++i) messenger.receive(mpi_channel::kAnySource, in);
    messenger.finish();
    check(in == out, "the last message's bytes");
    check_ok(bbp_barrier());
    messenger.finish();
}

/// Of three ranks: broadcasts of each, gathers to all and to one, both barriers.
template <class Transport>
void groups_work(int barriers) {
    Messenger<Transport> messenger;
    mpi_channel::Collectives collectives(messenger.device);
    const bool has_barriers = messenger.device.has_barriers();
    check_equal(collectives.reserve_barrier(5), has_barriers, "a barrier is free");
    const auto plain = collectives.open(7, {2, 0, 1});
    const auto group =
        collectives.open(8, {2, 0, 1}, has_barriers ? std::optional(5U) : std::nullopt);
    const unsigned own = group->own();
    check_ok(bbp_barrier());  // all have opened them
    const std::uint64_t before = messenger.device.transport_counters().multicasts;
    unsigned broadcasts = 0;
    for (const std::size_t size : {std::size_t{1}, std::size_t{8}, std::size_t{200}}) {
        for (unsigned root = 0; root < 3; ++root) {
            std::vector<std::byte> bytes = pattern(size, own == root ? root : 77);
            group->broadcast(bytes, root);
            messenger.finish(*group);
            check(bytes == pattern(size, root), "what was broadcast");
            broadcasts += own == root;
        }
    }
    check_equal(messenger.device.transport_counters().multicasts - before,
                std::uint64_t{broadcasts}, "multicasts, one for each broadcast");
    std::vector<std::byte> large = pattern(50'000, own);
    group->broadcast(large, 1);
    messenger.finish(*group);
    check(large == pattern(50'000, 1), "what was broadcast in pieces");
    for (int round = 0; round < 3; ++round) {
        const auto mine = pattern(100, own);
        const std::uint64_t posted = messenger.device.transport_counters().multicasts;
        std::vector<std::byte> all(300);
        if (round == 1) {
            group->gather(mine, own == 2 ? all.data() : nullptr, 2);
        } else {
            group->gather(mine, all.data(), std::nullopt);
        }
        messenger.finish(*group);
        check_equal(messenger.device.transport_counters().multicasts - posted,
                    std::uint64_t{round != 1}, "multicasts of a gather");
        for (unsigned i = 0; (round != 1 || own == 2) && i < 3; ++i) {
            const auto block = std::span(all).subspan(i * 100, 100);
            const auto expected = pattern(100, i);
            check(std::equal(block.begin(), block.end(), expected.begin()), "a member's block");
        }
    }
    for (int round = 0; round < barriers; ++round) {
        mpi_channel::Group& waited = round % 2 == 0 ? *group : *plain;
        waited.barrier();
        messenger.finish(waited);
    }
    messenger.finish();
    check_ok(bbp_barrier());
    messenger.finish();
}

}  // namespace rmem::test
