// SPDX-License-Identifier: Apache-2.0
// ctest: check apart

/// Conformance: a rank that was killed or left can be started again. The others see BBP_EPEER once
/// and then talk to it; it sees nothing that was posted to its former incarnation.
/// (billboard/bbp.h: Dead peers; ranks that stay away: tests/billboard/core/peers_test.cpp.)

#include "tests/billboard/calls_of_rank.hpp"
#include "tests/support/conformance.hpp"

#include <poll.h>

#include <cstring>
#include <functional>

namespace rmem::test {
namespace {

class Restart : public Conformance {};
RMEM_ON_ALL_RINGS(Restart);

enum Word : std::size_t { kPosted, kGo, kDone, kCount, kAgain };

void linger(Rank& me) {
    me.await_word(kDone);
}

/// Calls bbp_tryrecv(peer) until it says BBP_EPEER, as it must before any new message; takes
/// nothing from the peer's new self, because that waits for kAgain.
void miss_once(int peer) {
    check_code(drain_until_error(peer), BBP_EPEER);
}

/// Messages both ways, of several kinds.
void talk(int peer, std::uint64_t seed, bool is_first = true) {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{30}, std::size_t{800}, 2 * kPartition + 1}) {
        if (is_first) send(peer, size, seed + size);
        receive(peer, size, seed + size + (is_first ? 1 : 0));
        if (!is_first) send(peer, size, seed + size + 1);
    }
}

void answer(int peer, std::uint64_t seed) {
    talk(peer, seed, false);
}

