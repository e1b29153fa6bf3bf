// SPDX-License-Identifier: Apache-2.0
// ctest: check
//
// Messages larger than a partition that their receivers read past the ring: by libfabric, on the
// loop-back interface; and where reads fail, hang or come late, from a memory of the test's own.
#include "billboard/core/far.hpp"
#include "billboard/core/counters.hpp"
#include "billboard/endpoint.hpp"
#include "billboard/errors.hpp"
#include "rmem/link/udp/key_file.hpp"
#include "rmem/ring/ring.hpp"
#include "tests/support/child.hpp"
#include "tests/support/conformance.hpp"
#include "tests/support/endpoint_pair.hpp"
#include "tests/support/fake_far_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace rmem::test {
namespace {

using billboard::Counter;

constexpr std::size_t kLeast = 64 * 1024;

/// Of this rank, so far.
std::uint64_t count(Counter id) {
    auto* const endpoint = billboard::Endpoint::of_bbp_init();
    return endpoint->ring()->rank(endpoint->rank()).protocol.get(id);
}

RingSetup ring_on(const std::string& link, unsigned ranks = 2) {
    RingSetup ring;
    ring.ranks = ranks;
    ring.link = link;
    ring.extra["RMEM_BULK"] = "fabric";
    return ring;
}

class FarOn : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Far, FarOn, ::testing::Values("udp", "fabric"),
                         [](const auto& link) { return std::string(link.param); });

