// SPDX-License-Identifier: Apache-2.0
// `rmem node`: daemons that run the nodes of a ring, each for several programs.

#include "rmem/node.hpp"
#include "billboard/bbp.h"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/ring.hpp"
#include "tests/support/own_network.hpp"
#include "tests/support/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

constexpr unsigned kNodes = 2;
constexpr int kRanks = 4;
constexpr std::int64_t kLongNs = 30'000'000'000;

void check_ok(int code) {
    EXPECT_GE(code, 0) << bbp_strerror(code) << ": " << bbp_last_error();
}

void send(int to, int value) {
    check_ok(bbp_send_for(to, &value, sizeof value, kLongNs));
}

int receive(int from) {
    int value = -1;
    std::size_t size = 0;
    const int code = bbp_recv_for(from, &value, sizeof value, &size, kLongNs);
    EXPECT_EQ(code, from) << bbp_last_error();
    return value;
}

/// The rank has ended, and what it has sent is received.
void miss(int rank) {
    std::size_t size = 0;
    EXPECT_EQ(bbp_recv_for(rank, nullptr, 0, &size, kLongNs), BBP_EPEER) << rank;
}

/// Sends to and receives from each of them, itself left out.
void talk_with(int me, std::vector<int> others) {
    std::erase(others, me);
    for (const int other : others) send(other, 100 * me + other);
    for (const int other : others) EXPECT_EQ(receive(other), 100 * other + me);
}

/// Until the other, too, has missed one who has opened again.
void send_when_open(int to, int value) {
    EXPECT_TRUE(eventually([&] { return bbp_send(to, &value, sizeof value) == BBP_OK; }));
}

