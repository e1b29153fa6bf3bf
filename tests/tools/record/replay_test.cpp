// SPDX-License-Identifier: Apache-2.0
// `rmem replay`.

#include "tests/support/tool.hpp"
#include "tests/tools/record/recorded.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMs = 1'000'000;

class Replay : public RecordingTest {
protected:
    Replay() {
        info.config.nodes = info.config.ranks = 2;
        info.config.user_bytes = kRecordedBytes;
    }

    /// A recording with these writes; its times count from the start.
    void make(const std::vector<OwnedWrite>& writes) {
        RecordingWriter writer(path, info);
        for (OwnedWrite write : writes) {
            write.time_ns += info.start_ns;
            EXPECT_TRUE(writer.add(write.view()));
        }
        EXPECT_TRUE(writer.close());
    }
    static OwnedWrite word(std::int64_t time_ns, unsigned node, std::uint64_t offset,
                           std::uint32_t value, std::uint16_t flags = 0) {
        OwnedWrite write{time_ns, node, node, offset, flags, {}};
        write.words.resize(sizeof value);
        std::memcpy(write.words.data(), &value, sizeof value);
        return write;
    }

    Ran replay(const Arguments& more, const std::string& input = "") {
        return run_tool(concat({"replay", path}, more), input);
    }
    std::vector<std::uint32_t> printed(const Arguments& more) {
        std::istringstream lines(replay(concat({"--print", "--json"}, more)).out);
        std::vector<std::uint32_t> values;
        for (std::string line; std::getline(lines, line);) {
            values.push_back(nlohmann::json::parse(line)["words"][0]);
        }
        return values;
    }
};

using ::testing::ElementsAre;

TEST_F(Replay, a_replay_of_a_recorded_ring_leaves_another_ring_with_the_same_memory) {
    constexpr std::uint32_t kWrites = 2000;
    TestRing recorded(to_record(LinkKind::ring));
    std::vector<std::byte> memory;
    {
        Node a = recorded.join(0), b = recorded.join(1);
        write_word(a, 8, 1234);
        ASSERT_TRUE(a.flush(Deadline::in(kDefaultJoinTimeoutNs)));
        const auto recorder =
            start_recorder(recorded.name(), path, {"--count", std::to_string(2 * kWrites + 2)});
        write_all(a, 0x2801, &kWrites, 2);  // of one word, two nodes' bytes
        write_all(b, 0x2803, &kWrites, 1);
        for (std::uint32_t i = 0; i < kWrites; ++i) {
            write_word(a, 0x100 + i % 100 * 4, i);
            write_word(b, 0x2000 + i % 700 * 4, i * 3);
        }
        ASSERT_EQ(recorder->wait().code, 0);
        ASSERT_TRUE(a.flush(Deadline::in(kPatienceNs)));
        ASSERT_TRUE(b.flush(Deadline::in(kPatienceNs)));
        memory = memory_of(a);
        EXPECT_EQ(memory_of(b), memory);
    }
    for (const LinkKind link : {LinkKind::ring, LinkKind::direct}) {
        const TestRing other(to_record(link));
        Node reader = other.join(1);
        write_word(reader, 0x3000, 99);
        ASSERT_TRUE(reader.flush(Deadline::in(kDefaultJoinTimeoutNs)));
        const Ran ran = replay({"--ring", other.name(), "--speed", "max", "--json"});
        EXPECT_EQ(ran.code, 0) << ran.err;
        EXPECT_EQ(ran.json()["writes"], 2 * kWrites + 2);
        EXPECT_EQ(ran.json()["rank"], 0) << "the one that nobody holds";
        EXPECT_TRUE(memory_of(reader) == memory) << name_of(link);
    }
}

