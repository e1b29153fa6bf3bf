// SPDX-License-Identifier: Apache-2.0
// `rmem who`, `rmem break`, and --owners of `rmem run`.

#include "rmem/node.hpp"
#include "rmem/ring/owners.hpp"
#include "rmem/ring/ring.hpp"
#include "tests/support/tool.hpp"
#include "tools/watch/writers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kOwnedMap = R"([ring]
nodes = 2
canaries = true
[[variable]]
name = "altitude"
offset = 0x100
type = "f64"
unit = "m"
owner = 0
[[variable]]
name = "gear"
offset = 0x108
type = "u32"
owner = 1
)";

struct Writers : ::testing::Test {
    RingName name;
    std::string folder = ::testing::TempDir() + "who-XXXXXX";
    std::string map;

    Writers() {
        map = std::string(::mkdtemp(folder.data())) + "/rig.toml";
        std::ofstream(map) << kOwnedMap;
    }
    ~Writers() override {
        run_tool({"clean", name.get()});
        std::filesystem::remove_all(folder);
    }

    std::shared_ptr<Ring> make(const char* link, const Arguments& more = {}) const {
        const Ran made =
            run_tool(concat({"make", name.get(), "-n", "2", "--link", link, "--map", map}, more));
        EXPECT_EQ(made.code, 0) << made.err;
        return Ring::attach(name.get());
    }
    static void write(Node& node, std::size_t offset, double value) {
        EXPECT_EQ(node.write(offset, &value, sizeof value), WriteResult::ok);
    }
    Ran who(const Arguments& more) const { return run_tool(concat({"who", name.get()}, more)); }
};

TEST_F(Writers, are_found_in_the_logs_that_they_write_anyway) {
    const auto ring = make("ring", {"--timing", "gt200"});  // writers look at the clock
    Node first(ring, {0, 0}), second(ring, {1, 1});
    for (unsigned i = 0; i < 40; ++i) write(first, 0x100, i);
    write(second, 0x100, -5);
    const auto json = who({"altitude", "--last", "3", "--json"}).json();
    ASSERT_EQ(json["writes"].size(), 3U);
    std::vector<std::string> values;
    for (const auto& one : json["writes"]) {
        values.push_back(one["value"]);
        EXPECT_EQ(one["pid"], ::getpid());
        EXPECT_EQ(one["rank"], one["node"]);
    }
    EXPECT_THAT(values, ::testing::IsSupersetOf({"-5 m", "39 m"}));
    EXPECT_THAT(who({"gear"}).out, HasSubstr("have no write of it any more"));
    EXPECT_THAT(who({"0x100"}).out, HasSubstr("altitude"));
}

TEST_F(Writers, are_found_after_the_log_has_wrapped) {
    const auto ring = make("ring");
    Node first(ring, {0, 0}), second(ring, {1, 1});
    const std::vector<std::uint32_t> block(64, 7);
    for (unsigned i = 0; i < 6000; ++i) {
        while (first.write(0x400, block.data(), block.size() * 4) != WriteResult::ok) {
            first.poll();
            second.poll();
        }
        if (i % 100 == 0) write(first, 0x100, i);
    }
    const auto writes = tools::last_writes(*ring, 0x100, 0x108, 5);
    ASSERT_FALSE(writes.empty());
    for (const auto& one : writes) {
        EXPECT_EQ(one.offset, 0x100U);
        EXPECT_EQ(one.node, 0U);
        EXPECT_EQ(one.bytes.size(), 8U);
    }
}

TEST_F(Writers, are_not_noted_where_a_store_is_the_transfer) {
    const auto ring = make("direct");
    EXPECT_THAT(who({"altitude"}).out, HasSubstr("nobody notes who stored"));
}

TEST_F(Writers, of_others_variables_are_told_with_all_about_them) {
    const auto ring = make("direct", {"--owners", "report"});
    Node first(ring, {0, 0});
    ::testing::internal::CaptureStderr();
    write(first, 0x100, 7);
    EXPECT_EQ(first.write_word(0x108, 3), WriteResult::ok);
    EXPECT_EQ(first.write_word(0x200, 3), WriteResult::ok);
    static_cast<void>(::testing::internal::GetCapturedStderr());
    EXPECT_THAT(who({}).out, AllOf(HasSubstr("gear        node 1"), HasSubstr("0x00000200  nobody"),
                                   HasSubstr("2 writes of others' variables")));
    const auto info = run_tool({"info", name.get(), "--json"}).json();
    EXPECT_EQ(info["map"]["variables"], 2);
    EXPECT_EQ(info["map"]["owners"], "report");
    EXPECT_EQ(info["map"]["foreign_writes"], 2);
    EXPECT_THAT(run_tool({"info", name.get()}).out,
                HasSubstr("2 variables; owners: report, 2 writes of others' variables"));
    const auto json = who({"gear", "--json"}).json();
    ASSERT_EQ(json["foreign"].size(), 1U);
    EXPECT_EQ(json["foreign"][0]["name"], "gear");
    EXPECT_EQ(json["foreign"][0]["before"], "0");
    EXPECT_EQ(json["foreign"][0]["after"], "3");
    EXPECT_EQ(json["foreign"][0]["pid"], ::getpid());
}

