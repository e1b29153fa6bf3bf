// SPDX-License-Identifier: Apache-2.0
// ctest: check
//
// The channel interface over Fast Messages, and the MPI device over it, on each link.
#include "mpi_channel/fm/fm_transport.hpp"

#include "mpi_channel/fm/fm_device.hpp"
#include "ports/fm/fm2.h"
#include "tests/support/station.hpp"

#include <algorithm>
#include <memory>
#include <optional>

namespace rmem::test {
namespace {

using mpi_channel::FmPort;
using mpi_channel::FmTransport;
using mpi_channel::Lead;

}  // namespace

template <>
FmTransport open_transport<FmTransport>() {
    return FmTransport(billboard::Settings::read());
}

namespace {

using FmStation = Station<FmTransport>;

class FmOn : public Conformance {};
INSTANTIATE_TEST_SUITE_P(All, FmOn,
                         ::testing::Values(Variant{"direct", "direct", "none", "inline", 1},
                                           Variant{"ring", "ring", "none", "inline", 8},
                                           Variant{"udp", "udp", "none", "inline", 8},
                                           Variant{"sim", "sim", "none", "inline", 8}),
                         variant_name);

TEST_P(FmOn, packets_come_to_whom_they_are_sent_in_their_order_and_are_counted) {
    run(3, [](Rank& me) {
        FmStation station;
        packets_cross(station, me);
        check_equal(FmPort::handlers_entered(), 48U, "messages that Fast Messages have counted");
        station.finish(me);
    });
}

TEST_P(FmOn, a_packet_to_several_reaches_those_that_are_meant) {
    run(4, [](Rank& me) {
        FmStation station;
        multicasts_reach(station, me);
    });
}

TEST_P(FmOn, a_packet_to_several_is_kept_for_a_rank_without_room_and_comes_before_later_ones) {
    run(4, [](Rank& me) {
        FmStation station;
        const std::vector<int> some = {1, 2};
        const auto filling = pattern(20, 1), header = pattern(20, 2), last = pattern(30, 3);
        std::vector<std::byte> packet;
        if (me.rank == 0) {
            std::uint32_t sent = 0;
            // A link that is busy for the moment has no room either.
            for (unsigned refused = 0; refused < 100;) {
                const bool fits = station.transport.send_control(filling, 1) == BBP_OK;
                refused = fits ? 0 : refused + 1;
                if (fits) ++sent;
                check(sent < 100'000, "a rank that takes nothing has no room forever");
                station.nothing_comes();
                if (!fits) rest(std::chrono::milliseconds(1));
            }
            me.shared[1] = sent;
            check_code(station.transport.mcast_control(header, {}, some), BBP_OK);
            check(station.transport.has_backlog(), "it is kept for rank 1");
            check_code(station.transport.send_control(last, 1), BBP_EAGAIN);
            me.raise(0);
            station.send(last, 1);
        } else if (me.rank == 1) {
            me.await_word(0);
            for (std::uint32_t i = 0; i < me.shared[1]; ++i) {
                station.receive(packet);
                check(packet == filling, "what had room");
            }
            station.receive(packet);
            check(packet == header, "what was kept");
            station.receive(packet);
            check(packet == last, "what was sent after it");
        } else if (me.rank == 2) {
            station.receive(packet);
            check(packet == header, "what had room at once");
        }
        station.finish(me);
    });
}

TEST_P(FmOn, bulk_follows_its_packet_whatever_the_room) {
    run(2, [](Rank& me) {
        FmStation station;
        std::vector<std::byte> packet;
        for (const std::size_t size : {std::size_t{1}, std::size_t{5000}, std::size_t{200'000}}) {
            if (me.rank == 1) {
                station.send(pattern(20, 1), 0);
                station.send_bulk(pattern(size, size), 0);
                station.send(pattern(21, 1), 0);
                continue;
            }
            unsigned from = 9;
            station.receive(packet);
            check(packet == pattern(20, 1), "the packet before the bulk");
            station.transport.expect_bulk(1, size);
            check_equal(station.next(packet, from), mpi_channel::kBulk, "what comes next");
            check_equal(from, 1U, "of whom");
            check(station.receive_bulk(size, 1, size / 3 + 1) == pattern(size, size), "bulk");
            station.receive(packet);
            check(packet == pattern(21, 1), "the packet after it");
        }
        station.finish(me);
    });
}

// ---- What no transport sends

/// By Fast Messages' own calls, to where the transport takes messages.
void send_by_fm(std::vector<std::byte> bytes, unsigned to) {
    FM_stream* const stream = FM_begin_message(to, bytes.size(), 1000);
    check(stream != nullptr, "FM_begin_message");
    FM_send_piece(stream, bytes.data(), bytes.size());
    FM_end_message(stream);
}

std::vector<std::byte> beginning_with(Lead lead, std::size_t size) {
    std::vector<std::byte> bytes(Lead::kBytes + size);
    lead.write(bytes.data());
    return bytes;
}

TEST_P(FmOn, a_rank_that_sends_what_is_none_of_the_channel_s_is_named) {
    run(2, [](Rank& me) {
        FmStation station;
        const std::vector<std::vector<std::byte>> wrong = {
            beginning_with({Lead::Kind::packet, 1, 9}, 8),        // shorter than it says
            beginning_with({Lead::Kind{7}, 1, 8}, 8),             // of no kind
            beginning_with({Lead::Kind::bulk, 1, 8}, 8),          // not announced
            beginning_with({Lead::Kind::packet, 1, 1100}, 1100),  // longer than packets
        };
        if (me.rank == 1) {
            for (const auto& bytes : wrong) send_by_fm(bytes, 0);
            station.send(pattern(8, 1), 0);
        } else {
            std::vector<std::byte> packet;
            unsigned from = 9;
            for (std::size_t i = 0; i < wrong.size(); ++i) {
                check_code(station.next(packet, from), BBP_ESIZE);
                check_equal(from, 1U, "of whom");
            }
            station.receive(packet);
            check(packet == pattern(8, 1), "the good one");
        }
        check_ok(bbp_barrier());
    });
}

// ---- Deaths

TEST_P(FmOn, what_a_rank_had_sent_comes_before_word_of_its_death) {
    RMEM_SKIP_IF_SIMULATED("nobody is killed");
    RankProcesses ring(setup(2));
    ring.start(0, [](Rank& me) {
        FmStation station;
        check_equal(station.transport.ask_for(1), static_cast<int>(BBP_EAGAIN), "of who lives");
        me.raise(1);
        me.await_word(0);
        std::vector<std::byte> packet;
        for (unsigned i = 0; i < 3; ++i) {
            await([&] { return station.transport.ask_for(1) == BBP_OK; }, "what it had sent");
            station.receive(packet);
            check(packet == pattern(40, i), "a packet");
        }
        await([&] { return station.transport.ask_for(1) == BBP_EPEER; }, "word of its death");
    });
    ring.start(1, [](Rank& me) {
        FmStation station;
        me.await_word(1);
        for (unsigned i = 0; i < 3; ++i) station.send(pattern(40, i), 0);
        station.settle();
        me.raise(0);
        me.await_word(9);  // never written
    });
    ring.await_word(0);
    ring.kill(1);
    ring.finish();
}

// ---- The device

TEST_P(FmOn, messages_of_all_sizes_cross_between_all_ranks) {
    run(3, [](Rank& me) { messages_cross<FmTransport>(me); });
}

TEST_P(FmOn, many_messages_to_a_rank_that_does_not_receive_leave_room_for_its_own) {
    const int count = thrifty(400);
    run(2, [count](Rank& me) { many_messages_wait<FmTransport>(me, count); });
}

TEST_P(FmOn, groups_of_ranks_do_what_they_do_together) {
    const int barriers = thrifty(50);
    run(3, [barriers](Rank&) { groups_work<FmTransport>(barriers); });
}

}  // namespace
}  // namespace rmem::test
