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

enum Word : std::size_t { kPosted, kDone, kRefill, kRefilled };

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
