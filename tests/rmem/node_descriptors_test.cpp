// SPDX-License-Identifier: Apache-2.0

/// A node in a program that does with descriptors what it likes.

#include "rmem/node.hpp"

#include "rmem/base/descriptor.hpp"
#include "tests/support/child.hpp"
#include "tests/support/own_network.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

constexpr int kMostFiles = 200;

struct NodeDescriptors : ::testing::TestWithParam<LinkKind> {
    RingName name;
    RingConfig config = name.config(2, GetParam());

    NodeDescriptors() { stay_on_this_host(name.get()); }
};
INSTANTIATE_TEST_SUITE_P(On, NodeDescriptors,
                         ::testing::Values(LinkKind::direct, LinkKind::ring, LinkKind::udp),
                         [](const auto& each) { return std::string(name_of(each.param)); });

TEST_P(NodeDescriptors, are_above_the_standard_streams_where_these_are_closed) {
    Child program([&] {
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
    EXPECT_EQ(program.wait(), 0);
}

TEST_P(NodeDescriptors, are_left_alone_once_the_program_has_closed_them) {
    const OwnDirectory files;
    Child program([&] {
        std::vector<int> own;
        {
            Node node(config, {0, 0});
            node.watch(0, 4);
            static_cast<void>(node.interrupt_fd());
            ASSERT_EQ(node.write_word(0x40, 1), WriteResult::ok);
            for (int fd = 3; fd < 256; ++fd) ::close(fd);
            for (int i = 0; i < kMostFiles; ++i) {
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
        for (int i = 0; i < kMostFiles; ++i) {
            std::ifstream file(files.path() + "/" + std::to_string(i));
            const std::string text{std::istreambuf_iterator<char>(file), {}};
            EXPECT_EQ(text, "own") << i;
            EXPECT_EQ(::lseek(own[static_cast<std::size_t>(i)], 0, SEEK_CUR), 0) << i;
        }
    });
    EXPECT_EQ(program.wait(), 0);
    EXPECT_NO_THROW(Node(config, {0, 0})) << "it has left, and locked nobody out";
}

}  // namespace
}  // namespace rmem::test
