// SPDX-License-Identifier: Apache-2.0
// ctest: check apart

/// Conformance: a multicast reaches each rank that it names once, nobody else, in order, even when
/// others that it names are dead. (billboard/bbp.h: bbp_mcast, bbp_trymcast, bbp_mcast_for; dead
/// ranks in more depth: tests/billboard/core/peers_test.cpp; groups by name:
/// groups_and_barriers_test.cpp.)

#include "tests/support/conformance.hpp"

#include <climits>

namespace rmem::test {
namespace {

class Multicast : public Conformance {};
RMEM_ON_ALL_RINGS(Multicast);

enum Word : std::size_t { kPosted, kGo, kDone, kSent, kCounted };

const std::vector<std::size_t> kSizes = {0,  1,  8,    59,   60,         61,
                                         64, 65, 1000, 4096, kPartition, 2 * kPartition + 3};

TEST_P(Multicast, reaches_each_named_rank_once_and_nobody_else) {
    run(5, [](Rank& me) {
        for (std::uint64_t i = 0; i < kSizes.size(); ++i) {
            if (me.rank == 0) multicast({1, 3, 4}, kSizes[i], i);
            if (me.rank == 1 || me.rank == 3 || me.rank == 4) receive(0, kSizes[i], i);
            if (me.rank == 4) multicast({2}, kSizes[i], i);
            if (me.rank == 2) receive(BBP_ANY, kSizes[i], i);
        }
        check_ok(bbp_barrier());
        nothing_waits(BBP_ANY);
    });
}

TEST_P(Multicast, a_multicast_with_a_list_that_cannot_be_right_reaches_nobody) {
    run(3, [](Rank& me) {
        if (me.rank == 0) {
            const auto refused = [](std::vector<int> dests, int code) {
                check_code(bbp_mcast(dests.data(), static_cast<int>(dests.size()), "x", 1), code,
                           "bbp_mcast");
                check_code(bbp_trymcast(dests.data(), static_cast<int>(dests.size()), "x", 1), code,
                           "bbp_trymcast");
                check_code(
                    bbp_mcast_for(dests.data(), static_cast<int>(dests.size()), "x", 1, kLong),
                    code, "bbp_mcast_for");
            };
            refused({1, 1}, BBP_EINVAL);
            refused({1, 2, 1}, BBP_EINVAL);
            refused({0, 1, 2, 0}, BBP_EINVAL);
            refused({1, 3}, BBP_ERANK);
            refused({1, -1}, BBP_ERANK);
            refused({-2, 1}, BBP_ERANK);
            refused({INT_MAX}, BBP_ERANK);
            refused({1, INT_MIN}, BBP_ERANK);
            check_code(bbp_mcast(nullptr, 2, "x", 1), BBP_EINVAL, "null list");
            const int dests[] = {1, 2};
            check_code(bbp_mcast(dests, -1, "x", 1), BBP_EINVAL, "negative count");
            check_code(bbp_mcast(dests, INT_MIN, "x", 1), BBP_EINVAL, "most negative count");
            check_code(bbp_mcast(dests, 2, nullptr, 1), BBP_EINVAL, "null buffer");
        }
        check_ok(bbp_barrier());
        nothing_waits(BBP_ANY);
        check_ok(bbp_barrier());
        if (me.rank == 0) multicast({1, 2}, 9, 1);
        if (me.rank != 0) receive(0, 9, 1);
    });
}

TEST_P(Multicast, a_multicast_that_finds_one_receiver_full_reaches_none_and_the_next_ones_all) {
    for (const std::size_t size : {8U, 500U}) {
        run(3, [size](Rank& me) {
            if (me.rank == 0) {
                me.shared[kPosted] = static_cast<std::uint32_t>(send_until_full(1, 8, 0));
                const auto bytes = pattern(size, 999);
                const int dests[] = {2, 1};
                for (int i = 0; i < 2; ++i)
                    check_code(bbp_trymcast(dests, 2, bytes.data(), size), BBP_EAGAIN);
                for (const std::int64_t timeout : {20 * kMillisecond, std::int64_t{0}, INT64_MIN}) {
                    check_code(bbp_mcast_for(dests, 2, bytes.data(), size, timeout), BBP_ETIMEDOUT);
                }
                me.raise(kGo);
                check_ok(bbp_mcast_for(dests, 2, bytes.data(), size, kLong));
                await([&] { return bbp_trymcast(dests, 2, bytes.data(), size) == BBP_OK; }, "room");
            } else {
                me.await_word(kGo);
                const std::uint64_t queued = me.rank == 1 ? me.shared[kPosted].load() : 0;
                for (std::uint64_t i = 0; i < queued; ++i) receive(0, 8, i);
                for (int i = 0; i < 2; ++i) receive(0, size, 999);
            }
            check_ok(bbp_barrier());
            nothing_waits(BBP_ANY);
        });
    }
}

TEST_P(Multicast, tells_of_a_dead_member_and_reaches_the_others) {
    const Body receiver = [](Rank& me) {
        char text = 0;
        for (std::uint32_t i = 0; me.shared[kCounted] == 0 || i < me.shared[kSent]; ++i) {
            await([&] { return bbp_msgavail(0) == 1 || me.shared[kCounted] != 0; }, "one");
            if (me.shared[kCounted] != 0 && i == me.shared[kSent]) break;
            check_code(bbp_recv(0, &text, 1, nullptr), 0);
        }
        for (const std::size_t size : kSizes) receive(0, size, size);
        receive(0, 5, 5);
    };
    run({[](Rank& me) {
             me.await_word(kGo);
             const int dests[] = {1, 2, 3};
             // A death is noticed when it blocks a call, at the latest when a queue is full.
             std::uint32_t unnoticed = 0;
             while (bbp_mcast(dests, 3, "x", 1) == BBP_OK) {
                 check(++unnoticed < 10'000, "multicasts to a dead rank never tell");
             }
             me.shared[kSent] = unnoticed + 1;
             me.raise(kCounted);
             for (const std::size_t size : kSizes) {
                 const auto bytes = pattern(size, size);
                 check_code(bbp_mcast(dests, 3, bytes.data(), size), BBP_EPEER,
                            fmt::format("bbp_mcast of {} bytes", size));
             }
             send(1, 5, 5);
             send(3, 5, 5);
         },
         receiver,
         [](Rank& me) {
             me.raise(kPosted);
             me.await_word(kDone);
         },
         receiver},
        {.rank = 2});
}

TEST_P(Multicast, a_multicast_that_waits_for_a_member_ends_when_that_one_dies) {
    run({[](Rank& me) {
             check(send_until_full(1, 8, 0) > 0, "nothing could be sent");
             me.raise(kPosted);
             const auto bytes = pattern(8, 999);
             const int dests[] = {1, 2};
             check_code(bbp_mcast(dests, 2, bytes.data(), 8), BBP_EPEER);
         },
         [](Rank& me) { me.await_word(kDone); }, [](Rank&) { receive(0, 8, 999); }},
        {.rank = 1, .waits = true});
}

}  // namespace
}  // namespace rmem::test
