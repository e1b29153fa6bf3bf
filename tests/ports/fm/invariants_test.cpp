// SPDX-License-Identifier: Apache-2.0
// ctest: apart
//
// That the checks of Fast Messages bite. The sources are compiled in, since the library shows its C
// functions alone.
#include "ports/fm/fm1.hpp"
#include "ports/fm/fm2.hpp"

#include "tests/support/broken.hpp"
#include "tests/support/child.hpp"
#include "tests/support/endpoint_pair.hpp"

namespace ports::fm {

struct PlantedBug {
    static void lose_a_slot(Fm1& fm1) { fm1.free_ = fm1.slots_[fm1.free_].next; }
    static void pass_returned_slots(Fm1& fm1) {
        fm1.peers_[1].owed = 1;
        fm1.peers_[1].is_open = true;
    }
    static void post_before_the_hello(Fm1& fm1) { fm1.peers_[1].is_open = true; }
    static unsigned reserved(const Fm2& fm2) { return fm2.peers_[1].reserved; }
    static void promise_too_much(Fm2& fm2) { ++fm2.outstanding_; }
};

namespace {

void handler(int, int, int, int) {}

class FmInvariants : public ::testing::Test {
protected:
    FmInvariants() { network_.set_layers(fm1_, fm2_); }

    int send() {
        const int words[4] = {};
        return fm1_.send(held_, 1, Kind::four, reinterpret_cast<const void*>(&handler), words,
                         sizeof words);
    }

    rmem::test::RingName name_;
    billboard::test::EndpointPair pair_ = billboard::test::open_pair(name_.get(), 65536);
    billboard::ProcessEndpoint process_{std::move(pair_.sender)};
    billboard::ProcessEndpoint::Held held_{process_};
    Network network_{process_, {.is_quiet = true, .window = 4}};
    Fm1 fm1_{network_, {.slots = 4, .queue = 4}};
    Handlers handlers_;
    Fm2 fm2_{network_, handlers_};
};

using FmDeathTest = FmInvariants;

TEST_F(FmDeathTest, checks_that_each_slot_is_in_one_list) {
    EXPECT_EQ(fm1_.settle(Deadline::now()), 0U);
    EXPECT_BROKEN(PlantedBug::lose_a_slot(fm1_); fm1_.settle(Deadline::now()));
}

TEST_F(FmDeathTest, checks_that_returned_slots_are_told_first) {
    EXPECT_BROKEN(PlantedBug::pass_returned_slots(fm1_); send());
}

TEST_F(FmDeathTest, checks_that_a_node_is_greeted_first) {
    EXPECT_BROKEN(PlantedBug::post_before_the_hello(fm1_); send());
    EXPECT_BROKEN_WHERE_CHECKED(static_cast<void>(network_.post_short(1, {}, {})));
}

TEST_F(FmDeathTest, checks_that_no_more_credit_is_promised_than_there_is_room) {
    fm2_.meet(1, {});
    EXPECT_BROKEN(PlantedBug::promise_too_much(fm2_); fm2_.meet(1, {}));
}

TEST_F(FmInvariants, a_stream_to_a_former_incarnation_gives_nothing_of_the_next_one_back) {
    int error = 0;
    const auto begin = [&] { return fm2_.begin(held_, 1, 8, 0, error, false); };
    FM_stream* const former = begin();
    fm2_.forget(1, false);
    FM_stream* const next = begin();
    ASSERT_NE(next, nullptr);
    EXPECT_EQ(fm2_.end(held_, former), EHOSTDOWN);
    EXPECT_EQ(PlantedBug::reserved(fm2_), 1U);
    EXPECT_EQ(fm2_.end(held_, next), 0);
    EXPECT_EQ(PlantedBug::reserved(fm2_), 0U);
}

}  // namespace
}  // namespace ports::fm
