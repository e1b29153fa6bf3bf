// SPDX-License-Identifier: Apache-2.0
// ctest: check
// Directed Point's calls, on every ring: written from ports/dp/dp.h.
#include "billboard/process/process_endpoint.hpp"
#include "ports/common/port_block.hpp"
#include "ports/dp/counters.hpp"
#include "ports/dp/frame.hpp"
#include "rmem/ring/ring.hpp"
#include "tests/ports/dp/points.hpp"

#include <unistd.h>

#include <cstring>

namespace rmem::test {
namespace {

using billboard::Class;
using ports::dp::Header;
using ports::dp::Kind;

class DirectedPoint : public PointTest {};
RMEM_ON_ALL_RINGS(DirectedPoint);

TEST_P(DirectedPoint, messages_of_every_size_arrive_intact_and_in_order) {
    run_points(2, [](Rank& me, Point& point) {
        const auto most = static_cast<std::size_t>(dp_container());
        std::vector<std::size_t> sizes;
        for (std::size_t size = 0; size < 100; ++size) sizes.push_back(size);
        for (const std::size_t size : {std::size_t{1000}, most / 2, most - 1, most})
            sizes.push_back(size);
        std::uint64_t seed = 0;
        if (me.rank == 0) {
            point.to(1, 1);
            for (const std::size_t size : sizes) point.write(size, ++seed);
            me.await_word(0);
        } else {
            for (const std::size_t size : sizes) point.read(size, ++seed);
            me.raise(0);
        }
    });
}

TEST_P(DirectedPoint, what_a_process_has_counted_is_in_its_rank_slot_for_others_to_read) {
    RMEM_SKIP_IF_SIMULATED("its ranks have no slots");
    run(2, [](Rank& me) {
        Point first(1), second(2);
        all_are_open(me);
        const auto process = billboard::ProcessEndpoint::open();
        using ports::dp::Counter;
        const rmem::RankSlot& slot = process->endpoint().ring()->rank(process->endpoint().rank());
        const auto& block = slot.ports[ports::port_block(billboard::Class::dp)];
        const int peer = 1 - static_cast<int>(me.rank);
        second.to(peer, 99).write(8, 1);
        first.to(peer, 1).write(8, 2);
        first.read(8, 2);
        second.close();
        check_equal(block.get(Counter::written), std::uint64_t{2}, "of both endpoints");
        check_equal(block.get(Counter::arrived), std::uint64_t{1}, "arrived");
        check_equal(block.get(Counter::dropped_unknown), std::uint64_t{1}, "of no endpoint");
        check_equal(first.stat().written, std::uint64_t{1}, "dp_stat of one");
        check_equal(stat_of_process().written, std::uint64_t{2}, "dp_stat of all");
        me.raise(0);
        me.await_word(0, 2);
    });
}

TEST(DirectedPointCounts, have_the_length_that_the_program_was_compiled_with) {
    struct {
        dp_stat_t known;
        std::uint64_t of_a_later_version;
    } counts;
    std::memset(&counts, 1, sizeof counts);
    const std::uint64_t untouched = counts.known.arrived;
    EXPECT_EQ(dp_stat_sized(-1, &counts.known, sizeof counts.known.written), 0);
    EXPECT_EQ(counts.known.written, 0U);
    EXPECT_EQ(counts.known.arrived, untouched);
    EXPECT_EQ(dp_stat_sized(-1, &counts.known, sizeof counts), 0);
    EXPECT_EQ(counts.known.arrived, 0U);
    EXPECT_EQ(counts.of_a_later_version, 0U);
}

TEST_P(DirectedPoint, an_endpoint_has_one_dpid_of_its_process_that_nobody_else_has) {
    run(2, [](Rank& me) {
        Point point(4);
        all_are_open(me);
        CHECK_ERRNO(dp_open(4), EADDRINUSE);
        CHECK_ERRNO(dp_open(-1), EINVAL);
        CHECK_ERRNO(dp_open(DP_MAX_DPID + 1), EINVAL);
        check(std::string(dp_last_error()).find("65536") != std::string::npos, dp_last_error());
        check_equal(dp_nid(), me.rank, "dp_nid");
        check_equal(dp_nids(), me.ranks, "dp_nids");
        Point last(DP_MAX_DPID);
        point.close();
        Point again(4);
    });
}

TEST_P(DirectedPoint, a_message_needs_a_target_that_can_be) {
    run(2, [](Rank& me) {
        Point point(1);
        char byte = 0;
        CHECK_ERRNO(dp_write(point.fd(), &byte, 1), ENOTCONN);
        point.to(2, 1);
        CHECK_ERRNO(dp_write(point.fd(), &byte, 1), EHOSTUNREACH);
        point.to(-1, 1);
        CHECK_ERRNO(dp_write(point.fd(), &byte, 1), EHOSTUNREACH);
        point.to(1, -1);
        CHECK_ERRNO(dp_write(point.fd(), &byte, 1), EINVAL);
        point.to(1, 1);
        CHECK_ERRNO(dp_write(point.fd(), &byte, -1), EINVAL);
        CHECK_ERRNO(dp_write(point.fd(), nullptr, 1), EFAULT);
        std::vector<char> large(static_cast<std::size_t>(dp_container()) + 1);
        CHECK_ERRNO(dp_write(point.fd(), large.data(), dp_container() + 1), EMSGSIZE);
        check_equal(dp_write(point.fd(), &byte, 1), 1, "a message that can be");
        all_are_open(me);  // rank 1 does not leave before it is written to
    });
}

TEST_P(DirectedPoint, what_is_no_endpoint_is_a_bad_descriptor) {
    run(2, [](Rank&) {
        Point point(1);
        const int closed = ::dup(0);
        ::close(closed);
        char* at = nullptr;
        for (const int fd : {-1, closed, 0, 1'000'000}) {
            check_is_no_endpoint(fd);
            CHECK_ERRNO(dp_try_read(fd, &at), EBADF);
            errno = 0;
            dp_close(fd);
            check_equal(errno, EBADF, "dp_close's errno");
        }
        CHECK_ERRNO(dp_read(point.fd(), nullptr), EFAULT);
        CHECK_ERRNO(dp_try_read(point.fd(), nullptr), EFAULT);
        CHECK_ERRNO(dp_fsync(point.fd(), -1), EINVAL);
        CHECK_ERRNO(dp_mmap(point.fd(), nullptr), EFAULT);
    });
}

TEST_P(DirectedPoint, an_endpoint_with_several_targets_is_the_root_of_a_broadcast) {
    run(4, [](Rank& me) {
        Point point(1), other(2);
        all_are_open(me);
        if (me.rank != 0) {
            point.read(8, 1);
            point.read(500, 2);
            if (me.rank == 1) other.read(500, 2);
            if (me.rank == 3) return;
            point.read(8, 3);
            return;
        }
        for (const int nid : {1, 2, 3}) check_equal(dp_target_add(point.fd(), nid, 1), 0, "add");
        point.write(8, 1);  // one DPID: one header for all
        check_equal(dp_target_add(point.fd(), 1, 2), 0, "another endpoint of node 1");
        point.write(500, 2);  // several: a list
        CHECK_ERRNO(dp_target_add(point.fd(), 1, 2), EEXIST);
        CHECK_ERRNO(dp_target_add(point.fd(), 4, 2), EHOSTUNREACH);
        check_equal(dp_target_remove(point.fd(), 1, 2), 0, "remove");
        check_equal(dp_target_remove(point.fd(), 3, 1), 0, "remove");
        CHECK_ERRNO(dp_target_remove(point.fd(), 3, 1), ENOENT);
        point.write(8, 3);
        check_equal(point.stat().written, std::uint64_t{3}, "a multicast counts once");
    });
}

TEST_P(DirectedPoint,
       neither_dp_try_read_nor_with_O_NONBLOCK_dp_read_waits_and_all_comes_in_order) {
    for (const auto read : {dp_read, dp_try_read}) {
        run_points(2, [read](Rank& me, Point& point) {
            if (me.rank == 0) {
                me.await_word(0);
                point.to(1, 1);
                for (std::uint64_t i = 0; i < 20; ++i) point.write(i % 2 == 0 ? 8 : 500, i);
                return me.await_word(1);
            }
            if (read == dp_read) point.make_nonblocking();
            char* at = reinterpret_cast<char*>(&point);
            errno = 0;
            check_equal(read(point.fd(), &at), 0, "the result");
            check(at == nullptr && errno == EAGAIN, "nothing waits");
            me.raise(0);
            for (std::uint64_t i = 0; i < 20; ++i) {
                int length = 0;
                await([&] { return (length = read(point.fd(), &at)) != 0; }, "a message");
                check_equal(length, i % 2 == 0 ? 8 : 500, "its length");
                check_bytes(at, static_cast<std::size_t>(length), i);
                check_equal(dp_fsync(point.fd(), 1), 1, "dp_fsync");
            }
            me.raise(1);
        });
    }
}

TEST_P(DirectedPoint, two_that_write_to_each_other_without_reading_do_not_wait_for_each_other) {
    run_points(2, [](Rank& me, Point& point) {
        point.to(1 - me.rank, 1);
        for (std::uint64_t i = 0; i < 200; ++i) point.write(i % 2 == 0 ? 8 : 700, i);
        for (std::uint64_t i = 0; i < 200; ++i) point.read(i % 2 == 0 ? 8 : 700, i);
    });
}

TEST_P(DirectedPoint, what_is_no_directed_message_is_dropped_and_counted) {
    run_points(2, [](Rank& me, Point& point) {
        if (me.rank == 1) {
            point.read(8, 1);
            check_equal(stat_of_process().dropped_corrupt, std::uint64_t{6}, "dropped_corrupt");
            return;
        }
        const auto process = billboard::ProcessEndpoint::open();
        const auto send = [&](std::initializer_list<std::uint64_t> words, std::size_t size) {
            check_code(process->guarded().send(1, words.begin(), size, {}, Class::dp), BBP_OK);
        };
        send({0}, 4);                                             // no header
        send({0x1234567812345678}, 8);                            // no kind
        send({Header{1, 1, 9, Kind::plain}.word(), 0}, 16);       // longer than it is
        send({Header{0, 1, 8, Kind::plain}.word(), 0}, 16);       // of another node
        send({Header{1, 65535, 0, Kind::listed}.word(), 0}, 16);  // a list that is not there
        send({Header{1, 1, 0, Kind::ack}.word(), 0, 0}, 24);      // an answer that says nothing
        point.to(1, 1).write(8, 1);
    });
}

TEST_P(DirectedPoint, a_process_that_waits_in_dp_read_leaves_what_is_of_another_system_alone) {
    run(2, [](Rank& me) {
        constexpr std::array kOthers = {Class::user, Class::fm, Class::gamma, Class::mpi};
        constexpr std::uint32_t kRounds = 80;  // the thread of the library may be there first
        enum { waits, taken, done };
        Point point(1);
        all_are_open(me);
        const auto process = billboard::ProcessEndpoint::open();
        for (std::uint32_t i = 0; i < kRounds; ++i) {
            const Class other = kOthers.at(i % kOthers.size());
            std::uint64_t number = 100 + i;
            if (me.rank == 0) {
                check_code(process->guarded().send(1, &number, sizeof number, {}, other), BBP_OK);
                me.raise(waits);  // it lies there
                point.to(1, 1).write(8, i);
                me.await_word(taken, i + 1);
                continue;
            }
            me.await_word(waits, i + 1);
            point.read(8, i);
            std::size_t size = 0;
            number = 0;
            check_equal(process->guarded().recv(0, &number, sizeof number, &size, {}, other), 0,
                        "the sender of the other system's message");
            check_equal(number, std::uint64_t{100 + i}, "the other system's message");
            me.raise(taken);
        }
        me.raise(done);
        me.await_word(done, 2);
        check_equal(stat_of_process().dropped_corrupt, std::uint64_t{0}, "dropped_corrupt");
    });
}

TEST_P(DirectedPoint, an_endpoint_that_was_closed_gets_no_more_and_its_dpid_may_be_used_again) {
    run(2, [](Rank& me) {
        Point keeps(9);
        Point point(1);
        all_are_open(me);
        if (me.rank == 1) {
            point.read(8, 1);
            point.close();
            me.raise(0);
            keeps.read(8, 3);
            check_equal(stat_of_process().dropped_unknown, std::uint64_t{1}, "dropped_unknown");
            Point again(1);
            me.raise(0);
            return again.read(8, 4);
        }
        keeps.to(1, 1).write(8, 1);
        me.await_word(0);
        keeps.write(8, 2);
        keeps.to(1, 9).write(8, 3);
        me.await_word(0, 2);
        keeps.to(1, 1).write(8, 4);
    });
}

TEST_P(DirectedPoint, a_pool_has_the_size_that_dp_mmap_asks_for_while_it_is_empty) {
    run_points(2, [](Rank& me, Point& point) {
        point.to(me.rank, 1);
        dpmmap_t map{nullptr, 10'000};
        check_equal(dp_mmap(point.fd(), &map), 0, "dp_mmap");
        check_equal(map.size, std::size_t{12'288}, "rounded up to pages");
        point.write(8, 1);
        point.see(8, 1);
        map.size = 4096;
        CHECK_ERRNO(dp_mmap(point.fd(), &map), EBUSY);
        dp_fsync(point.fd(), 1);
        check_equal(dp_mmap(point.fd(), &map), 0, "dp_mmap once it is flushed");
    });
}

TEST_P(DirectedPoint, a_dead_target_is_told_and_a_reader_that_nobody_can_write_to) {
    enum { has_read, is_dead, never };
    run({[](Rank& me) {
             Point point(1);
             all_are_open(me);
             point.to(1, 1).write(8, 1);
             me.await_word(is_dead);
             char byte = 0;
             await([&] { return dp_write(point.fd(), &byte, 1) < 0 && errno == EHOSTDOWN; },
                   "the death to be told");
             char* at = nullptr;
             CHECK_ERRNO(dp_read(point.fd(), &at), EHOSTDOWN);
         },
         [](Rank& me) {
             Point point(1);
             all_are_open(me);
             point.read(8, 1);
             me.raise(has_read);
             me.await_word(never);
         }},
        {.rank = 1});
}

}  // namespace
}  // namespace rmem::test
