// SPDX-License-Identifier: Apache-2.0

/// The parts of the commands notice when what their headers state does not hold.

#include "tests/rmem/recording/recording_fixture.hpp"
#include "tests/support/broken.hpp"
#include "tests/support/test_ring.hpp"
#include "tools/conform/report.hpp"
#include "tools/measure/sizes.hpp"
#include "tools/output.hpp"
#include "tools/record/record_source.hpp"
#include "tools/record/ring_replay.hpp"
#include "tools/run/launcher.hpp"
#include "tools/watch/cells.hpp"
#include "tools/watch/metrics_text.hpp"
#include "tools/watch/outside_write.hpp"
#include "tools/watch/top_frame.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace tools {
namespace {

// ---- What commands show

TEST(OutputDeathTest, checks_that_a_row_has_no_more_cells_than_the_heading) {
    Table table({"one", "two"});
    table.add({"1"});
    EXPECT_BROKEN(table.add({"1", "2", "3"}));
}

TEST(OutputDeathTest, checks_that_numbers_ascend) {
    EXPECT_EQ(numbers_text({1, 2, 5}), "1-2, 5");
    EXPECT_BROKEN(numbers_text({2, 1}));
    EXPECT_BROKEN(numbers_text({2, 2}));
}

TEST(StopSignalsDeathTest, check_that_there_is_one_object_at_a_time) {
    { const StopSignals first; }
    const StopSignals stop;
    EXPECT_BROKEN(const StopSignals another);
}

TEST(CellsDeathTest, check_that_a_value_has_as_many_bytes_as_its_type) {
    const std::array<std::byte, 4> bytes{};
    EXPECT_BROKEN(cell_text(parse_cell_type("u64"), bytes));
    EXPECT_BROKEN(cell_json(parse_cell_type("u16"), bytes));
}

// ---- Samples and views of a ring

RingSample sample_of_two(std::int64_t at_ns) {
    RingSample sample;
    sample.at_ns = at_ns;
    sample.exists = true;
    sample.config.nodes = sample.config.ranks = 2;
    sample.ranks.resize(2);
    sample.nodes.resize(2);
    return sample;
}

TEST(RingViewDeathTest, checks_that_samples_are_in_the_order_of_time) {
    EXPECT_BROKEN(view_of(sample_of_two(2), sample_of_two(1)));
}

TEST(RingSamplesDeathTest, check_that_there_are_the_ranks_and_nodes_of_the_configuration) {
    RingSample sample = sample_of_two(1);
    sample.check();
    sample.ranks.pop_back();
    EXPECT_BROKEN(sample.check());
    sample = sample_of_two(1);
    sample.nodes.emplace_back();
    EXPECT_BROKEN(sample.check());
}

TEST(RingSamplesDeathTest, check_that_indices_are_of_the_ring) {
    RingSample sample = sample_of_two(1);
    sample.ranks[1].node = 2;
    EXPECT_BROKEN(sample.check());
    sample = sample_of_two(1);
    sample.nodes[0].engine.emplace().peers.push_back({.node = 7});
    EXPECT_BROKEN(sample.check());
}

TEST(HistogramSamplesDeathTest, check_shares_and_powers) {
    const HistogramSample none;
    EXPECT_BROKEN(static_cast<void>(none.quantile(1.5)));
    EXPECT_BROKEN(static_cast<void>(none.count_below_power(64)));
}

TEST(HeatMapDeathTest, checks_that_memory_lies_at_whole_words) {
    alignas(4) const std::array<std::byte, 64> memory{};
    HeatMap map;
    map.look(memory, 4);
    EXPECT_BROKEN(map.look(memory, 2));
    EXPECT_BROKEN(map.look(std::span(memory).subspan(1, 8)));
}

TEST(TopFrameDeathTest, checks_that_a_ring_has_its_nodes_in_order) {
    RingView view;
    view.exists = true;
    EXPECT_BROKEN(frame_of(view, {}, {}));
    view.nodes.resize(2);
    view.nodes[1].node = 1;
    frame_of(view, {}, {});
    view.nodes[1].node = 0;
    EXPECT_BROKEN(frame_of(view, {}, {}));
}

TEST(MetricsTextDeathTest, checks_that_a_sample_is_of_a_family) {
    MetricsText text;
    EXPECT_BROKEN(text.sample({}, 1));
}

TEST(OutsideWriteDeathTest, checks_that_it_lies_in_the_users_memory) {
    rmem::test::TestRing rig({.link = rmem::LinkKind::direct, .user_bytes = 4096});
    const auto node = rig.join(0);
    const auto ring = rmem::Ring::attach(rig.name());
    const std::vector<std::byte> word(4);
    EXPECT_BROKEN(write_from_outside(ring, 0, 4094, word));
    EXPECT_BROKEN(store_in_all_banks(*ring, ~std::uint64_t{0} - 3, word));
}

// ---- Ranks

TEST(RankProcessDeathTest, checks_what_is_started) {
    RankStart how;
    EXPECT_BROKEN(RankProcess::start(how));
    how.program.command = {"true"};
    how.program.processors = {CPU_SETSIZE};
    EXPECT_BROKEN(RankProcess::start(how));
}

TEST(RankProcessDeathTest, checks_that_it_is_reaped_once) {
    RankStart how;
    how.program.command = {"true"};
    RankProcess process = RankProcess::start(how);
    process.reap();
    EXPECT_BROKEN(process.reap());
}

TEST(LauncherDeathTest, checks_that_a_job_has_ranks_and_places) {
    RunReport report(false, 1);
    EXPECT_BROKEN({
        Janitor janitor({});
        Launcher(Job{}, report, janitor);
    });
    Job job;
    job.programs.resize(1);
    EXPECT_BROKEN({
        Janitor janitor({});
        Launcher(job, report, janitor);
    });
}

TEST(JanitorDeathTest, checks_that_what_is_reaped_was_started) {
    EXPECT_BROKEN(Janitor({}).reaped(7));
    EXPECT_BROKEN(Janitor({}).started(0));
}

TEST(RankOutputDeathTest, checks_that_time_goes_on_and_labels_are_of_ranks) {
    LineBuffer buffer([](std::string_view, bool) {});
    buffer.add("text", 10);
    EXPECT_BROKEN(buffer.add("more", 9));
    EXPECT_BROKEN(LabelledOutput(2).line(2, STDERR_FILENO, "text", true));
    EXPECT_BROKEN(LabelledOutput(0));
}

// ---- Recordings

TEST(RecordSourceDeathTest, checks_that_a_memory_is_of_words_and_looked_at_now_and_then) {
    alignas(4) const std::array<std::byte, 8> memory{};
    const auto none = [](const rmem::RecordedWrite&) {};
    give_memory(memory.data(), 8, {}, none);
    EXPECT_BROKEN(give_memory(memory.data(), 6, {}, none));
    rmem::test::TestRing rig({.link = rmem::LinkKind::direct, .user_bytes = 4096});
    const auto node = rig.join(0);
    EXPECT_BROKEN(static_cast<void>(make_sampled_source(rmem::Ring::attach(rig.name()), 0, 0)));
    EXPECT_BROKEN(static_cast<void>(make_sampled_source(rmem::Ring::attach(rig.name()), 99, 1)));
}

TEST(RecordSource, tells_what_a_recording_can_have) {
    rmem::RingConfig config;
    config.nodes = config.ranks = 2;
    config.user_bytes = 4096;
    const std::array<std::byte, 8> words{};
    rmem::RecordedWrite write;
    write.words = words;
    write.offset = config.bank_bytes() - 8;
    EXPECT_TRUE(is_recordable(write, config));
    write.offset += 4;
    EXPECT_FALSE(is_recordable(write, config));
    write.offset = 2;
    EXPECT_FALSE(is_recordable(write, config));
    write.offset = 0;
    write.node = 2;
    EXPECT_FALSE(is_recordable(write, config));
    write.node = 1;
    write.flags = rmem::RecordedWrite::kMissed;
    EXPECT_FALSE(is_recordable(write, config));
    write.words = {};
    EXPECT_TRUE(is_recordable(write, config));
}

using RingReplayDeathTest = rmem::test::RecordingTest;

TEST_F(RingReplayDeathTest, checks_that_the_range_ends_after_its_beginning) {
    EXPECT_TRUE(rmem::RecordingWriter(path, info).close());
    rmem::test::TestRing rig({.link = rmem::LinkKind::direct, .user_bytes = 4096});
    auto node = rig.join(0);
    rmem::RecordingReader reader(path);
    const StopSignals stop;
    Selection selection;
    selection.from_ns = 2;
    selection.until_ns = 1;
    EXPECT_BROKEN(RingReplay(node, reader, selection, stop));
}

// ---- Conformance

struct PlainCard final : conform::Card {
    std::vector<std::uint32_t> words = std::vector<std::uint32_t>(4096);

