// SPDX-License-Identifier: Apache-2.0
// ctest: check
// `rmem bridge` between rings of this host, and between two sites: what it forwards, what it does
// when the far site stops, dies or comes back, and what it refuses.

#include "bridge/counters.hpp"
#include "bridge/table.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/test_ring.hpp"
#include "tests/support/tool.hpp"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>

namespace rmem::test {
namespace {

using bridge::Counter;
using ::testing::HasSubstr;

constexpr std::size_t kBytes = 65536;
constexpr unsigned kBridge = 2;  // its node in each ring
constexpr std::size_t kTable = kBytes - 3 * bridge::kTableBytes;
constexpr std::size_t kRegion = 4096;  // bytes of what is forwarded

RingSpec three_nodes(LinkKind link) {
    return {.link = link, .nodes = 3, .user_bytes = kBytes};
}

/// A folder with the files of bridges.
class Bridges : public ::testing::Test {
protected:
    Bridges() { std::filesystem::create_directory(folder); }
    ~Bridges() override { std::filesystem::remove_all(folder); }

    std::string file(const std::string& name, const std::string& text) const {
        std::ofstream(folder + "/" + name) << text;
        return folder + "/" + name;
    }
    /// A ring in such a file.
    static std::string ring(const TestRing& ring, unsigned node = kBridge) {
        return fmt::format(R"({{"RMEM_RING": "{}", "RMEM_LINK": "{}", "RMEM_NODE": "{}",
            "RMEM_NODES": "3", "RMEM_SIZE": "{}", "RMEM_GROUP": "{}", "RMEM_INTERFACE": "lo",
            "table": {}}})",
                           ring.name(), name_of(ring.config().link), node, kBytes,
                           own_group(ring.name(), ring.config().link), kTable);
    }
    /// Both ways: from 0 to 4096, and from 8192 of the second to 12288 of the first.
    std::string local(const TestRing& first, const TestRing& second) const {
        return file("local", fmt::format(R"({{"rings": {{"a": {}, "b": {}}}, "regions": [
            {{"name": "there", "from": "a", "offset": 0, "to": "b", "at": 4096, "bytes": {},
              "sync": [4]}},
            {{"name": "back", "from": "b", "offset": "8K", "to": "a", "at": "0x3000",
              "bytes": 64}}]}})",
                                         ring(first), ring(second), kRegion));
    }
    std::string key() const {
        const std::string path = folder + "/key";
        if (!std::filesystem::exists(path)) {
            EXPECT_EQ(run_tool({"key", "--out", path}).code, 0);
        }
        return path;
    }
    std::string near_half(const TestRing& from, unsigned port) const {
        return file("near", fmt::format(R"({{"rings": {{"here": {}}},
            "far": {{"connect": "127.0.0.1:{}", "key_file": "{}"}}, "regions": [
            {{"name": "there", "from": "here", "offset": 0, "to": "far", "bytes": {},
              "sync": [4092]}}]}})",
                                        ring(from), port, key(), kRegion));
    }
    std::string far_half(const TestRing& to, unsigned port) const {
        return file("far", fmt::format(R"({{"rings": {{"here": {}}},
            "far": {{"listen": "127.0.0.1:{}", "key_file": "{}"}}, "regions": [
            {{"name": "there", "from": "far", "to": "here", "at": 4096, "bytes": {}}}]}})",
                                       ring(to), port, key(), kRegion));
    }
    static std::uint64_t count(const TestRing& ring, Counter id, unsigned rank = kBridge) {
        const unsigned segment = ring.config().is_remote() ? rank : 0;
        return ring.ring(segment)->rank(rank).ports[bridge::kCounterBlock].get(id);
    }
    /// Of the bridge's last frame, in one of its slots.
    static bridge::Stamp stamp_of(Node& node, std::size_t slot) {
        std::array<std::byte, bridge::kStampBytes> stamp;
        node.read(
            kTable + kBridge * bridge::kTableBytes + slot * bridge::kSlotBytes + bridge::kStampAt,
            stamp.data(), stamp.size());
        return bridge::read_stamp(stamp);
    }
    static bool becomes(Node& node, std::size_t offset, std::uint32_t value) {
        return eventually([&] { return node.load(offset) == value; });
    }
    static bool are_equal(Node& from, Node& to) {
        std::vector<std::byte> source(kRegion), target(kRegion);
        from.read(0, source.data(), kRegion);
        to.read(4096, target.data(), kRegion);
        return source == target;
    }
    static std::unique_ptr<Tool> start(const std::string& file) {
        return std::make_unique<Tool>(Arguments{"bridge", file});
    }
    static std::size_t resident_bytes(const Tool& tool) {
        std::ifstream file(fmt::format("/proc/{}/statm", tool.pid()));
        std::size_t pages = 0;
        file >> pages >> pages;
        return pages * 4096;
    }

    const std::string folder =
        std::filesystem::temp_directory_path() / fmt::format("bridge-{}", ::getpid());
};

