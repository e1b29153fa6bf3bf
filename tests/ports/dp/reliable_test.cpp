// SPDX-License-Identifier: Apache-2.0
// ctest: check
// The Go-Back-N layer on every ring: pools that overflow, endpoints that are not there yet.
#include "tests/ports/dp/points.hpp"

#include <fcntl.h>

namespace rmem::test {
namespace {

class Reliable : public Conformance {};
RMEM_ON_ALL_RINGS(Reliable);

constexpr std::int64_t kPatience = 20'000 * kMillisecond;

void make_reliable(const Point& point, Place place = Place::here()) {
    check_equal(dp_reliable(point.fd(), 1), 0, "dp_reliable", place);
}

TEST_P(Reliable, all_arrive_once_and_in_order_through_a_pool_that_overflows) {
    run(2, [](Rank& me) {
        constexpr std::size_t kBytes = 1300;  // the pool holds three of them, the first window four
        const auto messages = static_cast<std::uint64_t>(thrifty(400) + 10);
        Point point(1), other(2);
        if (me.rank == 0) {
            me.await_word(0);
            make_reliable(point);
            point.to(1, 1);
            for (std::uint64_t i = 0; i < messages; ++i) point.write(kBytes, i);
            check_equal(dp_drain(point.fd(), kPatience), 0, "dp_drain");
            me.raise(1);
            return;
        }
        point.pool(4096);
        ::fcntl(other.fd(), F_SETFL, O_NONBLOCK);
        me.raise(0);
        char* at = nullptr;
        await([&] { return dp_read(other.fd(), &at) == 0 && point.stat().dropped_full != 0; },
              "the pool to overflow");
        for (std::uint64_t i = 0; i < messages; ++i) point.read(kBytes, i);
        // The last answer may have been lost: a thread that waits here gives it.
        await([&] { return dp_read(other.fd(), &at) == 0 && me.shared[1] != 0; },
              "the writer to be done");
    });
}

TEST_P(Reliable, what_was_written_before_its_endpoint_was_there_arrives) {
    run(2, [](Rank& me) {
        Point keeps(2);
        if (me.rank == 0) {
            Point point(1);
            make_reliable(point);
            point.to(1, 1);
            for (std::uint64_t i = 0; i < 3; ++i) point.write(8, i);
            me.raise(0);
            check_equal(dp_drain(point.fd(), kPatience), 0, "dp_drain");
            me.raise(1);
            return;
        }
        me.await_word(0);
        ::fcntl(keeps.fd(), F_SETFL, O_NONBLOCK);
        await(
            [&] {
                char* at = nullptr;
                return dp_read(keeps.fd(), &at) == 0 && stat_of_process().dropped_unknown > 0;
            },
            "a message that is dropped");
        Point point(1);
        for (std::uint64_t i = 0; i < 3; ++i) point.read(8, i);
        await(
            [&] {
                char* at = nullptr;
                return dp_read(keeps.fd(), &at) == 0 && me.shared[1] != 0;
            },
            "the writer to be done");
    });
}

TEST_P(Reliable, a_broadcast_reaches_all) {
    run(3, [](Rank& me) {
        const auto messages = static_cast<std::uint64_t>(thrifty(200));
        Point point(1);
        if (me.rank != 0) {
            point.pool(4096);
            me.raise(0);
            for (std::uint64_t i = 0; i < messages; ++i) point.read(300, i);
            ::fcntl(point.fd(), F_SETFL, O_NONBLOCK);
            await(
                [&] {
                    char* at = nullptr;
                    return dp_read(point.fd(), &at) == 0 && me.shared[1] != 0;
                },
                "the writer to be done");
            return;
        }
        me.await_word(0, 2);
        make_reliable(point);
        for (const int nid : {1, 2}) check_equal(dp_target_add(point.fd(), nid, 1), 0, "add");
        for (std::uint64_t i = 0; i < messages; ++i) point.write(300, i);
        check_equal(dp_drain(point.fd(), kPatience), 0, "dp_drain");
        me.raise(1);
    });
}

TEST_P(Reliable, a_receiver_that_does_not_read_is_waited_for_but_not_with_O_NONBLOCK) {
    run(2, [](Rank& me) {
        Point point(1);
        if (me.rank == 1) {
            point.pool(4096);
            me.raise(0);
            me.await_word(1);
            for (std::uint64_t i = 0; i < me.shared[2]; ++i) point.read(1000, i);
            ::fcntl(point.fd(), F_SETFL, O_NONBLOCK);
            await(
                [&] {
                    char* at = nullptr;
                    return dp_read(point.fd(), &at) == 0 && me.shared[3] != 0;
                },
                "the writer to be done");
            return;
        }
        me.await_word(0);
        make_reliable(point);
        point.to(1, 1);
        ::fcntl(point.fd(), F_SETFL, O_NONBLOCK);
        std::uint32_t written = 0;
        for (;; ++written) {
            auto bytes = pattern(1000, written);
            if (dp_write(point.fd(), bytes.data(), 1000) < 0) break;
        }
        check_equal(errno, EAGAIN, "errno");
        check(written < 4 * 64, "messages taken");
        me.shared[2] = written;
        me.raise(1);
        check_equal(dp_drain(point.fd(), kPatience), 0, "dp_drain");
        me.raise(3);
    });
}

TEST_P(Reliable, a_dead_target_is_told_though_others_live) {
    RankProcesses ring(setup(3));
    ring.start(0, [](Rank& me) {
        Point point(1);
        make_reliable(point);
        point.to(1, 1).write(8, 1);
        check_equal(dp_drain(point.fd(), kPatience), 0, "dp_drain");
        me.raise(0);
        me.await_word(1);
        auto bytes = pattern(8, 2);
        await([&] { return dp_write(point.fd(), bytes.data(), 8) < 0; }, "the death to be told");
        check_equal(errno, EHOSTDOWN, "errno of dp_write");
        CHECK_ERRNO(dp_drain(point.fd(), kPatience), EHOSTDOWN);
        me.raise(2);
    });
    ring.start(1, [](Rank& me) {
        Point point(1);
        point.read(8, 1);
        await(
            [&] {
                char* at = nullptr;
                dp_try_read(point.fd(), &at);  // answers
                return me.shared[3] != 0;      // never
            },
            "its end");
    });
    ring.start(2, [](Rank& me) {
        Point point(1);
        me.await_word(2);
    });
    ring.await_word(0);
    ring.kill(1);
    ++ring.shared()[1];
    ring.finish();
}

TEST_P(Reliable, the_layer_is_taken_off_once_all_is_acknowledged) {
    run(2, [](Rank& me) {
        Point point(1), other(2);
        if (me.rank == 0) {
            make_reliable(point);
            point.to(1, 1).write(8, 1);
            if (dp_reliable(point.fd(), 0) < 0) check_equal(errno, EBUSY, "errno");
            check_equal(dp_drain(point.fd(), kPatience), 0, "dp_drain");
            check_equal(dp_reliable(point.fd(), 0), 0, "dp_reliable");
            point.write(8, 2);
            return;
        }
        point.read(8, 1);
        point.read(8, 2);
    });
}

}  // namespace
}  // namespace rmem::test
