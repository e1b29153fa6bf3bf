// SPDX-License-Identifier: Apache-2.0
// ctest: check
// Endpoints are file descriptors: what the system's own calls do with them. Not on simulated rings,
// whose time is not the system's.
#include "tests/ports/dp/points.hpp"
#include "tests/support/child.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace rmem::test {
namespace {

class Descriptors : public PointTest {
    void SetUp() override { RMEM_SKIP_IF_SIMULATED("nobody serves descriptors"); }
};
RMEM_ON_ALL_RINGS(Descriptors);

constexpr int kPatienceMs = 20'000;

bool is_readable(int fd, int timeout_ms = 0) {
    pollfd poll{fd, POLLIN, 0};
    return ::poll(&poll, 1, timeout_ms) == 1 && (poll.revents & POLLIN) != 0;
}

/// Reads a message by read(2), which may have to wait.
void plain_read(int fd, std::size_t size, std::uint64_t seed, Place place = Place::here()) {
    std::vector<std::byte> bytes(size + 10);
    check(is_readable(fd, kPatienceMs), "the descriptor becomes readable", place);
    const ssize_t length = ::read(fd, bytes.data(), bytes.size());
    check_equal(length, static_cast<ssize_t>(size), "read's length", place);
    check_bytes(bytes.data(), size, seed, place);
}

void plain_write(int fd, std::size_t size, std::uint64_t seed, Place place = Place::here()) {
    const auto bytes = pattern(size, seed);
    check_equal(::write(fd, bytes.data(), size), static_cast<ssize_t>(size), "write", place);
}

void ends_well(Child& child, Place place = Place::here()) {
    check_equal(child.wait(), 0, "the child's status", place);
}

TEST_P(Descriptors, poll_select_and_epoll_tell_that_a_message_waits) {
    run_points(2, [](Rank& me, Point& point) {
        if (me.rank == 0) {
            point.to(1, 1);
            for (std::uint32_t i = 0; i < 3; ++i) {
                me.await_word(0, i + 1);
                point.write(8, i);
            }
            return;
        }
        check(!is_readable(point.fd()), "nothing waits yet");
        me.raise(0);
        check(is_readable(point.fd(), kPatienceMs), "poll");
        point.read(8, 0);
        check(!is_readable(point.fd()), "it has been read");
        me.raise(0);
        fd_set set;
        FD_ZERO(&set);
        FD_SET(point.fd(), &set);
        timeval patience{kPatienceMs / 1000, 0};
        check_equal(::select(point.fd() + 1, &set, nullptr, nullptr, &patience), 1, "select");
        point.read(8, 1);
        const int epoll = ::epoll_create1(0);
        epoll_event event{};
        event.events = EPOLLIN | EPOLLET;
        ::epoll_ctl(epoll, EPOLL_CTL_ADD, point.fd(), &event);
        me.raise(0);
        check_equal(::epoll_wait(epoll, &event, 1, kPatienceMs), 1, "epoll, edge-triggered");
        point.read(8, 2);
        ::close(epoll);
    });
}

TEST_P(Descriptors, poll_tells_of_every_message_that_is_left_by_any_reader_of_the_one_before) {
    run_points(2, [](Rank& me, Point& point) {
        constexpr std::uint64_t kMessages = 40;
        if (me.rank == 0) {
            point.to(1, 1);
            for (std::uint64_t i = 0; i < kMessages; ++i) point.write(i % 3 == 0 ? 100 : 8, i);
            return;
        }
        for (std::uint64_t i = 0; i < kMessages; ++i) {
            const std::size_t size = i % 3 == 0 ? 100 : 8;
            check(is_readable(point.fd(), kPatienceMs), "the descriptor becomes readable");
            i % 2 == 0 ? point.read(size, i) : plain_read(point.fd(), size, i);
        }
        check(!is_readable(point.fd()), "nothing is left");
        await([&] { return point.stat().served_reads == kMessages / 2; }, "served_reads");
    });
}

TEST_P(Descriptors, read_and_write_pass_whole_messages_in_order_as_dp_read_and_dp_write_do) {
    run_points(2, [](Rank& me, Point& point) {
        const std::vector<std::size_t> sizes = {8, 0, 60, 1000, 1, 0, 4000};
        std::uint64_t seed = 0, plain = 0;
        point.to(1, 1);
        for (const std::size_t size : sizes) {
            if (me.rank == 0) point.write(size, ++seed);
            if (me.rank == 1) plain_read(point.fd(), size, ++seed);
        }
        for (const std::size_t size : sizes) {
            if (size == 0) continue;  // to write(2), nothing
            if (me.rank == 0) plain_write(point.fd(), size, ++seed), ++plain;
            if (me.rank == 1) point.read(size, ++seed);
        }
        await([&] { return point.stat().served_writes == plain; }, "the engine");
    });
}

TEST_P(Descriptors, what_write_cannot_send_is_dropped_and_counted) {
    run_points(2, [](Rank& me, Point& point) {
        if (me.rank == 0) {
            plain_write(point.fd(), 8, 1);  // to nobody
            await([&] { return point.stat().dropped_writes == 1; }, "the first to be dropped");
            point.to(1, 1);
            plain_write(point.fd(), static_cast<std::size_t>(dp_container()) + 1, 1);
            await([&] { return point.stat().dropped_writes == 2; }, "the second to be dropped");
            plain_write(point.fd(), 8, 2);
        } else {
            point.read(8, 2);
        }
    });
}

TEST_P(Descriptors, what_was_written_before_a_close_is_sent) {
    run_points(2, [](Rank& me, Point& point) {
        if (me.rank == 0) {
            point.to(1, 1);
            for (std::uint64_t i = 0; i < 10; ++i) plain_write(point.fd(), 8, i);
            point.close();
        } else {
            for (std::uint64_t i = 0; i < 10; ++i) point.read(8, i);
        }
    });
}

TEST_P(Descriptors, a_duplicate_is_the_same_endpoint_which_ends_with_the_last_one) {
    run(2, [](Rank& me) {
        auto point = std::make_unique<Point>(1);
        all_are_open(me);
        if (me.rank == 0) {
            point->to(1, 1);
            for (std::uint64_t i = 0; i < 3; ++i) point->write(8, i);
            me.await_word(0);
            return;
        }
        const int copy = ::dup(point->fd());
        point->read(8, 0);
        point->close();
        char* at = nullptr;
        check_equal(dp_read(copy, &at), 8, "dp_read of the duplicate");
        check_bytes(at, 8, 1);
        plain_read(copy, 8, 2);
        CHECK_ERRNO(dp_open(1), EADDRINUSE);
        ::close(copy);
        int again = -1;
        await([&] { return (again = dp_open(1)) >= 0; }, "the endpoint to end");
        dp_close(again);
        me.raise(0);
    });
}

TEST_P(Descriptors, a_forked_child_reads_and_writes_though_it_is_not_on_the_ring) {
    run_points(2, [](Rank& me, Point& point) {
        point.to(1 - me.rank, 1);
        if (me.rank == 0) {
            point.write(100, 1);
            point.read(50, 2);
            return;
        }
        Child child([&] {
            plain_read(point.fd(), 100, 1);
            char* at = nullptr;
            CHECK_ERRNO(dp_read(point.fd(), &at), EBADF);
            CHECK_ERRNO(dp_open(2), EOPNOTSUPP);
            plain_write(point.fd(), 50, 2);
        });
        ends_well(child);
        await([&] { return point.stat().served_writes == 1; }, "the engine");
    });
}

TEST_P(Descriptors, what_a_child_holds_stays_open_when_its_parent_has_closed_it) {
    run(2, [](Rank& me) {
        auto point = std::make_unique<Point>(1);
        Point keeps(2);
        all_are_open(me);
        if (me.rank == 0) {
            me.await_word(0);
            point->to(1, 1).write(8, 1);
            return keeps.read(8, 9);
        }
        Child child([&] { plain_read(point->fd(), 8, 1); });
        point->close();
        me.raise(0);
        ends_well(child);
        int again = -1;
        await([&] { return (again = dp_open(1)) >= 0; }, "the endpoint to end with the child");
        dp_close(again);
        keeps.to(0, 2).write(8, 9);
    });
}

TEST_P(Descriptors, what_a_child_holds_ends_when_its_parent_dies) {
    enum { waits, told };
    RankProcesses ring(setup(1));
    ring.start_all([](Rank& me) {
        const Point point(1);
        Child child([&] {
            outlive_parent();
            me.raise(waits);
            char byte = 0;
            check(is_readable(point.fd(), kPatienceMs), "the end is told");
            check_equal(::read(point.fd(), &byte, 1), 0, "read at the end");
            me.raise(told);
        });
        me.await_word(told + 1);  // never
    });
    ring.await_word(waits);
    ring.kill(0);
    ring.await_word(told);
}

/// Raw messages to a process that gets no processor for DP_FULL_NS are not sent, which dp_write
/// says.
int write_until_sent(const Point& point, void* bytes, int length) {
    int written = 0;
    do {
        errno = 0;
        written = dp_write(point.fd(), bytes, length);
    } while (written < 0 && errno == ENOBUFS);
    return written;
}

TEST_P(Descriptors, two_threads_may_use_one_endpoint_to_send_and_to_receive) {
    run_points(2, [](Rank& me, Point& point) {
        const auto messages = static_cast<std::uint64_t>(thrifty(2000));
        point.to(1 - me.rank, 1);
        std::atomic<std::uint64_t> sent{0}, read{0};
        std::thread sends([&] {
            auto bytes = pattern(8, 5);
            for (std::uint64_t i = 0; i < messages; ++i) {
                if (write_until_sent(point, bytes.data(), 8) == 8) ++sent;
            }
        });
        for (std::uint64_t i = 0; i < messages; ++i) {
            char* at = nullptr;
            if (dp_read(point.fd(), &at) == 8) ++read;
            dp_fsync(point.fd(), 1);
        }
        sends.join();
        check_equal(sent.load(), messages, "messages sent");
        check_equal(read.load(), messages, "messages read");
    });
}

TEST_P(Descriptors, several_readers_of_one_endpoint_get_each_message_once) {
    run_points(2, [](Rank& me, Point& point) {
        constexpr std::uint32_t kMessages = 300;
        if (me.rank == 0) {
            point.to(1, 1);
            for (std::uint32_t i = 0; i < kMessages + 3; ++i) {
                std::uint32_t number = std::min(i, kMessages);  // the last ones: the end
                check_equal(write_until_sent(point, &number, 4), 4, "dp_write");
            }
            me.await_word(0);
            return;
        }
        std::array<std::atomic<unsigned>, kMessages> seen{};
        const auto take = [&](std::uint32_t number) {
            if (number < kMessages) ++seen[number];
            return number < kMessages;
        };
        const auto by_dp = [&] {
            std::uint32_t number = 0;
            do {
                char* at = nullptr;
                if (dp_read(point.fd(), &at) != 4) return;
                std::memcpy(&number, at, 4);
            } while (take(number));
        };
        std::thread first(by_dp), second(by_dp), third([&] {
            std::uint32_t number = 0;
            while (::read(point.fd(), &number, 4) == 4 && take(number)) {
            }
        });
        first.join();
        second.join();
        third.join();
        for (std::uint32_t i = 0; i < kMessages; ++i)
            check_equal(seen[i].load(), 1U, fmt::format("message {}", i));
        me.raise(0);
    });
}

TEST_P(Descriptors, one_that_is_closed_under_a_reader_tells_him) {
    run(2, [](Rank& me) {
        Point stays(2);
        all_are_open(me);
        if (me.rank == 0) {
            me.await_word(0);
            return;
        }
        const int fd = dp_open(1);
        std::atomic<int> result{0};
        std::thread reader([&] {
            char* at = nullptr;
            result = dp_read(fd, &at) == -1 ? errno : -1;
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        dp_close(fd);
        reader.join();
        check_equal(result.load(), EBADF, "errno of the reader");
        me.raise(0);
    });
}

TEST_P(Descriptors, exchanging_messages_by_dp_calls_signals_nobody) {
    run_points(2, [](Rank& me, Point& point) {
        const auto rounds = static_cast<std::uint64_t>(thrifty(4000));
        point.to(1 - me.rank, 1);
        for (std::uint64_t i = 0; i < rounds; ++i) {
            if (me.rank == 0) point.write(8, i);
            point.read(8, i);
            if (me.rank == 1) point.write(8, i);
        }
        // A signal is due to a reader that was away for a millisecond; the host may have seen to
        // that, now and then.
        check(point.stat().signals < rounds / 4 + 20,
              fmt::format("{} signals in {} rounds", point.stat().signals, rounds));
    });
}

TEST_P(Descriptors, what_a_writer_takes_in_while_it_waits_is_read_without_a_signal) {
    run(2, [](Rank& me) {
        constexpr std::uint64_t kAhead = 60;  // more than any network takes unread
        const auto messages = static_cast<std::uint64_t>(thrifty(4000));
        Point point(1);
        all_are_open(me);
        point.to(1 - me.rank, 1);
        const auto start = std::chrono::steady_clock::now();
        for (std::uint64_t i = 0; i < messages + kAhead; ++i) {
            if (i < messages) point.write(8, i);
            if (i >= kAhead) point.read(8, i - kAhead);
        }
        // The host may take a rank away for a millisecond: then a look signals one message, and the
        // next sixteen are.
        const auto looks =
            std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start)
                .count();
        check(point.stat().signals < 50 + 20 * static_cast<std::uint64_t>(looks),
              fmt::format("{} signals for {} messages in {} ms", point.stat().signals, messages,
                          looks));
    });
}

}  // namespace
}  // namespace rmem::test