using TwoLinks = std::pair<LinkKind, LinkKind>;
class BridgesOn : public Bridges, public ::testing::WithParamInterface<TwoLinks> {};

TEST_P(BridgesOn, forward_both_ways_in_order_with_interrupts_ages_and_hops) {
    const TestRing first(three_nodes(GetParam().first));
    Node writer = first.join(0);  // before the environment is the second ring's
    const TestRing second(three_nodes(GetParam().second));
    Node reader = second.join(1);
    reader.watch(4096, kRegion, Trigger::marked);
    writer.mark(64, 4);
    write_word(writer, 8, 77);  // before there is a bridge
    Tool tool({"bridge", local(first, second)});
    ASSERT_TRUE(becomes(reader, 4096 + 8, 77)) << tool.err();
    ASSERT_TRUE(eventually([&] { return count(first, Counter::forwarded_frames) > 0; }));
    // Data, then a flag: the flag is never newer than the data.
    std::uint32_t seen = 0;
    for (std::uint32_t i = 1; i <= 2000; ++i) {
        write_word(writer, 0, i);
        write_word(writer, 4, i);
        seen = std::max(seen, reader.load(4096 + 4));
        EXPECT_GE(reader.load(4096), seen);
    }
    ASSERT_TRUE(becomes(reader, 4096 + 4, 2000)) << tool.err();
    write_word(writer, 64, 5);
    const auto interrupt = reader.next_interrupt(Deadline::in(kPatienceNs));
    ASSERT_TRUE(interrupt) << tool.err();
    EXPECT_EQ(interrupt->offset, 4096U + 64);
    EXPECT_EQ(interrupt->value, 5U);

    write_word(reader, 8192 + 60, 9);
    EXPECT_TRUE(becomes(writer, 0x3000 + 60, 9)) << tool.err();

    const bridge::Stamp last = stamp_of(reader, 1);
    EXPECT_EQ(last.hops, 1U);
    EXPECT_GT(last.frames, 0U);
    EXPECT_NE(last.error_us, UINT32_MAX);
    EXPECT_LT(last.age_us, 30'000'000U);
    tool.signal(SIGTERM);
    EXPECT_EQ(tool.wait().code, 0);
}

INSTANTIATE_TEST_SUITE_P(Links, BridgesOn,
                         ::testing::Values(TwoLinks{LinkKind::direct, LinkKind::ring},
                                           TwoLinks{LinkKind::ring, LinkKind::udp},
                                           TwoLinks{LinkKind::udp, LinkKind::udp},
                                           TwoLinks{LinkKind::udp, LinkKind::fabric},
                                           TwoLinks{LinkKind::fabric, LinkKind::direct}),
                         [](const auto& of) {
                             return fmt::format("{}_and_{}", name_of(of.param.first),
                                                name_of(of.param.second));
                         });

TEST_F(Bridges, bring_a_write_of_many_words_in_one_frame) {
    const TestRing first(three_nodes(LinkKind::ring)), second(three_nodes(LinkKind::ring));
    Node writer = first.join(0), reader = second.join(0);
    const Tool tool({"bridge", local(first, second)});
    write_word(writer, 0, 1);
    ASSERT_TRUE(becomes(reader, 4096, 1)) << tool.err();
    const std::uint32_t before = stamp_of(reader, 1).frames;
    const std::vector<std::uint32_t> words(kRegion / 4, 3);  // four records of the log
    write_all(writer, 0, words.data(), kRegion);
    ASSERT_TRUE(eventually([&] { return are_equal(writer, reader); }));
    ASSERT_TRUE(eventually([&] { return stamp_of(reader, 1).frames > before; }));
    EXPECT_EQ(stamp_of(reader, 1).frames, before + 1);
}

