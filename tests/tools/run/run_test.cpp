// SPDX-License-Identifier: Apache-2.0
// `rmem run`: the ranks' environment, and their output.

#include "rmem/ring/ring.hpp"
#include "tests/support/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

TEST(Run, labels_each_line_with_its_rank) {
    const Ran ran = run_tool(run_script({"-n", "3"}, "echo hello; echo trouble >&2"));
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(lines_of(ran.out), UnorderedElementsAre("[0] hello", "[1] hello", "[2] hello"));
    EXPECT_THAT(lines_of(ran.err),
                UnorderedElementsAre("[0] trouble", "[1] trouble", "[2] trouble"));
}

TEST(Run, never_mixes_lines_of_different_ranks) {
    const Ran ran = run_tool(
        run_script({"-n", "4"}, "for i in $(seq 300); do printf half-; printf 'line\\n'; done"));
    const auto lines = lines_of(ran.out);
    EXPECT_EQ(lines.size(), 1200U);
    for (const auto& line : lines) EXPECT_EQ(line.substr(3), " half-line");
}

TEST(Run, shows_a_prompt_that_has_no_line_end) {
    Tool job(run_script({"-n", "1"}, "printf 'name? '; sleep 60"));
    EXPECT_TRUE(job.prints("[0] name? "));
}

TEST(Run, shows_output_as_it_is_when_told_to) {
    EXPECT_EQ(run_tool(run_script({"-n", "1", "--no-label"}, "printf plain")).out, "plain");
}

TEST(Run, gives_its_input_to_rank_0_only) {
    const Ran ran = run_tool(run_script({"-n", "2"}, "cat; echo end"), "a\nb\n");
    EXPECT_THAT(lines_of(ran.out), UnorderedElementsAre("[0] a", "[0] b", "[0] end", "[1] end"));
}

