// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// Endpoints that a program opens by itself (bbp_open): several rings in one program, several ranks
/// of one ring, threads with one each, beside the process's own.

#include "billboard/bbp.h"
#include "rmem/rmem.h"
#include "tests/support/child.hpp"
#include "tests/support/own_network.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kPatienceNs = 30'000'000'000;

/// Options of a rank in a ring of its own.
class RingOf {
public:
    RingOf(const char* link, int ranks) : link_(link), ranks_(ranks) {}

    bbp_endpoint* open(int rank) const {
        bbp_endpoint* endpoint = nullptr;
        const int code = try_open(&endpoint, rank);
        if (code < 0) ADD_FAILURE() << bbp_last_error();
        return endpoint;
    }
    int try_open(bbp_endpoint** endpoint, int rank) const {
        rmem_options options = RMEM_OPTIONS;
        options.ring = name_.get().c_str();
        options.link = link_;
        options.rank = rank;
        options.ranks = ranks_;
        options.memory_bytes = 4096;
        options.timeout_ns = kPatienceNs;
        const std::array<const char*, 3> settings = {"RMEM_INTERFACE=lo", group_.c_str(), nullptr};
        if (is_remote(parse_link(link_))) options.settings = settings.data();
        return bbp_open_with(endpoint, &options);
    }
    const std::string& name() const { return name_.get(); }

private:
    RingName name_;
    const char* link_;
    int ranks_;
    std::string group_ = "RMEM_GROUP=" + own_group(name_.get(), parse_link(link_));
};

/// Two ranks of a ring in this process: each waits for the other to join.
std::array<bbp_endpoint*, 2> open_both(const RingOf& ring) {
    std::array<bbp_endpoint*, 2> both{};
    std::thread other([&] { both[1] = ring.open(1); });
    both[0] = ring.open(0);
    other.join();
    return both;
}

void expect_talk(bbp_endpoint* from, bbp_endpoint* to, std::uint32_t what, std::size_t bytes = 4) {
    std::vector<std::uint32_t> sent(bytes / 4 + 1, what), got(bytes / 4 + 1);
    std::thread sender([&] {
        EXPECT_EQ(bbp_send_on(from, bbp_rank_on(to), sent.data(), bytes), BBP_OK)
            << bbp_last_error();
    });
    std::size_t size = 0;
    EXPECT_EQ(bbp_recv_for_on(to, BBP_ANY, got.data(), bytes, &size, kPatienceNs),
              bbp_rank_on(from))
        << bbp_last_error();
    sender.join();
    EXPECT_EQ(size, bytes);
    EXPECT_EQ(std::memcmp(sent.data(), got.data(), bytes), 0);
}

void close_both(const std::array<bbp_endpoint*, 2>& both) {
    for (bbp_endpoint* one : both) EXPECT_EQ(bbp_close(one), BBP_OK);
}

struct Endpoints : ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(OnLink, Endpoints, ::testing::Values("direct", "ring", "udp", "fabric"),
                         [](const auto& link) { return std::string(link.param); });