TEST_F(Bridges, of_two_sites_heal_a_cut_and_a_restart_of_the_far_one) {
    const TestRing near(three_nodes(LinkKind::ring)), far(three_nodes(LinkKind::udp));
    Node writer = near.join(0), reader = far.join(0);
    auto far_tool = start(far_half(far, 0));
    const unsigned port = port_of(*far_tool);
    const Tool near_tool({"bridge", near_half(near, port)});
    write_word(writer, 0, 1);
    ASSERT_TRUE(becomes(reader, 4096, 1)) << near_tool.err() << far_tool->err();

    far_tool->signal(SIGKILL);
    far_tool->wait();
    ASSERT_TRUE(near_tool.prints("the line to 127.0.0.1")) << near_tool.err();
    for (std::uint32_t i = 0; i < kRegion / 4; ++i) write_word(writer, 4 * i, i + 100);
    far_tool = start(far_half(far, port));
    EXPECT_TRUE(eventually([&] { return are_equal(writer, reader); }))
        << near_tool.err() << far_tool->err();
    EXPECT_TRUE(eventually([&] { return count(near, Counter::reconnects) == 1; }));
    EXPECT_EQ(count(near, Counter::lost_lines), 1U);
    EXPECT_TRUE(eventually([&] { return count(near, Counter::fresh_copies) >= 2; }));
}

/// A connection to the far half that says nothing.
rmem::Descriptor stranger(unsigned port) {
    rmem::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return socket;
}

/// Before the line comes, while it is up, and when the caller comes back.
TEST_F(Bridges, of_two_sites_come_together_among_strangers_who_say_nothing) {
    const TestRing near(three_nodes(LinkKind::ring)), far(three_nodes(LinkKind::ring));
    Node writer = near.join(0), reader = far.join(0);
    const Tool far_tool({"bridge", far_half(far, 0)});
    const unsigned port = port_of(far_tool);
    std::vector<rmem::Descriptor> strangers;
    for (int i = 0; i < 40; ++i) strangers.push_back(stranger(port));
    auto near_tool = start(near_half(near, port));
    write_word(writer, 0, 1);
    ASSERT_TRUE(becomes(reader, 4096, 1)) << near_tool->err() << far_tool.err();
    for (int i = 0; i < 40; ++i) strangers.push_back(stranger(port));
    write_word(writer, 0, 2);
    ASSERT_TRUE(becomes(reader, 4096, 2)) << near_tool->err() << far_tool.err();
    near_tool->signal(SIGKILL);
    near_tool->wait();
    write_word(writer, 0, 3);
    near_tool = start(near_half(near, port));
    EXPECT_TRUE(becomes(reader, 4096, 3)) << near_tool->err() << far_tool.err();
}

TEST_F(Bridges, of_two_sites_with_other_keys_say_so_and_forward_nothing) {
    const TestRing near(three_nodes(LinkKind::ring)), far(three_nodes(LinkKind::ring));
    Node writer = near.join(0), reader = far.join(0);
    const Tool far_tool({"bridge", far_half(far, 0)});
    const unsigned port = port_of(far_tool);
    std::filesystem::remove(key());
    const Tool near_tool({"bridge", near_half(near, port)});
    write_word(writer, 0, 1);
    // Whichever finds out first ends the line.
    EXPECT_TRUE(eventually([&] {
        return (far_tool.err() + near_tool.err()).find("has another key") != std::string::npos;
    })) << far_tool.err();
    EXPECT_EQ(reader.load(4096), 0U);
}