TEST_F(Writers, of_others_variables_are_refused_where_owners_are_enforced) {
    const auto ring = make("direct", {"--owners", "enforce"});
    expect_err(run_tool({"poke", name.get(), "gear", "1", "--node", "0"}), 1,
               {"nothing was written", "node 1's"});
    EXPECT_EQ(run_tool({"poke", name.get(), "gear", "1"}).code, 0) << "as its owner";
    EXPECT_EQ(run_tool({"peek", name.get(), "gear"}).out, "1\n");
    EXPECT_THAT(who({}).out, HasSubstr("refused"));
}

TEST_F(Writers, need_a_map_to_be_looked_after) {
    expect_err(run_tool({"make", name.get(), "--owners", "report"}), 2, {"give --map"});
    const auto ring = make("direct");
    EXPECT_THAT(who({}).out, HasSubstr("does not look after owners"));
}

TEST_F(Writers, are_stopped_by_a_break_at_a_value) {
    for (const char* link : {"direct", "ring"}) {
        auto ring = make(link);
        Child writer([&] {
            Node node(Ring::attach(name.get()), {0, 0});
            for (double value = 0;; ++value) {
                write(node, 0x100, value);
                ::usleep(1000);
            }
        });
        const Ran ran =
            run_tool({"break", name.get(), "altitude", "--when", "> 20", "--for", "30s", "--json"});
        ASSERT_EQ(ran.code, 0) << ran.err;
        EXPECT_GT(ran.json()["value"], 20);
        EXPECT_EQ(ran.json()["pid"], writer.pid());
        EXPECT_EQ(ran.json()["signalled"], true);
        EXPECT_TRUE(eventually([&] { return is_stopped(writer.pid()); })) << link;
        writer.kill();
        ring.reset();
        EXPECT_EQ(run_tool({"clean", name.get()}).code, 0);
    }
}

TEST_F(Writers, are_not_signalled_by_a_break_where_only_the_memory_says_who_they_are) {
    const auto ring = make("direct");
    Node node(ring, {1, 1});
    // A process that has nothing to do with the ring, and what kill(2) takes for many.
    Child other([] { ::execlp("sleep", "sleep", "600", nullptr); });
    ASSERT_TRUE(eventually([&] {
        return tools::process_text(static_cast<std::uint32_t>(other.pid())).ends_with("(sleep)");
    }));
    for (const std::uint32_t pid : {~0U, 0U - static_cast<std::uint32_t>(::getpgrp()),
                                    std::uint32_t{1}, std::uint32_t(other.pid())}) {
        ring->rank(1).pid = pid;
        Tool breaking({"break", name.get(), "gear", "--signal", "TERM"});
        ASSERT_TRUE(eventually([&] {
            EXPECT_EQ(node.write_word(0x108, 3), WriteResult::ok);
            return !breaking.out().empty();
        }));
        EXPECT_EQ(breaking.wait().code, 0);
        EXPECT_TRUE(breaking.out().find("cannot be signalled") != std::string::npos ||
                    breaking.out().find("not known") != std::string::npos)
            << breaking.out();
        EXPECT_FALSE(other.poll());
    }
    ring->rank(1).pid = static_cast<std::uint32_t>(::getpid());
}

TEST_F(Writers, are_told_by_a_break_without_a_signal) {
    const auto ring = make("ring");
    Tool breaking({"break", name.get(), "gear", "--signal", "none", "--json"});
    ASSERT_TRUE(eventually([&] { return ring->seats() > 2; }));
    Node node(ring, {1, 1});
    EXPECT_TRUE(eventually([&] {
        EXPECT_EQ(node.write_word(0x108, 3), WriteResult::ok);
        return !breaking.out().empty();
    }));
    const auto json = breaking.wait().json();
    EXPECT_EQ(json["name"], "gear");
    EXPECT_EQ(json["node"], 1);
    EXPECT_EQ(json["pid"], ::getpid());
    EXPECT_EQ(json["signalled"], false);
}

TEST_F(Writers, are_waited_for_by_a_break_no_longer_than_is_wanted) {
    const auto ring = make("ring");
    const Ran ran = run_tool({"break", name.get(), "gear", "--for", "50ms"});
    EXPECT_EQ(ran.code, 1);
    expect_err(run_tool({"break", name.get(), "gear", "--when", "about 3"}), 2,
               {"is no condition"});
    expect_err(run_tool({"break", name.get(), "gear", "--signal", "HUGE"}), 2, {"there is no"});
}

}  // namespace
}  // namespace rmem::test
