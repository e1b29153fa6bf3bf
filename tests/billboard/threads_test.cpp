// SPDX-License-Identifier: Apache-2.0
// ctest: tsan

/// Ranks as threads of one process on one mapping: programs of that shape, and the only way in
/// which the thread sanitizer sees the protocol's order. tests/rmem/base/planted_race_test.cpp
/// shows that it would report a missing one.

#include "billboard/endpoint.hpp"
#include "billboard/errors.hpp"
#include "rmem/ring/ring.hpp"
#include "tests/support/child.hpp"
#include "tests/support/endpoint_pair.hpp"
#include "tests/support/patterns.hpp"
#include "tests/support/soak.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace billboard {
namespace {

using rmem::test::first_difference;
using rmem::test::pattern;
using rmem::test::PlannedMessage;
using rmem::test::SoakPlan;
using test::patience;

/// A data partition: room for a message that is filled late.
constexpr std::size_t kThreadPlace = 98304;

struct Kind {
    rmem::LinkKind link;
    Layout layout;
};

std::string kind_name(const ::testing::TestParamInfo<Kind>& info) {
    return std::string(rmem::name_of(info.param.link)) + "_" + name_of(info.param.layout);
}

class Threads : public ::testing::TestWithParam<Kind> {
protected:
    using Body = std::function<void(Endpoint&)>;

    /// Runs each rank's part in a thread of its own.
    void run(unsigned ranks, const Body& body) {
        const auto two = test::ring_of_two(name_.get(), kThreadPlace, 0, ranks, GetParam().layout,
                                           GetParam().link);
        std::vector<std::thread> threads;
        for (unsigned rank = 0; rank < ranks; ++rank) {
            threads.emplace_back([&, rank] {
                try {
                    const auto endpoint =
                        Endpoint::open(two.ring, {rank, rank}, two.settings, patience());
                    body(*endpoint);
                    EXPECT_EQ(endpoint->barrier(patience()), BBP_OK) << last_error();
                } catch (const std::exception& e) {
                    ADD_FAILURE() << "rank " << rank << ": " << e.what();
                }
            });
        }
        for (auto& thread : threads) thread.join();
    }

    static void send(Endpoint& me, int dest, std::size_t size, std::uint64_t seed) {
        const auto bytes = pattern(size, seed);
        ASSERT_EQ(me.send(dest, bytes.data(), size, patience()), BBP_OK) << last_error();
    }
    static void receive(Endpoint& me, int source, std::size_t size, std::uint64_t seed) {
        std::vector<std::byte> buffer(size + 1);
        std::size_t found = 0;
        ASSERT_EQ(me.recv(source, buffer.data(), buffer.size(), &found, patience()), source)
            << last_error();
        ASSERT_EQ(found, size);
        ASSERT_EQ(first_difference({buffer.data(), size}, seed), size);
    }

    rmem::test::RingName name_;
};

constexpr Kind kThreadKinds[] = {{rmem::LinkKind::direct, Layout::lines},
                                 {rmem::LinkKind::direct, Layout::paper},
                                 {rmem::LinkKind::ring, Layout::lines},
                                 {rmem::LinkKind::ring, Layout::paper}};
INSTANTIATE_TEST_SUITE_P(On, Threads, ::testing::ValuesIn(kThreadKinds), kind_name);

TEST_P(Threads, exchange_messages_of_every_way_there_is_to_go) {
    constexpr std::size_t kSizes[] = {0, 8, 60, 61, 4000, 70000, 150000};
    run(2, [&](Endpoint& me) {
        const int other = 1 - static_cast<int>(me.rank());
        for (std::uint64_t i = 0; i < 60 && !HasFailure(); ++i) {
            const std::size_t size = kSizes[i % std::size(kSizes)];
            if (me.rank() == 0) send(me, other, size, i);
            receive(me, other, size, me.rank() == 0 ? i + 1000 : i);
            if (me.rank() == 1) send(me, other, size, i + 1000);
        }
    });
}

TEST_P(Threads, stream_short_messages) {
    run(2, [](Endpoint& me) {
        for (std::uint64_t i = 0; i < 3000 && !HasFailure(); ++i) {
            if (me.rank() == 0) send(me, 1, i % 64, i);
            if (me.rank() == 1) receive(me, 0, i % 64, i);
        }
    });
}

/// Each rank tries to send what its plan says, some of it composed in place, and meanwhile takes
/// what the others' plans promise.
class MixedTraffic {
public:
    static constexpr std::uint64_t kMessages = 400;