TEST_P(Endpoints, of_one_process_are_ranks_that_talk_and_can_be_opened_again) {
    const RingOf ring(GetParam(), 2);
    for (std::uint32_t time = 1; time <= 2; ++time) {
        const auto both = open_both(ring);
        EXPECT_EQ(bbp_rank_on(both[1]), 1);
        EXPECT_EQ(bbp_ranks_on(both[0]), 2);
        for (const std::size_t bytes : {std::size_t{4}, std::size_t{100}, std::size_t{300'000}}) {
            expect_talk(both[0], both[1], time, bytes);
            expect_talk(both[1], both[0], 8, bytes);
        }
        close_both(both);
    }
}

TEST_P(Endpoints, carry_every_kind_of_call) {
    const RingOf ring(GetParam(), 2);
    const auto both = open_both(ring);
    bbp_endpoint *const a = both[0], *const b = both[1];
    const int to_b = 1;
    std::uint32_t word = 5;
    std::size_t size = 0;
    EXPECT_EQ(bbp_tryrecv_on(b, 0, &word, sizeof word, &size), BBP_EAGAIN);
    EXPECT_EQ(bbp_recv_for_on(b, 0, &word, sizeof word, &size, 1'000'000), BBP_ETIMEDOUT);
    EXPECT_EQ(bbp_msgavail_on(b, 0), 0);
    word = 6;
    EXPECT_EQ(bbp_trysend_on(a, 1, &word, sizeof word), BBP_OK);
    EXPECT_EQ(bbp_send_for_on(a, 1, &word, sizeof word, kPatienceNs), BBP_OK);
    EXPECT_EQ(bbp_mcast_on(a, &to_b, 1, &word, sizeof word), BBP_OK);
    EXPECT_EQ(bbp_trymcast_on(a, &to_b, 1, &word, sizeof word), BBP_OK);
    EXPECT_EQ(bbp_mcast_for_on(a, &to_b, 1, &word, sizeof word, kPatienceNs), BBP_OK);
    const int fd = bbp_fd_on(b);
    EXPECT_GE(fd, 0);
    int taken = 0;
    const void* data = nullptr;
    for (; taken < 5; ++taken) {
        word = 0;
        if (taken == 0) {
            EXPECT_EQ(bbp_view_for_on(b, 0, &data, &size, kPatienceNs), 0);
        } else if (taken == 1) {
            EXPECT_EQ(bbp_view_on(b, 0, &data, &size), 0);
        } else if (taken == 2) {
            ASSERT_TRUE(eventually([&] { return bbp_tryview_on(b, 0, &data, &size) == 0; }));
        } else if (taken == 3) {
            EXPECT_TRUE(eventually([&] { return bbp_msgavail_on(b, BBP_ANY) == 1; }));
            EXPECT_EQ(bbp_probe_on(b, 0, &size), 0);
            EXPECT_EQ(bbp_recv_on(b, 0, &word, sizeof word, &size), 0);
        } else {
            EXPECT_EQ(bbp_recv_on(b, BBP_ANY, &word, sizeof word, nullptr), 0);
        }
        if (taken < 3) {
            std::memcpy(&word, data, sizeof word);
            EXPECT_EQ(bbp_release_on(b, data), BBP_OK);
        }
        EXPECT_EQ(word, 6U) << taken;
    }
    void* room = nullptr;
    for (int way = 0; way < 6; ++way) {
        ASSERT_EQ(bbp_compose_on(a, sizeof word, &room), BBP_OK) << bbp_last_error();
        std::memcpy(room, &word, sizeof word);
        const int posted = way == 0   ? bbp_post_on(a, 1, room, sizeof word)
                           : way == 1 ? bbp_trypost_on(a, 1, room, sizeof word)
                           : way == 2 ? bbp_post_for_on(a, 1, room, sizeof word, kPatienceNs)
                           : way == 3 ? bbp_post_mcast_on(a, &to_b, 1, room, sizeof word)
                           : way == 4
                               ? bbp_trypost_mcast_on(a, &to_b, 1, room, sizeof word)
                               : bbp_post_mcast_for_on(a, &to_b, 1, room, sizeof word, kPatienceNs);
        EXPECT_EQ(posted, BBP_OK) << way << ": " << bbp_last_error();
        std::uint32_t got = 0;
        EXPECT_EQ(bbp_recv_on(b, 0, &got, sizeof got, nullptr), 0);
        EXPECT_EQ(got, word) << way;
    }
    ASSERT_EQ(bbp_compose_on(a, 64, &room), BBP_OK);
    EXPECT_EQ(bbp_discard_on(a, room), BBP_OK);
    EXPECT_EQ(bbp_group_join_on(b, "all"), BBP_OK);
    EXPECT_TRUE(eventually([&] { return bbp_mcast_group_on(a, "all", &word, 4) == 1; }));
    EXPECT_EQ(bbp_recv_on(b, 0, &word, sizeof word, nullptr), 0);
    EXPECT_EQ(bbp_group_leave_on(b, "all"), BBP_OK);
    const int all[] = {0, 1};
    std::thread other([&] {
        EXPECT_EQ(bbp_barrier_on(b), BBP_OK);
        EXPECT_EQ(bbp_barrier_for_on(b, kPatienceNs), BBP_OK);
        EXPECT_EQ(bbp_barrier_group_on(b, all, 2, 3), BBP_OK);
        EXPECT_EQ(bbp_barrier_group_for_on(b, all, 2, 3, kPatienceNs), BBP_OK);
    });
    EXPECT_EQ(bbp_barrier_on(a), BBP_OK);
    EXPECT_EQ(bbp_barrier_for_on(a, kPatienceNs), BBP_OK);
    EXPECT_EQ(bbp_barrier_group_on(a, all, 2, 3), BBP_OK);
    EXPECT_EQ(bbp_barrier_group_for_on(a, all, 2, 3, kPatienceNs), BBP_OK);
    other.join();
    close_both(both);
}

TEST_P(Endpoints, of_two_rings_pass_messages_on) {
    const RingOf near("direct", 2), far(GetParam(), 2);
    Child source([&] {
        bbp_endpoint* const end = near.open(1);
        for (std::uint32_t i = 1; i <= 200; ++i)
            EXPECT_EQ(bbp_send_on(end, 0, &i, sizeof i), BBP_OK);
        EXPECT_EQ(bbp_barrier_for_on(end, kPatienceNs), BBP_OK) << bbp_last_error();
        bbp_close(end);
    });
    Child sink([&] {
        bbp_endpoint* const end = far.open(1);
        for (std::uint32_t i = 1; i <= 200; ++i) {
            std::uint32_t got = 0;
            EXPECT_EQ(bbp_recv_for_on(end, 0, &got, sizeof got, nullptr, kPatienceNs), 0)
                << bbp_last_error();
            ASSERT_EQ(got, i);
        }
        EXPECT_EQ(bbp_barrier_for_on(end, kPatienceNs), BBP_OK) << bbp_last_error();
        bbp_close(end);
    });
    Child relay([&] {
        bbp_endpoint *const in = near.open(0), *const out = far.open(0);
        for (int i = 0; i < 200; ++i) {
            std::uint32_t word = 0;
            ASSERT_EQ(bbp_recv_on(in, 1, &word, sizeof word, nullptr), 1) << bbp_last_error();
            ASSERT_EQ(bbp_send_on(out, 1, &word, sizeof word), BBP_OK) << bbp_last_error();
        }
        EXPECT_EQ(bbp_barrier_for_on(in, kPatienceNs), BBP_OK);
        EXPECT_EQ(bbp_barrier_for_on(out, kPatienceNs), BBP_OK);
        bbp_close(out);
        bbp_close(in);
    });
    EXPECT_EQ(relay.wait(), 0);
    EXPECT_EQ(sink.wait(), 0);
    EXPECT_EQ(source.wait(), 0);
}

TEST_P(Endpoints, are_used_by_a_thread_each_at_the_same_time) {
    const RingOf one(GetParam(), 2), two("direct", 2);
    const auto of_one = open_both(one), of_two = open_both(two);
    std::vector<std::thread> threads;
    for (const auto& both : {of_one, of_two}) {
        for (int rank = 0; rank < 2; ++rank) {
            threads.emplace_back([own = both[static_cast<std::size_t>(rank)], rank] {
                for (std::uint32_t i = 1; i <= 300; ++i) {
                    std::uint32_t got = 0;
                    if (rank == 0) {
                        ASSERT_EQ(bbp_send_on(own, 1, &i, sizeof i), BBP_OK);
                    }
                    ASSERT_EQ(bbp_recv_on(own, 1 - rank, &got, sizeof got, nullptr), 1 - rank);
                    ASSERT_EQ(got, i);
                    if (rank == 1) {
                        ASSERT_EQ(bbp_send_on(own, 0, &i, sizeof i), BBP_OK);
                    }
                }
            });
        }
    }
    for (auto& thread : threads) thread.join();
    close_both(of_one);
    close_both(of_two);
}

TEST(OwnEndpoints, live_beside_the_processs_own_which_null_stands_for) {
    const RingOf ring("direct", 1), global("direct", 1);
    ::setenv("RMEM_RING", global.name().c_str(), 1);
    ::setenv("RMEM_RANKS", "1", 1);
    ASSERT_EQ(bbp_init(nullptr, nullptr), BBP_OK) << bbp_last_error();
    bbp_endpoint* const own = ring.open(0);
    EXPECT_EQ(bbp_rank_on(nullptr), 0);
    EXPECT_EQ(bbp_ranks_on(nullptr), 1);
    EXPECT_EQ(bbp_close(nullptr), BBP_OK);
    std::uint32_t word = 1, got = 0;
    EXPECT_EQ(bbp_send(0, &word, sizeof word), BBP_OK);
    word = 2;
    EXPECT_EQ(bbp_send_on(own, 0, &word, sizeof word), BBP_OK);
    EXPECT_EQ(bbp_recv_on(nullptr, 0, &got, sizeof got, nullptr), 0);
    EXPECT_EQ(got, 1U);
    EXPECT_EQ(bbp_finalize(), BBP_OK);
    EXPECT_EQ(bbp_recv_on(own, 0, &got, sizeof got, nullptr), 0);
    EXPECT_EQ(got, 2U);
    EXPECT_EQ(bbp_msgavail_on(nullptr, 0), BBP_EINVAL);
    EXPECT_EQ(bbp_close(own), BBP_OK);
    ::unsetenv("RMEM_RANKS");
    ::unsetenv("RMEM_RING");
}

TEST(OwnEndpoints, say_what_is_wrong) {
    bbp_endpoint* none = nullptr;
    EXPECT_EQ(bbp_open(nullptr), BBP_EINVAL);
    EXPECT_THAT(bbp_last_error(), HasSubstr("null pointer"));
    std::uint32_t word = 0;
    EXPECT_EQ(bbp_send_on(nullptr, 0, &word, sizeof word), BBP_EINVAL);
    EXPECT_THAT(bbp_last_error(), HasSubstr("call bbp_init first"));
    EXPECT_EQ(bbp_recv_on(nullptr, 0, &word, sizeof word, nullptr), BBP_EINVAL);
    EXPECT_EQ(bbp_rank_on(nullptr), BBP_EINVAL);
    EXPECT_EQ(bbp_fd_on(nullptr), BBP_EINVAL);
    rmem_options options = RMEM_OPTIONS;
    options.link = "carrier-pigeon";
    EXPECT_EQ(bbp_open_with(&none, &options), BBP_EINVAL);
    EXPECT_EQ(none, nullptr);
    EXPECT_THAT(bbp_last_error(), HasSubstr("carrier-pigeon"));
    options.size = 1;
    EXPECT_EQ(bbp_open_with(&none, &options), BBP_EINVAL);
    const RingOf ring("direct", 1);
    bbp_endpoint* const own = ring.open(0);
    EXPECT_EQ(ring.try_open(&none, 0), BBP_EBUSY) << "a rank is one endpoint's";
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(bbp_send_on(own, 1, &word, sizeof word), BBP_ERANK);
    EXPECT_EQ(bbp_mcast_on(own, nullptr, 2, &word, sizeof word), BBP_EINVAL);
    EXPECT_EQ(bbp_group_join_on(own, nullptr), BBP_EINVAL);
    EXPECT_EQ(bbp_close(own), BBP_OK);
}

TEST(OwnEndpoints, are_not_a_childs) {
    const RingOf ring("direct", 1), of_child("direct", 1);
    bbp_endpoint* const own = ring.open(0);
    Child child([&] {
        std::uint32_t word = 0;
        EXPECT_EQ(bbp_send_on(own, 0, &word, sizeof word), BBP_EINVAL);
        EXPECT_THAT(bbp_last_error(), HasSubstr("child"));
        EXPECT_EQ(bbp_close(own), BBP_OK);
        bbp_endpoint* const another = of_child.open(0);
        EXPECT_EQ(bbp_send_on(another, 0, &word, sizeof word), BBP_OK);
        EXPECT_EQ(bbp_close(another), BBP_OK);
    });
    EXPECT_EQ(child.wait(), 0);
    std::uint32_t word = 3, got = 0;
    EXPECT_EQ(bbp_send_on(own, 0, &word, sizeof word), BBP_OK);
    EXPECT_EQ(bbp_recv_on(own, 0, &got, sizeof got, nullptr), 0);
    EXPECT_EQ(got, 3U);
    bbp_close(own);
}

TEST(OwnEndpoints, share_their_rank_with_a_node_of_the_process) {
    const RingOf ring("ring", 1);
    bbp_endpoint* const own = ring.open(0);
    rmem_options options = RMEM_OPTIONS;
    options.ring = ring.name().c_str();
    options.rank = 0;
    rmem_node* node = nullptr;
    ASSERT_EQ(rmem_open_with(&node, &options), RMEM_OK) << rmem_last_error();
    EXPECT_EQ(rmem_rank(node), 0);
    std::uint32_t word = 4, got = 0;
    EXPECT_EQ(rmem_write_word(node, 16, 5), RMEM_OK);
    EXPECT_EQ(bbp_send_on(own, 0, &word, sizeof word), BBP_OK);
    EXPECT_EQ(bbp_close(own), BBP_OK);
    EXPECT_EQ(rmem_load(node, 16), 5U);
    EXPECT_EQ(rmem_write_word(node, 16, 6), RMEM_OK);
    bbp_endpoint* const next = ring.open(0);
    EXPECT_EQ(bbp_send_on(next, 0, &word, sizeof word), BBP_OK);
    EXPECT_EQ(bbp_recv_on(next, 0, &got, sizeof got, nullptr), 0);
    EXPECT_EQ(rmem_close(node), RMEM_OK);
    EXPECT_EQ(bbp_close(next), BBP_OK);
}

}  // namespace
}  // namespace rmem::test
