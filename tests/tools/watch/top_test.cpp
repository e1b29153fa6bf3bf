// SPDX-License-Identifier: Apache-2.0
// `rmem top`.

#include "rmem/ring/node_board.hpp"
#include "rmem/ring/node_slot.hpp"
#include "tests/support/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>
#include <utmp.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>

namespace rmem::test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

RingConfig config_of(const RingName& name, LinkKind link) {
    return name.config(2, link, 64 * 1024);
}

nlohmann::json frame_of(const std::string& ring, const Arguments& options = {}) {
    const Ran ran =
        run_tool(concat({"top", ring, "--json", "--once", "--interval", "10ms"}, options));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.json();
}

TEST(Top, prints_frames_one_after_another_where_there_is_no_terminal) {
    const RingName name;
    const auto ring = open_ring(config_of(name, LinkKind::ring));
    const Membership member(ring, {0, 0});
    const Ran ran = run_tool({"top", name.get(), "--count", "3", "--interval", "10ms"});
    EXPECT_EQ(ran.code, 0);
    EXPECT_THAT(ran.out, Not(HasSubstr("\x1b")));
    std::size_t frames = 0;
    for (std::size_t at = 0; (at = ran.out.find("ring " + name.get(), at)) != std::string::npos;) {
        ++frames, ++at;
    }
    EXPECT_EQ(frames, 3U);
    EXPECT_THAT(ran.out, HasSubstr("0 → (1) → 0"));
}

TEST(Top, tells_the_state_of_each_node_on_links_direct_and_ring) {
    for (const LinkKind link : {LinkKind::direct, LinkKind::ring}) {
        const RingName name;
        const auto ring = open_ring(config_of(name, link));
        const Membership alive(ring, {0, 0});
        leave_dead(config_of(name, link), 1);
        const auto frame = frame_of(name.get());
        EXPECT_EQ(frame["state"], "alive");
        EXPECT_EQ(frame["nodes"][0]["state"], "up");
        EXPECT_EQ(frame["nodes"][1]["state"], "down");
        EXPECT_EQ(frame["live_ranks"], 1);
    }
}

TEST(Top, tells_the_stopped_from_the_running) {
    const RingName name;
    const auto ring = open_ring(config_of(name, LinkKind::ring));
    Child other([&] {
        const Membership member(Ring::attach(name.get()), {1, 1});
        ::raise(SIGSTOP);
    });
    EXPECT_TRUE(eventually([&] { return frame_of(name.get())["nodes"][1]["state"] == "stopped"; }));
}

TEST(Top, puts_the_nodes_of_one_ring_over_several_hosts_together) {
    RingName name;
    const RingConfig config = config_of(name, LinkKind::udp);
    const auto first = open_ring(config, 0), second = open_ring(config, 1);
    const auto engine = first->try_lock_engine();
    first->board().membership_epoch.store(1);
    first->board().members[0].store(3);
    first->board().counters.add(udp::UdpCounter::refused_tag, 4);
    second->board().counters.add(udp::UdpCounter::refused_tag, 5);
    const auto both = frame_of(name.get());
    EXPECT_EQ(both["nodes"][0]["state"], "up");
    EXPECT_EQ(both["nodes"][1]["state"], "absent") << "its own segment knows best";
    EXPECT_EQ(both["events"][0]["counter"], "refused_tag");
    EXPECT_EQ(both["events"][0]["total"], 9);
    const auto one = frame_of(name.get() + "@0");
    EXPECT_EQ(one["nodes"][1]["state"], "up") << "as the other one sees it";
    EXPECT_EQ(one["nodes"][1]["here"], false);
    EXPECT_EQ(one["events"][0]["total"], 4);
}

TEST(Top, shows_a_ring_that_only_the_dead_have_left_and_changes_nothing) {
    RingName name;
    name.may_be_left();
    leave_dead(config_of(name, LinkKind::direct), 0,
               [](Ring& ring) { ring.node(1).link.add(LinkCounter::bound_violations, 3); });
    const auto frame = frame_of(name.get());
    EXPECT_EQ(frame["state"], "dead");
    EXPECT_EQ(frame["bound_broken"], 3);
    EXPECT_TRUE(name.exists());
}

