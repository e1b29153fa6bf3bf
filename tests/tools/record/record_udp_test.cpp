// SPDX-License-Identifier: Apache-2.0
// ctest: check
// `rmem record` of a ring on link udp: the writes that the engine of one of its nodes sends and
// applies.

#include "rmem/recording/pcap_writer.hpp"
#include "rmem/ring/node_board.hpp"
#include "tests/support/tool.hpp"
#include "tests/tools/record/recorded.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::uint32_t>;
using PlacedWord = std::pair<std::uint64_t, std::uint32_t>;

class RecordUdp : public RecordingTest {
protected:
    /// A recorder at a node, that has begun.
    std::unique_ptr<Tool> start(const TestRing& ring, unsigned node = 0,
                                const Arguments& more = {}) {
        return start_recorder(ring.segment(node), path, more);
    }
    static Ran end(Tool& tool) {
        tool.signal(SIGINT);
        return tool.wait();
    }
    /// The writes to the user's memory during the recording.
    std::vector<OwnedWrite> user_writes() const {
        std::vector<OwnedWrite> found;
        for (const OwnedWrite& write : writes_in(path)) {
            if (write.offset < kUdpBytes && (write.flags & RecordedWrite::kAtStart) == 0) {
                found.push_back(write);
            }
        }
        return found;
    }
    static std::vector<PlacedWord> words_of(const std::vector<OwnedWrite>& writes, unsigned node) {
        std::vector<PlacedWord> words;
        for (const OwnedWrite& write : writes) {
            if (write.node != node) continue;
            for (std::size_t at = 0; at < write.words.size(); at += kWordBytes) {
                std::uint32_t value = 0;
                std::memcpy(&value, write.words.data() + at, sizeof value);
                words.emplace_back(write.offset + at, value);
            }
        }
        return words;
    }
};

TEST_F(RecordUdp, has_the_writes_of_all_nodes_each_in_its_order_with_all_bytes) {
    const TestRing ring(udp_pair());
    const auto tool = start(ring);
    const std::int64_t before = now_ns();
    std::array<std::vector<PlacedWord>, 2> written;
    std::uint32_t value = 1;
    for (std::uint32_t i = 0; i < 400; ++i) {
        for (const unsigned n : {0U, 1U}) {
            // Also longer than a record of the log, and than a datagram.
            const Words words(i % 50 == 0 ? 600 : 1 + i % 20, value++);
            const std::size_t offset = n * kUdpBytes / 2 + 4 * i;
            write_all(ring.node(n), offset, words.data(), words.size() * kWordBytes);
            for (std::size_t w = 0; w < words.size(); ++w) {
                written[n].emplace_back(offset + w * kWordBytes, words[w]);
            }
        }
    }
    ring.flush();
    const std::int64_t after = now_ns();
    const Ran ran = end(*tool);
    EXPECT_EQ(ran.code, 0) << ran.err;

    const auto writes = user_writes();
    for (const unsigned n : {0U, 1U}) EXPECT_EQ(words_of(writes, n), written[n]) << "node " << n;
    // Of another host's clock it is an estimate, so nothing is known of the first.
    std::array<std::int64_t, 2> last = {before, 0};
    for (const OwnedWrite& write : writes) {
        EXPECT_EQ(write.rank, write.node);
        EXPECT_LE(write.time_ns, after);
        EXPECT_GE(write.time_ns, last[write.node]);
        last[write.node] = write.time_ns;
    }
    RecordingReader reader(path);
    read_all(reader);
    EXPECT_TRUE(reader.report().whole()) << to_string(reader.report());
    EXPECT_EQ(reader.info().config.hash(), ring.config().hash());
}

TEST_F(RecordUdp, begins_with_what_is_in_the_memory) {
    const TestRing ring(udp_pair());
    write_word(ring.node(1), 0x40, 7);
    ring.flush();
    const auto tool = start(ring);
    write_word(ring.node(1), 0x44, 8);
    ring.flush();
    EXPECT_EQ(end(*tool).code, 0);
    const auto writes = writes_in(path);
    ASSERT_FALSE(writes.empty());
    EXPECT_EQ(writes[0].offset, 0x40U);
    EXPECT_EQ(writes[0].flags, RecordedWrite::kAtStart);
    EXPECT_EQ(words_of(user_writes(), 1), (std::vector<PlacedWord>{{0x44, 8}}));
}

TEST_F(RecordUdp, is_the_same_at_each_node_but_for_the_order_of_nodes) {
    const TestRing ring(udp_pair());
    const auto tool = start(ring, 1);
    for (std::uint32_t i = 1; i <= 100; ++i) {
        write_word(ring.node(0), 0, i);
        write_word(ring.node(1), 4, i);
    }
    ring.flush();
    EXPECT_EQ(end(*tool).code, 0);
    for (const unsigned n : {0U, 1U}) {
        const auto words = words_of(user_writes(), n);
        ASSERT_EQ(words.size(), 100U);
        for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(words[i], PlacedWord(4 * n, i + 1));
    }
}