/// The near ring's writer finishes, whatever the far site does; the near bridge keeps little, and
/// tells how much it is behind.
TEST_F(Bridges, of_a_site_whose_far_one_is_stopped_stay_small_and_catch_up) {
    const TestRing near(three_nodes(LinkKind::ring)), far(three_nodes(LinkKind::ring));
    Node writer = near.join(0), reader = far.join(0);
    const Tool far_tool({"bridge", far_half(far, 0)});
    const Tool near_tool({"bridge", near_half(near, port_of(far_tool))});
    write_word(writer, 0, 1);
    ASSERT_TRUE(becomes(reader, 4096, 1)) << near_tool.err() << far_tool.err();
    const std::size_t before = resident_bytes(near_tool);
    far_tool.signal(SIGSTOP);
    std::uint32_t value = 1;
    // Until the connection is full, and much more.
    ASSERT_TRUE(eventually([&] {
        for (unsigned i = 0; i < 10'000; ++i, ++value)
            write_word(writer, 4 * (value % 1000), value);
        return count(near, Counter::conflated) > 100'000;
    })) << near_tool.err();
    EXPECT_LT(resident_bytes(near_tool), before + (32 << 20));
    EXPECT_GT(count(near, Counter::lag_now_ns), 0U);
    far_tool.signal(SIGCONT);
    EXPECT_TRUE(eventually([&] { return are_equal(writer, reader); })) << near_tool.err();
    EXPECT_TRUE(eventually([&] { return count(near, Counter::lag_now_ns) < 1'000'000'000; }));
}

TEST_F(Bridges, of_a_circle_forward_one_way_and_take_over_when_the_other_ends) {
    const TestRing first(three_nodes(LinkKind::ring)), second(three_nodes(LinkKind::ring));
    Node a = first.join(0), b = second.join(0);
    const auto one_way = [&](const std::string& name, const char* from, const char* to) {
        const unsigned node = name == "one" ? 2 : 1;
        return file(name, fmt::format(R"({{"rings": {{"a": {}, "b": {}}}, "regions": [
            {{"name": "{}", "from": "{}", "offset": 0, "to": "{}", "at": 0, "bytes": 64}}]}})",
                                      ring(first, node), ring(second, node), name, from, to));
    };
    auto one = start(one_way("one", "a", "b"));
    write_word(a, 0, 1);
    ASSERT_TRUE(becomes(b, 0, 1)) << one->err();
    const Tool other({"bridge", one_way("other", "b", "a")});
    ASSERT_TRUE(other.prints("region 'other' would go in a circle")) << other.err();
    EXPECT_TRUE(eventually([&] { return count(first, Counter::refused_loops, 1) == 1; }));
    write_word(b, 4, 2);
    write_word(a, 8, 3);
    ASSERT_TRUE(becomes(b, 8, 3)) << one->err();
    EXPECT_EQ(a.load(4), 0U);
    one->signal(SIGKILL);
    one->wait();
    EXPECT_TRUE(becomes(a, 4, 2)) << other.err();
}

TEST_F(Bridges, end_when_they_are_told_to_also_while_they_spin) {
    const TestRing first(three_nodes(LinkKind::ring)), second(three_nodes(LinkKind::ring));
    Node writer = first.join(0), reader = second.join(0);
    Tool tool({"bridge", "--spin", local(first, second)});
    write_word(writer, 0, 1);
    ASSERT_TRUE(becomes(reader, 4096, 1)) << tool.err();
    tool.signal(SIGTERM);
    EXPECT_EQ(tool.wait().code, 0);
}

