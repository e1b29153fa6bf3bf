// SPDX-License-Identifier: Apache-2.0

/// The protocol's parts notice when what their headers state does not hold.

#include "tests/rmem/link/udp/protocol/batch_fixture.hpp"
#include "tests/rmem/link/udp/protocol/core_fixture.hpp"
#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace rmem::udp {

struct PlantedBug {
    static void draw_a_nonce_twice(Greeter& greeter) {
        const std::uint64_t state = greeter.state_;
        static_cast<void>(greeter.nonce(0, 0));
        greeter.state_ = state;
        static_cast<void>(greeter.nonce(1, 0));
    }
    static void owe_too_many(Greeter& greeter) { greeter.owed_.resize(kMaxGreetings + 1); }
    static void put_unnoticed(InStream& in) { in.history_.put(in.next_, body_of(in.next_)); }
    static void believe_itself(Belief& belief) { belief.believe({}, *belief.nodes_[1].key, 0); }
    static void owe_ack(Peers& peers, unsigned node) { peers.owe_ack(node, true, 0); }
    static void forget_itself(Core& core) { core.own_.view.erase(core.own_.me()); }
    static void apply(Core& core, unsigned origin, const Batch& batch, std::int64_t now) {
        core.apply(origin, batch, now);
    }
    static void owe_too_much(Core& core) {
        core.answers_.hold(true);
        core.answers_.owed_admits_.resize(core.own_.others.size());
        core.answers_.owe_admit(1, 1, 0);
    }
    /// Of a donor that is not the one whose parts are here.
    static void take_answer(Core& core, const Section& section) {
        core.joiner_.welcomed_.emplace();
        core.joiner_.parts_from_ = {1, 1};
        core.joiner_.take_answer({}, section);
    }
    static bool takes_stream(Core& core, std::uint64_t first, std::int64_t now) {
        Header header;
        header.origin = 1;
        header.incarnation = 5;
        Admit admit;
        admit.joiner = core.own_.my_incarnation();
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
    BatchHistory history(8, kMaxBytes, kMaxBytes);
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
    InStream in(1, 8, kMaxBytes);
    EXPECT_BROKEN(PlantedBug::put_unnoticed(in); static_cast<void>(in.take()));
}

TEST(BeliefDeathTest, checks_that_a_node_believes_no_incarnation_of_itself) {
    Hosts hosts(2);
    EXPECT_BROKEN(PlantedBug::believe_itself(hosts[0].belief()));
}

TEST(DatagramLengthsDeathTest, checks_that_no_datagram_is_to_be_shorter_than_the_shortest) {
    ExchangeConfig config;
    config.payload = kLeastPayload - 1;
    const OutStream out(8, kMaxBytes);
    EXPECT_BROKEN(DatagramLengths(config, out).find());
}

TEST(PeersDeathTest, checks_that_a_stream_is_applied_in_its_order) {
    Parts parts;
    SomeBatch third(3);
    parts.peers.begin(1, 101, 1, 0);
    TakenStream& stream = parts.peers.stream(1);
    stream.in->offer(1, third.get().body(), 0);
    EXPECT_BROKEN_WHERE_CHECKED(parts.peers.apply_in_order(1, stream, 0));
}

TEST(PeersDeathTest, checks_that_only_members_are_owed_an_ack) {
    Parts parts;
    std::vector<std::byte> buffer(kDefaultPayload);
    DatagramWriter writer(buffer);
    EXPECT_BROKEN(PlantedBug::owe_ack(parts.peers, 1); parts.peers.add_acks(writer));
}

TEST(EndedStreamsDeathTest, checks_that_no_stream_of_a_member_has_ended) {
    Parts parts;
    parts.peers.begin(1, 101, 1, 0);
    EXPECT_BROKEN(parts.ended.end(1, {}, {}, 0));
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

TEST(AnswersDeathTest, checks_that_a_node_is_owed_an_admit_once) {
    Ring ring(2);
    EXPECT_BROKEN(PlantedBug::owe_too_much(ring.start(0).core));
}

TEST(JoinerDeathTest, checks_that_parts_of_the_bank_are_one_donors) {
    Ring ring(2);
    SomeBatch any(1);
    const auto section = Section::read(any.get().body().data());
    EXPECT_BROKEN(PlantedBug::take_answer(ring.start(0).core, section));
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