TEST_F(RecordUdp, says_where_it_missed_writes) {
    const TestRing ring(udp_pair());
    const auto tool = start(ring);
    write_word(ring.node(0), 0, 1);
    EXPECT_TRUE(eventually([&] { return !user_writes().empty(); }));
    tool->signal(SIGSTOP);
    siginfo_t stopped{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(tool->pid()), &stopped, WSTOPPED), 0);
    const std::uint32_t writes = 3 * kTapBytes / 1024;
    for (std::uint32_t i = 2; i <= writes; ++i) {
        const Words words(256, i);
        write_all(ring.node(0), 0, words.data(), words.size() * kWordBytes);
    }
    ring.flush();
    tool->signal(SIGCONT);
    // Were it away for longer than it had asked for, the tap is open again only now.
    EXPECT_TRUE(eventually([&] {
        write_word(ring.node(0), 0x800, writes + 1);
        const auto read = user_writes();
        return !read.empty() && first_word(read.back()) == writes + 1;
    }));
    expect_err(end(*tool), 1, {"missed"});
    const auto read = user_writes();
    ASSERT_GT(read.size(), 2U);
    EXPECT_EQ(first_word(read[0]), 1U);
    std::uint32_t last = 0;
    std::size_t missed = 0;
    for (const OwnedWrite& write : read) {
        if ((write.flags & RecordedWrite::kMissed) != 0) {
            ++missed;
            continue;
        }
        EXPECT_GE(first_word(write), last);
        last = first_word(write);
    }
    EXPECT_GE(missed, 1U);
}

TEST_F(RecordUdp, costs_the_engine_nothing_any_more_when_its_recorder_was_killed) {
    const TestRing ring(udp_pair());
    const auto tool = start(ring);
    EXPECT_EQ(ring.ring(0)->board().tap_open.load(), 1U);
    tool->signal(SIGKILL);
    tool->wait();
    for (std::uint32_t i = 1; i <= 1000; ++i) write_word(ring.node(0), 0, i);
    ring.flush();
    EXPECT_EQ(ring.node(1).load(0), 1000U);
    EXPECT_TRUE(eventually([&] { return ring.ring(0)->board().tap_open.load() == 0; }));
    EXPECT_EQ(end(*start(ring, 0, {"--replace"})).code, 0);
}

TEST_F(RecordUdp, ends_with_the_node) {
    TestRing ring(udp_pair());
    const auto tool = start(ring, 1);
    write_word(ring.node(1), 0, 5);
    ring.flush();
    ring.end(1);
    EXPECT_EQ(tool->wait().code, 0);
    EXPECT_EQ(words_of(user_writes(), 1), (std::vector<PlacedWord>{{0, 5}}));
}

TEST_F(RecordUdp, makes_captures_and_is_played_into_a_ring) {
    const std::string capture = folder / "a.pcap";
    {
        const TestRing ring(udp_pair());
        const auto tool = start(ring, 0, {"--pcap", capture});
        write_word(ring.node(0), 0x10, 11);
        write_word(ring.node(1), 0x20, 22);
        ring.flush();
        EXPECT_EQ(end(*tool).code, 0);
    }
    EXPECT_GT(std::filesystem::file_size(capture), 2 * PcapWriter::kPacketHeaderBytes);
    const Ran shown = run_tool({"replay", path, "--print"});
    EXPECT_THAT(shown.out, HasSubstr("node 1 rank 1"));
    EXPECT_THAT(shown.out, HasSubstr("applied after"));

    const TestRing target(to_record(LinkKind::ring));
    Node node = target.join(0);
    const Ran played = run_tool({"replay", path, "--ring", target.name(), "--speed", "max"});
    EXPECT_EQ(played.code, 0) << played.err;
    EXPECT_TRUE(eventually([&] { return node.load(0x20) == 22; }));
    EXPECT_EQ(node.load(0x10), 11U);
}

TEST_F(RecordUdp, stands_in_for_a_node_whose_writes_are_played) {
    {
        const TestRing ring(udp_pair());
        const auto tool = start(ring);
        write_word(ring.node(1), 0x20, 22);
        ring.flush();
        EXPECT_EQ(end(*tool).code, 0);
    }
    TestRing ring(udp_pair());
    ring.end(1);
    const std::string command = ring.environment() + " " RMEM_TOOL " replay " + path + " --ring " +
                                ring.name() + " --make --node 1 --speed max 2>/dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT: our own words; one thread that matters
    EXPECT_TRUE(eventually([&] { return ring.node(0).load(0x20) == 22; }));
}

TEST_F(RecordUdp, wants_to_know_at_which_of_several_nodes_and_names_them) {
    const TestRing ring(udp_pair());
    expect_err(run_tool({"record", "--ring", ring.name(), "-o", path, "--for", "1ms"}), 1,
               {ring.segment(0), ring.segment(1)});
    EXPECT_EQ(
        run_tool({"record", "--ring", ring.name(), "--node", "1", "-o", path, "--for", "1ms"}).code,
        0);
}

}  // namespace
}  // namespace rmem::test
