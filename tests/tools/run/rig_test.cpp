// SPDX-License-Identifier: Apache-2.0
// What the ranks of a job run: several programs in one line, and rig files.
#include "tools/run/rig.hpp"

#include "rmem/error.hpp"
#include "tests/support/refused.hpp"
#include "tests/support/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

const RingKeys kKeys = {{"name", "RMEM_RING"}, {"size", "RMEM_SIZE"}, {"nodes", "RMEM_NODES"}};

Rig rig_of(const std::string& text) {
    return parse_rig(text, "some/rig.toml", kKeys);
}

using rmem::test::expect_err;
using rmem::test::refused;
using rmem::test::run_tool;

/// Two lines of a rig file; more of this rank come behind them.
const std::string kRank = "[[rank]]\nprogram = \"a\"\n";

std::string refusal_of(const std::string& text) {
    return refused(rmem::Errc::invalid_argument, [&] { rig_of(text); });
}
/// Of `count` ranks of the first of these programs.
std::string refusal_of(unsigned count, const rmem::test::Arguments& programs) {
    return refused(rmem::Errc::invalid_argument, [&] { programs_of(count, programs); });
}

TEST(Programs, a_colon_ends_a_program_and_each_has_its_ranks) {
    const auto programs =
        programs_of(2, {"./a", "-n", "9", ":", "./b", ":", "-n", "2", "--", "./c"});
    ASSERT_EQ(programs.size(), 5U);
    EXPECT_THAT(programs[1].command, ElementsAre("./a", "-n", "9")) << "its own options";
    EXPECT_THAT(programs[2].command, ElementsAre("./b")) << "one rank, where nothing is said";
    EXPECT_THAT(programs[4].command, ElementsAre("./c"));
}

TEST(Programs, refuses_what_is_no_program) {
    EXPECT_THAT(refusal_of(1, {"./a", ":"}), HasSubstr("missing"));
    EXPECT_THAT(refusal_of(1, {":", "./a"}), HasSubstr("missing"));
    EXPECT_THAT(refusal_of(1, {"./a", ":", "-n", "2"}), HasSubstr("missing"));
    EXPECT_THAT(refusal_of(1, {"./a", ":", "--link", "ring", "./b"}), HasSubstr("'--link'"));
    EXPECT_THAT(refusal_of(200, {"./a", ":", "-n", "57", "./b"}), HasSubstr("at most 256"));
    EXPECT_THAT(refusal_of(1, {"./a", ":", "-n", "0", "./b"}), HasSubstr("0 ranks"));
}

TEST(RigFile, gives_the_ring_its_settings_and_each_rank_its_program) {
    const Rig rig = rig_of(R"(
        [ring]
        name = "cockpit"
        size = "64K"
        nodes = 3
        [environment]
        SPEED = 10
        [[rank]]
        program = "./aircraft"
        arguments = ["flight.csv", 20]
        environment = { SPEED = 20.5, LIVE = true }
        [[rank]]
        program = "panel"
        count = 2
    )");
    EXPECT_THAT(rig.settings,
                UnorderedElementsAre(Pair("RMEM_RING", "cockpit"), Pair("RMEM_SIZE", "64K"),
                                     Pair("RMEM_NODES", "3")));
    ASSERT_EQ(rig.programs.size(), 3U);
    EXPECT_THAT(rig.programs[0].command, ElementsAre("./aircraft", "flight.csv", "20"));
    EXPECT_THAT(rig.programs[0].environment.front(), Pair("SPEED", "10"));
    EXPECT_THAT(rig.programs[0].environment.back(), Pair("SPEED", "20.5")) << "its own wins";
    EXPECT_THAT(rig.programs[2].command, ElementsAre("panel"));
    EXPECT_EQ(rig.programs[2].where, "some/rig.toml:12");
}

TEST(RigFile, counts_folders_from_its_own) {
    const auto here = std::filesystem::current_path();
    const Rig rig = parse_rig(kRank + kRank + "directory = \".\"", "rig.toml", kKeys);
    EXPECT_EQ(rig.programs[0].directory, here);
    EXPECT_TRUE(std::filesystem::equivalent(rig.programs[1].directory, here));
    EXPECT_EQ(rig_of(kRank).programs[0].directory, here / "some");
    EXPECT_THAT(refusal_of(kRank + "directory = \"none-such\""),
                StartsWith("some/rig.toml:3: there is no folder"));
}

TEST(RigFile, takes_processors_as_numbers_ranges_and_lists) {
    const unsigned own = usable_processors().front();
    const auto processors = [](const std::string& text) {
        return rig_of(kRank + "processors = " + text).programs[0].processors;
    };
    const std::string number = std::to_string(own);
    EXPECT_THAT(processors(number), ElementsAre(own));
    EXPECT_THAT(processors("\"" + number + "-" + number + "\""), ElementsAre(own));
    EXPECT_THAT(processors("[" + number + "]"), ElementsAre(own));
    for (const char* wrong :
         {"\"\"", "\"1-\"", "\"a\"", "\"2-1\"", "-1", "\"0,\"", "\"0-999999\"", "99999999999"}) {
        EXPECT_THAT(refusal_of(kRank + "processors = " + wrong),
                    StartsWith("some/rig.toml:3: processors are"))
            << wrong;
    }
    EXPECT_THAT(refusal_of(kRank + "processors = 1023"), HasSubstr("no processor 1023"));
}

