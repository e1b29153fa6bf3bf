// SPDX-License-Identifier: Apache-2.0
// ctest: check apart

/// Conformance: messages of about a partition, and larger than one, arrive intact and in order; one
/// that is taken back in its middle disappears and the next ones arrive. (billboard/bbp.h:
/// bbp_send, bbp_trysend, bbp_send_for; design: messages larger than a partition stream through
/// it.)

#include "tests/support/conformance.hpp"

#include <chrono>

namespace rmem::test {
namespace {

class Large : public Conformance {};
RMEM_ON_ALL_RINGS(Large);

enum Word : std::size_t { kPosted, kGo, kDone, kResult };

TEST_P(Large, messages_arrive_intact_also_through_the_smallest_partition) {
    for (const std::size_t partition : {std::size_t{1024}, kPartition}) {
        SCOPED_TRACE(partition);
        RingSetup with = setup(2);
        with.partition = partition;
        run_members(with, [](Rank& me) {
            const std::size_t p = me.partition;
            for (const std::size_t size : {p - 65, p - 64, p - 9, p - 8, p - 4, p - 1, p, p + 1,
                                           p + 7, p + 64, 2 * p - 9, 2 * p, 3 * p, 10 * p + 3}) {
                if (me.rank == 0) send(1, size, size);
                if (me.rank == 1) receive(0, size, size);
                if (me.rank == 1) send(0, size, size + 1);
                if (me.rank == 0) receive(BBP_ANY, size, size + 1);
            }
        });
    }
}

TEST_P(Large, messages_of_a_partition_can_be_tried) {
    run(2, [](Rank& me) {
        if (me.rank == 0) {
            for (const std::size_t size : {kPartition - 1, kPartition}) {
                // A link that is busy for the moment says BBP_EAGAIN too.
                await([&] { return try_send(1, size, size) == BBP_OK; },
                      "bbp_trysend with nothing unread");
                receive(1, 0, 0);
            }
            const auto bytes = pattern(kPartition + 1, 1);
            const int dest = 1;
            check_code(bbp_trysend(1, bytes.data(), kPartition + 1), BBP_ESIZE);
            check_code(bbp_trymcast(&dest, 1, bytes.data(), kPartition + 1), BBP_ESIZE);
            send(1, 1, 1);
        } else {
            for (const std::size_t size : {kPartition - 1, kPartition}) {
                receive(0, size, size);
                send(0, 0, 0);
            }
            receive(0, 1, 1);
            nothing_waits(0);
        }
    });
}

TEST_P(Large, messages_to_oneself_arrive_or_are_refused_but_never_hang) {
    run(1, [](Rank&) {
        const std::size_t size = 3 * kPartition;
        const auto bytes = pattern(size, 1);
        const int code = bbp_send(0, bytes.data(), size);
        if (code == BBP_OK) {
            receive(0, size, 1);
        } else {
            check_code(code, BBP_ESIZE);
        }
        send(0, 10, 2);
        receive(0, 10, 2);
        nothing_waits(0);
    });
}

TEST_P(Large, messages_taken_back_before_anything_was_read_never_arrive) {
    run(2, [](Rank& me) {
        const auto messages = static_cast<std::uint64_t>(4);
        for (std::uint64_t i = 0; i < messages; ++i) {
            if (me.rank == 0) {
                const auto lost = pattern(3 * kPartition, 99);
                check_code(bbp_send_for(1, lost.data(), lost.size(), 20 * kMillisecond),
                           BBP_ETIMEDOUT);
                me.shared[kGo] = static_cast<std::uint32_t>(i + 1);
                send(1, 77, i);
                send(1, 2 * kPartition, i);
            } else {
                me.await_word(kGo, static_cast<std::uint32_t>(i + 1));
                receive(i % 2 == 0 ? 0 : BBP_ANY, 77, i);
                receive(0, 2 * kPartition, i);
            }
            check_ok(bbp_barrier());
        }
        nothing_waits(BBP_ANY);
    });
}

TEST_P(Large, messages_taken_back_while_they_are_received_never_arrive) {
    run(2, [](Rank& me) {
        const int rounds = thrifty(40);
        for (int round = 0; round < rounds; ++round) {
            // Deadlines from "at once" to "never reached"; the sender tells which it was.
            const std::int64_t timeout = 2'000LL << (round % 14);
            const std::size_t size = 30 * kPartition + static_cast<std::size_t>(round);
            const auto seed = static_cast<std::uint64_t>(round);
            if (me.rank == 0) {
                const auto bytes = pattern(size, seed);
                const int code = bbp_send_for(1, bytes.data(), size, timeout);
                if (code != BBP_ETIMEDOUT) check_ok(code);
                me.shared[kResult] = code == BBP_OK ? 1 : 0;
                send(1, 50, seed + 1000);
                check_ok(bbp_barrier());
                continue;
            }
            std::vector<std::byte> buffer(size);
            std::size_t found = 0;
            check_code(bbp_recv(0, buffer.data(), buffer.size(), &found), 0);
            if (found == size) {
                check_bytes(buffer.data(), size, seed);
                receive(0, 50, seed + 1000);
                check_equal(me.shared[kResult].load(), 1U,
                            "whether the sender knows it was received");
            } else {
                check_equal(found, 50, "size of the message behind the one taken back");
                check_bytes(buffer.data(), 50, seed + 1000);
                check_equal(me.shared[kResult].load(), 0U, "whether the sender knows it was lost");
            }
            nothing_waits(0);
            check_ok(bbp_barrier());
        }
    });
}

TEST_P(Large, multicasts_taken_back_reach_nobody_in_part) {
    run(3, [](Rank& me) {
        const std::size_t size = 5 * kPartition;
        if (me.rank == 0) {
            const auto bytes = pattern(size, 1);
            const int dests[] = {1, 2};
            // Rank 1 receives, rank 2 does not.
            check_code(bbp_mcast_for(dests, 2, bytes.data(), size, 50 * kMillisecond),
                       BBP_ETIMEDOUT);
            me.raise(kGo);
            multicast({1, 2}, 33, 2);
        } else {
            if (me.rank == 2) me.await_word(kGo);
            // Room for the message that is taken back: else it would be refused while it is under
            // way.
            std::vector<std::byte> buffer(size);
            std::size_t len = 0;
            check_code(bbp_recv(0, buffer.data(), buffer.size(), &len), 0);
            check_equal(len, std::size_t{33}, "size of the message that follows");
        }
        check_ok(bbp_barrier());
        nothing_waits(BBP_ANY);
    });
}

TEST_P(Large, messages_may_be_sent_again_to_a_receiver_that_restarts) {
    RankProcesses ring(setup(2));
    ring.start(0, [](Rank& me) {
        const auto bytes = pattern(20 * kPartition, 1);
        me.raise(kPosted);
        check_code(bbp_send(1, bytes.data(), bytes.size()), BBP_EPEER);
        me.raise(kDone);
        me.await_word(kGo);
        // Missed once already, by the send; dead it stays until word of its return has come here.
        const auto again = pattern(3 * kPartition, 2);
        int code = BBP_EPEER;
        const auto is_back = [&] {
            return (code = bbp_send(1, again.data(), again.size())) != BBP_EPEER;
        };
        await(is_back, "word of its return");
        check_ok(code);
        receive(1, 3 * kPartition, 3);
    });
    ring.start(1, [](Rank& me) { me.await_word(kGo); });
    ring.await_word(kPosted);
    ring.let_pass(std::chrono::milliseconds(20));
    ring.kill(1);
    ring.await_word(kDone);
    ring.start(1, [](Rank& me) {
        nothing_waits(0);
        me.raise(kGo);
        receive(0, 3 * kPartition, 2);
        send(0, 3 * kPartition, 3);
    });
    ring.finish();
}

TEST_P(Large, messages_that_stop_in_their_middle_leave_the_receiver_its_deadline_and_the_others) {
    enum Step : std::size_t { kSends, kIsStopped, kGot };
    RankProcesses ring(setup(3));
    const std::size_t size = 20 * kPartition;
    ring.start_all([&](Rank& me) {
        if (me.rank == 1) {
            me.raise(kSends);
            send(0, size, 7);
            send(0, 10, 2);
        } else if (me.rank == 2) {
            me.await_word(kIsStopped, 2);
            send(0, 8, 9);
        } else {
            me.await_word(kIsStopped);
            std::vector<std::byte> buffer(size);
            check_code(bbp_recv_for(1, buffer.data(), size, nullptr, 30 * kMillisecond),
                       BBP_ETIMEDOUT);
            check_said("no whole message");
            me.raise(kIsStopped);
            std::size_t found = 0;
            check_code(bbp_recv(BBP_ANY, buffer.data(), size, &found), 2);
            check_bytes(buffer.data(), 8, 9);
            me.raise(kGot);
            receive(BBP_ANY, size, 7);
            receive(1, 10, 2);
        }
        check_ok(bbp_barrier());
    });
    ring.await_word(kSends);
    ring.let_pass(std::chrono::milliseconds(50));  // as a rule it waits for room then
    ring.stop(1);
    ++ring.shared()[kIsStopped];
    ring.await_word(kGot);
    ring.resume(1);
    ring.finish();
}

}  // namespace
}  // namespace rmem::test
