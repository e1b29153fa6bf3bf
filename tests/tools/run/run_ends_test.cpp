// SPDX-License-Identifier: Apache-2.0
// `rmem run`: deaths, signals, and leftovers.

#include "tests/support/child.hpp"
#include "tests/support/tool.hpp"
#include "tests/support/users.hpp"
#include "tools/run/launcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The number in the line "<rank>: <word> <number>" that a rank has printed.
pid_t printed_pid(const std::string& out, const std::string& word) {
    const auto at = out.find(word + " ");
    return at == std::string::npos ? -1 : std::stoi(out.substr(at + word.size() + 1));
}

/// Both of a job's ranks have printed that they are ready.
bool are_ready(const Tool& job) {
    return job.prints("[0] ready") && job.prints("[1] ready");
}

/// A file by which ranks and test tell each other that something is done; gone at the end.
class Sign {
public:
    Sign() : path_("/tmp/" + RingName().get()) { std::filesystem::remove(path_); }
    ~Sign() { std::filesystem::remove(path_); }
    Sign(const Sign&) = delete;
    Sign& operator=(const Sign&) = delete;

    const std::string& path() const { return path_; }
    void set() const { std::ofstream file(path_); }
    /// For scripts: sets it, and waits for it.
    std::string setting() const { return ": >" + path_; }
    std::string awaiting() const { return "while [ ! -e " + path_ + " ]; do sleep 0.02; done"; }

private:
    std::string path_;
};

TEST(RunEnds, sees_its_ranks_end_where_its_parent_ignores_the_signal_of_that) {
    std::signal(SIGCHLD, SIG_IGN);  // which a program that is executed inherits
    Tool tool({"run", "-n", "2", "--", "sh", "-c", "exit 3"});
    std::signal(SIGCHLD, SIG_DFL);
    EXPECT_EQ(tool.wait().code, 3);
}

TEST(RunEnds, says_which_rank_died_of_which_signal) {
    expect_err(run_tool(run_script({"-n", "3", "--grace", "10ms"},
                                   "if [ $RMEM_RANK = 1 ]; then kill -SEGV $$; fi; exec sleep 60")),
               128 + SIGSEGV, {"rank 1 (process", "died of SIGSEGV", "ranks 0, 2 did not end"});
}

TEST(RunEnds, takes_the_exit_code_of_the_rank_that_failed_first) {
    const Sign first_is_seen;
    Tool job(run_script({"-n", "2", "--grace", "60s"}, "if [ $RMEM_RANK = 0 ]; then exit 7; fi; " +
                                                           first_is_seen.awaiting() + "; exit 9"));
    ASSERT_TRUE(job.prints("exit code 7"));
    first_is_seen.set();
    expect_err(job.wait(), 7, {"rank 0", "exit code 7", "exit code 9"});
}

TEST(RunEnds, kills_ranks_that_do_not_mind_being_told) {
    const Sign trapped;
    expect_err(run_tool(run_script({"-n", "2", "--grace", "50ms"},
                                   "if [ $RMEM_RANK = 0 ]; then " + trapped.awaiting() +
                                       "; exit 3; fi; trap '' TERM; " + trapped.setting() +
                                       "; while :; do sleep 1; done")),
               3, {"told to end (SIGTERM)", "killed"});
}

TEST(RunEnds, lets_the_others_run_on_when_told_to) {
    expect_out(
        run_tool(run_script({"-n", "2", "--grace", "1ms", "--keep-going"},
                            "if [ $RMEM_RANK = 0 ]; then exit 3; fi; sleep 0.5; echo survived")),
        3, {"[1] survived"});
}

TEST(RunEnds, starts_a_killed_rank_again) {
    const Sign died;
    const Ran ran = run_tool(run_script(
        {"-n", "1", "--restart", "1"},
        "[ -e " + died.path() + " ] || { " + died.setting() + "; kill -KILL $$; }; echo again"));
    expect_out(ran, 0, {"[0] again"});
    EXPECT_THAT(ran.err, HasSubstr("died of SIGKILL"));
}

TEST(RunEnds, gives_up_on_a_rank_that_dies_too_often) {
    const Ran ran = run_tool(run_script({"-n", "1", "--restart", "2"}, "echo try; kill -KILL $$"));
    EXPECT_EQ(ran.code, 128 + SIGKILL);
    EXPECT_EQ(ran.out, "[0] try\n[0] try\n[0] try\n");
}

