// SPDX-License-Identifier: Apache-2.0
// Programs and their node's daemon: the calls of munet.h between processes, limits, and what deaths
// do.

#include "ports/munet/driver_protocol.hpp"
#include "rmem/ring/segment.hpp"
#include "tests/support/munet_daemon.hpp"
#include "tests/support/refused.hpp"
#include "tests/support/users.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

using namespace ports::munet;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

void rest(int ms) {
    std::this_thread::sleep_for(milliseconds(ms));
}

TEST(MunetDaemon, daemon_and_programs_sleep_when_nothing_moves_and_are_woken) {
    const MunetDaemon daemon;
    constexpr std::uint32_t kLast = 1'000'000;
    MuProgram echo(daemon, [](mu_endpoint_t* ep) {
        for (std::uint32_t number = 0; number != kLast;) {
            mu_addr_t from{};
            number = mu_number(ep, &from);
            EXPECT_EQ(mu_send_number(ep, from, number + 1), 0);
        }
    });
    daemon.enter();
    const MuEndpoint ep;
    const mu_addr_t there = echo.address();
    const auto ask = [&](std::uint32_t number) {
        EXPECT_EQ(mu_send_number(ep, there, number), 0);
        EXPECT_EQ(mu_number(ep), number + 1);
    };
    std::uint32_t asked = 0;
    EXPECT_TRUE(eventually([&] {  // on a busy host it takes the daemon longer to fall asleep
        rest(40);
        ask(++asked);
        return asked >= 10 && daemon.count(NodeCounter::bells) > 0;
    }));
    ask(kLast);
    EXPECT_EQ(echo.process.wait(), 0);
    EXPECT_EQ(mu_wait(ep, 1'000'000), -ETIMEDOUT);
}

TEST(MunetDaemon, starts_although_a_process_locks_the_counters_that_a_former_daemon_has_left) {
    MunetDaemon daemon;
    daemon.kill();
    const std::string object = daemon.object();
    const Descriptor reader(::shm_open(object.c_str(), O_RDONLY, 0));
    ASSERT_EQ(::flock(reader.get(), LOCK_EX | LOCK_NB), 0);
    struct flock all {};
    all.l_type = F_RDLCK;
    ASSERT_EQ(::fcntl(reader.get(), F_OFD_SETLK, &all), 0);
    daemon.start();
    daemon.enter();
    MuEndpoint().expect_works();
}

