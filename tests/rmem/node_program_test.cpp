// SPDX-License-Identifier: Apache-2.0

/// A node in a program that does with descriptors what it likes, or forks.

#include "rmem/node.hpp"

#include "rmem/base/descriptor.hpp"
#include "tests/support/child.hpp"
#include "tests/support/own_network.hpp"
#include "tests/support/refused.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace rmem::test {
namespace {

constexpr int kMaxFiles = 200;

struct NodeInProgram : ::testing::TestWithParam<LinkKind> {
    RingName name;
    RingConfig config = name.config(2, GetParam());

    NodeInProgram() { stay_on_this_host(name.get()); }
};
INSTANTIATE_TEST_SUITE_P(On, NodeInProgram,
                         ::testing::Values(LinkKind::direct, LinkKind::ring, LinkKind::udp),
                         [](const auto& each) { return std::string(name_of(each.param)); });

TEST_P(NodeInProgram, has_descriptors_above_the_standard_streams_where_these_are_closed) {
    run_in_child([&] {
        const int errors = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
        for (int fd = 0; fd <= STDERR_FILENO; ++fd) ::close(fd);
        Node node(config, {0, 0});
        node.watch(0, 4);
        const int bell = node.interrupt_fd();
        static_cast<void>(node.write_word(0x40, 1));
        int taken = -1;
        for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
            if (::fcntl(fd, F_GETFD) >= 0) taken = fd;
        }
        ::dup2(errors, STDERR_FILENO);
        EXPECT_EQ(taken, -1);
        EXPECT_GT(bell, STDERR_FILENO);
    });
}

TEST_P(NodeInProgram, leaves_its_descriptors_alone_once_the_program_has_closed_them) {
    const OwnDirectory files;
    run_in_child([&] {
        std::vector<int> own;
        {
            Node node(config, {0, 0});
            node.watch(0, 4);
            static_cast<void>(node.interrupt_fd());
            ASSERT_EQ(node.write_word(0x40, 1), WriteResult::ok);
            for (int fd = 3; fd < 256; ++fd) ::close(fd);
            for (int i = 0; i < kMaxFiles; ++i) {
                const std::string path = files.path() + "/" + std::to_string(i);
                std::ofstream(path) << "own";
                own.push_back(::open(path.c_str(), O_RDWR | O_CLOEXEC));
            }
            if (GetParam() == LinkKind::udp) {
                EXPECT_TRUE(eventually([&] {
                    return node.write_word(0x40, 2) == WriteResult::dropped;
                })) << "what reaches nobody is told";
            } else {
                for (std::uint32_t i = 0; i < 2000; ++i)
                    EXPECT_EQ(node.write_word(0x40, i), WriteResult::ok);
                EXPECT_TRUE(node.flush(Deadline::in(1'000'000'000)));
            }
            static_cast<void>(node.next_interrupt(Deadline::now()));
        }
        for (int i = 0; i < kMaxFiles; ++i) {
            std::ifstream file(files.path() + "/" + std::to_string(i));
            const std::string text{std::istreambuf_iterator<char>(file), {}};
            EXPECT_EQ(text, "own") << i;
            EXPECT_EQ(::lseek(own[static_cast<std::size_t>(i)], 0, SEEK_CUR), 0) << i;
        }
    });
    EXPECT_NO_THROW(Node(config, {0, 0})) << "it has left, and locked nobody out";
}

TEST_P(NodeInProgram, is_refused_to_a_forked_child_and_goes_on_in_the_parent) {
    Node node(config, {0, 0});
    ASSERT_EQ(node.write_word(0x40, 1), WriteResult::ok);
    run_in_child([&] {
        std::uint32_t word = 0;
        const std::pair<const char*, std::function<void()>> calls[] = {
            {"load", [&] { node.load(0x40); }},
            {"read", [&] { node.read(0x40, &word, sizeof word); }},
            {"write", [&] { static_cast<void>(node.write(0x40, &word, sizeof word)); }},
            {"write_word", [&] { static_cast<void>(node.write_word(0x40, 2)); }},
            {"poll", [&] { node.poll(); }},
            {"flush", [&] { static_cast<void>(node.flush(Deadline::now())); }},
            {"bank", [&] { node.bank(); }},
            {"wait_change", [&] { node.wait_change(0x40, 1, Deadline::now()); }},
            {"next_interrupt", [&] { node.next_interrupt(Deadline::now()); }},
            {"watch", [&] { node.watch(0, 4); }},
            {"interrupt_fd", [&] { node.interrupt_fd(); }},
            {"set_data_filter", [&] { node.set_data_filter(true); }},
        };
        for (const auto& [what, call] : calls) {
            SCOPED_TRACE(what);
            EXPECT_THAT(refused(Errc::invalid_argument, call),
                        ::testing::HasSubstr("fork()ed child"));
        }
        EXPECT_EQ(node.rank(), 0U);
        EXPECT_EQ(node.size(), 4096U);
    });
    EXPECT_EQ(node.load(0x40), 1U);
    EXPECT_EQ(node.write_word(0x40, 3), WriteResult::ok);
}

}  // namespace
}  // namespace rmem::test
