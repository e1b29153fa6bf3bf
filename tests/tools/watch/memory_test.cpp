// SPDX-License-Identifier: Apache-2.0
// `rmem peek`, `poke`, `dump` and `watch`.

#include "rmem/node.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/waiting/word_sleepers.hpp"
#include "tests/support/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::size_t kBytes = 4096;

std::shared_ptr<Ring> make(const RingName& name, LinkKind link) {
    RingConfig config = name.config(2, link, kBytes);
    config.system_bytes = 64;
    return open_ring(config);
}

class Memory : public ::testing::Test {
protected:
    explicit Memory(LinkKind link = LinkKind::direct) : ring_(make(name_, link)) {}
    Ran poke(const std::string& offset, const Arguments& more) {
        return run_tool(concat({"poke", name_.get(), offset}, more));
    }
    Ran peek(const std::string& offset, const Arguments& more = {}) {
        return run_tool(concat({"peek", name_.get(), offset}, more));
    }

    RingName name_;
    std::shared_ptr<Ring> ring_;
};

TEST_F(Memory, pokes_several_values_one_after_the_other) {
    EXPECT_EQ(poke("16", {"1", "2", "3"}).code, 0);
    EXPECT_EQ(peek("0x10", {"4"}).out, "1\n2\n3\n0\n");
    const auto json = peek("16", {"3", "--json"}).json();
    EXPECT_EQ(json["values"], nlohmann::json({1, 2, 3}));
    EXPECT_EQ(json["offset"], 16);
    EXPECT_EQ(poke("16", {"9", "--json"}).json()["bytes"], 4);
}

TEST_F(Memory, pokes_into_the_bank_that_programs_see) {
    poke("0x40", {"77"});
    std::uint32_t word = 0;
    std::memcpy(&word, ring_->bank(0) + 0x40, sizeof word);
    EXPECT_EQ(word, 77U);
}

TEST_F(Memory, refuses_values_and_places_that_cannot_be) {
    struct Case {
        const char* offset;
        Arguments more;
        int code;
    };
    for (const Case& c : {Case{"0", {"nonsense"}, 2},
                          {"0", {"4294967296"}, 2},
                          {"0", {"256", "--as", "u8"}, 2},
                          {"0", {"1", "--as", "u65"}, 2},
                          {"2", {"1"}, 2},
                          {"somewhere", {"1"}, 2},
                          {"4096", {"1"}, 1},
                          {"4092", {"1", "2"}, 1},
                          {"0", {"1", "--node", "2"}, 1}}) {
        const Ran ran = poke(c.offset, c.more);
        EXPECT_EQ(ran.code, c.code) << c.offset << " " << c.more[0];
        EXPECT_THAT(ran.err, StartsWith("rmem poke: "));
        EXPECT_THAT(ran.err, HasSubstr("]\n")) << "names the error";
    }
    EXPECT_EQ(peek("0", {"18446744073709551615"}).code, 1);
    const std::string end = std::to_string(ring_->config().bank_bytes());
    EXPECT_EQ(peek(end, {"--system"}).code, 1) << "behind the system regions";
    EXPECT_EQ(peek("4156", {"--system"}).code, 0) << "the system regions may be looked at";
    expect_err(peek("4156"), 1, {"--system"});  // not by mistake
    expect_err(peek("257"), 2, {"multiple of 4"});
    EXPECT_EQ(run_tool({"watch", name_.get(), "4096", "--for", "1ms"}).code, 1);
    EXPECT_EQ(run_tool({"watch", name_.get(), "2", "--for", "1ms"}).code, 2);
    EXPECT_EQ(run_tool({"dump", name_.get(), "--from", "8K"}).code, 1);
    EXPECT_EQ(peek("0", {"1", "--node", "2"}).code, 1);
    EXPECT_EQ(run_tool({"peek", "no-such-ring", "0"}).code, 1);
}

TEST_F(Memory, raises_interrupts_as_a_write_of_a_node) {
    const Membership member(ring_, {1, 1});
    InterruptBoard board(*ring_, 1, 1);
    board.watch(0x100, 8, Trigger::any_write);
    ASSERT_EQ(poke("0x100", {"5", "6", "--node", "0"}).code, 0);
    const auto first = board.take();
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->offset, 0x100U);
    EXPECT_EQ(first->value, 5U);
    EXPECT_EQ(first->origin, 0U);
    const auto second = board.take();
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(second->value, 6U);
    EXPECT_FALSE(board.take().has_value());

    poke("0x200", {"1", "--node", "0"});
    EXPECT_FALSE(board.take().has_value()) << "nobody watches that word";
    poke("0x100", {"1", "--node", "1"});
    EXPECT_FALSE(board.take().has_value()) << "a node is not told of its own writes";
    poke("0x100", {"2", "--node", "0"});
    EXPECT_TRUE(board.take().has_value()) << "poking has not disturbed the marks";
}

TEST_F(Memory, wakes_ranks_that_sleep) {
    Node node(ring_, {1, 1});
    std::thread sleeper([&] { EXPECT_EQ(node.wait_change(0, 0, Deadline::in(kPatienceNs)), 1U); });
    while (ring_->sleeper_counts().all == 0) std::this_thread::yield();
    poke("0", {"1"});
    sleeper.join();
}