TEST_F(Replay, is_never_before_its_time) {
    make({word(0, 0, 0, 1), word(60 * kMs, 0, 0, 2)});
    const TestRing ring(to_record(LinkKind::ring));
    const auto ns = [&](const std::string& speed) {
        const Ran ran = replay({"--ring", ring.name(), "--speed", speed, "--json"});
        return ran.json()["duration_ns"].get<std::int64_t>();
    };
    EXPECT_GE(ns("1x"), 60 * kMs);
    EXPECT_GE(ns("2"), 30 * kMs);
    EXPECT_GE(ns("0.5x"), 120 * kMs);
    EXPECT_EQ(replay({"--ring", ring.name(), "--speed", "fast"}).code, 2);
}

TEST_F(Replay, plays_as_many_writes_as_are_asked_for_by_each_line) {
    make({word(1, 0, 0, 1), word(2, 0, 0, 2), word(3, 0, 0, 3), word(4, 0, 0, 4)});
    TestRing ring(to_record(LinkKind::ring));
    Node reader = ring.join(1);
    const Ran ran = replay({"--ring", ring.name(), "--step"}, "\n2\nnonsense\nq\n");
    expect_err(ran, 0, {"3 writes", "'nonsense' is not a number"});
    EXPECT_THAT(ran.out, HasSubstr("next: +0.000000004 s  node 0"));
    EXPECT_EQ(reader.load(0), 3U);
    EXPECT_EQ(replay({"--ring", ring.name(), "--step"}, "100\n").code, 0);
    EXPECT_EQ(reader.load(0), 4U);
}

TEST_F(Replay, takes_times_and_nodes_that_are_wanted) {
    make({word(0, 0, 0, 10, RecordedWrite::kAtStart), word(1 * kMs, 0, 0, 1),
          word(2 * kMs, 1, 0, 2), word(3 * kMs, 0, 0, 3), word(4 * kMs, 1, 0, 4)});
    EXPECT_THAT(printed({}), ElementsAre(10, 1, 2, 3, 4));
    EXPECT_THAT(printed({"--from", "2ms"}), ElementsAre(2, 3, 4));
    EXPECT_THAT(printed({"--until", "2ms"}), ElementsAre(10, 1, 2));
    EXPECT_THAT(printed({"--from", "2ms", "--until", "3ms"}), ElementsAre(2, 3));
    EXPECT_THAT(printed({"--node", "1"}), ElementsAre(2, 4));
    EXPECT_EQ(replay({"--print", "--node", "2"}).code, 1);
    EXPECT_EQ(replay({"--print", "--from", "2ms", "--until", "1ms"}).code, 2);
}

TEST_F(Replay, refuses_to_begin_behind_the_end_or_to_select_what_it_does_nothing_with) {
    make({word(1 * kMs, 0, 0, 1)});
    expect_err(replay({"--print", "--from", "99s"}), 1, {"no write at --from 99s or later"});
    expect_err(replay({"--from", "0s"}), 2, {"--print"});
}

TEST_F(Replay, makes_the_memory_as_it_was_where_it_begins) {
    make({word(0, 0, 0, 10, RecordedWrite::kAtStart), word(0, 0, 4, 11, RecordedWrite::kAtStart),
          word(1 * kMs, 0, 0, 1), word(2 * kMs, 0, 8, 2), word(3 * kMs, 0, 12, 3)});
    TestRing ring(to_record(LinkKind::ring));
    Node reader = ring.join(1);
    write_word(reader, 16, 77);
    ASSERT_TRUE(reader.flush(Deadline::in(kDefaultJoinTimeoutNs)));
    const Ran ran = replay({"--ring", ring.name(), "--from", "2ms", "--until", "2ms", "--json"});
    EXPECT_EQ(ran.json()["writes"], 1) << ran.err;
    EXPECT_EQ(reader.load(0), 1U);
    EXPECT_EQ(reader.load(4), 11U);
    EXPECT_EQ(reader.load(8), 2U);
    EXPECT_EQ(reader.load(12), 0U);
    EXPECT_EQ(reader.load(16), 0U) << "was not there when it was recorded";
}