TEST(Top, shows_which_part_of_the_bank_changes) {
    const RingName name;
    const auto ring = open_ring(config_of(name, LinkKind::direct));
    const Membership member(ring, {0, 0});
    Tool top({"top", name.get(), "--json", "--interval", "20ms"});
    EXPECT_TRUE(top.prints("\"map\""));
    std::atomic_ref(*reinterpret_cast<std::uint32_t*>(ring->bank(0) + 4096)).store(7);
    EXPECT_TRUE(top.prints("0.0625")) << "one part of the cell: " << top.out();
    EXPECT_FALSE(frame_of(name.get(), {"--no-map"}).contains("map"));
}

TEST(Top, ends_when_the_ring_has_gone) {
    const RingName name;
    auto ring = open_ring(config_of(name, LinkKind::direct));
    auto member = std::make_unique<Membership>(ring, Member{0, 0});
    Tool top({"top", name.get(), "--interval", "10ms"});
    EXPECT_TRUE(top.prints("alive"));
    member.reset();
    ring.reset();
    expect_out(top.wait(), 0, {"no such ring"});
}

TEST(Top, says_what_it_cannot_show) {
    expect_err(run_tool({"top", "no-such-ring", "--once"}), 1, {"[no-such-ring]"});
    const RingName name;
    const auto ring = open_ring(config_of(name, LinkKind::udp), 1);
    expect_err(run_tool({"top", name.get(), "--once", "--node", "2"}), 1, {"[bad-rank]"});
    expect_err(run_tool({"top", name.get(), "--once", "--node", "0"}), 1, {"on another host"});
}

// ---- In a terminal

constexpr const char* kEnter = "\x1b[?1049h";
constexpr const char* kLeave = "\x1b[?1049l";

/// The command in a terminal of its own.
class Terminal {
public:
    explicit Terminal(const std::string& ring) {
        const winsize size = {24, 80, 0, 0};
        int inside = -1;
        EXPECT_EQ(::openpty(&fd_, &inside, nullptr, nullptr, &size), 0);
        child_.emplace([&] {
            ::close(fd_);
            ::login_tty(inside);
            ::execl(RMEM_TOOL, RMEM_TOOL, "top", ring.c_str(), "--interval", "20ms", nullptr);
            ::_exit(127);
        });
        ::close(inside);
    }
    ~Terminal() { ::close(fd_); }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    pid_t pid() const { return child_->pid(); }
    void hit(char key) const { EXPECT_EQ(::write(fd_, &key, 1), 1); }
    /// Reads until the text has come; false at the command's end.
    bool shows(const std::string& text) {
        char buffer[4096];
        while (shown_.find(text) == std::string::npos) {
            const ssize_t got = ::read(fd_, buffer, sizeof buffer);
            if (got <= 0) return false;
            shown_.append(buffer, static_cast<std::size_t>(got));
        }
        return true;
    }
    /// All of it, up to the command's end.
    std::string rest() {
        shows("\x01");  // never comes
        return shown_;
    }
    int wait() { return child_->wait(); }

private:
    std::optional<Child> child_;
    int fd_ = -1;
    std::string shown_;
};

TEST(Top, draws_in_place_and_gives_the_terminal_back_at_its_end) {
    const RingName name;
    const auto ring = open_ring(config_of(name, LinkKind::ring));
    const Membership member(ring, {0, 0});
    for (const int signal : {0, SIGINT, SIGTERM, SIGHUP}) {
        Terminal terminal(name.get());
        EXPECT_TRUE(terminal.shows(kEnter));
        EXPECT_TRUE(terminal.shows("nodes up"));
        EXPECT_TRUE(terminal.shows("\x1b[H"));
        signal == 0 ? terminal.hit('q') : static_cast<void>(::kill(terminal.pid(), signal));
        EXPECT_THAT(terminal.rest(), EndsWith(kLeave)) << signal;
        EXPECT_EQ(terminal.wait(), 0) << signal;
    }
}

TEST(Top, waits_in_a_terminal_for_a_ring_to_come_back) {
    const RingName name;
    auto ring = open_ring(config_of(name, LinkKind::ring));
    auto member = std::make_unique<Membership>(ring, Member{0, 0});
    Terminal terminal(name.get());
    EXPECT_TRUE(terminal.shows("1 of 2 nodes up"));
    member.reset();
    ring.reset();
    EXPECT_TRUE(terminal.shows("no such ring"));
    ring = open_ring(name.config(3, LinkKind::ring));
    EXPECT_TRUE(terminal.shows("0 of 3 nodes up"));
    terminal.hit('q');
    terminal.rest();
    EXPECT_EQ(terminal.wait(), 0);
}

}  // namespace
}  // namespace rmem::test