TEST(RigFile, names_the_line_of_what_is_wrong) {
    EXPECT_THAT(refusal_of("[ring]\nname = "), StartsWith("some/rig.toml:2:8: "));
    EXPECT_THAT(
        refusal_of("[ring]\nnaem = \"x\"\n"),
        StartsWith("some/rig.toml:2: [ring] has no key 'naem'; there are name, nodes, size"));
    EXPECT_THAT(refusal_of("[ring]\nsize = [1]\n"),
                StartsWith("some/rig.toml:2: 'size' is neither"));
    EXPECT_THAT(refusal_of("ring = 3\n"), StartsWith("some/rig.toml:1: 'ring' is not a table"));
    EXPECT_THAT(refusal_of("\nranks = 3\n"), StartsWith("some/rig.toml:2: a rig file has no key"));
    EXPECT_THAT(refusal_of("[ring]\nsize = 4"), HasSubstr("needs a table [[rank]]"));
    EXPECT_THAT(refusal_of("rank = [1]"), StartsWith("some/rig.toml:1: a rig needs"));
    EXPECT_THAT(refusal_of("[[rank]]\ncount = 2"), StartsWith("some/rig.toml:1: this [[rank]]"));
    EXPECT_THAT(refusal_of("[[rank]]\nprogram = \"\""), HasSubstr("'program' is empty"));
    EXPECT_THAT(refusal_of(kRank + "arguments = \"b\""),
                StartsWith("some/rig.toml:3: 'arguments' is not a list"));
    EXPECT_THAT(refusal_of(kRank + "count = 0"), HasSubstr("from 1 to 256"));
    EXPECT_THAT(refusal_of(kRank + "count = 256\n" + kRank),
                StartsWith("some/rig.toml:4: a ring has at most 256"));
    EXPECT_THAT(refusal_of(kRank + "user = \"no-such-user\""),
                HasSubstr("'no-such-user' is not known"));
    EXPECT_THAT(refusal_of(kRank + "[rank.environment]\nRMEM_SIZE = 4\n"),
                StartsWith("some/rig.toml:4: RMEM_SIZE is the same for all"));
    EXPECT_THAT(refusal_of(kRank + "[rank.environment]\nRMEM_RANK = 1\n"), HasSubstr("RMEM_RANK"));
    EXPECT_THAT(refused(rmem::Errc::invalid_argument, [] { read_rig("no-such-file.toml", kKeys); }),
                StartsWith("the rig file 'no-such-file.toml' cannot be read: No such file"));
}

TEST(RigFile, another_user_is_for_root_to_name) {
    const std::string text = kRank + "user = \"nobody\"";
    if (::geteuid() != 0) {
        EXPECT_THAT(refusal_of(text), HasSubstr("only root"));
        return;
    }
    const Rig rig = rig_of(text);
    ASSERT_TRUE(rig.programs[0].user);
    EXPECT_NE(rig.programs[0].user->id, 0U);
    EXPECT_FALSE(rig_of(kRank + "user = \"root\"").programs[0].user) << "that is who we are";
}

std::multiset<std::string> lines_of(const std::string& text) {
    std::multiset<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.insert(line);
    return lines;
}

TEST(RunPrograms, starts_several_in_one_ring) {
    const auto ran = run_tool({"run", "sh", "-c", "echo a $RMEM_RANK/$RMEM_RANKS", ":", "-n", "2",
                               "sh", "-c", "echo b $RMEM_RANK"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(lines_of(ran.out), UnorderedElementsAre("[0] a 0/3", "[1] b 1", "[2] b 2"));
}

TEST(RunPrograms, starts_a_rig_as_its_file_says) {
    const auto folder =
        std::filesystem::temp_directory_path() / ("rmem-rig-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder / "seat");
    const std::string file = (folder / "rig.toml").string();
    const bool is_root = ::geteuid() == 0;
    const unsigned last = usable_processors().back();
    std::ofstream(file) << "[ring]\nsize = \"64K\"\n"
                        << (is_root ? "unix-group = \"nogroup\"\n" : "")
                        << "[environment]\nRIG = \"rig\"\n"
                        << "[[rank]]\nprogram = \"sh\"\n"
                        << "arguments = [\"-c\", \"echo $RIG $RMEM_SIZE $(basename $PWD)\"]\n"
                        << "[[rank]]\nprogram = \"sh\"\ndirectory = \"seat\"\n"
                        << "arguments = [\"-c\", \"echo $(basename $PWD) $(id -un) $HOME; "
                           "taskset -cp $$ | sed 's/.*: //'\"]\n"
                        << "processors = " << last << "\n"
                        << (is_root ? "user = \"nobody\"\n" : "");
    const auto ran = run_tool({"run", "--rig", file});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(lines_of(ran.out),
                ::testing::Contains("[0] rig 64K " + folder.filename().string()));
    EXPECT_THAT(lines_of(ran.out), ::testing::Contains("[1] " + std::to_string(last)));
    if (is_root) {
        EXPECT_THAT(lines_of(ran.out), ::testing::Contains("[1] seat nobody /nonexistent"));
    }
    EXPECT_EQ(run_tool({"run", "--rig", file, "-n", "2"}).code, 2);
    if (is_root) {
        std::ofstream(file) << "[[rank]]\nprogram = \"true\"\nuser = \"nobody\"\n";
        expect_err(run_tool({"run", "--rig", file}), 125,
                   {"rig.toml:1: user 'nobody' could not join ring"});
    }
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tools
