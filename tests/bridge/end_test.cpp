// SPDX-License-Identifier: Apache-2.0

/// How two ends find to each other, what they refuse, and when one gives the other up.

#include "bridge/end.hpp"

#include "tests/support/bridge_ends.hpp"
#include "tests/support/broken.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

namespace bridge {
namespace {

using rmem::test::BridgeEnds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kSecondNs = 1'000'000'000;

TEST(Ends, open_what_both_declare_and_say_what_only_one_does) {
    BridgeEnds ends(
        {{"both", 0, 64, {}, 0, 0}, {"alone", 64, 64, {}, 0, 0}, {"longer", 128, 128, {}, 0, 0}},
        {{"longer", 0, 64}, {"both", 64, 64}, {"missed", 128, 64}});
    ends.connect();
    ends.write(1, 0, 1);
    ends.write(1, 64, 2);
    ends.write(1, 128, 3);
    ends.exchange();
    EXPECT_EQ(ends.word(64), 1U);
    EXPECT_EQ(ends.source.sender().counts().conflated, 0U);
    const auto there = ends.target.take_news();
    EXPECT_THAT(there, Contains(HasSubstr("region 'alone' is not received here")));
    EXPECT_THAT(there, Contains(HasSubstr("region 'longer' has 128 bytes there and 64 here")));
    EXPECT_THAT(there, Contains(HasSubstr("does not send region 'missed'")));
    EXPECT_THAT(ends.source.take_news(), Contains(HasSubstr("refuses region 'alone'")));
}

TEST(Ends, stop_what_is_refused_and_begin_with_a_copy_when_it_is_admitted_again) {
    BridgeEnds ends({{"round", 0, 64, {}, 0, 0}}, {{"round", 0, 64}});
    ends.source.set_path(0, {5, 6});
    ends.connect();
    ASSERT_NE(ends.target.path_of(0), nullptr);
    EXPECT_THAT(*ends.target.path_of(0), ElementsAre(5, 6));
    ends.target.refuse(0, "it goes in a circle");
    ends.target.refuse(0, "it goes in a circle");
    ends.write(1, 0, 1);
    ends.exchange();
    ends.write(1, 4, 2);
    ends.source.set_path(0, {6});
    ends.exchange();
    EXPECT_EQ(ends.word(0), 0U);
    EXPECT_EQ(ends.word(4), 0U);
    EXPECT_THAT(*ends.target.path_of(0), ElementsAre(6));
    EXPECT_EQ(ends.source.counts().refused, 1U);
    EXPECT_EQ(ends.target.counts().refused, 1U);
    EXPECT_THAT(ends.source.take_news(), ElementsAre(HasSubstr("'round': it goes in a circle")));
    ends.target.admit(0);
    ends.exchange();
    EXPECT_EQ(ends.word(0), 1U);
    EXPECT_EQ(ends.word(4), 2U);
    EXPECT_FALSE(ends.target.is_refused(0));
    ends.target.refuse(0, "it goes in a circle again");
    ends.exchange();
    EXPECT_TRUE(ends.target.is_refused(0));
    EXPECT_EQ(ends.source.counts().refused, 2U);
}

TEST(Ends, know_the_age_of_a_frame_to_half_a_round_trip) {
    BridgeEnds ends({{"aged", 0, 64, {}, 0, 0}}, {{"aged", 0, 64}});
    ends.connect();
    ends.now_ns += End::kBeatNs;
    ends.exchange();
    const auto local = ends.target.local_time(ends.now_ns - 1000, ends.now_ns);
    ASSERT_TRUE(local);
    EXPECT_LE(std::abs(local->value_ns - (ends.now_ns - 1000)), local->error_ns);
    EXPECT_LT(local->error_ns, End::kBeatNs);
}

TEST(Ends, give_up_one_that_is_silent_or_takes_nothing) {
    BridgeEnds ends({{"far", 0, 64, {}, 0, 0}}, {{"far", 0, 64}});
    ends.connect();
    ends.now_ns += End::kSilenceNs - 1;
    ends.source.run(ends.now_ns);
    EXPECT_FALSE(ends.source.is_broken());
    ends.now_ns += 1;
    ends.source.run(ends.now_ns);
    EXPECT_THAT(ends.source.problem(), HasSubstr("nothing has come"));

    ends.disconnect();
    ends.connect();
    ends.write(1, 0, 1);
    ends.source.run(ends.now_ns);  // and nobody writes it to the target's ring
    for (std::int64_t waited = 0; waited <= End::kSilenceNs; waited += kSecondNs) {
        EXPECT_FALSE(ends.source.is_broken());
        ends.now_ns += kSecondNs;
        ends.target.run(ends.now_ns);
        const auto bytes = ends.target.out().left();
        ends.source.receive(bytes, ends.now_ns);
        ends.target.out().sent(bytes.size());
        ends.source.run(ends.now_ns);
        if (waited + kSecondNs == End::kSilenceNs) break;
    }
    EXPECT_THAT(ends.source.problem(), HasSubstr("has taken nothing"));
}

TEST(Ends, refuse_another_version_with_a_sentence_on_both_sides) {
    End end({{"a", 0, 64, {}, 0, 0}}, {});
    End old({}, {{"a", 0, 64}});
    end.connect(1);
    old.connect(1);
    std::vector<std::byte> bytes(old.out().left().begin(), old.out().left().end());
    rmem::store(bytes.data() + rmem::FrameWriter::kHeaderBytes + 4, std::uint16_t{kVersion + 1});
    end.receive(bytes, 1);
    EXPECT_THAT(end.problem(), HasSubstr("speaks version 2 of the bridge's protocol"));
    old.receive(end.out().left(), 1);
    EXPECT_THAT(old.problem(), HasSubstr("the other end says: the other end speaks version 2"));
}

/// Every message with every byte changed, cut and repeated: an end may only give the line up.
TEST(Ends, survive_bytes_that_no_end_sends) {
    BridgeEnds ends({{"first", 0, 64, {}, 0, 0}}, {{"first", 0, 64}});
    std::vector<std::byte> said;
    ends.source.set_path(0, {1});
    ends.source.connect(1);
    ends.source.sender().open(0, 1);
    ends.source.run(1);
    said.assign(ends.source.out().left().begin(), ends.source.out().left().end());
    const auto hear = [&](std::span<const std::byte> bytes) {
        End end({{"back", 0, 64, {}, 0, 0}}, {{"first", 1024, 64}});
        end.connect(1);
        end.receive(bytes.first(std::min<std::size_t>(bytes.size(), 40)), 1);
        end.admit(0);
        end.receive(bytes.subspan(std::min<std::size_t>(bytes.size(), 40)), 1);
        end.run(1);
        while (const Delivery* delivery = end.delivery()) {
            for (const auto& write : delivery->writes) {
                EXPECT_GE(write.offset, 1024U);
                EXPECT_LE(write.offset + write.words.size(), 1024U + 64);
            }
            end.delivered(1);
        }
        return end.is_broken();
    };
    EXPECT_FALSE(hear(said));
    std::mt19937 random(1);
    for (std::size_t i = 0; i < said.size(); ++i) {
        auto changed = said;
        changed[i] ^= static_cast<std::byte>(1 + random() % 255);
        hear(changed);
        hear(std::span(said).first(i));
    }
    auto twice = said;
    twice.insert(twice.end(), said.begin(), said.end());
    EXPECT_TRUE(hear(twice));
}

TEST(EndInvariants, a_line_comes_once_and_bytes_come_from_it_in_the_order_of_time) {
    End end({}, {{"first", 0, 64}});
    EXPECT_BROKEN(end.receive({}, 1));
    EXPECT_BROKEN(end.delivered(1));
    end.connect(2);
    EXPECT_BROKEN(end.receive({}, 1));
    EXPECT_BROKEN(end.connect(2));
}

}  // namespace
}  // namespace bridge