TEST_F(Replay, a_replay_of_one_node_leaves_the_others_words_alone) {
    make({word(0, 0, 0, 10, RecordedWrite::kAtStart), word(1, 0, 4, 1), word(2, 1, 8, 2)});
    TestRing ring(to_record(LinkKind::ring));
    Node other = ring.join(1);
    write_word(other, 8, 77);
    ASSERT_TRUE(other.flush(Deadline::in(kDefaultJoinTimeoutNs)));
    EXPECT_EQ(replay({"--ring", ring.name(), "--node", "0"}).code, 0);
    EXPECT_EQ(other.load(0), 0U);
    EXPECT_EQ(other.load(4), 1U);
    EXPECT_EQ(other.load(8), 77U);
}

TEST_F(Replay, a_replay_of_one_node_leaves_out_what_was_recorded_late_from_before_the_beginning) {
    make({word(3 * kMs, 0, 0, 1), word(1 * kMs, 0, 4, 2), word(4 * kMs, 0, 8, 3)});
    TestRing ring(to_record(LinkKind::ring));
    const Node other = ring.join(1);
    const Ran ran = replay({"--ring", ring.name(), "--from", "2ms", "--node", "0", "--json"});
    EXPECT_EQ(ran.json()["writes"], 2) << ran.err;
}

TEST_F(Replay, writes_only_what_differs_in_the_memory) {
    make({word(1 * kMs, 0, 4, 2)});
    TestRing ring(to_record(LinkKind::ring));
    const Node other = ring.join(1);
    EXPECT_EQ(replay({"--ring", ring.name()}).code, 0);
    EXPECT_EQ(Ring::observe(ring.name())->rank(0).link.get(LinkCounter::writes_sent), 1U);
}

TEST_F(Replay, raises_the_interrupts_again) {
    make({word(1, 0, 0x40, 5, RecordedWrite::kInterrupt), word(2, 0, 0x40, 6)});
    TestRing ring(to_record(LinkKind::ring));
    Node reader = ring.join(1);
    reader.watch(0x40, 4, Trigger::marked);
    ASSERT_EQ(replay({"--ring", ring.name()}).code, 0);
    const auto interrupt = reader.next_interrupt(Deadline::in(kDefaultJoinTimeoutNs));
    ASSERT_TRUE(interrupt.has_value());
    EXPECT_EQ(interrupt->value, 5U);
    EXPECT_FALSE(reader.next_interrupt(Deadline::now()).has_value());
}

TEST_F(Replay, leaves_out_what_is_outside_of_the_users_memory_and_says_so) {
    make({word(1, 0, 0, 1), word(2, 0, kRecordedBytes + 8, 2)});
    const TestRing ring(to_record(LinkKind::ring));
    expect_err(replay({"--ring", ring.name()}), 0, {"1 writes left out"});
}

TEST_F(Replay, makes_the_ring_as_it_was_and_stays_in_it_if_told_to) {
    make({word(1, 0, 0, 42)});
    const RingName name;
    Tool tool({"replay", path, "--ring", name.get(), "--make", "--hold"});
    ASSERT_TRUE(tool.prints("1 writes")) << tool.err();
    EXPECT_EQ(run_tool({"peek", name.get(), "0"}).out, "42\n");
    EXPECT_EQ(json_of("info", name.get())["link"], "ring");
    tool.signal(SIGINT);
    EXPECT_EQ(tool.wait().code, 0);
}