/// A ring of two nodes with two ranks each, on this host alone.
class NodeCommand : public ::testing::Test {
protected:
    Arguments words(unsigned node) const {
        return concat(
            {"node", "--ring", name_.get(), "--node", std::to_string(node), "--nodes", "2"},
            {"--ranks", "4", "--size", "64K", "--group", own_group(name_.get()), "--interface",
             "lo"});
    }
    std::unique_ptr<Tool> start_node(unsigned node) const {
        return start_tool(words(node), "in ring '");
    }
    /// A program of the ring; its body runs between bbp_init and bbp_finalize.
    Child program(int rank, const std::function<void()>& body) const {
        return Child([this, rank, body] {
            enter(rank);
            check_ok(bbp_init(nullptr, nullptr));
            body();
            check_ok(bbp_finalize());
        });
    }
    /// The environment of a program.
    void enter(int rank) const {
        stay_on_this_host(name_.get());
        const auto set = [](const char* variable, const std::string& value) {
            ::setenv(variable, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
        };
        set("RMEM_RING", name_.get());
        set("RMEM_LINK", "udp");
        set("RMEM_SIZE", "64K");
        set("RMEM_NODES", std::to_string(kNodes));
        set("RMEM_RANKS", std::to_string(kRanks));
        set("RMEM_RANK", std::to_string(rank));
    }
    bool leaves_something() const {
        for (unsigned node = 0; node < kNodes; ++node) {
            const std::string segment = name_.get() + "@" + std::to_string(node);
            if (Segment::open(segment)) return true;
            if (::access(("/dev/shm/rmem-bell." + segment).c_str(), F_OK) == 0) return true;
        }
        return false;
    }
    void expect_done(std::vector<Child>& programs) const {
        for (Child& child : programs) EXPECT_EQ(child.wait(), 0);
    }

    RingName name_;
};

TEST_F(NodeCommand, carries_messages_between_all_programs_of_all_nodes) {
    const auto nodes = std::array{start_node(0), start_node(1)};
    std::vector<Child> programs;
    for (int rank = 0; rank < kRanks; ++rank) {
        programs.push_back(program(rank, [rank] {
            for (int i = 0; i < 100; ++i) talk_with(rank, {0, 1, 2, 3});
            check_ok(bbp_barrier_for(kLongNs));
        }));
    }
    expect_done(programs);
    EXPECT_TRUE(nodes[0]->prints("rank 1 (process "));
    EXPECT_TRUE(nodes[1]->prints("rank 3 (process "));
}

TEST_F(NodeCommand, goes_on_for_the_others_when_a_program_is_killed) {
    const auto nodes = std::array{start_node(0), start_node(1)};
    std::vector<Child> programs;
    for (const int rank : {0, 2, 3}) {
        programs.push_back(program(rank, [rank] {
            EXPECT_EQ(receive(1), rank);  // its writes before it died
            miss(1);
            talk_with(rank, {0, 2, 3});
        }));
    }
    Child killed = program(1, [] {
        for (const int rank : {0, 2, 3}) send(rank, rank);
        ::raise(SIGKILL);
    });
    EXPECT_EQ(killed.wait(), -SIGKILL);
    expect_done(programs);
}

TEST_F(NodeCommand, brings_what_the_killed_had_sent_though_their_successors_are_quick) {
    constexpr int kIncarnations = 5;
    const auto nodes = std::array{start_node(0), start_node(1)};
    Child other = program(2, [] {
        for (int incarnation = 0; incarnation < kIncarnations;) {
            int value = -1;
            std::size_t size = 0;
            const int code = bbp_recv_for(0, &value, sizeof value, &size, kLongNs);
            if (code == BBP_EPEER) continue;  // one of them was gone
            ASSERT_EQ(code, 0) << bbp_last_error();
            EXPECT_EQ(value, incarnation++);
        }
    });
    std::vector<Child> idle;
    for (const int rank : {1, 3}) idle.push_back(program(rank, [] {}));
    for (int incarnation = 0; incarnation < kIncarnations; ++incarnation) {
        Child killed = program(0, [incarnation] {
            send_when_open(2, incarnation);
            ::raise(SIGKILL);
        });
        EXPECT_EQ(killed.wait(), -SIGKILL);
    }
    EXPECT_EQ(other.wait(), 0);
    expect_done(idle);
}

/// How far the programs of a node are that ends.
struct Progress {
    std::atomic<int> have_talked, have_missed;
    std::atomic<bool> may_open, has_opened, may_leave;
};

/// Their events, and their return.
void check_new_node(const std::function<Child(int, std::function<void()>)>& program,
                    const std::function<void()>& replace_node) {
    SharedValue<Progress> now;
    Child here = program(0, [&] {
        talk_with(0, {2});
        ++now->have_talked;
        miss(2);
        miss(1);  // of the same node, and dead to this program anyway
        ++now->have_missed;
        check_ok(bbp_finalize());
        EXPECT_TRUE(eventually([&] { return now->may_open.load(); }));
        check_ok(bbp_init(nullptr, nullptr));
        now->has_opened = true;
        talk_with(0, {2});
    });
    Child elsewhere = program(2, [&] {
        talk_with(2, {0});
        ++now->have_talked;
        miss(0);
        ++now->have_missed;
        EXPECT_TRUE(eventually([&] { return now->has_opened.load(); }));
        send_when_open(0, 200);
        EXPECT_EQ(receive(0), 2);
    });
    Child neighbour = program(1, [&] {  // does not look, and stays
        EXPECT_TRUE(eventually([&] { return now->may_leave.load(); }));
    });
    Child fourth = program(3, [] {});
    EXPECT_TRUE(eventually([&] { return now->have_talked == 2; }));
    replace_node();
    EXPECT_TRUE(eventually([&] { return now->have_missed == 2; }));
    now->may_open = true;
    EXPECT_EQ(here.wait(), 0);
    EXPECT_EQ(elsewhere.wait(), 0);
    now->may_leave = true;
    EXPECT_EQ(neighbour.wait(), 0);
    EXPECT_EQ(fourth.wait(), 0);
}

TEST_F(NodeCommand, a_daemon_that_ended_is_missed_and_its_programs_open_again_when_it_is_back) {
    for (const int signal : {SIGKILL, SIGTERM}) {
        auto node = start_node(0);
        const auto other = start_node(1);
        check_new_node(
            [&](int rank, const std::function<void()>& body) { return program(rank, body); },
            [&] {
                node->signal(signal);
                EXPECT_EQ(node->wait().code, signal == SIGKILL ? 128 + SIGKILL : 0);
                node = start_node(0);
            });
    }
}

TEST_F(NodeCommand,
       a_daemon_that_was_killed_gets_its_node_back_though_the_only_program_has_left_meanwhile) {
    auto node = start_node(0);
    const auto other = start_node(1);
    SharedValue<std::atomic<int>> state;
    Child only = program(0, [&] {
        talk_with(0, {2});
        *state = 1;
        miss(2);
        check_ok(bbp_finalize());
        *state = 2;
        check_ok(bbp_init(nullptr, nullptr));  // waits for the daemon
        talk_with(0, {2});
    });
    Child elsewhere = program(2, [&] {
        talk_with(2, {0});
        miss(0);
        send_when_open(0, 200);
        EXPECT_EQ(receive(0), 2);
    });
    Child idle = program(3, [] {});
    Child second([&] {  // leaves before the daemon is killed
        enter(1);
        check_ok(bbp_init(nullptr, nullptr));
        check_ok(bbp_finalize());
    });
    EXPECT_EQ(second.wait(), 0);
    EXPECT_TRUE(eventually([&] { return *state == 1; }));
    node->signal(SIGKILL);
    node->wait();
    EXPECT_TRUE(eventually([&] { return *state == 2; }));
    node = start_node(0);
    EXPECT_EQ(only.wait(), 0);
    EXPECT_EQ(elsewhere.wait(), 0);
    EXPECT_EQ(idle.wait(), 0);
}

TEST_F(NodeCommand, raises_interrupts_for_programs_of_which_none_has_its_own_rank) {
    const auto nodes = std::array{start_node(0), start_node(1)};
    SharedValue<std::atomic<bool>> watching;
    Child writer([&] {
        enter(0);
        Node me = Node::open();
        EXPECT_TRUE(eventually([&] { return watching->load(); }));
        EXPECT_EQ(me.write_word(0x40, 7), WriteResult::ok);
        EXPECT_TRUE(me.flush(Deadline::in(kLongNs)));
    });
    Child watcher([&] {
        enter(3);
        Node me = Node::open();
        me.watch(0x40, 4);
        *watching = true;
        const auto interrupt = me.next_interrupt(Deadline::in(kLongNs));
        ASSERT_TRUE(interrupt.has_value());
        EXPECT_EQ(interrupt->offset, 0x40U);
        EXPECT_EQ(interrupt->value, 7U);
        EXPECT_EQ(interrupt->origin, 0U);
        EXPECT_EQ(interrupt->missed, 0U);
    });
    EXPECT_EQ(writer.wait(), 0);
    EXPECT_EQ(watcher.wait(), 0);
}

TEST_F(NodeCommand, leaves_nothing_behind_when_it_is_told_to_end) {
    auto first = start_node(0);
    auto second = start_node(1);
    for (const auto& node : {first.get(), second.get()}) {
        node->signal(SIGTERM);
        expect_err(node->wait(), 0, {"stopped by SIGTERM"});
    }
    EXPECT_FALSE(leaves_something());
}

TEST_F(NodeCommand, is_refused_where_another_runs_the_node_and_names_it) {
    const auto node = start_node(0);
    expect_err(run_tool(words(0)), 1,
               {"is run by process " + std::to_string(node->pid()), "another `rmem node`"});
}

TEST_F(NodeCommand, is_refused_where_a_program_runs_the_node) {
    SharedValue<std::atomic<int>> state;
    Child first([&] {
        enter(0);
        for (const char* variable : {"RMEM_NODES", "RMEM_RANKS"}) {
            ::setenv(variable, "1", 1);  // NOLINT(concurrency-mt-unsafe): one thread
        }
        check_ok(bbp_init(nullptr, nullptr));
        *state = 1;
        EXPECT_TRUE(eventually([&] { return *state == 2; }));
        check_ok(bbp_finalize());
    });
    ASSERT_TRUE(eventually([&] { return *state == 1; }));
    expect_err(run_tool({"node", "--ring", name_.get(), "--node", "0", "--nodes", "1", "--size",
                         "64K", "--interface", "lo"}),
               1, {"process " + std::to_string(first.pid()) + ", a program"});
    *state = 2;
    EXPECT_EQ(first.wait(), 0);
}

TEST_F(NodeCommand, says_what_is_wrong_with_its_settings) {
    const Arguments two = {"node", "--ring", name_.get(), "--nodes", "2"};
    expect_err(run_tool(two), 1, {"--node"});
    expect_err(run_tool(concat(two, {"--node", "2"})), 1, {"[bad-rank]"});
    expect_err(run_tool(concat(two, {"--node", "0"})), 1, {"[bad-key]"});
    EXPECT_FALSE(leaves_something());
}

/// Where a service manager listens.
class Manager {
public:
    Manager() : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string name = "rmem-test-" + std::to_string(::getpid());  // no file: abstract
        name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
        const auto size = offsetof(sockaddr_un, sun_path) + 1 + name.size();
        EXPECT_EQ(
            ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size)),
            0);
        ::setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);  // NOLINT: one thread
        ::setenv("WATCHDOG_USEC", "200000", 1);              // NOLINT: as above
    }
    ~Manager() {
        ::unsetenv("NOTIFY_SOCKET");  // NOLINT: as above
        ::unsetenv("WATCHDOG_USEC");  // NOLINT: as above
        ::close(fd_);
    }
    Manager(const Manager&) = delete;
    Manager& operator=(const Manager&) = delete;

    /// Waits until it is told that.
    bool hears(const std::string& what) {
        return eventually([&] {
            std::array<char, 1024> text;
            ssize_t got = 0;
            while ((got = ::recv(fd_, text.data(), text.size(), MSG_DONTWAIT)) > 0) {
                heard_ += std::string(text.data(), static_cast<std::size_t>(got)) + "\n";
            }
            return heard_.find(what) != std::string::npos;
        });
    }

