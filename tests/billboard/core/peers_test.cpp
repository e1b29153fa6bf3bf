// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// Conformance: what a rank that left or died had posted is still delivered, then every call that
/// needs it says BBP_EPEER and none hangs; a stopped rank is alive. (billboard/bbp.h: Delivery,
/// Dead peers, bbp_finalize; restarted ranks: tests/billboard/restart_test.cpp.)

#include "tests/billboard/calls_of_rank.hpp"
#include "tests/support/conformance.hpp"

#include <chrono>

namespace rmem::test {
namespace {

class Peers : public Conformance {};
RMEM_ON_ALL_RINGS(Peers);

enum Word : std::size_t { kPosted, kGo, kDone, kCount };

void linger(Rank& me) {
    me.await_word(kDone);
}

/// Time for others to go to sleep in a call; no check depends on whether they do.
void a_while(RankProcesses& ring) {
    ring.let_pass(std::chrono::milliseconds(20));
}

/// Every call that needs `gone`, which has left nothing unread, tells so.
void check_gone(int gone) {
    for (const auto& [name, asks, call] : calls_of_rank()) {
        check_code(call(gone), BBP_EPEER, name);
        if (asks) check_said(fmt::format("rank {}", gone));
    }
    const auto large = pattern(2 * kPartition, 1);
    check_code(bbp_send(gone, large.data(), large.size()), BBP_EPEER,
               "bbp_send of a large message");
    check_code(bbp_barrier(), BBP_EPEER, "bbp_barrier");
    check_code(bbp_barrier_for(kLong), BBP_EPEER, "bbp_barrier_for");
}

// ---- Leaving

TEST_P(Peers, peers_that_have_left_are_drained_from_anyone_and_by_views) {
    RankProcesses ring(setup(3));
    for (const unsigned rank : {0U, 2U}) {
        ring.start(rank, [](Rank& me) {
            send(1, 40, static_cast<std::uint64_t>(me.rank));
            multicast({1}, 600, static_cast<std::uint64_t>(me.rank));
        });
    }
    ring.start(1, [](Rank& me) {
        me.await_word(kGo);
        for (int i = 0; i < 2; ++i) {
            std::size_t size = 0;
            const int sender = bbp_probe(BBP_ANY, &size);
            check(sender == 0 || sender == 2, "bbp_probe told " + code_name(sender));
            receive(BBP_ANY, 40, static_cast<std::uint64_t>(sender));
            const void* data = nullptr;
            check_code(bbp_view(sender, &data, &size), sender);
            check_bytes(data, size, static_cast<std::uint64_t>(sender));
            check_ok(bbp_release(data));
        }
        check_code(drain_until_error(BBP_ANY), BBP_EPEER);
        std::byte buffer[8];
        check_code(bbp_recv(BBP_ANY, buffer, sizeof buffer, nullptr), BBP_EPEER);
    });
    ring.wait(0);
    ring.wait(2);
    ++ring.shared()[kGo];
    ring.finish();
}

TEST_P(Peers, peers_that_have_not_left_go_on_without_those_that_have) {
    run(3, [](Rank& me) {
        if (me.rank == 2) return me.leave();
        for (std::uint64_t i = 0; i < 300; ++i) {
            send(1 - me.rank, i, i);
            receive(1 - me.rank, i, i);
        }
        const int members[] = {0, 1};
        check_ok(bbp_barrier_group(members, 2, 3));
    });
}

// ---- Dying

TEST_P(Peers, peers_that_left_or_were_killed_are_drained_whole_before_they_are_missed) {
    for (const bool is_killed : {false, true}) {
        for (const std::size_t size : {4U, 900U}) {
            SCOPED_TRACE(testing::Message() << size << " bytes, killed " << is_killed);
            run({[=](Rank& me) {
                     me.shared[kCount] = static_cast<std::uint32_t>(send_until_full(1, size, 0));
                     me.raise(kPosted);
                     if (is_killed) linger(me);
                 },
                 [size](Rank& me) {
                     me.await_word(kGo);
                     const std::uint64_t queued = me.shared[kCount];
                     for (std::uint64_t i = 0; i < queued; ++i) receive(0, size, i);
                     check_gone(0);
                 }},
                {.rank = 0, .is_killed = is_killed});
        }
    }
}

/// Sends messages to rank 0 until one is refused.
int send_until_refused(std::size_t size) {
    const auto bytes = pattern(size, 1);
    int code = BBP_OK;
    while (code == BBP_OK) code = bbp_send(0, bytes.data(), size);
    return code;
}

TEST_P(Peers, peers_that_die_end_each_call_that_waits_for_them) {
    static std::byte buffer[8];
    static const void* data = nullptr;
    static std::size_t size = 0;
    static const int members[] = {0, 1};
    const std::pair<const char*, int (*)()> calls[] = {
        {"a receive", [] { return bbp_recv(0, buffer, sizeof buffer, nullptr); }},
        {"from anyone", [] { return bbp_recv(BBP_ANY, buffer, sizeof buffer, nullptr); }},
        {"a view", [] { return bbp_view(0, &data, &size); }},
        {"a send in a slot", [] { return send_until_refused(4); }},
        {"a send through the partition", [] { return send_until_refused(900); }},
        {"a send larger than it", [] { return send_until_refused(5 * kPartition); }},
        {"a barrier", [] { return bbp_barrier(); }},
        {"a barrier with a deadline", [] { return bbp_barrier_for(kLong); }},
        {"a group's barrier", [] { return bbp_barrier_group(members, 2, 5); }}};
    for (const auto& call : calls) {
        SCOPED_TRACE(call.first);
        run({linger,
             [&](Rank& me) {
                 me.raise(kPosted);
                 check_code(call.second(), BBP_EPEER);
             }},
            {.rank = 0, .waits = true});
    }
}

/// What looks for the dead now and then must not miss each turn because another call has counted
/// it.
TEST_P(Peers, peers_that_die_are_missed_by_a_rank_that_polls_by_several_calls_in_turn) {
    for (const int polls_before : {0, 1}) {
        RankProcesses ring(setup(2));
        ring.start(0, linger);
        ring.start(1, [=](Rank& me) {
            for (int i = 0; i < polls_before; ++i) nothing_waits(BBP_ANY);
            me.raise(kGo);
            std::byte buffer[16];
            await(
                [&] {
                    const int any = bbp_msgavail(BBP_ANY);
                    return any < 0 || bbp_tryrecv(0, buffer, sizeof buffer, nullptr) == BBP_EPEER;
                },
                "the death of rank 0");
        });
        ring.await_word(kGo);
        ring.kill(0);
        ring.wait(1);
    }
}

TEST_P(Peers, peers_that_die_end_everybodys_barrier) {
    const Body survivor = [](Rank& me) {
        me.raise(kPosted);
        check_code(bbp_barrier(), BBP_EPEER);
        me.raise(kCount);
        me.await_word(kCount, 3);
    };
    run({survivor, survivor, linger, survivor}, {.rank = 2, .posted = 3, .waits = true});
}

/// To rank 1, and dies over it.
void send_large(Rank& me) {
    const auto bytes = pattern(20 * kPartition, 1);
    me.raise(kPosted);
    bbp_send(1, bytes.data(), bytes.size());
}

TEST_P(Peers, peers_that_die_in_the_middle_of_a_large_message_end_its_receive) {
    run({send_large,
         [](Rank& me) {
             me.await_word(kGo);
             std::vector<std::byte> buffer(20 * kPartition);
             check_code(bbp_recv(0, buffer.data(), buffer.size(), nullptr), BBP_EPEER);
             send(2, 10, 10);
             receive(2, 10, 10);
             check_code(drain_until_error(0), BBP_EPEER);
         },
         [](Rank&) {
             receive(1, 10, 10);
             send(1, 10, 10);
         }},
        {.rank = 0, .waits = true});
}

TEST_P(Peers,
       peers_that_die_in_the_middle_of_a_large_message_are_not_told_to_a_call_that_names_nobody) {
    RankProcesses ring(setup(3));
    ring.start(0, send_large);
    ring.start(1, [](Rank& me) {
        me.await_word(kGo);
        std::vector<std::byte> buffer(20 * kPartition);
        check_code(bbp_recv(BBP_ANY, buffer.data(), buffer.size(), nullptr), 2);
        me.raise(kCount);
        check_code(bbp_recv(BBP_ANY, buffer.data(), buffer.size(), nullptr), 0, "its next life");
        check_code(bbp_send(0, "x", 1), BBP_EPEER, "the first call that names it");
        send(0, 10, 11);
        send(2, 10, 12);
    });
    ring.start(2, [](Rank& me) {
        me.await_word(kGo, 2);
        send(1, 10, 10);
        receive(1, 10, 12);  // in a call meanwhile, so that it notices the return
    });
    ring.await_word(kPosted);
    a_while(ring);
    ring.kill(0);
    ++ring.shared()[kGo];
    a_while(ring);
    ++ring.shared()[kGo];
    ring.await_word(kCount);
    ring.start(0, [](Rank&) {
        send(1, 10, 10);
        receive(1, 10, 11);
    });
    ring.finish();
}

TEST_P(Peers, peers_that_die_one_after_the_other_end_a_receive_from_anyone_but_from_oneself) {
    RankProcesses ring(setup(4));
    ring.start(0, [](Rank& me) {
        me.raise(kPosted);
        receive(BBP_ANY, 33, 3);
        for (const std::size_t size : {10U, 1000U}) {
            check_code(drain_until_error(BBP_ANY), BBP_EPEER);
            std::byte buffer[8];
            check_code(bbp_recv(BBP_ANY, buffer, sizeof buffer, nullptr), BBP_EPEER);
            send(0, size, size);
            check_equal(receive(size == 10 ? BBP_ANY : 0, size, size), 0, "sender");
        }
    });
    for (const unsigned rank : {1U, 2U}) ring.start(rank, linger);
    ring.start(3, [](Rank& me) {
        me.await_word(kGo);
        send(0, 33, 3);
        me.raise(kCount);
        linger(me);
    });
    ring.await_word(kPosted);
    for (const unsigned rank : {2U, 1U}) {
        a_while(ring);
        ring.kill(rank);
    }
    a_while(ring);
    ++ring.shared()[kGo];
    ring.await_word(kCount);
    ring.kill(3);
    ring.finish();
}

TEST_P(Peers, peers_that_leave_or_die_with_unread_messages_free_the_senders_room) {
    for (const bool is_killed : {false, true}) {
        SCOPED_TRACE(is_killed);
        run({[](Rank& me) {
                 check(send_until_full(1, 900, 0) > 0, "nothing could be sent");
                 me.raise(kPosted);
                 me.await_word(kGo);
                 for (std::uint64_t i = 0; i < 200; ++i) send(2, i * 9, i);
             },
             [is_killed](Rank& me) {
                 me.await_word(kPosted);
                 if (is_killed) linger(me);
             },
             [](Rank&) {
                 for (std::uint64_t i = 0; i < 200; ++i) receive(0, i * 9, i);
             }},
            {.rank = 1, .is_killed = is_killed});
    }
}

TEST_P(Peers, peers_that_die_with_views_of_messages_free_the_senders_room) {
    run({[](Rank& me) {
             for (std::uint64_t i = 0; i < 3; ++i) multicast({1, 2}, kPartition / 4, i);
             me.await_word(kGo);
             for (std::uint64_t i = 0; i < 20; ++i) send(2, kPartition, i);
         },
         [](Rank& me) {
             for (std::uint64_t i = 0; i < 3; ++i) {
                 const void* data = nullptr;
                 std::size_t size = 0;
                 check_code(bbp_view(0, &data, &size), 0);
                 check_bytes(data, size, i);
             }
             me.raise(kPosted);
             linger(me);
         },
         [](Rank&) {
             for (std::uint64_t i = 0; i < 3; ++i) receive(0, kPartition / 4, i);
             for (std::uint64_t i = 0; i < 20; ++i) receive(0, kPartition, i);
         }},
        {.rank = 1});
}

TEST_P(Peers, peers_that_die_leave_their_messages_to_those_who_view_them) {
    run({[](Rank& me) {
             send(1, 20, 1);
             send(1, 2000, 2);
             me.raise(kPosted);
             linger(me);
         },
         [](Rank& me) {
             const void* data[2] = {};
             std::size_t size[2] = {};
             for (int i = 0; i < 2; ++i) check_code(bbp_view(0, &data[i], &size[i]), 0);
             me.raise(kPosted);
             me.await_word(kGo);
             check_gone(0);
             check_bytes(data[0], size[0], 1);
             check_bytes(data[1], size[1], 2);
             check_ok(bbp_release(data[1]));
             check_ok(bbp_release(data[0]));
         }},
        {.rank = 0, .posted = 2});
}

TEST_P(Peers, peers_that_die_in_a_storm_of_messages_do_not_stop_the_others) {
    RankProcesses ring(setup(4));
    const auto storm = [](Rank& me) {
        // Until rank 2 is missed; whatever else happens is an error.
        std::vector<std::byte> buffer(2 * kPartition);
        std::uint64_t state = static_cast<std::uint64_t>(me.rank);
        bool missed = false;
        for (std::uint32_t i = 0; !missed; ++i) {
            const int dest = static_cast<int>(next_random(state) % 4);
            const std::size_t size = next_random(state) % 1000;
            const auto others = everyone_but(me.rank, 4);
            int code = i % 5 == 0 ? bbp_trymcast(others.data(), 3, buffer.data(), size)
                                  : bbp_trysend(dest, buffer.data(), size);
            if (code == BBP_EPEER) missed = true;
            check(code == BBP_OK || code == BBP_EAGAIN || code == BBP_EPEER, code_name(code));
            while ((code = bbp_tryrecv(BBP_ANY, buffer.data(), buffer.size(), nullptr)) >= 0) {
            }
            check_code(code, BBP_EAGAIN);
            if (i % 64 == 0) me.raise(kCount);
        }
        // The others may need room to find out.
        me.raise(kDone);
        await(
            [&] {
                const int code = bbp_tryrecv(BBP_ANY, buffer.data(), buffer.size(), nullptr);
                check(code >= 0 || code == BBP_EAGAIN || code == BBP_EPEER, code_name(code));
                return me.shared[kDone] >= 3;
            },
            "the others to miss rank 2");
    };
    ring.start_all(storm);
    ring.await_word(kCount, 20);
    ring.kill(2);
    ring.finish();
}

TEST_P(Peers, peers_that_all_die_but_one_leave_a_ring_that_one_can_end) {
    RankProcesses ring(setup(5));
    ring.start(2, [](Rank& me) {
        me.await_word(kGo);
        for (const int rank : everyone_but(2, 5)) check_gone(rank);
        check_code(drain_until_error(BBP_ANY), BBP_EPEER);
    });
    for (const unsigned rank : {0U, 1U, 3U, 4U}) {
        ring.start(rank, [](Rank& me) {
            me.raise(kPosted);
            linger(me);
        });
    }
    ring.await_word(kPosted, 4);
    for (const unsigned rank : {0U, 1U, 3U, 4U}) ring.kill(rank);
    ++ring.shared()[kGo];
    ring.finish();
}

// ---- Stopped

TEST_P(Peers, peers_that_are_stopped_are_alive_and_only_deadlines_help) {
    RankProcesses ring(setup(2));
    ring.start(0, [](Rank& me) {
        me.raise(kPosted);
        me.await_word(kGo);
        const std::int64_t some = 50 * kMillisecond;
        std::byte buffer[8];
        check_code(bbp_recv_for(1, buffer, sizeof buffer, nullptr, some), BBP_ETIMEDOUT);
        check_code(bbp_recv_for(BBP_ANY, buffer, sizeof buffer, nullptr, some), BBP_ETIMEDOUT);
        const int queued = send_until_full(1, 500, 0);
        me.shared[kCount] = static_cast<std::uint32_t>(queued);
        const auto lost = pattern(500, 777);
        check_code(bbp_send_for(1, lost.data(), lost.size(), some), BBP_ETIMEDOUT);
        check_code(bbp_tryrecv(1, buffer, sizeof buffer, nullptr), BBP_EAGAIN);
        me.raise(kDone);
        receive(1, 4, 4);
        check_ok(bbp_barrier());
    });
    ring.start(1, [](Rank& me) {
        me.raise(kPosted);
        me.await_word(kDone);
        const std::uint64_t queued = me.shared[kCount];
        for (std::uint64_t i = 0; i < queued; ++i) receive(0, 500, i);
        send(0, 4, 4);
        check_ok(bbp_barrier());
    });
    ring.await_word(kPosted, 2);
    ring.stop(1);
    ++ring.shared()[kGo];
    ring.await_word(kDone);
    ring.resume(1);
    ring.finish();
}

}  // namespace
}  // namespace rmem::test
