// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// Conformance: blocking calls wait and are woken, try calls say BBP_EAGAIN, deadlines end with
/// BBP_ETIMEDOUT, and none of them loses or doubles a message; bbp_fd tells poll(2) of messages.
/// (billboard/bbp.h: Waiting, the try and deadline variants, bbp_fd.)

#include "tests/support/conformance.hpp"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <chrono>

namespace rmem::test {
namespace {

class Waiting : public Conformance {};
RMEM_ON_ALL_RINGS(Waiting);

enum Word : std::size_t { kPosted, kGo, kDone, kCount };

/// Long enough that a waiter which is going to sleep sleeps; no check depends on whether it does.
void let_others_fall_asleep() {
    rest(std::chrono::milliseconds(30));
}

TEST_P(Waiting, a_send_to_a_rank_that_does_not_read_says_again_or_times_out_and_succeeds_later) {
    for (const std::size_t size :
         {std::size_t{8}, std::size_t{60}, std::size_t{300}, kPartition / 3, kPartition}) {
        SCOPED_TRACE(size);
        run(2, [size](Rank& me) {
            if (me.rank == 0) {
                const int queued = send_until_full(1, size, 0);
                check(queued > 0, "nothing could be sent though nothing was unread");
                for (int i = 0; i < 100; ++i) check_code(try_send(1, size, 1), BBP_EAGAIN);
                const auto lost = pattern(size, 12345);
                for (const std::int64_t timeout : {20 * kMillisecond, std::int64_t{0}, INT64_MIN}) {
                    check_code(bbp_send_for(1, lost.data(), size, timeout), BBP_ETIMEDOUT);
                }
                me.shared[kCount] = static_cast<std::uint32_t>(queued);
                me.raise(kGo);
                const auto late = pattern(size, 998);
                check_ok(bbp_send_for(1, late.data(), size, kLong));
                await([&] { return try_send(1, size, 999) == BBP_OK; }, "room");
            } else {
                me.await_word(kGo);
                const std::uint64_t queued = me.shared[kCount];
                for (std::uint64_t i = 0; i < queued; ++i) receive(0, size, i);
                for (const std::uint64_t seed : {998U, 999U}) receive(0, size, seed);
            }
            check_ok(bbp_barrier());
            nothing_waits(BBP_ANY);
        });
    }
}

TEST_P(Waiting, a_sleeping_receiver_or_viewer_is_woken_by_a_message) {
    run(3, [](Rank& me) {
        for (int round = 0; round < 4; ++round) {
            for (const std::size_t size : {4U, 600U}) {
                const auto seed = static_cast<std::uint64_t>(round);
                const int source = round % 2 == 0 ? 0 : BBP_ANY;
                if (me.rank == 0) {
                    let_others_fall_asleep();
                    send(1, size, seed);
                    multicast({1, 2}, size, seed + 1);
                    continue;
                }
                if (me.rank == 1) receive(source, size, seed);
                const void* data = nullptr;
                std::size_t found = 0;
                check_code(bbp_view(source, &data, &found), 0);
                check_equal(found, size, "size");
                check_bytes(data, size, seed + 1);
                check_ok(bbp_release(data));
            }
        }
    });
}

TEST_P(Waiting, a_sleeping_sender_is_woken_when_its_receiver_reads) {
    run(2, [](Rank& me) {
        for (const std::size_t size : {std::size_t{8}, std::size_t{1000}, kPartition}) {
            constexpr std::uint64_t kMessages = 100;
            for (std::uint64_t i = 0; i < kMessages; ++i) {
                if (me.rank == 0) {
                    send(1, size, i);
                } else {
                    if (i % 40 == 0) let_others_fall_asleep();
                    receive(0, size, i);
                }
            }
        }
    });
}

TEST_P(Waiting, a_sleeping_member_of_a_barrier_is_woken) {
    run(3, [](Rank& me) {
        for (int round = 0; round < 6; ++round) {
            if (me.rank == round % 3) let_others_fall_asleep();
            check_ok(bbp_barrier());
        }
    });
}

TEST_P(Waiting, a_receive_and_a_view_time_out_or_say_again_and_lose_nothing) {
    run(2, [](Rank& me) {
        if (me.rank == 0) {
            me.await_word(kGo);
            for (std::uint64_t i = 1; i <= 2; ++i) send(1, 20, i);
            return;
        }
        std::byte buffer[32];
        const void* data = nullptr;
        std::size_t size = 0;
        for (const int source : {0, 1, BBP_ANY}) {
            check_code(bbp_msgavail(source), 0);
            check_code(bbp_probe(source, &size), BBP_EAGAIN);
            check_code(bbp_tryrecv(source, buffer, sizeof buffer, &size), BBP_EAGAIN);
            check_code(bbp_tryview(source, &data, &size), BBP_EAGAIN);
            for (const std::int64_t timeout : {20 * kMillisecond, std::int64_t{1}, std::int64_t{0},
                                               std::int64_t{-1}, INT64_MIN}) {
                check_code(bbp_recv_for(source, buffer, sizeof buffer, &size, timeout),
                           BBP_ETIMEDOUT);
                check_code(bbp_view_for(source, &data, &size, timeout), BBP_ETIMEDOUT);
            }
        }
        me.raise(kGo);
        receive(0, 20, 1);
        check_code(bbp_view_for(0, &data, &size, kLong), 0);
        check_equal(size, 20, "size");
        check_bytes(data, size, 2);
        check_ok(bbp_release(data));
    });
}

TEST_P(Waiting, a_deadline_that_lies_far_off_is_as_good_as_none) {
    run(2, [](Rank& me) {
        if (me.rank == 0) {
            let_others_fall_asleep();
            check_ok(bbp_send_for(1, "abc", 3, INT64_MAX));
            check_ok(bbp_barrier_for(INT64_MAX));
        } else {
            std::byte buffer[32];
            check_code(bbp_recv_for(0, buffer, sizeof buffer, nullptr, INT64_MAX), 0);
            let_others_fall_asleep();
            check_ok(bbp_barrier_for(INT64_MAX));
        }
    });
}

TEST_P(Waiting, a_deadline_of_now_is_enough_for_what_is_there_already) {
    run(2, [](Rank& me) {
        const auto bytes = pattern(30, 4);
        if (me.rank == 0) {
            check_ok(bbp_send_for(1, bytes.data(), bytes.size(), 0));
            const int dests[] = {1};
            check_ok(bbp_mcast_for(dests, 1, bytes.data(), bytes.size(), -1));
            return me.raise(kPosted);
        }
        me.await_word(kPosted);
        for (int i = 0; i < 2; ++i) {
            await([] { return bbp_msgavail(0) == 1; }, "the message");
            std::byte buffer[32];
            std::size_t size = 0;
            check_code(bbp_recv_for(0, buffer, sizeof buffer, &size, -i), 0);
            check_equal(size, 30, "size");
            check_bytes(buffer, size, 4);
        }
    });
}

TEST_P(Waiting, two_ranks_that_both_only_send_are_freed_by_their_deadlines) {
    run(2, [](Rank& me) {
        const int sent = send_until_full(1 - me.rank, 100, 0);
        receive_what_both_posted(me, 100, static_cast<std::uint64_t>(sent), kCount);
    });
}

TEST_P(Waiting, a_deadline_that_passed_names_what_was_awaited) {
    run(3, [](Rank& me) {
        const auto says = [](int code, std::string_view words, Place place = Place::here()) {
            check_code(code, BBP_ETIMEDOUT, "", place);
            check_said(words, place);
        };
        if (me.rank == 0) {
            std::byte buffer[8];
            const void* data = nullptr;
            std::size_t size = 0;
            for (const std::int64_t timeout : {kMillisecond, std::int64_t{0}}) {
                says(bbp_recv_for(2, buffer, sizeof buffer, nullptr, timeout),
                     "message from rank 2");
                says(bbp_recv_for(BBP_ANY, buffer, sizeof buffer, nullptr, timeout),
                     "message from any rank");
                says(bbp_view_for(1, &data, &size, timeout), "message from rank 1");
            }
            const std::vector<std::byte> bytes(kPartition);
            send_until_full(1, kPartition, 0);
            const int dests[] = {1, 2};
            for (const std::int64_t timeout : {kMillisecond, std::int64_t{0}}) {
                says(bbp_send_for(1, bytes.data(), kPartition, timeout), "rank 1 made no room");
                says(bbp_mcast_for(dests, 2, bytes.data(), kPartition, timeout),
                     "ranks 1, 2 made no room");
            }
            says(bbp_barrier_for(kMillisecond), "ranks 1, 2");
            me.raise(kGo);
        } else {
            me.await_word(kGo);
        }
        check_ok(bbp_barrier());
    });
}

// ---- bbp_fd

constexpr const char* kNoDescriptor = "poll(2) waits in the host's time";

bool readable(int fd, int milliseconds) {
    pollfd entry{fd, POLLIN, 0};
    const int ready = ::poll(&entry, 1, milliseconds);
    check(ready >= 0, "poll failed");
    return ready == 1 && (entry.revents & POLLIN) != 0;
}

/// Receives with bbp_tryrecv until BBP_EAGAIN, which arms the descriptor again.
int drain(std::uint64_t& next) {
    int messages = 0;
    std::vector<std::byte> buffer(2000);
    for (;;) {
        std::size_t size = 0;
        const int code = bbp_tryrecv(BBP_ANY, buffer.data(), buffer.size(), &size);
        if (code == BBP_EAGAIN) return messages;
        check_code(code, 0);
        check_bytes(buffer.data(), size, next++);
        ++messages;
    }
}

TEST_P(Waiting, a_descriptor_is_readable_when_a_message_waits) {
    RMEM_SKIP_IF_SIMULATED(kNoDescriptor);
    run(2, [](Rank& me) {
        constexpr int kRounds = 20;
        if (me.rank == 0) {
            std::uint64_t sent = 0;
            for (std::uint32_t round = 1; round <= kRounds; ++round) {
                me.await_word(kGo, round);
                // One, or several; at once, or when the receiver has gone to poll.
                if (round % 2 == 0) let_others_fall_asleep();
                for (std::uint32_t i = 0; i < 1 + round % 3; ++i) {
                    send(1, round % 4 == 0 ? 900 : 20, sent++);
                }
            }
            return me.await_word(kDone);
        }
        const int fd = bbp_fd();
        check(fd >= 0, "bbp_fd: " + code_name(fd));
        std::uint64_t next = 0;
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
            drain(next);
            me.raise(kGo);
            for (int got = 0; got < static_cast<int>(1 + round % 3);) {
                check(readable(fd, 20'000), "the descriptor did not tell of a message");
                got += drain(next);
            }
        }
        check_equal(bbp_fd(), fd, "the descriptor, asked for again");
        me.raise(kDone);
    });
}

TEST_P(Waiting, a_descriptor_is_readable_from_its_making_until_the_last_message_is_taken) {
    RMEM_SKIP_IF_SIMULATED(kNoDescriptor);
    run(2, [](Rank& me) {
        if (me.rank == 0) {
            for (std::uint64_t i = 0; i < 3; ++i) send(1, 20, i);
            me.raise(kPosted);
            return me.await_word(kDone);
        }
        me.await_word(kPosted);
        await([] { return bbp_msgavail(0) == 1; }, "the first message");
        const int fd = bbp_fd();
        for (std::uint64_t i = 0; i < 3; ++i) {
            check(readable(fd, 20'000), "the descriptor forgot a message");
            receive(0, 20, i);
        }
        // It may report more than there is, but not forever.
        std::uint64_t next = 3;
        await([&] { return drain(next) == 0 && !readable(fd, 0); }, "the descriptor's silence");
        me.raise(kDone);
    });
}

TEST_P(Waiting, a_descriptor_wakes_for_a_message_to_oneself) {
    RMEM_SKIP_IF_SIMULATED(kNoDescriptor);
    run(2, [](Rank& me) {
        if (me.rank == 0) {
            const int fd = bbp_fd();
            std::uint64_t next = 0;
            drain(next);
            send(0, 20, 0);
            check(readable(fd, 20'000), "the descriptor did not tell of the own message");
            check_equal(drain(next), 1, "messages");
        }
        check_ok(bbp_barrier());
    });
}

TEST_P(Waiting, a_descriptor_is_closed_by_finalize) {
    RMEM_SKIP_IF_SIMULATED(kNoDescriptor);
    run(2, [](Rank& me) {
        const int fd = bbp_fd();
        check(fd >= 0, "bbp_fd: " + code_name(fd));
        check_ok(bbp_barrier());
        me.leave();
        check(::fcntl(fd, F_GETFD) == -1 && errno == EBADF, "the descriptor is still open");
    });
}

}  // namespace
}  // namespace rmem::test
