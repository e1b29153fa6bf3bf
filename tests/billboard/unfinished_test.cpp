// SPDX-License-Identifier: Apache-2.0
// ctest: tsan

/// Messages that are not whole: posted while they are filled, and seen between two pieces; and
/// larger than a partition, taken back before they are complete: nothing overtakes the word of it.

#include "billboard/core/counters.hpp"
#include "billboard/core/endpoint_core.hpp"
#include "billboard/endpoint.hpp"
#include "billboard/errors.hpp"
#include "tests/support/child.hpp"
#include "tests/support/endpoint_pair.hpp"
#include "tests/support/patterns.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <utility>
#include <vector>

namespace billboard {
namespace {

using test::patience;

// ---- Filled

constexpr std::size_t kLarge = 128 * 1024;

/// Three ranks of a ring; rank 0 has sent rank 1 a message that is not whole: its count of bytes in
/// place is turned back.
class Filling : public ::testing::Test {
protected:
    Filling() {
        auto all = test::open_ranks(name_.get(), 3, 2 * kLarge);
        ring_ = all.ring;
        ranks_ = std::move(all.ranks);
        const Geometry geometry(ring_->config(), all.settings.board);
        const auto bytes = rmem::test::pattern(kLarge, 1);
        EXPECT_EQ(ranks_[0]->send(1, bytes.data(), bytes.size()), BBP_OK);
        for (unsigned b = 0; b < kBuffers; ++b) {
            auto& word = filled(geometry, b);
            if (word == kLarge) filled_ = &word;
        }
        EXPECT_NE(filled_, nullptr);
        *filled_ = kLarge / 2;
    }
    std::atomic<std::uint32_t>& filled(const Geometry& geometry, unsigned buffer) {
        return *reinterpret_cast<std::atomic<std::uint32_t>*>(ring_->bank(0) +
                                                              geometry.filled(0, buffer));
    }

    rmem::test::RingName name_;
    std::shared_ptr<rmem::Ring> ring_;
    std::vector<std::unique_ptr<Endpoint>> ranks_;
    std::atomic<std::uint32_t>* filled_ = nullptr;
    std::vector<std::byte> buffer_ = std::vector<std::byte>(kLarge);
};

TEST_F(Filling, is_not_reported_when_asked_whether_a_message_waits) {
    std::size_t size = 0;
    EXPECT_EQ(ranks_[1]->available(0), 0);
    EXPECT_EQ(ranks_[1]->probe(0, &size), BBP_EAGAIN);
    *filled_ = kLarge;
    EXPECT_EQ(ranks_[1]->available(0), 1);
    ASSERT_EQ(ranks_[1]->probe(0, &size), 0);
    EXPECT_EQ(size, kLarge);
    EXPECT_EQ(ranks_[1]->recv(0, buffer_.data(), size, &size, Deadline::now()), 0)
        << "what was told of can be received at once";
}

TEST_F(Filling, a_message_that_ends_with_its_sender_is_not_reported_to_calls_that_name_nobody) {
    std::size_t size = 0;
    auto receiving = std::async(std::launch::async, [&] {
        return ranks_[1]->recv(BBP_ANY, buffer_.data(), buffer_.size(), &size, patience());
    });
    // It waits for the rest.
    ASSERT_TRUE(rmem::test::eventually([&] { return ring_->attention()[1] != 0; }));
    ranks_[0].reset();
    ASSERT_EQ(ranks_[2]->send(1, "x", 1), BBP_OK);
    EXPECT_EQ(receiving.get(), 2) << last_error();
    EXPECT_EQ(size, 1U);
    EXPECT_EQ(ranks_[1]->send(0, "x", 1), BBP_EPEER) << "the first call that names it";
}

// ---- Taken back

constexpr std::size_t kPlace = 4096;  // a data partition; four parts fill it
/// More parts than one look takes, however well the sender keeps up with it.
constexpr std::size_t kLargeBytes =
    (kMaxLooks<LineBoard<rmem::DirectMemory>> + kBuffers) * kPlace / 4;

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