TEST(RunEnds, does_not_start_a_rank_again_that_ends_by_itself) {
    const Ran ran = run_tool(run_script({"-n", "1", "--restart", "2"}, "echo try; exit 3"));
    EXPECT_EQ(ran.code, 3);
    EXPECT_EQ(ran.out, "[0] try\n");
}

TEST(RunEnds, passes_signals_on) {
    Tool job(run_script({"-n", "2"},
                        "trap 'echo got usr1' USR1; trap 'echo got term; exit 5' TERM; echo ready; "
                        "while :; do sleep 0.05; done"));
    ASSERT_TRUE(are_ready(job));
    job.signal(SIGUSR1);
    EXPECT_TRUE(job.prints("[0] got usr1"));
    EXPECT_TRUE(job.prints("[1] got usr1"));
    job.signal(SIGTERM);
    expect_out(job.wait(), 5, {"[0] got term", "[1] got term"});
}

TEST(RunEnds, ends_as_its_ranks_do_at_an_interrupt) {
    Tool job(run_script({"-n", "2"}, "echo ready; exec sleep 60"));
    ASSERT_TRUE(are_ready(job));
    job.signal(SIGINT);
    const Ran ran = job.wait();
    expect_err(ran, 128 + SIGINT, {"SIGINT passed on to ranks 0-1"});
    EXPECT_THAT(ran.err, Not(HasSubstr("died"))) << "nobody is surprised by that";
}

TEST(RunEnds, kills_at_the_second_interrupt) {
    Tool job(run_script({"-n", "2"}, "trap '' INT; echo ready; while :; do sleep 1; done"));
    ASSERT_TRUE(are_ready(job));
    job.signal(SIGINT);
    ASSERT_TRUE(job.prints("once more kills them"));
    job.signal(SIGINT);
    EXPECT_EQ(job.wait().code, 128 + SIGKILL);
}

TEST(RunEnds, stops_and_goes_on_with_its_ranks) {
    // One process: a shell whose child is stopped between vfork and exec never stops itself.
    Tool job(run_script({"-n", "1"}, "echo pid $$; exec sleep 60"));
    ASSERT_TRUE(job.prints("pid "));
    const pid_t rank = printed_pid(job.out(), "pid");
    job.signal(SIGTSTP);
    EXPECT_TRUE(eventually([&] { return is_stopped(rank) && is_stopped(job.pid()); }));
    job.signal(SIGCONT);
    EXPECT_TRUE(eventually([&] { return !is_stopped(rank) && !is_stopped(job.pid()); }));
}

TEST(RunEnds, ends_what_a_rank_has_left_running) {
    const Ran ran = run_tool(run_script({"-n", "1"}, "sleep 60 & echo pid $!"));
    EXPECT_EQ(ran.code, 0);
    const pid_t left = printed_pid(ran.out, "pid");
    EXPECT_TRUE(eventually([&] { return has_ended(left); }));
}

TEST(RunEnds, reaps_what_a_rank_has_started_and_left) {
    const Tool job(run_script({"-n", "1"}, "(sh -c 'echo orphan $$' &); exec sleep 60"));
    ASSERT_TRUE(job.prints("orphan "));
    const pid_t orphan = printed_pid(job.out(), "orphan");
    EXPECT_TRUE(eventually([&] { return thread_states(orphan).empty(); }));
}

TEST(RunEnds, leaves_no_ring_when_what_a_rank_has_started_takes_its_time_to_die) {
    const RingName ring;
    const Sign is_in;
    // Takes part in the ring, and has much memory, which a killed process gives back before its
    // locks.
    const std::string program =
        "import fcntl, struct, time\n"
        "ring = open(\"" +
        Segment::object_name(ring.get()) +
        "\", \"r+b\")\n"
        "lock = struct.pack(\"hhqqi4x\", fcntl.F_RDLCK, 0, 1, 1, 0)\n"
        "fcntl.fcntl(ring, 37, lock)\n"  // F_OFD_SETLK of the presence byte
        "memory = bytearray(b\"x\") * (64 << 20)\n"
        "open(\"" +
        is_in.path() +
        "\", \"w\")\n"
        "time.sleep(60)";
    const Ran ran = run_tool(run_script({"-n", "1", "--ring", ring.get()},
                                        "python3 -c '" + program + "' & " + is_in.awaiting()));
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_FALSE(ran.says("stays")) << ran.err;
    EXPECT_FALSE(ring.exists());
}

