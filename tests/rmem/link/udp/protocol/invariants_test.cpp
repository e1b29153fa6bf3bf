// SPDX-License-Identifier: Apache-2.0

/// The protocol's parts notice when what their headers state does not hold.

#include "tests/rmem/link/udp/protocol/batch_fixture.hpp"
#include "tests/rmem/link/udp/protocol/core_fixture.hpp"
#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <array>

namespace rmem::udp {

struct PlantedBug {
    static void draw_a_nonce_twice(Greeter& greeter) {
        const std::uint64_t state = greeter.state_;
        static_cast<void>(greeter.nonce(0, 0));
        greeter.state_ = state;
        static_cast<void>(greeter.nonce(1, 0));
    }
    static void owe_too_many(Greeter& greeter) { greeter.owed_.resize(kMostGreetings + 1); }
    static void put_unnoticed(InStream& in) { in.history_.put(in.next_, body_of(in.next_)); }
    static void apply(Exchange& exchange, unsigned origin, const Batch& batch, std::int64_t now) {
        InStream& in = *exchange.peers_.at(origin).in;
        in.offer(in.applied() + 1, batch.body(), now);
        exchange.apply_in_order(origin, in, now);
    }
    static void forget_itself(Core& core) { core.view_.erase(core.me()); }
    static void apply(Core& core, unsigned origin, const Batch& batch, std::int64_t now) {
        core.apply(origin, batch, now);
    }
    static bool takes_stream(Core& core, std::uint64_t first, std::int64_t now) {
        Header header;
        header.origin = 1;
        header.incarnation = 5;
        Admit admit;
        admit.joiner = core.my_incarnation();
        admit.first = first;
        core.on_admit(header, admit, now);
        return core.exchange().takes(1);
    }
};

namespace {

/// An empty one of this sequence.
class SomeBatch {
public:
    explicit SomeBatch(std::uint64_t sequence) {
        writer_.begin({});
        writer_.begin_batch(sequence, 0);
    }
    Batch get() { return Batch(writer_.end_batch()); }

private:
    std::array<std::byte, kDefaultPayload> buffer_{};
    DatagramWriter writer_{buffer_};
};

TEST(BatchHistoryDeathTest, checks_that_a_batch_has_a_sequence) {
    BatchHistory history(8, kMostBytes, kMostBytes);
    EXPECT_BROKEN_WHERE_CHECKED(static_cast<void>(history.put(0, body_of(0))));
}

TEST(GreeterDeathTest, checks_that_a_nonce_is_nobody_elses) {
    Greeter greeter(2, 1, 7);
    EXPECT_BROKEN(PlantedBug::draw_a_nonce_twice(greeter));
}

TEST(GreeterDeathTest, checks_that_it_owes_no_more_than_a_datagram_holds) {
    Greeter greeter(2, 1, 7);
    EXPECT_BROKEN(PlantedBug::owe_too_many(greeter); greeter.owe(1, 0, 0));
}

TEST(InStreamDeathTest, checks_that_what_it_gives_was_offered) {
    InStream in(1, 8, kMostBytes);
    EXPECT_BROKEN(PlantedBug::put_unnoticed(in); static_cast<void>(in.take()));
}

TEST(ExchangeDeathTest, checks_that_a_stream_is_applied_in_its_order) {
    Hosts hosts(2);
    SomeBatch third(3);
    EXPECT_BROKEN_WHERE_CHECKED(PlantedBug::apply(hosts[0], 1, third.get(), hosts.now));
}

TEST(CoreDeathTest, checks_that_a_member_is_in_its_view) {
    Ring ring(1);
    Core& core = ring.start(0).core;
    ASSERT_TRUE(ring.run_until([&] { return core.is_member(); }, 2 * kFormNs));
    EXPECT_BROKEN(PlantedBug::forget_itself(core); ring.run(100 * kMillisecond));
}

TEST(CoreDeathTest, checks_that_an_incarnation_is_known_of_which_something_is_applied) {
    Ring ring(2);
    Core& core = ring.start(0).core;
    SomeBatch first(1);
    EXPECT_BROKEN_WHERE_CHECKED(PlantedBug::apply(core, 1, first.get(), ring.now));
}

TEST(Core, takes_no_stream_whose_sequences_would_come_to_an_end) {
    Ring ring(2);
    Core& core = ring.start(0).core;
    for (const std::uint64_t first : {UINT64_MAX, UINT64_MAX / 2 + 1}) {
        EXPECT_FALSE(PlantedBug::takes_stream(core, first, ring.now)) << first;
    }
    EXPECT_TRUE(PlantedBug::takes_stream(core, 1, ring.now));
}

}  // namespace
}  // namespace rmem::udp
