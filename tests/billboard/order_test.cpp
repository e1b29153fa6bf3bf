// SPDX-License-Identifier: Apache-2.0
// ctest: check apart

/// Conformance: messages from one sender to one receiver arrive in the order sent, whatever their
/// sizes and whether sent alone or as a multicast; nobody who has sent something is forgotten by a
/// receiver that takes from anyone. (billboard/bbp.h: Order; bbp_recv with BBP_ANY.)

#include "tests/support/conformance.hpp"
#include "tests/support/soak.hpp"

#include <algorithm>

namespace rmem::test {
namespace {

class Order : public Conformance {};
RMEM_ON_ALL_RINGS(Order);

enum Word : std::size_t { kPosted, kGo, kDone, kRefill, kRefilled };

/// Sizes for every way that a message can travel, in an order that differs from run to run of it.
std::size_t mixed_size(std::uint64_t number) {
    std::uint64_t state = number;
    const std::uint64_t random = next_random(state);
    switch (random % 8) {
        case 0: return 0;
        case 1: return 4;
        case 2:
        case 3: return random / 8 % 61;
        case 4:
        case 5: return random / 8 % 600;
        case 6: return random / 8 % (kPartition / 2);
        default: return number % 50 == 0 ? kPartition + random / 8 % kPartition : 61;
    }
}

/// Of each rank to each and to itself, alone and as multicasts, tried, composed, viewed and
/// received from anyone; a partition may be smaller than a message, and ranks more than processors.
TEST_P(Order, the_order_of_random_messages_is_kept) {
    struct Traffic {
        unsigned ranks;
        int messages;
        std::size_t largest;
    };
    for (const auto& [ranks, messages, largest] :
         {Traffic{4, 20'000, kPartition}, Traffic{4, 400, 5 * kPartition},
          Traffic{many(20), 2000, 600}}) {
        SCOPED_TRACE(ranks);
        const auto all = static_cast<std::uint64_t>(std::max(thrifty(messages), 100));
        run_soak(setup(ranks), all, soak_seed(), largest);
    }
}

TEST_P(Order, the_order_of_short_messages_is_kept_beyond_the_wrap_of_any_queue) {
    run(2, [](Rank& me) {
        const auto messages = static_cast<std::uint64_t>(thrifty(100'000));
        for (std::uint64_t i = 0; i < messages; ++i) {
            if (me.rank == 0) {
                check_ok(bbp_send(1, &i, sizeof i));
            } else {
                std::uint64_t found = ~i;
                check_code(bbp_recv(0, &found, sizeof found, nullptr), 0);
                check_equal(found, i, "number of the message");
            }
        }
    });
}

TEST_P(Order, the_order_of_messages_that_waited_for_a_late_receiver_is_kept) {
    run(2, [](Rank& me) {
        for (int round = 0; round < 5; ++round) {
            const auto go = static_cast<std::uint32_t>(round + 1);
            if (me.rank == 0) {
                // A link that is busy for the moment says BBP_EAGAIN too.
                await([] { return try_send(1, mixed_size(0) % 3000, 0) == BBP_OK; }, "room");
                std::uint64_t sent = 1;
                while (sent < 500 && try_send(1, mixed_size(sent) % 3000, sent) == BBP_OK) ++sent;
                me.shared[kPosted] = static_cast<std::uint32_t>(sent);
                me.shared[kGo] = go;
                me.await_word(kDone, go);
            } else {
                me.await_word(kGo, go);
                const std::uint64_t sent = me.shared[kPosted];
                for (std::uint64_t i = 0; i < sent; ++i) receive(0, mixed_size(i) % 3000, i);
                nothing_waits(0);
                me.shared[kDone] = go;
            }
        }
    });
}

TEST_P(Order, is_the_receivers_choice_between_senders) {
    run(4, [](Rank& me) {
        if (me.rank != 0) {
            for (std::uint64_t i = 0; i < 4; ++i) send(0, 40 * i, i);
            me.raise(kPosted);
            return me.await_word(kDone);
        }
        me.await_word(kPosted, 3);
        for (const int sender : {3, 1, 2}) {
            for (std::uint64_t i = 0; i < 4; ++i) receive(sender, 40 * i, i);
        }
        nothing_waits(BBP_ANY);
        me.raise(kDone);
    });
}

TEST_P(Order, the_order_of_a_receiver_that_peeks_and_refuses_is_kept) {
    run(2, [](Rank& me) {
        const auto messages = static_cast<std::uint64_t>(thrifty(500));
        for (std::uint64_t i = 0; i < messages; ++i) {
            const std::size_t size = 1 + mixed_size(i);
            if (me.rank == 0) {
                send(1, size, i);
                continue;
            }
            if (i % 3 == 0) check_code(bbp_recv(0, nullptr, 0, nullptr), BBP_ESIZE);
            if (i % 3 == 1) bbp_probe(0, nullptr);
            receive(0, size, i);
        }
    });
}

TEST_P(Order, receiving_from_anyone_forgets_no_sender_that_has_posted) {
    run(5, [](Rank& me) {
        if (me.rank != 0) {
            const int posted = send_until_full(0, 8, 0, 2000);
            me.shared[10 + static_cast<std::size_t>(me.rank)] = static_cast<std::uint32_t>(posted);
            me.raise(kPosted);
            return me.await_word(kDone);
        }
        me.await_word(kPosted, 4);
        std::vector<int> waiting(5, 0);
        int total = 0;
        for (std::size_t sender = 1; sender < 5; ++sender) {
            waiting[sender] = static_cast<int>(me.shared[10 + sender].load());
            total += waiting[sender];
            await([&] { return bbp_msgavail(static_cast<int>(sender)) == 1; }, "its messages");
        }
        std::vector<int> passed_over(5, 0);
        std::byte buffer[8];
        for (int i = 0; i < total; ++i) {
            const int sender = bbp_recv(BBP_ANY, buffer, sizeof buffer, nullptr);
            check(sender >= 1 && sender < 5, "bbp_recv told sender " + code_name(sender));
            --waiting[static_cast<std::size_t>(sender)];
            for (std::size_t other = 1; other < 5; ++other) {
                if (static_cast<int>(other) == sender || waiting[other] == 0) {
                    passed_over[other] = 0;
                } else {
                    check(++passed_over[other] <= 64,
                          fmt::format("rank {} waited while 64 messages of others were taken",
                                      other));
                }
            }
        }
        nothing_waits(BBP_ANY);
        me.raise(kDone);
    });
}

/// `busy` always has a message waiting, `patient` has one; the patient one's must come soon.
void check_patience(Rank& me, int busy, int patient) {
    if (me.rank == busy) {
        send(0, 8, 0);
        me.raise(kPosted);
        for (std::uint32_t i = 1;; ++i) {
            await([&] { return me.shared[kRefill] >= i || me.shared[kDone] != 0; }, "a refill");
            if (me.shared[kDone] != 0) return;
            send(0, 8, 0);
            me.raise(kRefilled);
        }
    }
    if (me.rank == patient) {
        send(0, 8, 0);
        me.raise(kPosted);
        return me.await_word(kDone);
    }
    if (me.rank != 0) return me.await_word(kDone);

    me.await_word(kPosted, 2);
    const auto available = [](int rank) { return bbp_msgavail(rank) == 1; };
    await([&] { return available(patient); }, "the patient rank's message");
    std::byte buffer[8];
    for (std::uint32_t i = 1; i <= 64; ++i) {
        await([&] { return available(busy); }, "the busy rank's message");
        const int sender = bbp_recv(BBP_ANY, buffer, sizeof buffer, nullptr);
        if (sender == patient) return me.raise(kDone);
        check_code(sender, busy);
        me.raise(kRefill);
        me.await_word(kRefilled, i);
    }
    fail(fmt::format("64 messages of rank {} were taken while one of rank {} waited", busy,
                     patient));
}

TEST_P(Order, receiving_from_anyone_lets_neither_low_nor_high_ranks_starve_the_others) {
    for (const int busy : {1, 3}) run(4, [&](Rank& me) { check_patience(me, busy, 4 - busy); });
}

}  // namespace
}  // namespace rmem::test
