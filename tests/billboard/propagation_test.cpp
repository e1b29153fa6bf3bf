// SPDX-License-Identifier: Apache-2.0
// ctest: tsan

/// On `direct` one message in kStampEvery of a pair of ranks is a sample of propagation, if its
/// receiver was waiting for it already.

#include "billboard/boards/arrival.hpp"
#include "billboard/endpoint.hpp"
#include "billboard/errors.hpp"
#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/write_stamps.hpp"
#include "tests/support/child.hpp"
#include "tests/support/endpoint_pair.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace billboard {
namespace {

using test::patience;

using rmem::test::eventually;

/// Numbers start below the wrap, so the first sample comes soon.
constexpr unsigned kBeforeSample = 0U - kFirstCount;

class Propagation : public ::testing::TestWithParam<int> {
protected:
    void send() {
        EXPECT_EQ(pair_.sender->send(1, "reflect", 8, patience()), BBP_OK) << last_error();
    }
    void receive() {
        char text[8];
        EXPECT_EQ(pair_.receiver->recv(GetParam(), text, sizeof text, nullptr, patience()), 0)
            << last_error();
    }
    void send_to_one_who_sleeps() {
        std::thread waiting([&] { receive(); });
        EXPECT_TRUE(eventually([&] { return pair_.ring->attention()[1] != 0; }));
        send();
        waiting.join();
    }
    std::uint64_t samples() const { return pair_.ring->node(1).propagation.count(); }

    rmem::test::RingName name_;
    test::EndpointPair pair_ = test::open_pair(name_.get(), 4096);
};
INSTANTIATE_TEST_SUITE_P(From, Propagation, ::testing::Values(0, BBP_ANY),
                         [](const auto& source) { return source.param == 0 ? "one" : "anybody"; });

TEST_P(Propagation, the_propagation_of_an_awaited_message_is_sampled_once_in_many) {
    for (unsigned i = 0; i < kBeforeSample; ++i) send_to_one_who_sleeps();
    EXPECT_EQ(samples(), 0U);
    send_to_one_who_sleeps();
    EXPECT_EQ(samples(), 1U);
    send_to_one_who_sleeps();
    EXPECT_EQ(samples(), 1U);
    EXPECT_GT(pair_.ring->node(1).propagation.max(), 0U);
}

TEST_P(Propagation, the_propagation_of_a_message_that_nobody_awaited_is_no_sample) {
    for (unsigned i = 0; i <= kBeforeSample + rmem::kStampEvery; ++i) {
        send();
        receive();
    }
    EXPECT_EQ(samples(), 0U);
}

TEST_P(Propagation, the_propagation_of_a_message_that_an_earlier_wait_missed_is_no_sample) {
    for (unsigned i = 0; i < kBeforeSample; ++i) {
        send();
        receive();
    }
    char text[8];
    EXPECT_EQ(pair_.receiver->recv(GetParam(), text, sizeof text, nullptr, Deadline::in(1000)),
              BBP_ETIMEDOUT);
    send();
    receive();
    EXPECT_EQ(samples(), 0U);
}

TEST_P(Propagation, beyond_the_bound_is_counted_as_the_hosts) {
    pair_ = {};
    pair_ = test::open_pair(name_.get(), 4096, 1);  // nothing is that fast
    for (unsigned i = 0; i <= kBeforeSample; ++i) send_to_one_who_sleeps();
    EXPECT_EQ(samples(), 1U);
    const auto& link = pair_.ring->node(1).link;
    EXPECT_EQ(link.get(rmem::LinkCounter::bound_missed_by_host), 1U);
    EXPECT_EQ(link.get(rmem::LinkCounter::bound_violations), 0U);
}

}  // namespace
}  // namespace billboard
