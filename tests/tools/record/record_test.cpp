// SPDX-License-Identifier: Apache-2.0
// `rmem record`.

#include "rmem/ring/write_log.hpp"
#include "tests/support/tool.hpp"
#include "tests/support/tshark.hpp"
#include "tests/tools/record/recorded.hpp"
#include "tools/record/record_source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

namespace rmem::test {
namespace {

class Record : public RecordingTest {
protected:
    /// A recorder that has begun.
    std::unique_ptr<Tool> start(const TestRing& ring, const Arguments& more = {}) {
        return start_recorder(ring.name(), path, more);
    }
};

TEST_F(Record, has_every_write_of_every_rank_in_its_order_with_its_time) {
    constexpr std::uint32_t kWrites = 500;
    TestRing ring(to_record(LinkKind::ring));
    Node a = ring.join(0), b = ring.join(1);
    const auto tool = start(ring, {"--count", std::to_string(2 * kWrites)});
    const std::int64_t before = now_ns();
    for (std::uint32_t i = 1; i <= kWrites; ++i) {
        write_word(a, 0x100, i);
        write_word(b, 0x200, i);
    }
    const std::int64_t after = now_ns();
    expect_err(tool->wait(), 0, {"1000 writes"});

    RecordingReader reader(path);
    std::uint32_t next[2] = {1, 1};
    std::int64_t last[2] = {before, before};
    for (const OwnedWrite& write : read_all(reader)) {
        ASSERT_LT(write.rank, 2U);
        EXPECT_EQ(write.node, write.rank);
        EXPECT_EQ(write.offset, 0x100 * (write.rank + 1));
        EXPECT_EQ(first_word(write), next[write.rank]++);
        EXPECT_GE(write.time_ns, last[write.rank]);
        EXPECT_LE(write.time_ns, after);
        last[write.rank] = write.time_ns;
    }
    EXPECT_EQ(next[0], kWrites + 1);
    EXPECT_EQ(next[1], kWrites + 1);
    EXPECT_TRUE(reader.report().whole()) << to_string(reader.report());
    EXPECT_EQ(reader.info().config.hash(), ring.config().hash());
}

TEST(RingSource, has_what_a_guest_wrote_that_was_gone_before_it_looked) {
    const TestRing ring(to_record(LinkKind::ring));
    Node a = ring.join(0);
    const auto source = tools::make_ring_source(ring.ring(), 0);
    std::vector<std::uint32_t> words;
    const auto take = [&](const RecordedWrite& write) {
        std::uint32_t word = 0;
        std::memcpy(&word, write.words.data(), sizeof word);
        words.push_back(word);
    };
    source->begin(now_ns(), take);
    EXPECT_THAT(words, ::testing::IsEmpty());
    for (const std::uint32_t value : {1U, 2U}) {
        Node guest(ring.ring(), {Member::kGuest, 1});
        write_word(guest, 0x40, value);
        ASSERT_TRUE(guest.flush(Deadline::in(kPatienceNs)));
    }
    a.poll();
    ASSERT_EQ(a.load(0x40), 2U) << "it is applied";
    source->look(now_ns(), take);
    EXPECT_THAT(words, ::testing::ElementsAre(1, 2));
}

TEST_F(Record, has_the_writes_of_guests_that_come_after_it) {
    TestRing ring(to_record(LinkKind::ring));
    Node a = ring.join(0), b = ring.join(1);
    const auto tool = start(ring, {"--count", "9"});
    for (std::uint32_t i = 1; i <= 9; ++i) {  // each is gone before the recorder looks
        Node guest(ring.ring(), {Member::kGuest, 1});
        write_word(guest, 0x40, i);
        ASSERT_TRUE(guest.flush(Deadline::in(kDefaultJoinTimeoutNs)));
    }
    EXPECT_EQ(tool->wait().code, 0);
    std::uint32_t next = 1;
    for (const OwnedWrite& write : writes_in(path)) {
        EXPECT_EQ(write.node, 1U);
        EXPECT_EQ(write.rank, 1U) << "as the node's first";
        EXPECT_EQ(first_word(write), next++);
    }
    EXPECT_EQ(next, 10U);
}

TEST_F(Record, begins_with_what_is_in_the_memory) {
    TestRing ring(to_record(LinkKind::ring));
    Node node = ring.join(1);
    write_word(node, 0x40, 7);
    write_word(node, 0x44, 8);
    ASSERT_TRUE(node.flush(Deadline::in(kDefaultJoinTimeoutNs)));
    const auto tool = start(ring, {"--count", "1"});
    write_word(node, 0x48, 9);
    EXPECT_EQ(tool->wait().code, 0);
    const auto writes = writes_in(path);
    ASSERT_EQ(writes.size(), 2U);
    EXPECT_EQ(writes[0].offset, 0x40U);
    EXPECT_EQ(writes[0].flags, RecordedWrite::kAtStart);
    EXPECT_EQ(writes[0].words.size(), 8U);
    EXPECT_EQ(writes[1].flags, 0);
    EXPECT_EQ(first_word(writes[1]), 9U);
}

TEST_F(Record, has_the_marks_of_interrupts) {
    TestRing ring(to_record(LinkKind::ring));
    Node node = ring.join(0), watcher = ring.join(1);
    watcher.watch(0x10, 4, Trigger::marked);  // marks are sent while somebody may want them
    node.mark(0x10, 4);
    const auto tool = start(ring, {"--count", "2"});
    write_word(node, 0x10, 1);
    write_word(node, 0x14, 1);
    EXPECT_EQ(tool->wait().code, 0);
    const auto writes = writes_in(path);
    ASSERT_EQ(writes.size(), 2U);
    EXPECT_EQ(writes[0].flags, RecordedWrite::kInterrupt);
    EXPECT_EQ(writes[1].flags, 0);
}

TEST_F(Record, ends_properly_when_it_is_told_to) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        TestRing ring(to_record(LinkKind::ring));
        Node node = ring.join(0);
        const auto tool = start(ring, {"--replace"});
        write_word(node, 0, 1);
        tool->signal(number);
        EXPECT_EQ(tool->wait().code, 0);
        RecordingReader reader(path);
        EXPECT_EQ(read_all(reader).size(), 1U);
        EXPECT_TRUE(reader.report().whole());
    }
}