TEST_F(Memory, dumps_with_repeated_lines_folded) {
    poke("0x100", {"hello", "--as", "text"});
    const Ran ran = run_tool({"dump", name_.get()});
    EXPECT_EQ(ran.out,
              "00000000  00 00 00 00  00 00 00 00  00 00 00 00  00 00 00 00  |................|\n"
              "*\n"
              "00000100  68 65 6c 6c  6f 00 00 00  00 00 00 00  00 00 00 00  |hello...........|\n"
              "00000110  00 00 00 00  00 00 00 00  00 00 00 00  00 00 00 00  |................|\n"
              "*\n"
              "00001000\n");
}

TEST_F(Memory, dumps_a_part_of_a_line) {
    poke("4", {"abc", "--as", "text"});
    const Ran ran = run_tool({"dump", name_.get(), "--from", "4", "--to", "7"});
    EXPECT_THAT(ran.out, StartsWith("00000004  61 62 63 "));
    EXPECT_THAT(ran.out, HasSubstr("|abc|\n00000007\n"));
}

TEST_F(Memory, dumps_the_bytes_themselves) {
    poke("0x10", {"1", "2"});
    const Ran ran = run_tool({"dump", name_.get(), "--format", "raw"});
    ASSERT_EQ(ran.out.size(), kBytes);
    EXPECT_EQ(std::memcmp(ran.out.data(), ring_->bank(0), kBytes), 0);
    EXPECT_EQ(run_tool({"dump", name_.get(), "--format", "raw", "--system"}).out.size(),
              ring_->config().bank_bytes());
}

TEST_F(Memory, dumps_json_that_tells_every_byte) {
    poke("0x20", {"0x01020304", "--as", "x32"});
    const auto json = run_tool({"dump", name_.get(), "--json"}).json();
    std::size_t bytes = 0;
    std::string at_0x20;
    for (const auto& line : json["lines"]) {
        const std::size_t times =
            1 + (line.contains("repeats") ? line["repeats"].get<std::size_t>() : 0);
        bytes += times * line["hex"].get<std::string>().size() / 2;
        if (line["offset"] == 0x20) at_0x20 = line["hex"];
    }
    EXPECT_EQ(bytes, kBytes);
    EXPECT_EQ(at_0x20, "04030201000000000000000000000000");
}

TEST_F(Memory, takes_the_ring_as_a_word_or_as_an_option) {
    poke("8", {"5"});
    EXPECT_EQ(run_tool({"peek", "--ring", name_.get(), "8"}).out, "5\n");
    EXPECT_EQ(run_tool({"peek", "8", "--ring=" + name_.get()}).out, "5\n");
}

TEST_F(Memory, watches_changes_until_there_were_enough) {
    poke("0", {"1"});
    Tool watch({"watch", name_.get(), "0", "2", "--count", "2", "--interval", "1ms"});
    ASSERT_TRUE(watch.prints("0x00000000  1\n"));
    poke("0", {"2"});
    EXPECT_TRUE(watch.prints("0x00000000  1 -> 2\n"));
    poke("4", {"3"});
    expect_out(watch.wait(), 0, {"0x00000004  0 -> 3\n"});
}

TEST_F(Memory, watches_as_json_lines) {
    Tool watch({"watch", name_.get(), "0", "--as", "f32", "--count", "1", "--json"});
    ASSERT_TRUE(watch.prints("\n"));
    poke("0", {"2.5", "--as", "f32"});
    const Ran ran = watch.wait();
    const auto end_of_first = ran.out.find('\n');
    const auto change = nlohmann::json::parse(ran.out.substr(end_of_first));
    EXPECT_EQ(change["before"], 0.0);
    EXPECT_EQ(change["value"], 2.5);
    EXPECT_GT(change["time_ns"].get<std::int64_t>(), 0);
}

TEST_F(Memory, stops_watching_when_the_last_member_has_left) {
    Tool watch({"watch", name_.get(), "0"});
    ASSERT_TRUE(watch.prints("0x00000000"));
    ring_.reset();
    expect_err(watch.wait(), 0, {"no members left"});
}

TEST_F(Memory, stops_watching_after_the_time_given) {
    EXPECT_EQ(run_tool({"watch", name_.get(), "0", "--for", "1ms"}).code, 0);
}

struct MemoryOfReplicas : Memory {
    MemoryOfReplicas() : Memory(LinkKind::ring) {}
};

TEST_F(MemoryOfReplicas, shows_each_nodes_own_bank) {
    const std::uint32_t value = 42;
    std::memcpy(ring_->bank(1) + 8, &value, sizeof value);
    EXPECT_EQ(peek("8").out, "0\n");
    EXPECT_EQ(peek("8", {"--node", "1"}).out, "42\n");
}

TEST_F(MemoryOfReplicas, pokes_without_a_rank_into_all_banks) {
    EXPECT_EQ(poke("8", {"1"}).code, 0);
    EXPECT_EQ(peek("8", {"--node", "1"}).out, "1\n");
}

TEST_F(MemoryOfReplicas, pokes_as_a_guest_of_a_node) {
    Node node(ring_, {1, 1});
    const Ran ran = poke("8", {"43", "--node", "1"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(node.load(8), 43U);
}

}  // namespace
}  // namespace rmem::test