TEST(Run, leaves_the_programs_options_to_the_program) {
    const Ran ran = run_tool({"run", "-n", "1", "echo", "-n", "--", "--keep-going", "--help"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, "[0] -- --keep-going --help\n");
}

TEST(Run, tells_each_rank_its_place_in_the_environment) {
    const RingName ring;  // that no other build's test of this name has
    const Ran ran =
        run_tool(run_script({"-n", "4", "--nodes", "2", "--ring", ring.get()},
                            "echo $RMEM_RANK/$RMEM_RANKS $RMEM_NODE/$RMEM_NODES $RMEM_RING"));
    const std::string& name = ring.get();
    EXPECT_THAT(lines_of(ran.out),
                UnorderedElementsAre("[0] 0/4 0/2 " + name, "[1] 1/4 0/2 " + name,
                                     "[2] 2/4 1/2 " + name, "[3] 3/4 1/2 " + name));
}

TEST(Run, passes_its_settings_on_as_variables) {
    const Ran ran = run_tool(run_script(
        {"-n", "1", "--size", "64K", "--bound", "9us", "--layout", "paper", "--partition", "16K",
         "--link", "ring", "--timing", "gt200", "--faults", "seed=3"},
        "echo $RMEM_SIZE $RMEM_BOUND $RMEM_LAYOUT $RMEM_PARTITION $RMEM_LINK $RMEM_TIMING "
        "$RMEM_FAULTS"));
    EXPECT_EQ(ran.out, "[0] 64K 9us paper 16K ring gt200 seed=3\n") << ran.err;
}

TEST(Run, keeps_the_ring_while_the_ranks_run_and_removes_it_then) {
    const RingName ring;
    Tool job(run_script({"-n", "2", "--ring", ring.get()}, "echo up; sleep 60"));
    ASSERT_TRUE(job.prints("[1] up"));
    EXPECT_TRUE(ring.exists());
    job.signal(SIGTERM);
    job.wait();
    EXPECT_FALSE(ring.exists());
}

TEST(Run, names_the_ring_so_that_two_jobs_never_meet) {
    const auto command = run_script({"-n", "1"}, "echo $RMEM_RING");
    EXPECT_NE(run_tool(command).out, run_tool(command).out);
}

TEST(Run, refuses_a_ring_that_is_in_use_and_names_the_process) {
    const RingName name;
    std::shared_ptr<Ring> ring;
    {
        Tool first(run_script({"-n", "1", "--ring", name.get()}, "echo up; exec sleep 60"));
        ASSERT_TRUE(first.prints("[0] up"));
        ring = Ring::attach(name.get());
    }
    const Membership member(ring, {0, 0});
    expect_err(run_tool({"run", "-n", "1", "--ring", name.get(), "--", "true"}), 125,
               {"rank 0 is process " + std::to_string(::getpid())});
}

TEST(Run, refuses_a_ring_of_another_launcher_before_any_of_its_ranks_has_joined) {
    for (const std::string link : {"direct", "udp"}) {
        const RingName name;
        Tool first(run_script({"-n", "2", "--link", link, "--ring", name.get()},
                              "echo up; exec sleep 60"));
        ASSERT_TRUE(first.prints("up"));
        const Ran second =
            run_tool({"run", "-n", "2", "--link", link, "--ring", name.get(), "--", "echo", "in"});
        EXPECT_EQ(second.code, 125);
        EXPECT_THAT(second.out, Not(HasSubstr("in")));
        EXPECT_THAT(second.err, HasSubstr("another `rmem run` has it, which process " +
                                          std::to_string(first.pid()) + " made"));
        EXPECT_THAT(second.err, HasSubstr("[rank-taken]"));
    }
}

TEST(Run, gives_a_job_on_link_udp_a_key_of_its_own) {
    const std::string look =
        "echo file $RMEM_KEY_FILE; stat -Lc 'mode %a' $RMEM_KEY_FILE; env | grep -c "
        "$(cat $RMEM_KEY_FILE)";
    const auto file = [&](const std::string& out) { return out.substr(0, out.find('\n')); };
    const Ran one = run_tool(run_script({"-n", "1", "--link", "udp"}, look));
    EXPECT_THAT(one.out, HasSubstr("[0] file /proc/")) << one.err;
    EXPECT_THAT(one.out, HasSubstr("[0] mode 600\n"));
    EXPECT_THAT(one.out, HasSubstr("[0] 0\n")) << "the key itself is in no variable";
    EXPECT_NE(::access(file(one.out).substr(std::strlen("[0] file ")).c_str(), F_OK), 0)
        << "it is gone with the job";
    const std::string key = "cat $RMEM_KEY_FILE";
    EXPECT_NE(run_tool(run_script({"-n", "1", "--link", "udp"}, key)).out,
              run_tool(run_script({"-n", "1", "--link", "udp"}, key)).out);
    EXPECT_EQ(run_tool(run_script({"-n", "1"}, "echo ${RMEM_KEY_FILE:-none}")).out, "[0] none\n");
}

TEST(Run, leaves_a_key_that_was_given_and_the_wish_for_none) {
    const auto told = [](const std::string& variable) {
        const Arguments inner =
            run_script({"-n", "1", "--link", "udp", "--no-label"}, "echo ${RMEM_KEY_FILE:-none}");
        return run_tool(concat({"run", "-n", "1", "--no-label", "--", "env", variable, RMEM_TOOL},
                               inner))
            .out;
    };
    EXPECT_EQ(told("RMEM_KEY_FILE=/the/own/key"), "/the/own/key\n");
    EXPECT_EQ(told("RMEM_INSECURE=1"), "none\n");
    EXPECT_THAT(told("RMEM_INSECURE=0"), HasSubstr("/proc/"));
}

TEST(Run, says_that_a_program_cannot_be_executed) {
    expect_err(run_tool({"run", "-n", "1", "--", "./no-such-program"}), 127, {"no-such-program"});
    EXPECT_EQ(run_tool({"run", "-n", "1", "--", "/dev/null"}).code, 126);
}

TEST(Run, tells_a_bad_command_line_from_a_bad_setting) {
    EXPECT_EQ(run_tool({"run", "-n", "2"}).code, 2) << "no program";
    EXPECT_EQ(run_tool({"run", "-n", "0", "--", "true"}).code, 2);
    EXPECT_EQ(run_tool({"run", "-n", "2", "--bogus", "--", "true"}).code, 2);
    for (const auto& [option, value] : {std::pair{"--timing", "bogus"},
                                        {"--link", "bogus"},
                                        {"--link", "sim"},
                                        {"--size", "3"},
                                        {"--nodes", "3"},
                                        {"--faults", "bogus"},
                                        {"--layout", "bogus"},
                                        {"--timing", "scramnet-burst"},
                                        {"--check", "writers"},
                                        {"--spin", "yes"},
                                        {"--ring", "a/b"}}) {
        const Ran ran = run_tool({"run", "-n", "2", option, value, "--", "true"});
        EXPECT_EQ(ran.code, 125) << option;
        EXPECT_THAT(ran.err, HasSubstr(value)) << "names what was found";
        EXPECT_THAT(ran.err, HasSubstr("[")) << "names the error";
        EXPECT_THAT(ran.err, StartsWith("rmem run: ")) << "and no rank does";
    }
}

TEST(Run, binds_each_rank_to_one_processor) {
    const Ran ran = run_tool(run_script({"-n", "3", "--bind-to-core"}, "nproc"));
    EXPECT_THAT(lines_of(ran.out), UnorderedElementsAre("[0] 1", "[1] 1", "[2] 1"));
}

TEST(Run, lets_bound_ranks_spin_only_while_each_has_a_processor) {
    const auto spin = [](const std::string& ranks) {
        return run_tool(run_script({"-n", ranks, "--bind-to-core"}, "echo spin=$RMEM_SPIN")).out;
    };
    EXPECT_THAT(spin("1"), ::testing::MatchesRegex("\\[0\\] spin=[1-9][0-9]*\n"));
    EXPECT_THAT(spin("256"), Not(HasSubstr("spin=2")));
}

TEST(Run, makes_a_ring_that_programs_without_the_billboard_join) {
    const RingName name;
    Tool job(run_script({"-n", "2", "--ring", name.get()}, "echo up; exec sleep 60"));
    ASSERT_TRUE(job.prints("[1] up"));
    EXPECT_GT(Ring::attach(name.get())->config().system_bytes, 0U);
}

TEST(Run, tells_programs_all_of_it_as_json) {
    const Ran ran =
        run_tool(run_script({"-n", "2", "--json"}, "echo out; echo err >&2; exit $RMEM_RANK"));
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.err, IsEmpty());
    std::vector<std::string> events;
    nlohmann::json last;
    for (const auto& line : lines_of(ran.out)) {
        last = nlohmann::json::parse(line);
        events.push_back(last["event"].get<std::string>());
    }
    EXPECT_EQ(std::count(events.begin(), events.end(), "started"), 2);
    EXPECT_EQ(std::count(events.begin(), events.end(), "output"), 4);
    EXPECT_EQ(std::count(events.begin(), events.end(), "ended"), 2);
    EXPECT_EQ(last["event"], "summary");
    EXPECT_EQ(last["exit_code"], 1);
}

TEST(Run, ends_the_ranks_when_nobody_reads_their_output) {
    const std::string command = std::string(RMEM_TOOL) + " run -n 2 -- yes | head -1";
    FILE* pipe = ::popen(command.c_str(), "r");  // NOLINT(cert-env33-c): our own words
    char line[16] = "";
    EXPECT_NE(std::fgets(line, sizeof line, pipe), nullptr);
    EXPECT_EQ(::pclose(pipe), 0);  // that is head's; the point is that it comes back
    EXPECT_THAT(line, HasSubstr("] y"));
}

}  // namespace
}  // namespace rmem::test