TEST_F(Bridges, do_not_grow_over_many_writes) {
    if (kSanitized) GTEST_SKIP() << "a sanitizer keeps what a program gives back";
    const TestRing first(three_nodes(LinkKind::ring)), second(three_nodes(LinkKind::ring));
    Node writer = first.join(0), reader = second.join(0);
    const Tool tool({"bridge", local(first, second)});
    std::uint32_t value = 0;
    const auto write_many = [&] {
        for (unsigned i = 0; i < 100'000; ++i, ++value)
            write_word(writer, 4 * (value % 1000), value);
        EXPECT_TRUE(eventually([&] { return are_equal(writer, reader); })) << tool.err();
    };
    // Until it has had a full window, and as many copies as there are ends.
    for (unsigned i = 0; i < 3; ++i) write_many();
    const std::size_t before = resident_bytes(tool);
    for (unsigned i = 0; i < 3; ++i) write_many();
    EXPECT_LT(resident_bytes(tool), before + (2 << 20));
}

TEST_F(Bridges, show_their_counters_in_info_and_metrics) {
    const TestRing first(three_nodes(LinkKind::ring)), second(three_nodes(LinkKind::ring));
    Node writer = first.join(0), reader = second.join(0);
    const Tool tool({"bridge", local(first, second)});
    write_word(writer, 0, 1);
    ASSERT_TRUE(becomes(reader, 4096, 1)) << tool.err();
    ASSERT_TRUE(eventually([&] { return count(first, Counter::forwarded_frames) != 0; }));
    expect_out(run_tool({"info", first.name()}), 0, {"forwarded_frames"});
    expect_out(run_tool({"metrics", first.name()}), 0,
               {"rmem_bridge_forwarded_frames_total", "TYPE rmem_bridge_lag_now_seconds gauge"});
}

TEST_F(Bridges, refuse_a_file_that_cannot_be_meant_with_a_sentence) {
    const std::string rings =
        R"({"rings": {"a": {"RMEM_RING": "a", "table": "32K"},
                      "b": {"RMEM_RING": "b", "table": "32K"}}, "regions": [)";
    const std::string there = R"({"name": "x", "from": "a", "offset": 0, "to": "b", "at": 64,
                                  "bytes": 64})";
    const std::pair<std::string, const char*> cases[] = {
        {"{", "this is no JSON"},
        {R"({"rings": {}, "regions": [1]})", "has 0 rings; give two"},
        {rings + "]}", "has no list of 'regions'"},
        {rings + there + "," + there + "]}", "is declared twice"},
        {rings + there + R"(, {"name": "y", "from": "a", "offset": 256, "to": "b", "at": 124,
                               "bytes": 8}]})",
         "region 'y' overlaps region 'x' in ring 'b': each word has one owner"},
        {rings + there + R"(, {"name": "y", "from": "b", "offset": 64, "to": "a", "at": 256,
                               "bytes": 8}]})",
         "overlaps region 'x' of the other way in ring 'b': words would go in a circle"},
        {rings + there + ",]}", "wrong:3:48: here this is no JSON any more; correct it"},
        {rings + R"({"name": "x", "from": "a", "offset": "32K", "to": "b", "at": 0, "bytes": 4}]})",
         "ring 'a': region 'x' overlaps the table, 4096 bytes at 0x8000; move one of them"},
        {rings + R"({"name": "x", "from": "a", "offset": "0xFFFFFC", "to": "b", "at": 0,
                     "bytes": 64}]})",
         "region 'x', 64 bytes at 0xfffffc, is not within its memory"},
        {R"({"rings": {"a": {"RMEM_RING": "a", "RMEM_LINK": "rnig", "table": 4096}, 
             "b": {"table": 0}}, "regions": [)" +
             there + "]}",
         "there is no link 'rnig' (RMEM_LINK) (did you mean 'ring'?)"},
        {rings + R"({"name": "x", "from": "a", "offset": 2, "to": "b", "at": 0, "bytes": 4}]})",
         "has a 'offset' of 2; give a multiple of 4"},
        {rings + R"({"name": "x", "from": "a", "offset": 0, "to": "c", "at": 0, "bytes": 4}]})",
         "has 'c' as its 'to', which is none of the rings"},
        {rings + R"({"name": "x", "from": "a", "offset": 0, "to": "b", "at": 0, "bytes": 4,
                     "limit": 3}]})",
         "has 'limit', which means nothing here"},
        {rings + R"({"name": "x", "from": "a", "offset": 0, "to": "b", "at": 0, "bytes": 64,
                     "sync": [[60, 8]]}]})",
         "has sync words at 0x3c that are not within it"},
    };
    for (const auto& [text, sentence] : cases) {
        expect_err(run_tool({"bridge", "--check", file("wrong", text)}), 1, {sentence});
    }
    EXPECT_THAT(run_tool({"bridge", "--check", "/"}).err,
                HasSubstr("'/' cannot be read: Is a directory; name a file"));
    expect_out(run_tool({"bridge", "--check", file("right", rings + there + "]}")}), 0,
               {"is brought"});
}

TEST_F(Bridges, refuse_regions_that_are_not_within_the_rings_memory) {
    const TestRing first(three_nodes(LinkKind::ring)), second(three_nodes(LinkKind::ring));
    for (const auto& [at, sentence] :
         {std::pair{kBytes - 60, "is not within its memory of 65536 bytes"},
          std::pair{kTable - 60, "region 'x' overlaps the table"}}) {
        expect_err(
            run_tool({"bridge",
                      file("beyond", fmt::format(R"({{"rings": {{"a": {}, "b": {}}}, "regions": [
                {{"name": "x", "from": "a", "offset": 0, "to": "b", "at": {}, "bytes": 64}}]}})",
                                                 ring(first), ring(second), at))}),
            1, {sentence});
    }
}

}  // namespace
}  // namespace rmem::test
