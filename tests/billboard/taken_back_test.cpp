// SPDX-License-Identifier: Apache-2.0
// ctest: tsan

/// A message larger than a partition that is taken back before it is complete: nothing overtakes
/// the word of it.

#include "billboard/core/counters.hpp"
#include "billboard/core/endpoint_core.hpp"
#include "billboard/endpoint.hpp"
#include "billboard/errors.hpp"
#include "tests/support/child.hpp"
#include "tests/support/endpoint_pair.hpp"
#include "tests/support/patterns.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <vector>

namespace billboard {
namespace {

using test::patience;

constexpr std::size_t kPlace = 4096;  // a data partition; four parts fill it
/// More parts than one look takes, however well the sender keeps up with it.
constexpr std::size_t kLargeBytes =
    (kMostLooks<LineBoard<rmem::DirectMemory>> + kBuffers) * kPlace / 4;

class TakenBack : public ::testing::Test {
protected:
    /// The receiver has begun with a message, and parts of it fill the sender's partition for good.
    void give_up_a_message_in_its_midst() {
        bool begun = false;
        for (int tries = 0; !begun && tries < 20; ++tries) begun = begins_before_it_is_given_up();
        ASSERT_TRUE(begun);
    }
    /// Nothing of the message is left where the receiver did not look in time.
    bool begins_before_it_is_given_up() {
        const auto bytes = rmem::test::pattern(kLargeBytes, 1);
        auto sending = std::async(std::launch::async, [&] {
            return pair_.sender->send(1, bytes.data(), bytes.size(), Deadline::in(300'000'000));
        });
        std::size_t size = 0;
        bool begun = false;
        while (!begun && sending.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
            begun = pair_.receiver->probe(0, &size) == 0;
        }
        EXPECT_EQ(sending.get(), BBP_ETIMEDOUT) << last_error();
        begun = begun || pair_.receiver->probe(0, &size) == 0;
        EXPECT_TRUE(!begun || size == bytes.size());
        return begun;
    }
    std::uint64_t count(Counter id) const { return pair_.ring->rank(1).protocol.get(id); }

    rmem::test::RingName name_;
    test::EndpointPair pair_ = test::open_pair(name_.get(), kPlace);
};

TEST_F(TakenBack, a_message_is_not_outrun_by_a_short_one) {
    ASSERT_NO_FATAL_FAILURE(give_up_a_message_in_its_midst());
    EXPECT_EQ(pair_.sender->send(1, "x", 1, Deadline::now()), BBP_EAGAIN)
        << "there is room for it, but not for what must come first";
    std::vector<std::byte> buffer(kLargeBytes);
    EXPECT_EQ(pair_.receiver->recv(0, buffer.data(), buffer.size(), nullptr, Deadline::now()),
              BBP_EAGAIN);
    EXPECT_EQ(pair_.sender->send(1, "x", 1, Deadline::now()), BBP_OK) << last_error();
    std::size_t size = 0;
    EXPECT_EQ(pair_.receiver->recv(0, buffer.data(), buffer.size(), &size, Deadline::now()), 0);
    EXPECT_EQ(size, 1U);
    EXPECT_EQ(count(Counter::aborts_received), 1U);
    EXPECT_EQ(count(Counter::halves_dropped), 0U);
}

}  // namespace
}  // namespace billboard
