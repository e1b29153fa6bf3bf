// SPDX-License-Identifier: Apache-2.0
// ctest: check parts=2
//
// The litmuses: each finds the card that breaks its rule, and no other does.
#include "rmem/rmem.h"
#include "tests/support/child.hpp"
#include "tests/tools/conform/mutants.hpp"
#include "tools/conform/report.hpp"
#include "tools/conform/rmem_card.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;
using tools::conform::Outcome;
using tools::conform::Plan;
using tools::conform::Report;

using Wrap = std::function<std::unique_ptr<Card>(std::unique_ptr<Card>)>;

std::unique_ptr<Card> unchanged(std::unique_ptr<Card> card) {
    return card;
}

struct Setting {
    const char* timing = "";  ///< link ring; empty: link direct, where nothing can be late
    Wrap wrap = unchanged;
    Plan plan{.rounds = 160};
    std::function<void(const Report&)> expect{};
};

/// Two members, each a process, of which the second one comes late. The first one's report is
/// looked at.
void run_pair(const Setting& setting) {
    const RingName ring;
    const bool has_timing = *setting.timing != 0;
    const std::string timing = std::string("RMEM_TIMING=") + setting.timing;
    const std::array<const char*, 2> settings{has_timing ? timing.c_str() : nullptr, nullptr};
    const SharedValue<std::atomic<bool>> begun;
    const auto be_member = [&](unsigned member) {
        if (member == 1 && !eventually([&] { return begun->load(); })) return;
        rmem_options options = RMEM_OPTIONS;
        options.ring = ring.get().c_str();
        options.link = has_timing ? "ring" : "direct";
        options.ranks = 2;
        options.rank = static_cast<int>(member);
        options.memory_bytes = 65536;
        options.settings = settings.data();
        const auto open = [&](int& code) {
            rmem_node* node = nullptr;
            code = rmem_open_with(&node, &options);
            return node;
        };
        const auto card = setting.wrap(tools::conform::card_of(open));
        Plan plan = setting.plan;
        plan.member = member;
        const Report report{card->name(), plan, tools::conform::needed_bytes(*card, plan.members),
                            run_litmuses(*card, plan, [&] { begun->store(true); })};
        if (member == 0) setting.expect(report);
    };
    Child first([&] { be_member(0); });
    Child second([&] { be_member(1); });
    EXPECT_EQ(first.wait(), 0) << "member 0";
    EXPECT_EQ(second.wait(), 0) << "member 1";
}

std::vector<std::string> rules_with(const Report& report, Outcome outcome) {
    std::vector<std::string> names;
    for (const auto& result : report.results) {
        if (result.outcome == outcome) names.emplace_back(result.litmus->name);
    }
    return names;
}

// ---- Mutants

struct MutantCase {
    const char* name;
    const char* litmus;
    Wrap wrap;
    const char* timing;

    friend void PrintTo(const MutantCase& one, std::ostream* out) { *out << one.name; }
};

template <class Mutant>
MutantCase mutant(const char* name, const char* litmus, const char* timing = "") {
    return {name, litmus,
            [](std::unique_ptr<Card> card) { return std::make_unique<Mutant>(std::move(card)); },
            timing};
}

class Mutant : public ::testing::TestWithParam<MutantCase> {};
INSTANTIATE_TEST_SUITE_P(
    Of, Mutant,
    ::testing::Values(mutant<SwapsWords>("swaps_words", "order"),
                      mutant<SendsTheFlagFirst>("sends_the_flag_first", "flag"),
                      mutant<SendsTheInterruptFirst>("sends_the_interrupt_first", "interrupt"),
                      mutant<ClobbersTheNext>("clobbers_the_next", "neighbours"),
                      mutant<SendsTheBlockFirst>("sends_the_block_first", "block"),
                      mutant<WidensBytes>("widens_bytes", "bytes"),
                      mutant<CompletesBytes>("completes_bytes", "bytes-at-once"),
                      mutant<DropsWords>("drops_words", "burst"),
                      mutant<TearsWords>("tears_words", "whole-words"),
                      mutant<BringsBack>("brings_back", "no-way-back"),
                      mutant<EchoesOwnWrites>("echoes_own_writes", "own-data"),
                      mutant<MixesWriters>("mixes_writers", "two-writers"),
                      // Its wire takes so long that the other looks while a write is on its way.
                      mutant<IgnoresWriteMeLast>("ignores_write_me_last", "write-me-last",
                                                 "gt200,cable=4000m"),
                      mutant<KeepsMuchBack>("keeps_much_back", "outstanding"),
                      mutant<RemembersTooWell>("remembers_too_well", "without-a-program"),
                      mutant<KeepsTheUnsent>("keeps_the_unsent", "sent-or-taken-back"),
                      mutant<ForgetsTheFirst>("forgets_the_first", "late-join"),
                      mutant<LosesInterrupts>("loses_interrupts", "interrupts-once"),
                      mutant<DeniesLosses>("denies_losses", "interrupts-once"),
                      mutant<SendsNothingToAll>("sends_nothing_to_all", "interrupts-once"),
                      mutant<RepeatsInterrupts>("repeats_interrupts", "interrupts-once")),
    [](const auto& one) { return std::string(one.param.name); });

