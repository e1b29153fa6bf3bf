// SPDX-License-Identifier: Apache-2.0
// ctest: check
// The row of each property for Directed Point, raw and with the Go-Back-N layer, from dp/dp.h
// alone; docs/design/ports.md has the table.
#include "tests/ports/dp/points.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

namespace rmem::test {
namespace {

constexpr int kPoint = 1, kOther = 2;
constexpr std::size_t kSmallPool = 4096, kSize = 200;

/// Two endpoints of a process: one for the messages, and one whose reads take in what is for the
/// first, also where no thread of the library does.
struct Points {
    explicit Points(std::size_t pool = 0) {
        if (pool != 0) point.pool(pool);
        other.make_nonblocking();
    }
    void take_in_until(const std::function<bool()>& holds, const char* what,
                       Place place = Place::here()) const {
        await(
            [&] {
                char* at = nullptr;
                check_equal(dp_read(other.fd(), &at), 0, "messages for nobody", place);
                return holds();
            },
            what, place);
    }
    void serve_until(Rank& me, std::size_t word, std::uint32_t value,
                     Place place = Place::here()) const {
        take_in_until([&] { return me.shared[word] >= value; }, "the others", place);
    }
    /// Until that number of messages has found room in the pool, or none.
    void take_in_messages(std::uint64_t messages, Place place = Place::here()) const {
        take_in_until([&] { return stat().arrived + stat().dropped_full == messages; },
                      "each message to arrive or to be dropped", place);
    }
    dp_stat_t stat() const { return point.stat(); }

    int try_write(std::uint32_t number) const {
        std::vector<std::byte> bytes(kSize);
        std::memcpy(bytes.data(), &number, sizeof number);
        return dp_write(point.fd(), bytes.data(), static_cast<int>(bytes.size()));
    }
    /// Numbers from `first`.
    void write(std::uint32_t messages, std::uint32_t first = 0, Place place = Place::here()) const {
        for (std::uint32_t i = 0; i < messages; ++i)
            check_equal(try_write(first + i), kSize, "dp_write", place);
    }
    std::uint32_t read_number(Place place = Place::here()) const {
        char* at = nullptr;
        check_equal(dp_read(point.fd(), &at), kSize, "dp_read", place);
        std::uint32_t number = 0;
        std::memcpy(&number, at, sizeof number);
        check_equal(dp_fsync(point.fd(), 1), 1, "dp_fsync", place);
        return number;
    }
    /// The numbers from 0 on.
    void read(std::uint32_t messages, Place place = Place::here()) const {
        for (std::uint32_t i = 0; i < messages; ++i)
            check_equal(read_number(place), i, "the next number", place);
    }

    Point point{kPoint}, other{kOther};
};

class DpRaw : public Conformance {
protected:
    using PointsBody = std::function<void(Rank&, Points&)>;