TEST_F(Record, has_what_it_told_the_disk_when_it_is_killed) {
    TestRing ring(to_record(LinkKind::ring));
    Node node = ring.join(0);
    const auto tool = start(ring);
    const auto empty = std::filesystem::file_size(path);
    write_word(node, 0, 1);
    EXPECT_TRUE(eventually([&] { return std::filesystem::file_size(path) > empty; }));
    tool->signal(SIGKILL);
    tool->wait();
    RecordingReader reader(path);
    EXPECT_EQ(read_all(reader).size(), 1U);
    EXPECT_FALSE(reader.report().closed);
}

TEST_F(Record, ends_with_the_ring) {
    TestRing ring(to_record(LinkKind::ring));
    const auto tool = start(ring);
    {
        Node node = ring.join(0);
        write_word(node, 0, 1);
    }
    ring.end();
    EXPECT_EQ(tool->wait().code, 0);
    EXPECT_EQ(writes_in(path).size(), 1U);
}

TEST_F(Record, ends_after_the_time_given) {
    const TestRing ring(to_record(LinkKind::ring));
    EXPECT_EQ(start(ring, {"--for", "1ms"})->wait().code, 0);
}

TEST_F(Record, waits_for_a_ring_that_is_to_come) {
    const RingName name;
    Tool tool({"record", "--ring", name.get(), "-o", path, "--wait", "30s", "--count", "1"});
    RingConfig config = info.config;
    config.name = name.get();
    Node node(config, {0, 0});
    ASSERT_TRUE(tool.prints("rmem record: ring")) << tool.err();
    write_word(node, 0, 1);
    EXPECT_EQ(tool.wait().code, 0);

    expect_err(run_tool({"record", "--ring", "no-such-ring", "-o", path + "2"}), 1,
               {"[no-such-ring]"});
    EXPECT_FALSE(std::filesystem::exists(path + "2"));
}

TEST_F(Record, says_where_it_missed_writes) {
    TestRing ring(to_record(LinkKind::ring));
    Node node = ring.join(0);
    const auto tool = start(ring);
    write_word(node, 0, 1);
    EXPECT_TRUE(eventually([&] { return writes_in(path).size() == 1; }));
    tool->signal(SIGSTOP);
    siginfo_t stopped{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(tool->pid()), &stopped, WSTOPPED), 0);
    const std::uint32_t writes = 3 * kLogBytes / kLogUnitBytes;
    for (std::uint32_t i = 2; i < writes; ++i) write_word(node, 0, i);
    tool->signal(SIGCONT);
    tool->signal(SIGINT);
    expect_err(tool->wait(), 1, {"missed"});
    const auto read = writes_in(path);
    ASSERT_GT(read.size(), 2U);
    EXPECT_EQ(first_word(read[0]), 1U);
    EXPECT_EQ(read[1].flags, RecordedWrite::kMissed);
    EXPECT_EQ(first_word(read.back()), writes - 1);
}