TEST_P(Mutant, is_found_by_its_litmus_and_by_no_other) {
    constexpr unsigned kRuns = 10;  // on a busy host nobody may look in the moment of a break
    const MutantCase& one = GetParam();
    const SharedValue<std::atomic<bool>> found;
    for (unsigned run = 0; run < kRuns && !found->load() && !HasFailure(); ++run) {
        run_pair({.timing = one.timing, .wrap = one.wrap, .expect = [&](const Report& report) {
                      const auto broken = rules_with(report, Outcome::broken);
                      // A byte that takes others along does so at once, too.
                      const bool is_of_bytes = std::strcmp(one.litmus, "bytes") == 0;
                      const char* also = is_of_bytes ? "bytes-at-once" : one.litmus;
                      EXPECT_THAT(broken, IsSubsetOf({one.litmus, also})) << report.text();
                      if (broken.empty()) return;
                      EXPECT_THAT(report.verdict(),
                                  HasSubstr(std::string("; broken: ") + one.litmus));
                      found->store(true);
                  }});
    }
    EXPECT_TRUE(found->load());
}

// ---- Cards that break nothing

TEST(Conform, a_card_that_keeps_all_rules_is_not_blamed) {
    run_pair({.expect = [](const Report& report) {
        EXPECT_THAT(rules_with(report, Outcome::broken), IsEmpty()) << report.text();
        EXPECT_THAT(rules_with(report, Outcome::not_offered), IsEmpty());
        EXPECT_THAT(report.verdict(), ::testing::StartsWith("conforms"));
    }});
}

TEST(Conform, a_word_that_is_faster_than_the_floor_is_early) {
    run_pair(
        {.plan = {.rounds = 160, .floor_ns = 1'000'000'000}, .expect = [](const Report& report) {
             EXPECT_THAT(rules_with(report, Outcome::broken),
                         ElementsAre("word-time", "interrupt-time"));
             EXPECT_THAT(report.text(), HasSubstr("where 1000000000 ns are the least"));
         }});
}

/// Offers nothing that not all cards have.
struct Plain : Faithful {
    using Faithful::Faithful;
    bool offers(Feature) const override { return false; }
};

TEST(Conform, what_a_card_has_not_is_not_offered_and_not_tried) {
    run_pair({.wrap = [](auto card) { return std::make_unique<Plain>(std::move(card)); },
              .expect =
                  [](const Report& report) {
                      EXPECT_THAT(
                          rules_with(report, Outcome::not_offered),
                          ElementsAre("late-join", "bytes-at-once", "write-me-last", "outstanding",
                                      "interrupt", "interrupts-once", "interrupt-time",
                                      "without-a-program", "sent-or-taken-back"));
                      EXPECT_THAT(rules_with(report, Outcome::broken), IsEmpty());
                  }});
}

TEST(Conform, too_few_observations_decide_nothing) {
    run_pair({.plan = {.rounds = 8, .only = {"order"}}, .expect = [](const Report& report) {
                  EXPECT_THAT(rules_with(report, Outcome::undecided), ElementsAre("order"));
                  EXPECT_THAT(report.text(), HasSubstr("and 20 are needed"));
                  EXPECT_EQ(report.json()["rules"][0]["verdict"], "not decided");
              }});
}

// ---- Its range

/// Fails where anything outside of the range is touched.
class Fenced : public Faithful {
public:
    Fenced(std::unique_ptr<Card> card, std::size_t at, std::size_t bytes)
        : Faithful(std::move(card)), at_(at), end_(at + bytes) {}
    void write_word(std::size_t offset, std::uint32_t value) override {
        expect_inside(offset, 4);
        Faithful::write_word(offset, value);
    }
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        expect_inside(offset, bytes);
        Faithful::write(offset, from, bytes);
    }
    void write_byte(std::size_t offset, std::uint8_t value) override {
        expect_inside(offset, 1);
        Faithful::write_byte(offset, value);
    }
    std::uint32_t load(std::size_t offset) override {
        expect_inside(offset, 4);
        return Faithful::load(offset);
    }
    void read(std::size_t offset, void* to, std::size_t bytes) override {
        expect_inside(offset, bytes);
        Faithful::read(offset, to, bytes);
    }

private:
    void expect_inside(std::size_t offset, std::size_t bytes) const {
        EXPECT_GE(offset, at_);
        EXPECT_LE(offset + bytes, end_);
    }
    std::size_t at_, end_;
};

TEST(Conform, the_kit_touches_its_range_alone) {
    constexpr std::size_t kAt = 4096;
    const std::size_t bytes = tools::conform::bytes_of_litmuses(2);
    run_pair(
        {.wrap = [&](auto card) { return std::make_unique<Fenced>(std::move(card), kAt, bytes); },
         .plan = {.at = kAt, .bytes = bytes, .rounds = 64},
         .expect =
             [](const Report& report) {
                 EXPECT_THAT(rules_with(report, Outcome::broken), IsEmpty()) << report.text();
             }});
}

}  // namespace
}  // namespace rmem::test
