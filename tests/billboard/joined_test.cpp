// SPDX-License-Identifier: Apache-2.0

/// Conformance: a message sent in two pieces is one message, whatever its size and theirs.
/// (billboard/endpoint.hpp: send_joined)

#include "billboard/endpoint.hpp"
#include "tests/support/conformance.hpp"

namespace rmem::test {
namespace {

class Joined : public Conformance {};
RMEM_ON_ALL_RINGS(Joined);

const std::vector<std::size_t> kHeads = {0, 1, 3, 8, 20, 28, 29, 40, 61, 300};
const std::vector<std::size_t> kBodies = {0, 1, 7, 8, 9, 32, 60, 64, 1000, 4096};

int try_joined(const std::vector<int>& dests, std::size_t head, std::size_t body,
               std::uint64_t seed) {
    const auto message = pattern(head + body, seed);
    const std::span<const std::byte> bytes(message);
    return billboard::Endpoint::of_bbp_init()->send_joined(dests, bytes.first(head),
                                                           bytes.subspan(head));
}

void send_joined(const std::vector<int>& dests, std::size_t head, std::size_t body,
                 std::uint64_t seed) {
    await(
        [&] {
            const int result = try_joined(dests, head, body, seed);
            check(result == BBP_OK || result == BBP_EAGAIN, "send_joined: " + code_name(result));
            return result == BBP_OK;
        },
        "room for a message in two pieces");
}

TEST_P(Joined, pieces_of_all_sizes_arrive_as_one_message_in_the_order_of_all) {
    run(2, [](Rank& me) {
        std::uint64_t seed = 0;
        for (const std::size_t head : kHeads) {
            for (const std::size_t body : kBodies) {
                const std::size_t other = seed % 4 == 0 ? 8 : 100;
                seed += 2;
                if (me.rank == 0) send_joined({1}, head, body, seed);
                if (me.rank == 0) send(1, other, seed + 1);
                if (me.rank == 1) receive(0, head + body, seed);
                if (me.rank == 1) receive(BBP_ANY, other, seed + 1);
            }
        }
        check_ok(bbp_barrier());
        nothing_waits(BBP_ANY);
    });
}

TEST_P(Joined, pieces_reach_each_named_rank_once) {
    run(4, [](Rank& me) {
        std::uint64_t seed = 0;
        for (const std::size_t head : {8U, 20U, 40U}) {
            for (const std::size_t body : {0U, 8U, 32U, 1000U}) {
                ++seed;
                if (me.rank == 1) send_joined({0, 3}, head, body, seed);
                if (me.rank == 0 || me.rank == 3) receive(1, head + body, seed);
            }
        }
        check_ok(bbp_barrier());
        nothing_waits(BBP_ANY);
    });
}

TEST_P(Joined, without_room_nothing_is_sent) {
    run(2, [](Rank& me) {
        std::uint64_t sent = 0;
        if (me.rank == 0) {
            while (try_joined({1}, 20, 8, sent) == BBP_OK) ++sent;
            check(sent > 0, "nothing can be sent");
        }
        check_ok(bbp_barrier());
        if (me.rank == 0) send_joined({1}, 0, 0, 0);
        if (me.rank == 1) {
            std::byte buffer[64];
            std::size_t size = 0;
            for (std::uint64_t i = 0;; ++i) {
                check_code(bbp_recv(0, buffer, sizeof buffer, &size), 0, "bbp_recv");
                if (size == 0) break;
                check_equal(size, std::size_t{28}, "its size");
                check_bytes(buffer, size, i);
            }
        }
    });
}

TEST_P(Joined, what_cannot_be_sent_is_told) {
    run(2, [](Rank& me) {
        if (me.rank != 0) return;
        for (const std::size_t body : {std::size_t{8}, std::size_t{500}}) {
            check_code(try_joined({2}, 20, body, 1), BBP_ERANK, "to a rank that is none");
            check_code(try_joined({-1}, 20, body, 1), BBP_ERANK, "to a rank that is none");
            check_code(try_joined({1, 1}, 20, body, 1), BBP_EINVAL, "to one rank twice");
        }
        check_code(try_joined({1}, 20, kPartition, 1), BBP_ESIZE, "more than a partition");
    });
}

}  // namespace
}  // namespace rmem::test