TEST_P(FarOn, messages_of_all_sizes_arrive_intact_and_in_order) {
    run_members(ring_on(GetParam()), [](Rank& me) {
        const std::vector<std::size_t> sizes = {
            3,      kLeast - 1,  1, kLeast,  kLeast + 1,    131'071,   131'072, 131'073,
            60'000, 4 * 131'072, 2, 655'361, 1'048'576 + 3, 5'000'001, 40};
        const auto reads = static_cast<std::uint64_t>(
            std::count_if(sizes.begin(), sizes.end(), [](std::size_t s) { return s >= kLeast; }));
        for (int round = 0; round < 2; ++round) {
            for (const std::size_t size : sizes) {
                if (me.rank == 0) send(1, size, size);
                if (me.rank == 1) receive(round == 0 ? 0 : BBP_ANY, size, size);
            }
            for (const std::size_t size : sizes) {
                if (me.rank == 1) send(0, size, size);
                if (me.rank == 0) receive(round == 0 ? 1 : BBP_ANY, size, size);
            }
        }
        check_equal(count(Counter::offers_posted), 2 * reads, "messages offered");
        check_equal(count(Counter::offers_read), 2 * reads, "messages read");
        check_equal(count(Counter::offers_unread), 0U, "messages not read");
    });
}

// ---- Whether they are read

TEST(Far, messages_of_a_ring_with_a_key_go_over_it_unless_the_fabric_is_asked_for) {
    const Descriptor key = udp::new_key_without_name();
    const std::string key_file = fmt::format("/proc/{}/fd/{}", ::getpid(), key.get());
    struct Case {
        const char* bulk;
        bool has_key;
        std::uint64_t offers;
    };
    for (const Case& c :
         {Case{"", false, 1}, Case{"", true, 0}, Case{"fabric", true, 1}, Case{"ring", false, 0}}) {
        RingSetup setup = ring_on("udp");
        setup.extra["RMEM_BULK"] = c.bulk;
        if (c.has_key) setup.extra["RMEM_KEY_FILE"] = key_file;
        run_members(setup, [&](Rank& me) {
            if (me.rank == 0) send(1, 3 * kLeast, 5);
            if (me.rank == 1) receive(0, 3 * kLeast, 5);
            check_equal(count(me.rank == 0 ? Counter::offers_posted : Counter::offers_read),
                        c.offers, fmt::format("RMEM_BULK={}, key {}", c.bulk, c.has_key));
        });
    }
}

TEST(Far, a_setting_that_is_neither_is_refused) {
    RingSetup setup = ring_on("udp");
    setup.extra["RMEM_BULK"] = "tcp";
    run_ranks(setup, [](Rank&) {
        check_code(bbp_init(nullptr, nullptr), BBP_EINVAL);
        check_said("RMEM_BULK is 'tcp'; give fabric or ring");
    });
}

// ---- Deaths

/// The receiver has not looked at the message, or begun to read it.
TEST_P(FarOn, a_message_whose_sender_is_killed_is_lost_and_the_next_incarnation_s_are_read) {
    constexpr std::size_t kSize = 60 * kLeast;
    enum Word : std::size_t { kWaits, kIsBegun, kIsDead, kIsTold, kIsBack };
    for (const bool begins : {false, true}) {
        RankProcesses ranks(ring_on(GetParam()));
        ranks.start(0, [](Rank& me) {
            send(1, 5, 1);
            me.raise(kWaits);
            send(1, kSize, 2);
        });
        ranks.start(1, [begins](Rank& me) {
            receive(0, 5, 1);
            me.await_word(kWaits);
            std::vector<std::byte> buffer(kSize);
            std::size_t size = 0;
            if (begins) await([&] { return bbp_probe(0, &size) == 0; }, "the message");
            me.raise(kIsBegun);
            me.await_word(kIsDead);
            check_code(bbp_recv(0, buffer.data(), buffer.size(), nullptr), BBP_EPEER);
            me.raise(kIsTold);
            me.await_word(kIsBack);
            receive(0, kSize, 3);
            check_equal(count(Counter::offers_read), 1U, "messages read");
        });
        ranks.await_word(kWaits);
        ranks.await_word(kIsBegun);
        ranks.kill(0);
        ++ranks.shared()[kIsDead];
        ranks.await_word(kIsTold);
        ranks.start(0, [](Rank& me) {
            me.raise(kIsBack);
            send(1, kSize, 3);
        });
        ranks.finish();
    }
}

TEST_P(FarOn, messages_of_a_sender_that_is_killed_at_any_moment_arrive_whole_or_not_at_all) {
    constexpr std::uint32_t kKills = 6;
    constexpr std::size_t kMax = 24 * kLeast;
    const auto size_of = [](std::uint32_t i) { return i % 3 == 0 ? i : (i * 40'503) % kMax; };
    RankProcesses ranks(ring_on(GetParam()));
    const Body sender = [&](Rank& me) {
        for (std::uint32_t i = 0; me.shared[1] < kKills; ++i) send(1, size_of(i), i);
        send(1, 1, 999);
    };
    ranks.start(0, sender);
    ranks.start(1, [&](Rank& me) {
        std::vector<std::byte> buffer(kMax);
        for (std::uint32_t i = 0;;) {
            std::size_t size = 0;
            const int from = bbp_recv(0, buffer.data(), kMax, &size);
            if (from == BBP_EPEER) {
                i = 0;
                continue;
            }
            check_code(from, 0);
            if (size == 1) break;
            check_equal(size, size_of(i), "the next message's size");
            check_bytes(buffer.data(), size, i++);
            me.raise(0);
        }
    });
    std::uint32_t seen = 0;
    for (std::uint32_t kill = 0; kill < kKills; ++kill) {
        ranks.await_word(0, seen + 3);  // the ring is at work
        rest(std::chrono::microseconds(700 * kill));
        ranks.kill(0);
        seen = ranks.shared()[0];
        ++ranks.shared()[1];
        ranks.start(0, sender);
    }
    ranks.finish();
}

TEST_P(FarOn, a_send_whose_receiver_is_killed_says_so) {
    RankProcesses ranks(ring_on(GetParam()));
    ranks.start(0, [](Rank& me) {
        me.raise(0);
        const auto bytes = pattern(20 * kLeast, 1);
        check_code(bbp_send(1, bytes.data(), bytes.size()), BBP_EPEER);
    });
    ranks.start(1, [](Rank& me) { me.await_word(5); });
    ranks.await_word(0);
    rest(std::chrono::milliseconds(50));
    ranks.kill(1);
    ranks.finish();
}

}  // namespace
}  // namespace rmem::test

namespace billboard {
namespace {

using rmem::test::FakeFarMemory;
using rmem::test::pattern;
using test::patience;

/// Rank 0 sends to the others; all are of this process, and their memories the test's.
class FarRanks : public ::testing::Test {
protected:
    static constexpr unsigned kRanks = 3;
    static constexpr std::size_t kPlace = 16'384;  // a data partition
    static constexpr std::size_t kSize = 5 * kFarChunkBytes + 7;

    FarRanks() : all_(test::open_ranks(name_.get(), kRanks, kPlace, 0, rmem::LinkKind::ring)) {
        for (auto& endpoint : all_.ranks) {
            auto far = std::make_unique<FakeFarMemory>(offers_);
            far_.push_back(far.get());
            endpoint->use_far(std::move(far));
        }
    }
    Endpoint& rank(unsigned r) { return *all_.ranks[r]; }
    std::future<int> send(unsigned to, std::uint64_t seed, Deadline deadline = patience()) {
        return std::async(std::launch::async, [=, this] {
            const auto bytes = pattern(kSize, seed);
            return rank(0).send(static_cast<int>(to), bytes.data(), bytes.size(), deadline);
        });
    }
    /// Into its buffer.
    int receive(unsigned at, int source, Deadline deadline = patience(), std::size_t room = kSize) {
        in_[at].resize(kSize);
        return rank(at).recv(source, in_[at].data(), room, &size_[at], deadline);
    }
    void expect_next(unsigned at, std::uint64_t seed, std::size_t bytes = kSize) {
        ASSERT_EQ(receive(at, 0), 0) << last_error();
        in_[at].resize(size_[at]);
        EXPECT_TRUE(in_[at] == pattern(bytes, seed)) << size_[at] << " bytes";
    }
    void expect_carried(unsigned to, std::uint64_t seed) {
        auto sent = send(to, seed);
        expect_next(to, seed);
        EXPECT_EQ(sent.get(), BBP_OK) << last_error();
    }
    /// By rank 0 to both others.
    std::future<int> multicast(std::uint64_t seed, Deadline deadline = patience()) {
        return std::async(std::launch::async, [=, this] {
            const auto bytes = pattern(kSize, seed);
            return rank(0).mcast(std::array{1, 2}, bytes.data(), bytes.size(), deadline);
        });
    }
    /// By a short one, whose sender does not wait.
    void expect_nothing_between(unsigned at) {
        EXPECT_EQ(rank(0).send(static_cast<int>(at), pattern(9, 9).data(), 9, patience()), BBP_OK)
            << last_error();
        expect_next(at, 9, 9);
    }
    std::uint64_t count(unsigned r, Counter id) { return all_.ring->rank(r).protocol.get(id); }
    /// `begin` until it tells true while somebody sends, who gives up then.
    template <class Send, class Begin>
    static void give_up_in_the_midst(Send&& send, Begin&& begin) {
        bool is_begun = false;
        for (std::int64_t ns = 100'000'000; !is_begun && ns < 20'000'000'000; ns *= 2) {
            std::future<int> sent = send(Deadline::in(ns));
            while (!is_begun && sent.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
                is_begun = begin();
            EXPECT_EQ(sent.get(), BBP_ETIMEDOUT) << last_error();
        }
        ASSERT_TRUE(is_begun);
    }
    /// Rank 1 tries once; whether it reads more than before.
    bool begins_to_read(unsigned before) {
        EXPECT_EQ(receive(1, 0, Deadline::now()), BBP_EAGAIN);
        return far_[1]->asked != before;
    }

    rmem::test::RingName name_;
    FakeFarMemory::Offers offers_;
    std::vector<FakeFarMemory*> far_;
    test::Endpoints all_;
    std::array<std::vector<std::byte>, kRanks> in_;
    std::array<std::size_t, kRanks> size_{};
};

TEST_F(FarRanks, read_what_is_offered) {
    expect_carried(1, 1);
    EXPECT_EQ(far_[1]->bytes_read, kSize);
    EXPECT_EQ(far_[0]->offered, 0U);
    expect_nothing_between(1);
    EXPECT_EQ(count(1, Counter::offers_read), 1U);
}

TEST_F(FarRanks, get_over_the_ring_what_they_cannot_read) {
    for (const unsigned reads : {0U, 1U, 4U, 5U}) {
        far_[1]->left = reads;
        far_[0]->unread.clear();
        expect_carried(1, reads);
        expect_nothing_between(1);
    }
    EXPECT_EQ(count(1, Counter::offers_unread), 4U);
    EXPECT_EQ(far_[0]->offered, 0U);
    far_[1]->left = FakeFarMemory::kAll;
    expect_carried(1, 7);  // it is known that it does not read
    EXPECT_EQ(count(0, Counter::offers_posted), 4U);
}

TEST_F(FarRanks, get_over_the_ring_what_a_sender_offers_whom_they_cannot_meet) {
    far_[1]->is_open = false;
    for (const std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{2}}) {
        expect_carried(1, seed);
        expect_nothing_between(1);
    }
    EXPECT_EQ(count(1, Counter::offers_unread), 1U);
    EXPECT_EQ(far_[1]->asked, 0U);
}

TEST_F(FarRanks, get_a_multicast_each_in_the_way_that_it_can) {
    far_[1]->left = 2;
    auto sent = multicast(4);
    auto other = std::async(std::launch::async, [&] { expect_next(2, 4); });
    expect_next(1, 4);
    other.get();
    EXPECT_EQ(sent.get(), BBP_OK) << last_error();
    EXPECT_EQ(count(1, Counter::offers_unread), 1U);
    EXPECT_EQ(count(2, Counter::offers_read), 1U);
    expect_nothing_between(1);
    expect_nothing_between(2);
}

TEST_F(FarRanks, see_nothing_of_a_message_that_was_taken_back_before_they_looked) {
    EXPECT_EQ(send(1, 1, Deadline::in(20'000'000)).get(), BBP_ETIMEDOUT);
    EXPECT_EQ(far_[0]->offered, 0U);
    expect_nothing_between(1);
    EXPECT_GE(count(1, Counter::aborts_received), 1U);
    EXPECT_EQ(count(1, Counter::corrupt), 0U);
    expect_carried(1, 2);
}

/// Though its reads do not end: they go on into room of their own, but not without limit.
TEST_F(FarRanks, see_nothing_of_messages_that_were_taken_back_while_they_read) {
    far_[1]->holds = true;
    for (const unsigned dropped : {0U, 1U}) {
        const unsigned before = far_[1]->asked;
        give_up_in_the_midst([&](Deadline deadline) { return send(1, 1, deadline); },
                             [&] { return begins_to_read(before); });
        expect_nothing_between(1);
        EXPECT_EQ(far_[1]->dropped, dropped);
    }
    EXPECT_GE(count(1, Counter::aborts_received), 2U);
    far_[1]->holds = false;
    expect_carried(1, 2);
    EXPECT_TRUE(far_[1]->reads.empty());
}

TEST_F(FarRanks, go_on_with_a_message_after_a_deadline_and_a_buffer_that_is_too_small) {
    far_[1]->holds = true;
    auto sent = send(1, 1);
    EXPECT_EQ(receive(1, 0, Deadline::in(20'000'000)), BBP_ETIMEDOUT);
    EXPECT_EQ(receive(1, 0, Deadline::in(20'000'000), kSize - 1), BBP_ESIZE);
    EXPECT_EQ(std::exchange(size_[1], 0), kSize);
    EXPECT_EQ(rank(1).probe(0, &size_[1]), 0);
    EXPECT_EQ(size_[1], kSize);
    far_[1]->holds = false;
    EXPECT_EQ(receive(1, 0, patience(), kSize - 1), BBP_ESIZE);
    expect_next(1, 1);
    EXPECT_EQ(sent.get(), BBP_OK);
}

TEST_F(FarRanks, hear_others_while_they_read) {
    far_[1]->holds = true;
    auto sent = send(1, 1);
    while (!begins_to_read(0)) std::this_thread::yield();
    EXPECT_EQ(rank(2).send(1, "hello", 5, patience()), BBP_OK);
    EXPECT_EQ(receive(1, BBP_ANY), 2);
    EXPECT_EQ(size_[1], 5U);
    far_[1]->holds = false;
    EXPECT_EQ(receive(1, BBP_ANY), 0);
    EXPECT_TRUE(in_[1] == pattern(kSize, 1));
    EXPECT_EQ(sent.get(), BBP_OK);
}

TEST_F(FarRanks, hear_of_the_end_of_a_sender_that_has_taken_back_what_they_read) {
    far_[1]->holds = true;
    give_up_in_the_midst([&](Deadline deadline) { return send(1, 1, deadline); },
                         [&] { return begins_to_read(0); });
    rank(0).leave();
    EXPECT_EQ(receive(1, 0), BBP_EPEER);
}

/// Rank 2 has read it all; rank 1 cannot read, and takes none of the bytes that come instead.
TEST_F(FarRanks, get_no_multicast_that_one_of_them_does_not_get) {
    far_[1]->is_open = false;
    give_up_in_the_midst([&](Deadline deadline) { return multicast(4, deadline); },
                         [&] {
                             if (count(1, Counter::offers_unread) == 0)
                                 std::ignore = rank(1).probe(0, nullptr);
                             EXPECT_EQ(receive(2, 0, Deadline::now()), BBP_EAGAIN);
                             return count(1, Counter::offers_unread) != 0 &&
                                    count(2, Counter::offers_read) != 0;
                         });
    expect_nothing_between(2);
    expect_nothing_between(1);
}

TEST_F(FarRanks, read_of_several_at_once_and_hear_others_meanwhile) {
    far_[0]->holds = true;
    std::vector<std::future<int>> sent;
    for (const unsigned from : {1U, 2U}) {
        sent.push_back(std::async(std::launch::async, [this, from] {
            const auto bytes = pattern(kSize, from);
            return rank(from).send(0, bytes.data(), bytes.size(), patience());
        }));
    }
    while (far_[0]->asked != 2 * kFarChunks)
        EXPECT_EQ(receive(0, BBP_ANY, Deadline::now()), BBP_EAGAIN);
    EXPECT_EQ(receive(0, BBP_ANY, Deadline::in(30'000'000)), BBP_ETIMEDOUT);
    far_[0]->holds = false;
    std::array<bool, kRanks> has_come{};
    for (int i = 0; i < 2; ++i) {
        const int from = receive(0, BBP_ANY);
        ASSERT_GT(from, 0) << last_error();
        EXPECT_TRUE(in_[0] == pattern(kSize, static_cast<std::uint64_t>(from)));
        EXPECT_FALSE(std::exchange(has_come.at(static_cast<std::size_t>(from)), true));
    }
    for (auto& one : sent) EXPECT_EQ(one.get(), BBP_OK);
}

TEST_F(FarRanks, send_to_themselves_and_what_is_shorter_over_the_ring) {
    const std::size_t shorter = rmem::kFarLeast - 1;
    auto sent = std::async(std::launch::async, [&] {
        return rank(0).send(1, pattern(shorter, 3).data(), shorter, patience());
    });
    expect_next(1, 3, shorter);
    EXPECT_EQ(sent.get(), BBP_OK);
    far_[0]->near[1] = true;
    expect_carried(1, 4);
    EXPECT_EQ(count(0, Counter::offers_posted), 0U);
}

}  // namespace
}  // namespace billboard