TEST(RunEnds, kills_the_ranks_it_has_started_when_one_cannot_be_started) {
    if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
    RingName ring;
    ring.may_be_left();  // looked at below, by its owner
    Child user([&] {
        become(kAlice + 2);
        if (::access(RMEM_TOOL, X_OK) != 0) return;
        const rlimit few{4, 4};  // this one, launcher, janitor, one rank
        ASSERT_EQ(::setrlimit(RLIMIT_NPROC, &few), 0);
        expect_err(run_tool({"run", "-n", "3", "--ring", ring.get(), "--", "sleep", "60"}), 125,
                   {"ulimit -u"});
        EXPECT_TRUE(eventually([&] { return !ring.exists(); }));
    });
    EXPECT_EQ(user.wait(), 0);
}

TEST(RunEnds, leaves_no_ring_when_a_rank_dies) {
    const RingName ring;  // checks it at its end
    run_tool(run_script({"-n", "2", "--ring", ring.get(), "--grace", "1ms"}, "kill -KILL $$"));
    EXPECT_FALSE(ring.exists());
}

/// On link fabric each node leaves its address in a directory, and takes it away when it ends.
TEST(RunEnds, leaves_no_address_of_a_rank_that_was_killed) {
    const RingName ring;
    const std::string addresses =
        "/tmp/rmem-fabric-" + std::to_string(::getuid()) + "/" + ring.get() + ".node-";
    // A program that has opened its node, until it is killed.
    const Ran ran = run_tool(run_script(
        {"-n", "2", "--link", "fabric", "--ring", ring.get(), "--grace", "10ms"},
        std::string(RMEM_TOOL) + " serve --listen 127.0.0.1:0 & p=$!; while [ ! -e " + addresses +
            "$RMEM_NODE ]; do sleep 0.02; kill -0 $p || exit 3; done; kill -KILL $p; wait $p"));
    if (ran.err.find("no-fabric") != std::string::npos) GTEST_SKIP() << "no libfabric here";
    EXPECT_EQ(ran.code, 128 + SIGKILL) << ran.err;
    for (const char* node : {"0", "1"})
        EXPECT_FALSE(std::filesystem::exists(addresses + node)) << ran.err;
}

TEST(RunEnds, leaves_nothing_when_it_is_killed_itself) {
    const RingName ring;
    Tool job(run_script({"-n", "2", "--ring", ring.get()},
                        "sleep 60 & echo child $!; echo rank $$; echo ready; wait"));
    ASSERT_TRUE(are_ready(job));
    const pid_t rank = printed_pid(job.out(), "rank");
    const pid_t child = printed_pid(job.out(), "child");
    ASSERT_FALSE(has_ended(rank) || has_ended(child));
    job.signal(SIGKILL);
    EXPECT_EQ(job.wait().code, 128 + SIGKILL);
    EXPECT_TRUE(eventually([&] { return has_ended(rank) && has_ended(child); }));
    EXPECT_TRUE(eventually([&] { return !ring.exists(); }));
}

TEST(RunEnds, says_after_a_silence_who_has_ended_while_others_run_on) {
    const Sign sign;
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    Child job([&] {
        ::dup2(ends[1], STDERR_FILENO);
        tools::Job two;
        two.programs.resize(2);
        two.programs[0].command = {"true"};
        two.programs[1].command = {"sh", "-c", sign.awaiting()};
        two.place = [](unsigned) { return tools::Variables{}; };
        two.silence_ns = 1'000'000;
        tools::RunReport report(false, 2);
        tools::Janitor janitor({});
        EXPECT_EQ(tools::Launcher(two, report, janitor).run(), 0);
    });
    ::close(ends[1]);
    std::string said;
    char c = 0;
    while (said.find('\n') == std::string::npos && ::read(ends[0], &c, 1) == 1) said += c;
    EXPECT_EQ(said,
              "rmem run: nothing was printed for 1 ms; ended: rank 0; running: rank 1, which may "
              "wait for those (`rmem top` shows them)\n");
    sign.set();
    EXPECT_EQ(job.wait(), 0);
    EXPECT_EQ(::read(ends[0], &c, 1), 0) << "it is said once";
    ::close(ends[0]);
}

}  // namespace
}  // namespace rmem::test