TEST(MunetDaemon, gives_a_user_no_more_memory_than_the_limit) {
    const MunetDaemon daemon({.user_bytes = 200'000});
    daemon.enter();
    auto first = std::make_unique<MuEndpoint>(0, 65536);
    const MuEndpoint second(0, 65536);
    mu_endpoint_t* third = nullptr;
    EXPECT_EQ(mu_create_endpoint(&third, 0, 65536), -EDQUOT);
    EXPECT_EQ(third, nullptr);
    EXPECT_THAT(mu_last_error(), HasSubstr("200000"));
    EXPECT_TRUE(eventually([&] { return daemon.count(NodeCounter::over_limit) == 1; }));
    first.reset();
    EXPECT_TRUE(eventually([&] { return daemon.count(NodeCounter::destroyed) == 1; }));
    const MuEndpoint again(0, 65536);
}

TEST(MunetDaemon, admits_as_many_senders_as_it_was_told) {
    const MunetDaemon daemon({.senders = 2});
    daemon.enter();
    const MuEndpoint to, a, b, c;
    EXPECT_EQ(mu_send_number(a, to.address(), 1), 0);
    EXPECT_EQ(mu_send_number(b, to.address(), 1), 0);
    EXPECT_EQ(mu_send_number(c, to.address(), 1), -EUSERS);
    EXPECT_THAT(mu_last_error(), HasSubstr("--munet-senders"));
}

TEST(MunetDaemon, refuses_what_cannot_be_and_says_why) {
    const MunetDaemon daemon;
    daemon.enter();
    mu_endpoint_t* none = nullptr;
    EXPECT_EQ(mu_create_endpoint(nullptr, 0, 65536), -EINVAL);
    EXPECT_EQ(mu_create_endpoint(&none, 0, 64), -EINVAL);
    EXPECT_THAT(mu_last_error(), HasSubstr("the receive buffer at least 4224"));
    EXPECT_EQ(mu_create_endpoint(&none, std::size_t{1} << 40, 65536), -EINVAL);
    const MuEndpoint ep;
    EXPECT_EQ(mu_send(ep, {0, 77}, "x", 1), -ECONNREFUSED);
    EXPECT_THAT(mu_last_error(), HasSubstr("endpoint 77 of node 0"));
    for (const int nowhere : {3, -1, 70'000})
        EXPECT_EQ(mu_send(ep, {nowhere, 0}, "x", 1), -ENETUNREACH);
    EXPECT_EQ(mu_send(ep, mu_own(ep), nullptr, 1), -EINVAL);
    EXPECT_EQ(mu_send(nullptr, {0, 0}, "x", 1), -EINVAL);
    EXPECT_EQ(mu_recv(nullptr, nullptr, 0, nullptr), -EINVAL);
    EXPECT_EQ(mu_recv(ep, nullptr, 1, nullptr), -EINVAL);
    EXPECT_EQ(mu_wait(nullptr, 0), -EINVAL);
    EXPECT_EQ(mu_destroy_endpoint(nullptr), 0);
    const auto most = mu_max_message(ep, mu_own(ep));
    ASSERT_GT(most, 0);
    const std::vector<char> text(static_cast<std::size_t>(most) + 1);
    EXPECT_EQ(mu_send(ep, mu_own(ep), text.data(), text.size()), -EMSGSIZE);
    EXPECT_EQ(mu_send_DMA(ep, mu_own(ep), text.data(), text.size()), -EMSGSIZE);
}

TEST(MunetDaemon, is_missed_with_a_sentence) {
    mu_endpoint_t* ep = nullptr;
    ::setenv("RMEM_MUNET", "/tmp/no-such-munet.sock", 1);  // NOLINT(concurrency-mt-unsafe)
    EXPECT_EQ(mu_create_endpoint(&ep, 0, 65536), -ENOENT);
    EXPECT_THAT(mu_last_error(), HasSubstr("rmem node --munet"));
    ::setenv("RMEM_MUNET", std::string(200, 'x').c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    EXPECT_EQ(mu_create_endpoint(&ep, 0, 65536), -EINVAL);
}

TEST(MunetDaemon, a_daemon_of_another_user_gets_messages_only_where_it_was_named) {
    if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
    const std::string path = "/tmp/munet-other-" + std::to_string(::getpid()) + ".sock";
    Child bob([&] {
        become(kBob);
        Daemon daemon({.driver = {.path = path}}, nullptr);
        while (true) daemon.run_for(10'000'000);
    });
    ASSERT_TRUE(eventually([&] { return ::access(path.c_str(), F_OK) == 0; }));
    const auto set = [](const char* name, const std::string& value) {
        ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
    };
    for (const uid_t user : {kAlice, uid_t{0}}) {
        Child alice([&] {
            set("RMEM_MUNET", path);
            if (user != 0) become(user);
            mu_endpoint_t* ep = nullptr;
            // Somebody listens once he has been let in.
            EXPECT_TRUE(eventually([&] { return mu_create_endpoint(&ep, 0, 65536) == -EPERM; }));
            EXPECT_THAT(mu_last_error(), HasSubstr("user 65502"));
            EXPECT_THAT(mu_last_error(), HasSubstr("set RMEM_MUNET=65502@" + path));
            set("RMEM_MUNET", "65503@" + path);
            EXPECT_EQ(mu_create_endpoint(&ep, 0, 65536), -EPERM);
            set("RMEM_MUNET", "65502@" + path);
            EXPECT_EQ(mu_create_endpoint(&ep, 0, 65536), 0) << mu_last_error();
            mu_destroy_endpoint(ep);
        });
        EXPECT_EQ(alice.wait(), 0);
    }
    bob.kill();
    ::unlink(path.c_str());
}

TEST(MunetDaemon, is_found_by_all_users_at_the_same_place) {
    EXPECT_EQ(socket_path("/a/place", "rig", 3), "/a/place");
    Child other([] {
        ::unsetenv("XDG_RUNTIME_DIR");  // NOLINT(concurrency-mt-unsafe): one thread
        EXPECT_EQ(socket_path("", "rig", 3), "/run/rmem/munet.rig@3");
        EXPECT_EQ(socket_path("", std::nullopt, 0), "/run/rmem/munet.default@0");
        ::setenv("XDG_RUNTIME_DIR", "/run/user/0", 1);  // NOLINT(concurrency-mt-unsafe): one thread
        if (::geteuid() != 0) return;
        EXPECT_EQ(socket_path("", std::nullopt, 0), "/run/rmem/munet.default@0")
            << "root's own folder is for nobody else";
    });
    EXPECT_EQ(other.wait(), 0);
}

TEST(MunetDaemon, is_named_by_its_user_by_its_socket_or_by_both) {
    struct Case {
        const char *setting, *user, *path;
    };
    for (const Case& c : {Case{"/a/b", "", "/a/b"}, Case{"alice@/a/b", "alice", "/a/b"},
                          Case{"alice@", "alice", ""}, Case{"./a@1", "", "./a@1"},
                          Case{"alice@a@1", "alice", "a@1"}, Case{"", "", ""}}) {
        ::setenv("RMEM_MUNET", c.setting, 1);  // NOLINT(concurrency-mt-unsafe): one thread
        EXPECT_EQ(socket_setting().user, c.user) << c.setting;
        EXPECT_EQ(socket_setting().path, c.path) << c.setting;
    }
    ::unsetenv("RMEM_MUNET");  // NOLINT(concurrency-mt-unsafe): one thread
}

TEST(MunetDaemon, says_where_its_socket_could_be_when_the_folder_is_not_there_or_not_its_own) {
    const auto sentence = [](Errc code, const std::string& path) {
        return refused(code, [&] { const Daemon daemon({.driver = {.path = path}}, nullptr); });
    };
    const std::string missing = sentence(Errc::system, "/no/such/folder/socket");
    EXPECT_THAT(missing, HasSubstr("there is no folder /no/such/folder/"));
    EXPECT_THAT(missing, HasSubstr("--munet-socket"));
    if (::geteuid() != 0) return;
    Child alice([&] {
        become(kAlice);
        const std::string foreign = sentence(Errc::not_permitted, "/etc/socket");
        EXPECT_THAT(foreign, HasSubstr("user 65501 may not make files in /etc/"));
        EXPECT_THAT(foreign, HasSubstr("--munet-socket"));
    });
    EXPECT_EQ(alice.wait(), 0);
}

TEST(MunetDaemon, a_daemon_that_ends_is_noticed_by_every_call_that_needs_it) {
    MunetDaemon daemon;
    daemon.enter();
    const MuEndpoint ep;
    ASSERT_EQ(mu_send_number(ep, ep.address(), 1), 0);
    daemon.kill();
    int result = 0;
    while (result == 0) result = mu_send_number(ep, ep.address(), 1);  // until the share is used up
    EXPECT_EQ(result, -ENETDOWN);
    EXPECT_THAT(mu_last_error(), HasSubstr("has ended"));
    result = 0;
    for (int i = 0; i < 1000 && (result >= 0 || result == -EAGAIN); ++i) {
        result = mu_recv(ep, &result, sizeof result, nullptr);
    }
    EXPECT_EQ(result, -ENETDOWN);
    EXPECT_EQ(mu_wait(ep, -1), -ENETDOWN);
    daemon.start();  // over the socket and board that were left behind
    MuEndpoint().expect_works();
}

TEST(MunetDaemon, is_alone_at_its_socket) {
    const MunetDaemon daemon;
    EXPECT_THROW(Daemon(daemon.config(), nullptr), rmem::Error);
    auto elsewhere = daemon.config();
    elsewhere.driver.path += "2";
    EXPECT_THROW(Daemon(elsewhere, nullptr), rmem::Error) << "the board has its writer";
    EXPECT_EQ(::access(elsewhere.driver.path.c_str(), F_OK), -1);
}

TEST(MunetDaemon, destroys_the_endpoint_of_a_program_that_is_killed_and_tells_its_senders) {
    const MunetDaemon daemon;
    const Word has_come;
    MuProgram doomed(daemon, [&](mu_endpoint_t* ep) {
        mu_number(ep);
        *has_come = 1;
        while (true) rest(1000);
    });
    daemon.enter();
    const MuEndpoint ep;
    const mu_addr_t there = doomed.address();
    ASSERT_EQ(mu_send_number(ep, there, 5), 0);
    await_word(has_come);
    doomed.process.kill();
    EXPECT_TRUE(eventually([&] { return daemon.count(NodeCounter::destroyed) == 1; }));
    EXPECT_EQ(mu_send_number(ep, there, 5), -ECONNRESET);
    EXPECT_EQ(mu_send_number(ep, there, 5), -ECONNREFUSED);
}

TEST(MunetDaemon, lets_a_stopped_program_hold_up_only_its_own_senders) {
    const MunetDaemon daemon;
    MuProgram stopped(daemon, [](mu_endpoint_t*) {
        while (true) rest(1000);
    });
    daemon.enter();
    const MuEndpoint ep, other;
    const mu_addr_t there = stopped.address();
    stopped.process.stop();
    mu_set_timeout(ep, 1'000'000);
    int result = 0;
    for (std::uint32_t i = 0; result == 0; ++i) result = mu_send_number(ep, there, i);
    EXPECT_EQ(result, -ETIMEDOUT);
    for (std::uint32_t i = 0; i < 100; ++i) {
        EXPECT_EQ(mu_send_number(ep, mu_own(other), i), 0);
        EXPECT_EQ(mu_number(other), i);
    }
}

TEST(MunetDaemon, keeps_the_memory_of_an_endpoint_out_of_children) {
    const MunetDaemon daemon;
    daemon.enter();
    const MuEndpoint ep;
    Child child([&] {
        EXPECT_EQ(mu_recv(ep, nullptr, 0, nullptr), -EINVAL);
        std::ifstream maps("/proc/self/maps");
        const std::string mapped(std::istreambuf_iterator<char>(maps), {});
        EXPECT_EQ(mapped.find("memfd:munet"), std::string::npos);
    });
    EXPECT_EQ(child.wait(), 0);
    ep.expect_works();
}

// ---- The socket

TEST(MunetDaemon, ends_connections_that_say_what_no_library_says) {
    const MunetDaemon daemon;
    std::vector<std::string> packets = {"w", "give me endpoint 0", std::string(100'000, 'x')};
    Request old;
    old.version = 77;
    packets.emplace_back(reinterpret_cast<const char*>(&old), sizeof old);
    for (const auto& packet : packets) {
        const Descriptor fd = daemon.connect();
        ASSERT_EQ(::send(fd.get(), packet.data(), packet.size(), 0),
                  static_cast<ssize_t>(packet.size()));
        Reply reply;
        ASSERT_EQ(::recv(fd.get(), &reply, sizeof reply, 0), static_cast<ssize_t>(sizeof reply));
        EXPECT_EQ(reply.error, EPROTO);
        EXPECT_EQ(::recv(fd.get(), &reply, sizeof reply, 0), 0) << "ended";
    }
    EXPECT_TRUE(eventually([&] { return daemon.count(NodeCounter::bad_requests) == 4; }));
    EXPECT_EQ(daemon.active(), 0U);
}

TEST(MunetDaemon, gives_a_user_no_more_endpoints_than_the_limit_and_connections_count_too) {
    const MunetDaemon daemon({.user_endpoints = 4});
    std::vector<Descriptor> idle;
    for (int i = 0; i < 2; ++i) idle.push_back(daemon.connect());  // which ask for nothing
    daemon.enter();
    const std::array<MuEndpoint, 2> all;
    mu_endpoint_t* more = nullptr;
    EXPECT_EQ(mu_create_endpoint(&more, 0, 65536), -EDQUOT) << mu_last_error();
    idle.clear();
    EXPECT_TRUE(eventually([&] { return mu_create_endpoint(&more, 0, 65536) == 0; }));
    mu_destroy_endpoint(more);
}

}  // namespace
}  // namespace rmem::test
