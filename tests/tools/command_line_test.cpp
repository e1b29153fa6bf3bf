// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line.hpp"

#include "tests/support/tool.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <regex>
#include <string>
#include <vector>

namespace tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Said {
    int code;
    std::string out, err;
};

/// All of them in this process, also those that are programs of their own.
constexpr AddCommand kCommands[] = {add_run,     add_node,   add_list,   add_info,  add_env,
                                    add_peek,    add_poke,   add_dump,   add_watch, add_top,
                                    add_metrics, add_record, add_replay, add_serve, add_bench,
                                    add_sim,     add_make,   add_key,    add_wait,  add_doctor};

/// Options become variables of the process.
Said run(const std::vector<std::string>& words) {
    rmem::test::forget_settings();
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = run_command_line(words, kCommands);
    rmem::test::forget_settings();
    return {code, ::testing::internal::GetCapturedStdout(),
            ::testing::internal::GetCapturedStderr()};
}

/// With stdout going to `descriptor`, which is closed then.
Said run_into(int descriptor, const std::vector<std::string>& words) {
    Said said{};
    ::testing::internal::CaptureStderr();
    rmem::test::with_stdout(descriptor, [&] { said.code = run_command_line(words, kCommands); });
    said.err = ::testing::internal::GetCapturedStderr();
    ::close(descriptor);
    return said;
}

TEST(CommandLine, suggests_the_command_that_was_meant) {
    const Said said = run({"runn", "-n", "4"});
    EXPECT_EQ(said.code, 2);
    EXPECT_THAT(said.err, HasSubstr("'runn' (did you mean 'run'?)"));
    EXPECT_THAT(run({"sim", "papr"}).err, HasSubstr("rmem sim: there is no command 'papr' (did "
                                                    "you mean 'paper'?)"));
    EXPECT_THAT(run({"bogus"}).err, Not(HasSubstr("did you mean")));
}

TEST(CommandLine, suggests_the_option_that_was_meant_before_it_says_what_else_is_missing) {
    const Said said = run({"run", "--linq", "ring", "--", "./x"});
    EXPECT_EQ(said.code, 2);
    EXPECT_THAT(said.err,
                StartsWith("rmem run: there is no option --linq (did you mean '--link'?)"));
    EXPECT_THAT(run({"sim", "paper", "--figur=2"}).err, HasSubstr("did you mean '--figure'?"));
    EXPECT_THAT(run({"list", "--jsn"}).err, HasSubstr("did you mean '--json'?"));
}

TEST(CommandLine, leaves_a_programs_own_options_alone) {
    // The ring's name is refused, not a word after the program's.
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"run", "-n", "1", "--ring", "a/b", "--", "./x", "--linq"},
          {"run", "-n", "1", "--ring", "a/b", "./x", "--linq", "-z"}}) {
        const Said said = run(words);
        EXPECT_EQ(said.code, 125);
        EXPECT_THAT(said.err, HasSubstr("a/b"));
    }
}

TEST(CommandLine, takes_negative_numbers_for_values) {
    const Said said = run({"poke", "no-such-ring", "0", "-2", "--as", "i32"});
    EXPECT_EQ(said.code, 1);
    EXPECT_THAT(said.err, HasSubstr("no-such-ring"));
}

TEST(CommandLine, explains_itself_by_help_as_well) {
    EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
    const Said said = run({"help", "peek"});
    EXPECT_EQ(said.code, 0);
    EXPECT_EQ(said.out, run({"peek", "--help"}).out);
    EXPECT_THAT(said.out, HasSubstr("rmem peek my-ring"));
    EXPECT_EQ(run({"help", "peke"}).code, 2);
    EXPECT_EQ(run({"-v"}).out, run({"--version"}).out);
}

