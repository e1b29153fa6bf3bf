// SPDX-License-Identifier: Apache-2.0

/// A node in a forked child: it is the parent's.

#include "rmem/node.hpp"

#include "tests/support/child.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <utility>

namespace rmem::test {
namespace {

class NodeFork : public ::testing::TestWithParam<LinkKind> {};
INSTANTIATE_TEST_SUITE_P(On, NodeFork, ::testing::Values(LinkKind::direct, LinkKind::ring),
                         [](const auto& each) { return std::string(name_of(each.param)); });

TEST_P(NodeFork, is_refused_to_the_child_and_goes_on_in_the_parent) {
    const RingName name;
    Node node(name.config(1, GetParam()), {0, 0});
    ASSERT_EQ(node.write_word(0x40, 1), WriteResult::ok);
    Child child([&] {
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
    EXPECT_EQ(child.wait(), 0);
    EXPECT_EQ(node.load(0x40), 1U);
    EXPECT_EQ(node.write_word(0x40, 3), WriteResult::ok);
}

}  // namespace
}  // namespace rmem::test