TEST_P(Restart, is_missed_by_one_who_only_sends) {
    // A death is noticed when it blocks a call, at the latest when a queue is full. Messages sent
    // until then were for the former incarnation; later ones are for the new one.
    for (const std::size_t size : {std::size_t{4}, std::size_t{700}, kPartition}) {
        SCOPED_TRACE(size);
        run({[size](Rank& me) {
                 me.await_word(kGo);
                 const auto lost = pattern(size, 77);
                 int code = BBP_OK;
                 for (int i = 0; code == BBP_OK; ++i) {
                     check(i < 10'000, "sends to a restarted rank never tell");
                     code = bbp_send(1, lost.data(), size);
                 }
                 check_code(code, BBP_EPEER);
                 for (std::uint64_t i = 0; i < 50; ++i) send(1, size, i);
                 receive(1, 13, 2);
             },
             linger},
            {.rank = 1, .posted = 0, .next = [size](Rank& me) {
                 me.raise(kGo);
                 for (std::uint64_t i = 0; i < 50; ++i) receive(0, size, i);
                 send(0, 13, 2);
                 nothing_waits(0);
             }});
    }
}

TEST_P(Restart, shows_nothing_that_was_posted_to_the_former_incarnation) {
    for (const std::size_t size : {4U, 700U}) {
        SCOPED_TRACE(size);
        run({[size](Rank& me) {
                 for (std::uint64_t i = 0; i < 3; ++i) send(1, size, i);
                 multicast({1, 2}, size, 3);
                 me.raise(kPosted);
                 me.await_word(kGo);
                 miss_once(1);
                 send(1, size, 99);
                 for (std::uint64_t i = 100; i < 200; ++i) send(1, size, i);
             },
             linger,
             [size](Rank& me) {
                 receive(0, size, 3);
                 me.await_word(kGo);
                 miss_once(1);
             }},
            {.rank = 1, .next = [size](Rank& me) {
                 nothing_waits(BBP_ANY);
                 me.raise(kGo);
                 receive(BBP_ANY, size, 99);
                 for (std::uint64_t i = 100; i < 200; ++i) receive(0, size, i);
             }});
    }
}

TEST_P(Restart, leaves_what_the_former_incarnation_had_posted_to_be_read_first) {
    for (const bool is_killed : {true, false}) {  // or has left
        SCOPED_TRACE(is_killed);
        run({[](Rank& me) {
                 me.await_word(kGo);
                 for (std::uint64_t i = 0; i < 4; ++i) receive(1, 300 * i, i);
                 miss_once(1);
                 me.raise(kAgain);
                 talk(1, 5);
             },
             [is_killed](Rank& me) {
                 for (std::uint64_t i = 0; i < 4; ++i) send(0, 300 * i, i);
                 me.raise(kPosted);
                 if (is_killed) linger(me);
             }},
            {.rank = 1, .is_killed = is_killed, .next = [](Rank& me) {
                 me.raise(kGo);
                 me.await_word(kAgain);
                 answer(0, 5);
             }});
    }
}

TEST_P(Restart, does_not_touch_what_others_view_of_the_former_incarnation) {
    run({[](Rank& me) {
             const void* data[2] = {};
             std::size_t size[2] = {};
             for (int i = 0; i < 2; ++i) check_code(bbp_view(1, &data[i], &size[i]), 1);
             me.raise(kPosted);
             me.await_word(kGo);
             miss_once(1);
             me.raise(kAgain);
             me.await_word(kCount);
             check_bytes(data[0], 20, 1000);
             check_bytes(data[1], 2000, 1001);
             check_ok(bbp_release(data[0]));
             check_ok(bbp_release(data[1]));
             me.raise(kAgain);
             await([] { return bbp_msgavail(1) == 1; }, "a message of the new self");
             receive(1, 5, 5);
             talk(1, 7);
         },
         [](Rank& me) {
             send(0, 20, 1000);
             send(0, 2000, 1001);
             linger(me);
         }},
        {.rank = 1, .next = [](Rank& me) {
             me.raise(kGo);
             me.await_word(kAgain);
             // Fills its partition, if it is let; sooner or later it may.
             void* buffer = nullptr;
             if (bbp_compose(kPartition, &buffer) == BBP_OK) {
                 std::memset(buffer, 0xee, kPartition);
                 check_ok(bbp_discard(buffer));
             }
             for (int i = 0; i < 10; ++i) {
                 if (bbp_compose(1000, &buffer) == BBP_OK) {
                     std::memset(buffer, 0xee, 1000);
                     check_ok(bbp_discard(buffer));
                 }
             }
             me.raise(kCount);
             me.await_word(kAgain, 2);
             send(0, 5, 5);
             answer(0, 7);
         }});
}

TEST_P(Restart, can_happen_again_and_again) {
    RankProcesses ring(setup(3));
    constexpr std::uint32_t kTimes = 6;
    const auto survivor = [](Rank& me) {
        for (std::uint32_t time = 1; time <= kTimes; ++time) {
            me.await_word(kGo, time);
            miss_once(1);
            me.raise(kAgain);
            talk(1, time);
            me.raise(kPosted);
        }
    };
    ring.start(0, survivor);
    ring.start(1, linger);
    ring.start(2, survivor);
    ring.await_all_joined();
    for (std::uint32_t time = 1; time <= kTimes; ++time) {
        if (time > 1) ring.await_word(kPosted, 2 * (time - 1));
        ring.kill(1);
        ring.start(1, [time](Rank& me) {
            me.raise(kGo);
            me.await_word(kAgain, 2 * time);
            answer(0, time);
            answer(2, time);
            if (time < kTimes) linger(me);
        });
        ring.await_word(kGo, time);
    }
    ring.finish();
}

TEST_P(Restart, brings_back_multicasts_barriers_and_groups) {
    const auto go_on = [](Rank& me) {
        check_ok(bbp_barrier());
        const int members[] = {0, 1, 2};
        check_ok(bbp_barrier_group(members, 3, 9));
        for (int root = 0; root < 3; ++root) {
            if (me.rank == root) multicast(everyone_but(root, 3), 400, 4);
            if (me.rank != root) receive(root, 400, 4);
        }
        for (int i = 0; i < 10; ++i) check_ok(bbp_barrier());
        check_ok(bbp_group_join("all"));
        check_ok(bbp_barrier());
        if (me.rank == 0) check_code(bbp_mcast_group("all", "again", 5), 2);
        if (me.rank != 0) {
            char text[8] = {};
            check_code(bbp_recv(0, text, sizeof text, nullptr), 0);
            check_equal(std::string(text), std::string("again"), "text");
        }
    };
    const auto meet = [](Rank& me) {
        for (int i = 0; i < 3; ++i) check_ok(bbp_barrier());
        const int members[] = {0, 1, 2};
        check_ok(bbp_barrier_group(members, 3, 9));
        me.raise(kPosted);
    };
    const auto survivor = [&](Rank& me) {
        meet(me);
        me.await_word(kGo);
        miss_once(1);
        me.raise(kAgain);
        me.await_word(kAgain, 2);
        go_on(me);
    };
    run({survivor,
         [&](Rank& me) {
             meet(me);
             linger(me);
         },
         survivor},
        {.rank = 1, .posted = 3, .next = [&](Rank& me) {
             me.raise(kGo);
             me.await_word(kAgain, 2);
             go_on(me);
         }});
}

TEST_P(Restart, a_restart_after_everyone_was_killed_makes_a_new_ring) {
    RMEM_SKIP_IF_SIMULATED("the memory of a world outlives its processes");
    RankProcesses ring(setup(2));
    const auto full_of_messages = [](Rank& me) {
        send(1 - me.rank, 20, 1);
        send(1 - me.rank, 2000, 2);
        me.raise(kPosted);
        linger(me);
    };
    ring.start_all(full_of_messages);
    ring.await_word(kPosted, 2);
    ring.kill(0);
    ring.kill(1);
    ring.start_all([](Rank& me) {
        nothing_waits(BBP_ANY);
        check_ok(bbp_barrier());
        if (me.rank == 0) talk(1, 3);
        if (me.rank == 1) answer(0, 3);
    });
    ring.finish();
}

// ---- The former incarnation's end comes between the two selves' messages

/// Waits within the billboard until the word is raised: notices deaths and returns, is told of
/// none.
void look_on_until(Rank& me, Word raised) {
    const int oneself = me.rank;
    while (me.shared[raised] == 0) {
        check_code(bbp_recv_for(oneself, nullptr, 0, nullptr, 2 * kMillisecond), BBP_ETIMEDOUT);
    }
}

/// Rank 1 posts messages, is killed, and its new self posts one more. Rank 0 notices the return
/// while it waits for another, so without being told of it, and then calls `ask`.
void return_unasked(const RingSetup& setup, const std::function<void()>& ask) {
    RankProcesses ring(setup);
    ring.start(0, [&](Rank& me) {
        me.await_word(kGo);
        look_on_until(me, kAgain);
        ask();
        me.raise(kDone);
    });
    ring.start(1, [](Rank& me) {
        send(0, 20, 1);
        send(0, 700, 2);
        // A link may coalesce messages until their sender waits, and death takes them along.
        check_code(bbp_recv_for(1, nullptr, 0, nullptr, 2 * kMillisecond), BBP_ETIMEDOUT);
        me.raise(kPosted);
        linger(me);
    });
    ring.start(2, [](Rank& me) { look_on_until(me, kDone); });
    ring.await_all_joined();
    ring.await_word(kPosted);
    ring.kill(1);
    ring.start(1, [](Rank& me) {
        me.raise(kGo);
        send(0, 30, 3);  // returns once rank 0 has noticed
        me.raise(kAgain);
        linger(me);
    });
    ring.finish();
}

TEST_P(Restart, is_told_to_any_rank_that_asks_for_a_message) {
    for (const CallOfRank& one : calls_of_rank()) {
        if (!one.asks) continue;
        SCOPED_TRACE(one.name);
        return_unasked(setup(3), [&one] {
            receive(1, 20, 1);
            receive(1, 700, 2);
            check_code(one.call(1), BBP_EPEER, one.name);
            check_said("rank 1");
            check_said("back");
            // Its announcement may have overtaken it, through memory that is no part of the ring.
            await([] { return bbp_msgavail(1) == 1; }, "the new self's message");
            receive(1, 30, 3);
            send(1, 10, 1);
            nothing_waits(1);
        });
    }
}

TEST_P(Restart, is_told_to_a_sender_before_anything_goes_to_the_new_self) {
    for (const std::size_t size : {4U, 300U}) {
        SCOPED_TRACE(size);
        return_unasked(setup(3), [size] {
            const auto bytes = pattern(size, 1);
            check_code(bbp_send(1, bytes.data(), size), BBP_EPEER, "bbp_send");
            send(1, size, 1);
            receive(1, 20, 1);
            receive(1, 700, 2);
            receive(1, 30, 3);
            nothing_waits(1);
        });
    }
}

TEST_P(Restart, is_not_told_to_a_multicast_that_reached_nobody_but_to_the_next) {
    return_unasked(setup(3), [] {
        check(send_until_full(2, 4, 0) > 0, "nothing could be sent to a rank that does not read");
        const int dests[] = {1, 2};
        for (int i = 0; i < 3; ++i) {
            check_code(bbp_trymcast(dests, 2, "abcd", 4), BBP_EAGAIN, "bbp_trymcast");
        }
        check_code(bbp_mcast(dests, 1, "abcd", 4), BBP_EPEER, "bbp_mcast to the new self alone");
    });
}

TEST_P(Restart, is_passed_over_by_receivers_from_anyone) {
    return_unasked(setup(3), [] {
        check_equal(receive(BBP_ANY, 20, 1), 1, "sender");
        check_equal(receive(BBP_ANY, 700, 2), 1, "sender");
        check_equal(receive(BBP_ANY, 30, 3), 1, "sender");
        check_code(bbp_msgavail(BBP_ANY), 0, "bbp_msgavail of anyone");
        // It is still due to the first call that names the rank: an answer, say.
        check_code(bbp_send(1, "x", 1), BBP_EPEER, "answering");
        check_code(bbp_send(1, "x", 1), BBP_OK, "answering again");
        nothing_waits(1);
        nothing_waits(BBP_ANY);
    });
}

TEST_P(Restart, does_not_keep_a_descriptor_readable) {
    RMEM_SKIP_IF_SIMULATED("poll(2) waits in the host's time");
    return_unasked(setup(3), [] {
        pollfd entry{bbp_fd(), POLLIN, 0};
        int messages = 0;
        std::byte buffer[1000];
        await(
            [&] {
                while (bbp_tryrecv(BBP_ANY, buffer, sizeof buffer, nullptr) >= 0) ++messages;
                return messages == 3 && ::poll(&entry, 1, 0) == 0;
            },
            "three messages, and then the descriptor to fall quiet");
    });
}

TEST_P(Restart, is_told_to_a_barrier) {
    return_unasked(setup(3), [] {
        const int members[] = {0, 1};
        check_code(bbp_barrier_group(members, 2, 1), BBP_EPEER, "bbp_barrier_group");
        receive(1, 20, 1);
        receive(1, 700, 2);
        receive(1, 30, 3);
    });
}

TEST_P(Restart, is_not_held_up_by_a_rank_that_never_names_it) {
    run({[](Rank& me) { look_on_until(me, kDone); }, linger,
         [](Rank& me) {
             me.await_word(kGo);
             miss_once(1);
             for (const std::size_t size : {std::size_t{900}, 2 * kPartition})
                 receive(1, size, size);
             me.raise(kDone);
             me.await_word(kDone, 2);
         }},
        {.rank = 1, .posted = 0, .next = [](Rank& me) {
             me.raise(kGo);
             for (const std::size_t size : {std::size_t{900}, 2 * kPartition}) send(2, size, size);
             me.raise(kDone);
         }});
}

}  // namespace
}  // namespace rmem::test