TEST_F(Replay, a_replay_that_is_interrupted_says_how_far_it_came) {
    make({word(1, 0, 0, 1), word(3600'000 * kMs, 0, 0, 2)});
    const TestRing ring(to_record(LinkKind::ring));
    Node reader = ring.join(1);
    Tool tool({"replay", path, "--ring", ring.name()});
    EXPECT_TRUE(eventually([&] { return reader.load(0) == 1; }));
    tool.signal(SIGINT);
    expect_err(tool.wait(), 128 + SIGINT, {"1 writes"});
}

TEST_F(Replay, needs_a_rank_that_nobody_holds) {
    make({word(1, 0, 0, 1)});
    const TestRing ring(to_record(LinkKind::ring));
    const Node a = ring.join(0), b = ring.join(1);
    for (const auto& more : {Arguments{}, {"--as-rank", "1"}, {"--node", "1"}}) {
        expect_err(replay(concat({"--ring", ring.name()}, more)), 1, {"[rank-taken]"});
    }
}

TEST_F(Replay, tolerates_a_torn_tail_and_says_so) {
    info = an_info();
    record(100, 10);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100);
    const Ran ran = replay({});
    expect_out(ran, 0, {"90 writes"});
    EXPECT_THAT(ran.err, HasSubstr("after the last whole block are torn off"));
}

TEST_F(Replay, plays_around_a_damaged_block_and_names_it) {
    info = an_info();
    record(100, 10);
    Bytes bytes = read_file(path);
    bytes[recording_format::kFileHeaderBytes + recording_format::kBlockHeaderBytes + 30] ^= 1;
    write_file(path, bytes);
    const Ran ran = replay({});
    expect_out(ran, 1, {"90 writes"});
    EXPECT_THAT(ran.err, HasSubstr("the first is block 0 at byte 320"));
}

TEST_F(Replay, shows_what_is_in_a_recording) {
    make({word(0, 0, 0, 10, RecordedWrite::kAtStart),
          word(1 * kMs, 0, 0, 1),
          word(2 * kMs, 1, 0, 2),
          {3 * kMs, 1, 1, 0, RecordedWrite::kMissed, {}}});
    const auto json = replay({"--json"}).json();
    EXPECT_EQ(json["ring"], "rig");
    EXPECT_EQ(json["writes"]["writes"], 2);
    EXPECT_EQ(json["at_start"]["bytes"], 4);
    EXPECT_EQ(json["by_node"][1]["writes"], 1);
    EXPECT_EQ(json["missed"], 1);
    EXPECT_EQ(json["whole"], true);
    EXPECT_EQ(json["last_ns"], 3 * kMs);
    EXPECT_THAT(replay({}).out, HasSubstr("1 times writes were missed"));
}

TEST_F(Replay, shows_writes_as_text) {
    make({word(1 * kMs, 1, 0x40, 0xabc, RecordedWrite::kInterrupt),
          word(2 * kMs, 1, 0x44, 0x11223344, RecordedWrite::flags_of(0b0110))});
    EXPECT_EQ(replay({"--print"}).out,
              "+0.001000000 s  node 1 rank 1  0x00000040     1 word : 00000abc  interrupt\n"
              "+0.002000000 s  node 1 rank 1  0x00000044     1 word : --2233--\n");
}

TEST_F(Replay, makes_a_capture_with_a_packet_for_each_write) {
    make({word(1, 0, 0, 1), word(2, 1, 0, 2), word(3, 1, 0, 3)});
    const std::string capture = folder / "a.pcap";
    EXPECT_EQ(replay({"--pcap", capture, "--node", "1", "--json"}).json()["packets"], 2);
    expect_err(replay({"--pcap", capture}), 1, {"--replace"});  // there is one already
    EXPECT_EQ(replay({"--pcap", capture, "--replace"}).code, 0);
}

TEST_F(Replay, refuses_what_is_no_recording) {
    write_file(path, Bytes(1000, 'x'));
    expect_err(replay({}), 1, {"[bad-recording]"});
    EXPECT_EQ(replay({"--print", "--pcap", "x"}).code, 2) << "one or the other";
    EXPECT_EQ(replay({"--step"}).code, 2) << "into which ring?";
}

}  // namespace
}  // namespace rmem::test
