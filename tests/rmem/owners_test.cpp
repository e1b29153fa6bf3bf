// SPDX-License-Identifier: Apache-2.0

/// Rings that look after owners: what programs write of others' bytes is reported or refused, on
/// every link, by calls and by plain stores.

#include "rmem/ring/owners.hpp"
#include "rmem/node.hpp"
#include "rmem/ring/ring.hpp"
#include "tests/support/child.hpp"
#include "tests/support/own_network.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using OwnerKind = ByteOwner::Kind;

class LookedAfter : public ::testing::TestWithParam<LinkKind> {
protected:
    static constexpr std::size_t kBytes = 8192;

    void SetUp() override { stay_on_this_host(name_.get(), GetParam()); }

    /// Node 0's is the word at 0x100, node 1's the one at 0x104, rank 0's the bytes at 0x108.
    std::shared_ptr<Ring> ring(OwnerMode mode) {
        RingConfig config = name_.config(is_remote(GetParam()) ? 1 : 2, GetParam(), kBytes);
        auto ring = Ring::open(config, Deadline::in(kPatienceNs));
        const std::vector<OwnedRange> ranges = {
            {0x100, 4, {OwnerKind::node, 0}},
            {0x104, 4, {OwnerKind::node, 1}},
            {0x108, 4, {OwnerKind::rank, 0}},
        };
        EXPECT_TRUE(Owners::put(*ring, mode, ranges, false));
        return ring;
    }
    static std::uint32_t value(Node& node, std::size_t offset) { return node.load(offset); }

    RingName name_;
};

TEST_P(LookedAfter, writes_of_others_words_are_reported_and_written) {
    const auto own = ring(OwnerMode::report);
    Node node(own, {0, 0});
    const Owners owners(*own, {0, 0});
    EXPECT_EQ(node.write_word(0x100, 1), WriteResult::ok);
    EXPECT_EQ(node.write_word(0x108, 1), WriteResult::ok);
    EXPECT_EQ(node.write_word(0x200, 1), WriteResult::ok);
    EXPECT_EQ(owners.reports(), 0U);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(node.write_word(0x104, 0x01020304), WriteResult::ok);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                AllOf(HasSubstr("0x104 is node 1's"), HasSubstr("rmem who " + name_.get())));
    EXPECT_EQ(value(node, 0x104), 0x01020304U);
    const auto last = owners.last();
    ASSERT_EQ(last.size(), 1U);
    EXPECT_EQ(last[0].offset, 0x104U);
    EXPECT_EQ(last[0].bytes, 4U);
    EXPECT_EQ(last[0].before, 0U);
    EXPECT_EQ(last[0].after, 0x01020304U);
    EXPECT_EQ(last[0].node, 0U);
    EXPECT_EQ(last[0].pid, static_cast<std::uint32_t>(::getpid()));
    EXPECT_EQ(last[0].owner, (ByteOwner{OwnerKind::node, 1}));
    EXPECT_EQ(last[0].refused, 0U);
    EXPECT_NE(last[0].program[0], '\0');
}

TEST_P(LookedAfter, writes_of_others_words_are_refused_where_owners_are_enforced) {
    const auto own = ring(OwnerMode::enforce);
    Node node(own, {0, 0});
    const std::string said =
        refused(Errc::invalid_argument, [&] { static_cast<void>(node.write_word(0x104, 7)); });
    EXPECT_THAT(said, AllOf(HasSubstr("nothing was written"), HasSubstr("node 1's")));
    EXPECT_EQ(value(node, 0x104), 0U);
    refused(Errc::invalid_argument, [&] { static_cast<void>(node.write_part(0x104, 7, 0x4)); });
    const std::array<std::uint32_t, 4> words{1, 2, 3, 4};
    refused(Errc::invalid_argument,
            [&] { static_cast<void>(node.write(0xfc, words.data(), sizeof words)); });
    EXPECT_EQ(value(node, 0xfc), 0U) << "none of it";
    EXPECT_EQ(node.write_word(0x100, 7), WriteResult::ok);
    EXPECT_EQ(value(node, 0x100), 7U);
    EXPECT_EQ(Owners(*own, {0, 0}).reports(), 3U);
}

TEST_P(LookedAfter, groups_of_writes_are_refused_as_a_whole) {
    const auto own = ring(OwnerMode::enforce);
    Node node(own, {0, 0});
    const std::uint32_t value_of_all = 7;
    const std::array<GroupedWrite, 2> group = {
        {{0x100, &value_of_all, 4}, {0x104, &value_of_all, 4}}};
    refused(Errc::invalid_argument, [&] { static_cast<void>(node.write_group(group)); });
    EXPECT_EQ(value(node, 0x100), 0U) << "none of it";
    refused(Errc::invalid_argument, [&] { static_cast<void>(node.publish(0xfc, value_of_all)); });
    EXPECT_EQ(value(node, 0xfc), 0U);
}

TEST_P(LookedAfter, writes_of_a_number_s_other_bytes_are_its_owners) {
    const auto own = ring(OwnerMode::enforce);
    Node node(own, {0, 0});
    const std::uint8_t byte = 7;
    EXPECT_EQ(node.write(0x103, &byte, 1), WriteResult::ok);
    refused(Errc::invalid_argument, [&] { static_cast<void>(node.write(0x104, &byte, 1)); });
    EXPECT_EQ(value(node, 0x100), 0x07000000U);
}

TEST_P(LookedAfter, plain_stores_are_reported_or_left_out) {
    if (GetParam() == LinkKind::direct)
        GTEST_SKIP() << "a plain store is the transfer: nobody can look after it";
#if !defined(__x86_64__)
    GTEST_SKIP() << "stores are captured exactly on x86-64";
#endif
    for (const OwnerMode mode : {OwnerMode::report, OwnerMode::enforce}) {
        const auto own = ring(mode);
        {
            Node node(own, {0, 0});
            auto* const memory =
                reinterpret_cast<volatile std::uint32_t*>(node.stores(StoresMode::exact));
            ::testing::internal::CaptureStderr();
            memory[0x104 / 4] = 9;
            memory[0x100 / 4] = 5;
            EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("0x104 is node 1's"));
            EXPECT_EQ(node.load(0x100), 5U);
            EXPECT_EQ(node.load(0x104), mode == OwnerMode::report ? 9U : 0U);
            EXPECT_EQ(Owners(*own, {0, 0}).reports(), 1U);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(EachLink, LookedAfter,
                         ::testing::Values(LinkKind::direct, LinkKind::ring, LinkKind::udp),
                         [](const auto& link) { return std::string(name_of(link.param)); });

}  // namespace
}  // namespace rmem::test