private:
    int fd_;
    std::string heard_;
};

TEST_F(NodeCommand, tells_its_service_manager_how_it_is) {
    Manager manager;
    Tool node(words(0));
    EXPECT_TRUE(manager.hears("READY=1\n"));
    EXPECT_TRUE(manager.hears("STATUS=node 0 of ring '" + name_.get() + "': alone"));
    EXPECT_TRUE(manager.hears("WATCHDOG=1\n"));
    node.signal(SIGTERM);
    EXPECT_TRUE(manager.hears("STOPPING=1\n"));
}

TEST_F(NodeCommand, is_started_by_run_where_a_node_has_several_ranks) {
    Tool job(run_script(
        {"-n", "4", "--nodes", "2", "--link", "udp", "--size", "64K", "--ring", name_.get()},
        "echo up; sleep 60"));
    ASSERT_TRUE(job.prints("[3] up")) << job.err();
    for (unsigned node = 0; node < kNodes; ++node) {
        const auto ring = Ring::observe(name_.get() + "@" + std::to_string(node));
        EXPECT_EQ(ring->board().kind.load(), static_cast<std::uint32_t>(udp::EngineKind::daemon));
        EXPECT_TRUE(ring->has_engine());
    }
    std::vector<Child> programs;
    for (const int rank : {0, 1})
        programs.push_back(program(rank, [rank] { talk_with(rank, {2}); }));
    programs.push_back(program(2, [] { talk_with(2, {0, 1}); }));
    programs.push_back(program(3, [] {}));
    expect_done(programs);
    job.signal(SIGTERM);
    job.wait();
    EXPECT_FALSE(leaves_something());
}

}  // namespace
}  // namespace rmem::test