TEST(CommandLine, a_command_line_that_cannot_be_read_ends_with_2) {
    const std::vector<std::vector<std::string>> cases = {
        {},
        {"peek"},
        {"peek", "rig", "0x"},
        {"peek", "rig", "0", "--as", "u33"},
        {"peek", "rig", "1"},
        {"peek", "rig", "0", "many"},
        {"poke", "rig", "0", "x"},
        {"watch", "rig", "0", "--for", "5"},
        {"watch", "rig", "0", "--interval", "often"},
        {"dump", "rig", "--from", "8", "--to", "4"},
        {"record", "rig", "--sample", "0s"},
        {"record", "rig", "--wait", "5"},
        {"metrics", "rig", "--port", "99999"},
        {"env"},
        {"sim", "replay", "foo"},
        {"bench", "pingpong", "--link", "rnig"},
        {"bench", "pingpong", "--link", "sim"},
        {"bench", "pingpong", "--layout", "glossy"},
        {"bench", "pingpong", "--timing", "scramnet-burst"},
        {"bench", "pingpong", "--link", "ring", "--timing", "warp"},
        {"bench", "pingpong", "--bytes", "100000000000"},
        {"bench", "pingpong", "--bytes", "many"},
        {"bench", "pingpong", "--processors", "9999"},
        {"bench", "barrier", "--think", "5"},
        {"bench", "any", "--link", "udp"},
    };
    for (const auto& words : cases) {
        const Said said = run(words);
        EXPECT_EQ(said.code, 2) << ::testing::PrintToString(words);
        EXPECT_THAT(said.err, StartsWith("rmem"));
        EXPECT_EQ(said.out, "");
    }
}

TEST(CommandLine, says_of_each_number_that_is_none_what_to_give) {
    unsigned numbers = 0;
    for (const std::string command : {"run", "node", "env", "peek", "poke", "dump", "watch", "top",
                                      "metrics", "record", "replay", "serve", "bench", "doctor"}) {
        const std::string help = run({command, "--help"}).out;
        const std::regex of_numbers("(--[a-z-]+) (U?INT|FLOAT)");
        for (std::sregex_iterator found(help.begin(), help.end(), of_numbers), end; found != end;
             ++found) {
            const Said said = run({command, (*found)[1], "x"});
            EXPECT_EQ(said.code, 2) << command << " " << (*found)[1];
            EXPECT_THAT(said.err, HasSubstr((*found)[1].str() + " is 'x'; give a "));
            ++numbers;
        }
    }
    EXPECT_GE(numbers, 15U);
}

TEST(CommandLine, answers_what_is_wrong_by_the_object_what_was_found_and_what_to_do) {
    const struct {
        std::vector<std::string> words;
        const char* sentence;
    } cases[] = {
        {{}, "rmem: a command is missing; `rmem --help` says more"},
        {{"info"}, "rmem info: RING is missing (Name of the ring); `rmem info --help` says more"},
        {{"peek", "--json"}, "RING is missing (Name of the ring)"},
        {{"peek", "r"}, "OFFSET is missing (Offset in bytes: 256, 0x100 or 4K; or a name"},
        {{"run"}, "PROGRAM (or --rig) is missing; `rmem run --help`"},
        {{"run", "./x"}, "--ranks is missing (Number of ranks of the first program"},
        {{"run", "-n"}, "--ranks lacks a value (Number of ranks"},
        {{"run", "-n", "0", "./x"}, "--ranks is '0'; give a whole number, 1 to 256"},
        {{"run", "-n", "two", "./x"}, "--ranks is 'two'; give a whole number, 1 to 256"},
        {{"run", "-n", "1", "--restart", "-1", "./x"}, "--restart is '-1'; give a whole number, 0"},
        {{"run", "-n", "2", "--rig", "r.toml"}, "--ranks and --rig do not go together; leave one"},
        {{"run", "-n", "2", "--", "--link", "ring", "./x"},
         "where a program is to be stands '--link'; options of the ring come before"},
        {{"run", "--rig", "/nosuch.toml"}, "No such file or directory; look whether the name is"},
        {{"run", "-n", "1", "--link", "rnig", "./x"}, "give direct, ring, udp or fabric"},
        {{"run", "-n", "1", "--size", "0x1x", "./x"},
         "RMEM_SIZE is '0x1x'; give a number of bytes such as 4096, 0x1000, 64K or 8M"},
        {{"env", "r", "--rank", "x"}, "--rank is 'x'; give a whole number, 0 to 4294967295"},
        {{"top", "r", "--count", "0"}, "--count is '0'; give a whole number, 1 or more"},
        {{"top", "r", "--count", "2", "--once"}, "--count and --once do not go together"},
        {{"watch", "r", "0", "--count", "0"}, "--count is '0'; give a whole number, 1 or more"},
        {{"record", "r", "--count", "0"}, "--count is '0'; give a whole number, 1 or more"},
        {{"peek", "r", "0x100", "0"}, "COUNT is '0'; give a whole number, 1 or more"},
        {{"peek", "r", "0x100", "-3"}, "COUNT is '-3'; give a whole number, 1 or more"},
        {{"peek", "r", "0x1x"}, "OFFSET is '0x1x'; give a number of bytes such as 4096, 0x1000"},
        {{"dump", "r", "--format", "foo"}, "--format is 'foo'; give hex, raw or json"},
        {{"metrics", "r", "--port", "99999"}, "--port is '99999'; give a whole number, 0 to 65535"},
        {{"list", "x"}, "there is no place for 'x'; leave it out; `rmem list --help` says more"},
        {{"key", "a", "b"}, "there is no place for 'b'; leave it out"},
        {{"key", "/nosuch/k"}, "No such file or directory; look whether the name is right"},
        {{"replay", "/nosuch.rmemrec"}, "No such file or directory; look whether the name is"},
        {{"make", "r", "--at", "4"},
         "--at goes with --from alone; give --from as well, or leave --at out"},
        {{"make", "r", "0x100=foo"},
         "the value 'foo' is not a whole number from 0 to 4294967295; "
         "correct it, or choose another type: u8"},
        {{"make", "--ring", "r", "0x102=5"}, "types u8, x8 and text may be anywhere"},
        {{"serve", "--ring", "no-such-ring", "--nodes", "2", "--node", "9"}, "2 nodes (RMEM_RANKS"},
        {{"wait", "no-such-ring", "--for", "1ms"},
         "ring 'no-such-ring' is not on this host, after 1ms; start what is missing, or wait"},
    };
    for (const auto& [words, sentence] : cases) {
        const Said said = run(words);
        EXPECT_NE(said.code, 0) << ::testing::PrintToString(words);
        EXPECT_THAT(said.err, StartsWith("rmem")) << ::testing::PrintToString(words);
        EXPECT_THAT(said.err, HasSubstr(sentence));
        // One name at most, and none of a kind that it is not.
        EXPECT_THAT(said.err, Not(HasSubstr("] [")));
    }
}