TEST_F(Record, replaces_a_file_only_when_told_to) {
    const TestRing ring(to_record(LinkKind::ring));
    write_file(path, {'x'});
    const Ran ran = run_tool({"record", "--ring", ring.name(), "-o", path, "--for", "1ms"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_EQ(read_file(path).size(), 1U);
    EXPECT_EQ(start(ring, {"--for", "1ms", "--replace"})->wait().code, 0);
    EXPECT_TRUE(writes_in(path).empty());
}

TEST_F(Record, tells_programs_what_it_has) {
    const TestRing ring(to_record(LinkKind::ring));
    const auto json =
        run_tool({"record", "--ring", ring.name(), "-o", path, "--for", "1ms", "--json"}).json();
    EXPECT_EQ(json["ring"], ring.name());
    EXPECT_EQ(json["file"], path);
    EXPECT_EQ(json["writes"], 0);
    EXPECT_EQ(json["missed"], 0);
}

TEST_F(Record, refuses_a_ring_that_shows_no_writes_and_says_what_would_do) {
    const TestRing ring(to_record(LinkKind::direct));
    expect_err(run_tool({"record", "--ring", ring.name(), "-o", path}), 1,
               {"--sample", "[not-permitted]"});
    EXPECT_FALSE(std::filesystem::exists(path));
    expect_err(run_tool({"record", ring.name(), "-o", path, "--sample", "0s"}), 2, {"--sample 0"});
}

/// What waits for a flag would else be shown one that is newer than its data.
TEST_F(Record, looks_at_the_words_that_it_is_told_before_the_others) {
    TestRing ring(to_record(LinkKind::direct));
    Node writer = ring.join(0);
    const std::size_t flag_at = writer.size() - kWordBytes;
    const auto source = tools::open_source(ring.name(), {.node = 0, .sample_ns = 1'000'000});
    source->look_first_at(flag_at, kWordBytes);
    std::atomic<bool> is_over{false};
    std::thread program([&] {
        for (std::uint32_t i = 1; !is_over; ++i) {
            write_word(writer, 0, i);
            write_word(writer, flag_at, i);
        }
    });
    std::uint32_t data = 0, flag = 0;
    const auto take = [&](const RecordedWrite& write) {
        if (write.offset == 0) std::memcpy(&data, write.words.data(), sizeof data);
        if (write.offset == flag_at) std::memcpy(&flag, write.words.data(), sizeof flag);
    };
    source->begin(now_ns(), take);
    for (int looks = 0; looks < 200;) {
        const std::uint32_t before = flag;
        source->look(now_ns(), take);
        EXPECT_GE(data, flag);
        looks += flag != before ? 1 : 0;
    }
    is_over = true;
    program.join();
}

TEST_F(Record, samples_the_memory_of_any_ring) {
    for (const LinkKind link : {LinkKind::direct, LinkKind::ring}) {
        TestRing ring(to_record(link));
        Node node = ring.join(0);
        write_word(node, 0x40, 5);
        const auto tool = start(ring, {"--sample", "1ms", "--count", "2", "--replace"});
        write_word(node, 0x40, 6);
        EXPECT_TRUE(eventually([&] { return writes_in(path).size() == 2; }));
        write_word(node, 0x3ffc, 7);
        EXPECT_EQ(tool->wait().code, 0);
        const auto writes = writes_in(path);
        ASSERT_EQ(writes.size(), 3U);
        EXPECT_EQ(writes[0].flags, RecordedWrite::kAtStart | RecordedWrite::kSampled);
        EXPECT_EQ(first_word(writes[0]), 5U);
        EXPECT_EQ(writes[1].flags, RecordedWrite::kSampled);
        EXPECT_EQ(first_word(writes[1]), 6U);
        EXPECT_EQ(writes[2].offset, 0x3ffcU);
    }
}

TEST_F(Record, makes_a_capture_that_wireshark_reads) {
    if (!has_tshark()) GTEST_SKIP() << "there is no tshark here";
    TestRing ring(to_record(LinkKind::ring));
    Node node = ring.join(1);
    const std::string capture = folder / "a.pcap";
    const auto tool = start(ring, {"--pcap", capture, "--count", "1"});
    write_word(node, 0x40, 0xdeadbeef);
    EXPECT_EQ(tool->wait().code, 0);
    const std::string shown =
        tshark(capture, "-Y 'rmem.node == 1 && rmem.word == 0xdeadbeef' -T fields -e rmem.offset");
    EXPECT_THAT(shown, ::testing::EndsWith("0x0000000000000040\n"));
    EXPECT_EQ(shown.find("0x"), shown.rfind("0x")) << "one packet";
    EXPECT_EQ(writes_in(path).size(), 1U) << "the recording is made beside it";
}

}  // namespace
}  // namespace rmem::test