    /// Runs the body in each rank once all endpoints are open; that of rank 0 leads to rank 1.
    static void run_points(unsigned ranks, std::size_t pool, const PointsBody& body,
                           bool is_reliable = false) {
        run(ranks, [&](Rank& me) {
            Points points(pool);
            all_are_open(me);
            if (me.rank == 0) points.point.to(1, kPoint);
            if (me.rank == 0 && is_reliable) points.point.make_reliable();
            body(me, points);
        });
    }
};
RMEM_ON_ALL_RINGS_AND_LOSS(DpRaw);

/// Where it differs from the raw mode.
class DpReliable : public DpRaw {
protected:
    static void run_points(unsigned ranks, std::size_t pool, const PointsBody& body) {
        DpRaw::run_points(ranks, pool, body, true);
    }
};
RMEM_ON_ALL_RINGS_AND_LOSS(DpReliable);

// ---- Raw
// ==========================================================================================

// ---- Reliable: no. What is lost is lost to a full pool.

TEST_P(DpRaw, is_not_reliable_but_drops_what_finds_the_token_pool_full) {
    run_points(2, kSmallPool, [](Rank& me, Points& points) {
        enum { done };
        constexpr std::uint64_t kMessages = 100;
        if (me.rank == 0) {
            for (std::uint64_t i = 0; i < kMessages; ++i) points.point.write(kSize, i);
            points.serve_until(me, done, 1);
            points.point.write(kSize, 1000);
            return points.serve_until(me, done, 2);
        }
        points.take_in_messages(kMessages);
        const dp_stat_t stat = points.stat();
        check(stat.dropped_full > 0 && stat.arrived > 0, "some of both");
        check(stat.arrived * kSize <= kSmallPool, "no more than the pool holds");
        points.point.make_nonblocking();
        for (std::uint64_t i = 0; i < stat.arrived; ++i) points.point.read(kSize, i);
        char* at = nullptr;
        check_equal(dp_read(points.point.fd(), &at), 0, "further messages");
        me.raise(done);
        points.take_in_until([&] { return dp_read(points.point.fd(), &at) != 0; }, "room again");
        check_bytes(at, kSize, 1000);
        me.raise(done);
    });
}

// ---- Ordered: not promised; here kept from one endpoint to another

TEST_P(DpRaw, is_ordered_between_two_endpoints_though_messages_are_dropped) {
    run_points(2, kSmallPool, [](Rank& me, Points& points) {
        enum { full, done };
        if (me.rank == 0) {
            // Before and after the pool was full, and around gaps.
            for (std::uint32_t round = 1; round <= 4; ++round) {
                points.write(30, 30 * (round - 1));
                points.serve_until(me, full, round);
            }
            return points.serve_until(me, done, 1);
        }
        std::vector<std::uint32_t> numbers;
        for (std::uint64_t round = 1; round <= 4; ++round) {
            points.take_in_messages(30 * round);
            while (numbers.size() < points.stat().arrived) numbers.push_back(points.read_number());
            me.raise(full);
        }
        check(points.stat().dropped_full > 0, "messages were dropped");
        check(numbers.back() > numbers.size(), "gaps");
        check(std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) ==
                  numbers.end(),
              "each number is larger than the one before");
        me.raise(done);
    });
}

// ---- Flow control: none

TEST_P(DpRaw, has_no_flow_control) {
    run_points(2, kSmallPool, [](Rank& me, Points& points) {
        enum { written, done };
        if (me.rank == 0) {
            const auto messages = static_cast<std::uint32_t>(4 * me.partition / kSize);
            points.write(messages);  // though nobody reads
            check_equal(points.stat().written, messages, "messages written");
            check_equal(points.stat().dropped_network, 0, "messages not sent");
            check_equal(points.stat().arrived + points.other.stat().arrived, 0, "answers");
            me.shared[written] = messages;
            return points.serve_until(me, done, 1);
        }
        // Its process takes in, but nothing is read or flushed.
        points.take_in_until([&] { return me.shared[written] != 0; }, "the writer");
        points.take_in_messages(me.shared[written]);
        check(points.stat().dropped_full > 0, "messages dropped");
        me.raise(done);
    });
}

// ---- Max message: one Directed Message

void one_container_is_the_most(Rank& me, Points& points) {
    const auto most = static_cast<std::size_t>(dp_container());
    if (me.rank == 0) {
        std::vector<char> longer(most + 1);
        CHECK_ERRNO(dp_write(points.point.fd(), longer.data(), static_cast<int>(most) + 1),
                    EMSGSIZE);
        points.point.write(most, 3);
        return points.serve_until(me, 0, 1);
    }
    points.point.read(most, 3);
    check_equal(points.stat().arrived, 1, "messages");
    me.raise(0);
}

TEST_P(DpRaw, max_message_is_one_container) {
    run_points(2, 0, one_container_is_the_most);
}

// ---- Receive style: explicit, zero copy

TEST_P(DpRaw, receives_explicitly_and_without_a_copy) {
    run_points(2, 0, [](Rank& me, Points& points) {
        constexpr std::uint64_t kMessages = 4;
        if (me.rank == 0) {
            for (std::uint64_t i = 0; i < kMessages; ++i) points.point.write(100 * i, i);
            return points.serve_until(me, 0, 1);
        }
        dpmmap_t pool{nullptr, 0};
        check_equal(dp_mmap(points.point.fd(), &pool), 0, "dp_mmap");
        check_equal(pool.size, DP_POOL_BYTES, "the pool's size");
        const auto* base = static_cast<const char*>(pool.base);
        std::vector<const char*> places;
        for (std::uint64_t i = 0; i < kMessages; ++i) {
            places.push_back(points.point.see(100 * i, i));
            check(places.back() >= base && places.back() + 100 * i <= base + pool.size,
                  "within the pool");
        }
        // Reading frees nothing: they are all still there.
        for (std::uint64_t i = 0; i < kMessages; ++i) check_bytes(places[i], 100 * i, i);
        check_equal(dp_fsync(points.point.fd(), 1), 1, "dp_fsync of the oldest");
        for (std::uint64_t i = 1; i < kMessages; ++i) check_bytes(places[i], 100 * i, i);
        check_equal(dp_fsync(points.point.fd(), 100), kMessages - 1, "of more than there are");
        check_equal(dp_fsync(points.point.fd(), 1), 0, "dp_fsync of nothing");
        me.raise(0);
    });
}

// ---- Broadcast: group operations

TEST_P(DpRaw, broadcasts_and_reduces_by_groups_of_edges) {
    run_points(4, 0, [](Rank& me, Points& points) {
        enum { done };
        constexpr std::uint32_t kEach = 20;
        if (me.rank == 0) {
            for (int nid = 2; nid < me.ranks; ++nid) {
                check_equal(dp_target_add(points.point.fd(), nid, kPoint), 0, "dp_target_add");
            }
            points.point.write(300, 9);
            check_equal(points.stat().written, 1, "messages written, a multicast once");
            std::array<std::uint32_t, 4> next{};  // at the sink, of each writer
            for (std::uint32_t i = 0; i < 3 * kEach; ++i) {
                const std::uint32_t number = points.read_number();
                check_equal(number % 100, next.at(number / 100)++, "the next of a writer");
            }
            me.raise(done);
        } else {
            points.point.to(0, kPoint).read(300, 9);
            points.write(kEach, 100 * static_cast<std::uint32_t>(me.rank));
        }
        points.serve_until(me, done, 1);
        check_equal(points.stat().arrived, me.rank == 0 ? 3 * kEach : 1, "messages");
    });
}

// ---- Protection: kernel, by descriptors

TEST_P(DpRaw, protection_is_by_descriptors_which_are_a_processes_own) {
    RMEM_SKIP_IF_SIMULATED("simulated processes share the descriptors of one");
    run_points(2, 0, [](Rank& me, Points& points) {
        enum { fd, tried };
        if (me.rank == 0) {
            // A number that is no descriptor of the other.
            const Point third(3), fourth(4);
            me.shared[fd] = static_cast<std::uint32_t>(fourth.fd());
            points.serve_until(me, tried, 1);
            check_equal(points.stat().arrived, 0, "messages for another endpoint");
            points.take_in_until([] { return stat_of_process().dropped_unknown == 1; },
                                 "the message for no endpoint");
            return;
        }
        await([&] { return me.shared[fd] != 0; }, "the descriptor's number");
        const int theirs = static_cast<int>(me.shared[fd]);
        check_is_no_endpoint(theirs);
        points.point.to(0, 77).write(10, 1);
        me.raise(tried);
    });
}

// ---- Send can block: no (drop)

TEST_P(DpRaw, send_cannot_block_but_drops) {
    enum { open, written };
    RankProcesses ring(setup(2));
    ring.start_all([](Rank& me) {
        Points points;
        all_are_open(me);
        if (me.rank == 1) {
            me.raise(open);
            return me.await_word(written);  // stopped, or simulated: takes nothing in
        }
        me.await_word(open, 2);
        points.point.to(1, kPoint);
        std::uint32_t number = 0;
        int result = 0;
        do {
            errno = 0;
            result = points.try_write(number++);
        } while (result == static_cast<int>(kSize));
        check_equal(result, -1, "dp_write on a network that stays full");
        check_equal(errno, ENOBUFS, "errno");
        check_equal(points.stat().dropped_network, 1, "messages not sent");
        points.point.make_nonblocking();
        CHECK_ERRNO(points.try_write(number), EAGAIN);
        me.raise(written);
    });
    ring.await_word(open, 1);
    if (!is_simulated()) ring.stop(1);
    ring.shared()[open] = 2;
    ring.await_word(written, 1);
    if (!is_simulated()) ring.resume(1);
    ring.finish();
}

// ---- With the Go-Back-N layer
// =====================================================================

TEST_P(DpReliable, is_reliable_and_ordered_through_a_pool_that_overflows) {
    run_points(2, kSmallPool, [](Rank& me, Points& points) {
        constexpr std::uint32_t kMessages = 100;
        if (me.rank == 0) {
            points.write(kMessages);
            points.point.drain();
            return check(points.stat().again > 0, "messages were sent again");
        }
        points.take_in_until([&] { return points.stat().dropped_full > 0; }, "a full pool");
        points.read(kMessages);
        check_equal(points.stat().arrived, kMessages, "messages put into the pool");
        // Leaves at once: the writer learns anyway that they have arrived.
    });
}

TEST_P(DpReliable, flow_control_is_a_window_of_what_is_not_acknowledged) {
    run_points(2, kSmallPool, [](Rank& me, Points& points) {
        enum { written, drained };
        constexpr std::uint32_t kLimit = 256;
        if (me.rank == 0) {
            points.point.make_nonblocking();
            std::uint32_t number = 0;
            const auto write = [&] { return points.try_write(number); };
            // Until the window is used up: the reader's process takes in, but it does not read.
            int refused = 0;
            await(
                [&] {
                    while (number < kLimit && write() >= 0) ++number, refused = 0;
                    check_equal(errno, EAGAIN, "errno of a full window");
                    return ++refused == 20;
                },
                "the window to be used up");
            check(number < kLimit, "it is finite");
            me.shared[written] = number;
            await([&] { return write() >= 0; }, "room once messages were flushed");
            points.point.drain();
            return me.raise(drained);
        }
        points.take_in_until([&] { return me.shared[written] != 0; }, "the writer");
        points.read(me.shared[written] + 1);
        points.serve_until(me, drained, 1);
    });
}

TEST_P(DpReliable, max_message_is_one_container) {
    run_points(2, 0, one_container_is_the_most);
}

TEST_P(DpReliable, broadcasts_to_all_though_one_of_them_is_slow) {
    run(3, [](Rank& me) {
        enum { drained };
        constexpr std::uint32_t kMessages = 60;
        Points points(me.rank == 1 ? kSmallPool : 0);
        all_are_open(me);
        if (me.rank == 0) {
            points.point.to(1, kPoint);
            check_equal(dp_target_add(points.point.fd(), 2, kPoint), 0, "dp_target_add");
            points.point.make_reliable();
            points.write(kMessages);
            points.point.drain();
            return me.raise(drained);
        }
        if (me.rank == 1) {
            points.take_in_until([&] { return points.stat().dropped_full > 0; }, "overflow");
        }
        points.read(kMessages);
        points.serve_until(me, drained, 1);
    });
}

TEST_P(DpReliable, send_can_block_until_the_receiver_flushes) {
    run_points(2, kSmallPool, [](Rank& me, Points& points) {
        enum { begun, drained };
        constexpr std::uint32_t kMessages = 150;
        if (me.rank == 0) {
            for (std::uint32_t i = 0; i < kMessages; ++i) {
                me.raise(begun);
                points.write(1, i);
            }
            points.point.drain();
            return me.raise(drained);
        }
        // The writer stands still in a call when the same comes again and is refused again, and it
        // has begun no other.
        std::uint32_t before = 0;
        for (int alike = 0; alike < 3;) {
            const std::uint64_t refused = points.stat().dropped_full;
            points.take_in_until([&] { return points.stat().dropped_full > refused; },
                                 "a message that is refused");
            alike = me.shared[begun] == before ? alike + 1 : 0;
            before = me.shared[begun];
        }
        check(before < kMessages, "the writer waits");
        points.read(kMessages);
        points.serve_until(me, drained, 1);
    });
}

}  // namespace
}  // namespace rmem::test