    explicit MixedTraffic(Endpoint& me)
        : me_(me),
          rank_(static_cast<int>(me.rank())),
          own_(7, rank_, static_cast<int>(me.ranks()), kThreadPlace / 4, kMessages),
          buffer_(kThreadPlace),
          end_(patience()) {
        plans_.reserve(me.ranks());  // expected_ points into them
        for (unsigned s = 0; s < me.ranks(); ++s) {
            plans_.emplace_back(7, static_cast<int>(s), static_cast<int>(me.ranks()),
                                kThreadPlace / 4, kMessages);
            expected_.push_back(plans_.back().next_for(rank_));
        }
    }

    void run() {
        while (!own_.done()) {
            const PlannedMessage& message = own_.next();
            const auto bytes = pattern(message.size, message.seed);
            void* composed = nullptr;
            int code = BBP_EAGAIN;
            while (code == BBP_EAGAIN) {
                if (!message.composed) {
                    code = me_.mcast(message.dests, bytes.data(), bytes.size(), Deadline::now());
                } else if (composed != nullptr) {
                    code = me_.post(message.dests, composed, bytes.size(), Deadline::now());
                } else if (me_.compose(bytes.size(), &composed) == BBP_OK) {
                    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(composed));
                }
                take_one();
                if (is_stuck()) return;
            }
            ASSERT_EQ(code, BBP_OK) << last_error();
        }
        while (
            std::any_of(expected_.begin(), expected_.end(), [](auto* m) { return m != nullptr; })) {
            take_one();
            if (is_stuck()) return;
        }
        while (!views_.empty()) release();
    }

private:
    struct View {
        const void* data;
        std::size_t size;
        std::uint64_t seed;
    };

    bool is_stuck() const {
        EXPECT_FALSE(end_.passed(rmem::now_ns())) << "rank " << rank_ << " gets no further";
        return ::testing::Test::HasFailure();
    }
    void take_one() {
        std::size_t size = 0;
        const void* data = buffer_.data();
        const bool view = ++turns_ % 3 == 0;
        const int sender =
            view ? me_.view(BBP_ANY, &data, &size, Deadline::now())
                 : me_.recv(BBP_ANY, buffer_.data(), buffer_.size(), &size, Deadline::now());
        if (sender == BBP_EAGAIN) {
            if (!views_.empty()) release();
            return;
        }
        ASSERT_GE(sender, 0) << last_error();
        const PlannedMessage*& message = expected_[static_cast<std::size_t>(sender)];
        ASSERT_NE(message, nullptr) << "more than rank " << sender << " was to send";
        ASSERT_EQ(size, message->size);
        const std::span bytes(static_cast<const std::byte*>(data), size);
        ASSERT_EQ(first_difference(bytes, message->seed), size);
        if (view) views_.push_back({data, size, message->seed});
        message = plans_[static_cast<std::size_t>(sender)].next_for(rank_);
        if (views_.size() > 3) release();
    }
    /// In an order of its own; the viewed messages must not have changed.
    void release() {
        const std::size_t which = turns_ % views_.size();
        const View view = views_[which];
        views_.erase(views_.begin() + static_cast<std::ptrdiff_t>(which));
        const std::span bytes(static_cast<const std::byte*>(view.data), view.size);
        ASSERT_EQ(first_difference(bytes, view.seed), view.size);
        ASSERT_EQ(me_.release(view.data), BBP_OK) << last_error();
    }

    Endpoint& me_;
    int rank_;
    SoakPlan own_;
    std::vector<SoakPlan> plans_;
    std::vector<const PlannedMessage*> expected_;
    std::vector<View> views_;
    std::vector<std::byte> buffer_;
    Deadline end_;
    std::size_t turns_ = 0;
};

TEST_P(Threads, exchange_random_messages_and_multicasts) {
    run(3, [](Endpoint& me) { MixedTraffic(me).run(); });
}

TEST_P(Threads, see_after_a_barrier_what_the_others_wrote_before_it) {
    constexpr unsigned kRanks = 3;
    // Plain memory of the process: only the barriers order it.
    std::array<unsigned, kRanks> written{};
    run(kRanks, [&](Endpoint& me) {
        std::vector<int> all(kRanks);
        std::iota(all.begin(), all.end(), 0);
        for (unsigned i = 1; i <= 100 && !HasFailure(); ++i) {
            written[me.rank()] = i;
            ASSERT_EQ(me.barrier(patience()), BBP_OK) << last_error();
            for (const unsigned value : written) ASSERT_EQ(value, i);
            ASSERT_EQ(me.barrier_group(all, 5, patience()), BBP_OK) << last_error();
        }
    });
}

}  // namespace
}  // namespace billboard