TEST(CommandLine, says_once_what_bench_cannot_measure) {
    const Said direct = run({"bench", "pingpong", "--timing", "scramnet-burst"});
    EXPECT_THAT(direct.err, HasSubstr("RMEM_TIMING is 'scramnet-burst'"));
    EXPECT_THAT(direct.err, HasSubstr("no effect on link direct"));
    const Said link = run({"bench", "pingpong", "--link", "rnig"});
    EXPECT_THAT(link.err, HasSubstr("did you mean 'ring'?"));
    EXPECT_THAT(link.err, Not(HasSubstr("rank 0")));
}

TEST(CommandLine, a_command_line_of_which_the_output_cannot_be_written_ends_with_1) {
    const int full = ::open("/dev/full", O_WRONLY);
    const Said said = run_into(full, {"help", "peek"});
    EXPECT_EQ(said.code, 1);
    EXPECT_THAT(said.err, HasSubstr("no-space"));
}

TEST(CommandLine, a_command_line_whose_reader_has_gone_ends_without_a_word_even_in_a_simulation) {
    const auto before = std::signal(SIGPIPE, SIG_IGN);
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"help"}, {"sim", "replay", "42", "--trace"}}) {
        std::array<int, 2> ends{};
        ASSERT_EQ(::pipe(ends.data()), 0);
        ::close(ends[0]);
        const Said said = run_into(ends[1], words);
        EXPECT_EQ(said.code, 128 + SIGPIPE);
        EXPECT_EQ(said.err, "");
    }
    std::signal(SIGPIPE, before);
}

TEST(CommandLine, a_command_line_of_a_ring_that_is_not_there_ends_with_1) {
    for (const char* command : {"info", "env", "dump", "metrics"}) {
        const Said said = run({command, "no-such-ring"});
        EXPECT_EQ(said.code, 1) << command;
        EXPECT_THAT(said.err, HasSubstr("no-such-ring]\n")) << command;
    }
    EXPECT_EQ(run({"metrics", "no-such-ring", "--wait", "1ms"}).code, 1);
}

}  // namespace
}  // namespace tools
