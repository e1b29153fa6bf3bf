// SPDX-License-Identifier: Apache-2.0

/// The parts of an endpoint notice when what their headers state does not hold.

#include "billboard/core/endpoint_core.hpp"
#include "tests/support/broken.hpp"
#include "tests/support/child.hpp"
#include "tests/support/endpoint_pair.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <tuple>

namespace billboard {

struct PlantedBug {
    static void miscount(AbortsDue& aborts) { ++aborts.number_; }
    template <class Own>
    static void miscount(Views<Own>& views) {
        views.buffers_of_[0] = 0;
    }
    template <class Own>
    static void show(Groups<Own>& groups, std::uint64_t hash) {
        groups.show(0, hash);
    }
};

namespace {

using rmem::DirectMemory;
using Own = OwnRank<DirectMemory, LineBoard>;

/// The parts of a rank that is alone in its ring, which is not open yet.
class Parts : public ::testing::Test {
protected:
    static std::shared_ptr<rmem::Seat<DirectMemory>> seat_in(std::shared_ptr<rmem::Ring> ring) {
        return std::make_shared<rmem::Seat<DirectMemory>>(std::move(ring), rmem::Member{0, 0},
                                                          DirectMemory::Options{});
    }

    rmem::test::RingName name_;
    test::RingOfTwo alone_ = test::ring_of_two(name_.get(), 4096, 0, 1);
    Own own_{seat_in(alone_.ring), alone_.settings, {}};
    SetAside aside_;
    AbortsDue aborts_due_{1};
    Reassembly<Own> reassembly_{own_, aside_};
    Views<Own> views_{own_};
    Peers<Own> peers_{own_, aside_, reassembly_, aborts_due_, views_};
};

TEST_F(Parts, peers_notice_that_a_connected_rank_is_received_from_no_more) {
    peers_.begin();
    peers_.join(test::patience());
    ASSERT_TRUE(peers_.is_connected(0));
    EXPECT_BROKEN(std::ignore = peers_.end_incarnation(0));
}

TEST_F(Parts, peers_notice_an_end_that_is_set_aside_but_not_due) {
    peers_.begin();
    aside_.push_end(0);
    EXPECT_BROKEN(peers_.join(test::patience()));
}

TEST_F(Parts, reassembly_notices_a_buffer_for_no_message) {
    std::array<std::byte, 8> buffer{};
    EXPECT_BROKEN(reassembly_.pour_into(0, buffer.data()));
    EXPECT_BROKEN(reassembly_.keep(0, buffer.data()));
}

TEST_F(Parts, the_queue_notices_a_message_that_leaves_it_twice) {
    aside_.push(Class::user, 0, {});
    const SetAside::Message* const message = aside_.find(Class::user, 0);
    aside_.pop(message);
    EXPECT_BROKEN(aside_.pop(message));
}

TEST_F(Parts, barriers_notice_a_rank_that_is_no_member) {
    const rmem::test::RingName elsewhere;
    const auto pair = test::open_pair(elsewhere.get(), 4096);
    Barriers<Own> barriers{own_, peers_, aside_, *pair.sender};
    own_.me = 1;
    EXPECT_BROKEN_WHERE_CHECKED(std::ignore = barriers.barrier(Deadline::now()));
}

TEST_F(Parts, aborts_due_notice_a_receiver_that_is_not_counted) {
    EXPECT_BROKEN(PlantedBug::miscount(aborts_due_); aborts_due_.set(0, true));
}

TEST_F(Parts, groups_notice_a_name_that_looks_like_none) {
    Groups<Own> groups{own_, peers_};
    EXPECT_BROKEN(PlantedBug::show(groups, std::uint64_t{1} << 32));
}

TEST_F(Parts, views_notice_one_that_is_not_counted) {
    const std::byte* const view = views_.add(0, 0, {});
    EXPECT_BROKEN_WHERE_CHECKED(PlantedBug::miscount(views_); std::ignore = views_.release(view));
}

TEST_F(Parts, taking_notices_a_rank_that_cannot_be_next) {
    Taking<Own> taking{own_, peers_, aside_, reassembly_, views_};
    EXPECT_BROKEN_WHERE_CHECKED(taking.set_next_any(1));
}

/// There is room on it for whom nobody is connected to.
template <class M>
class EagerBoard : public LineBoard<M> {
public:
    using Base = LineBoard<M>;
    using Base::Base;
    bool tx_room(unsigned) { return true; }
};

TEST(Invariants, posting_notices_a_receiver_that_is_not_connected) {
    const rmem::test::RingName name;
    auto [ring, settings] = test::ring_of_two(name.get(), 4096);
    settings.awaits_others = false;
    EndpointCore<DirectMemory, EagerBoard> endpoint(ring, {0, 0}, settings, test::patience());
    const std::array<std::byte, 100> message{};
    EXPECT_BROKEN_WHERE_CHECKED(
        std::ignore = endpoint.send(1, message.data(), message.size(), Deadline::now()));
}

}  // namespace
}  // namespace billboard