    std::string name() const override { return "words"; }
    unsigned node() const override { return 0; }
    std::size_t size() const override { return 4 * words.size(); }
    bool offers(conform::Feature) const override { return false; }
    void write_word(std::size_t offset, std::uint32_t value) override { words[offset / 4] = value; }
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        std::memcpy(reinterpret_cast<std::byte*>(words.data()) + offset, from, bytes);
    }
    void write_byte(std::size_t, std::uint8_t) override {}
    std::uint32_t load(std::size_t offset) override { return words[offset / 4]; }
    void read(std::size_t, void*, std::size_t) override {}
    void leave() override {}
    void enter() override {}
    void set_write_me_last(bool) override {}
    void send_interrupt(unsigned, std::uint32_t) override {}
    std::optional<conform::CardInterrupt> next_interrupt(std::int64_t) override { return {}; }
};

TEST(MembersDeathTest, check_that_a_member_is_one_of_them_and_their_area_in_the_memory) {
    PlainCard card;
    EXPECT_BROKEN(conform::Members(card, 2, 2, 0, 1));
    EXPECT_BROKEN(conform::Members(card, 0, 2, 4, 1));
    EXPECT_BROKEN(conform::Members(card, 0, 2, 4 * card.words.size() - 64, 1));
    const conform::Members members(card, 0, 2, 0, 1);
    EXPECT_BROKEN(static_cast<void>(members.node_of(2)));
}

TEST(ConformReportDeathTest, checks_that_a_broken_rule_was_seen_to_be_broken) {
    const conform::Result result{
        conform::all_litmuses().data(), 0, {conform::Finding{}}, conform::Outcome::broken};
    const conform::Report report{"card", {}, 0, {result}};
    EXPECT_BROKEN(report.text());
}

// ---- Measurements

TEST(MeasurementsDeathTest, check_that_there_is_something_to_be_measured) {
    Results results;
    EXPECT_BROKEN(measure_sizes({}, {}, results));
    EXPECT_BROKEN(run_processes({}, 0, [](unsigned, const std::string&) {}));
}

TEST(MeasurementsDeathTest, check_that_the_name_of_a_series_is_not_cut_off) {
    Results results;
    results.put(std::string(63, 'x'), {1});
    EXPECT_BROKEN(results.put(std::string(64, 'x'), {1}));
}

}  // namespace
}  // namespace tools
