// SPDX-License-Identifier: Apache-2.0
// ctest: tsan

/// A message larger than a partition that is taken back in its midst: nothing overtakes the word of it.

#include "billboard/counters.hpp"
#include "billboard/endpoint.hpp"
#include "billboard/errors.hpp"
#include "tests/support/child.hpp"
#include "tests/support/patterns.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace billboard {
namespace {

constexpr std::size_t kPlace = 4096;  // a data partition; four parts fill it

Deadline patience() {
    return Deadline::in(100'000'000'000);
}

class TakenBack : public ::testing::Test {
protected:
    TakenBack() {
        Settings settings;
        settings.board = {Layout::inline_slots, kPlace};
        rmem::RingConfig config;
        config.name = name_.get();
        config.nodes = config.ranks = 2;
        config.user_bytes = 4096;
        const Geometry geometry(config, settings.board);
        config.system_bytes = geometry.region_bytes();
        config.system_hash = geometry.hash();
        ring_ = rmem::Ring::open(config, patience());
        std::thread other([&] { receiver_ = Endpoint::open(ring_, {1, 1}, settings, patience()); });
        sender_ = Endpoint::open(ring_, {0, 0}, settings, patience());
        other.join();
    }

    /// The receiver has begun with a message, and parts of it fill the sender's partition for good.
    void give_up_a_message_in_its_midst() {
        const auto bytes = rmem::test::pattern(10 * kPlace, 1);
        int code = BBP_OK;
        std::thread sending([&] {
            code = sender_->send(1, bytes.data(), bytes.size(), Deadline::in(300'000'000));
        });
        std::size_t size = 0;
        EXPECT_TRUE(rmem::test::eventually([&] { return receiver_->probe(0, &size) == 0; }));
        EXPECT_EQ(size, bytes.size());
        sending.join();
        EXPECT_EQ(code, BBP_ETIMEDOUT) << last_error();
    }
    std::uint64_t count(Counter id) const { return ring_->rank(1).protocol.get(id); }

    rmem::test::RingName name_;
    std::shared_ptr<rmem::Ring> ring_;
    std::unique_ptr<Endpoint> sender_, receiver_;
};

TEST_F(TakenBack, a_message_is_not_outrun_by_a_short_one) {
    give_up_a_message_in_its_midst();
    EXPECT_EQ(sender_->send(1, "x", 1, Deadline::now()), BBP_EAGAIN)
        << "there is room for it, but not for what must come first";
    std::vector<std::byte> buffer(10 * kPlace);
    EXPECT_EQ(receiver_->recv(0, buffer.data(), buffer.size(), nullptr, Deadline::now()),
              BBP_EAGAIN);
    EXPECT_EQ(sender_->send(1, "x", 1, Deadline::now()), BBP_OK) << last_error();
    std::size_t size = 0;
    EXPECT_EQ(receiver_->recv(0, buffer.data(), buffer.size(), &size, Deadline::now()), 0);
    EXPECT_EQ(size, 1U);
    EXPECT_EQ(count(Counter::aborts_received), 1U);
    EXPECT_EQ(count(Counter::halves_dropped), 0U);
}

}  // namespace
}  // namespace billboard
