// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/owners.hpp"

#include "rmem/ring/ring.hpp"
#include "rmem/ring/segment.hpp"
#include "tests/support/child.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;
using OwnerKind = ByteOwner::Kind;

struct OwnersTest : ::testing::Test {
    RingName name;
    std::shared_ptr<Ring> ring =
        Ring::open(name.config(3, LinkKind::ring, 8192), Deadline::in(kPatienceNs));

    void put(const std::vector<OwnedRange>& ranges, bool has_canaries = false) const {
        EXPECT_TRUE(Owners::put(*ring, OwnerMode::report, ranges, has_canaries));
    }
    Owners of(unsigned rank, unsigned node) const { return {*ring, {rank, node}}; }
};

TEST_F(OwnersTest, find_the_first_byte_that_is_anothers) {
    put({{0x100, 8, {OwnerKind::node, 0}},
         {0x108, 8, {OwnerKind::node, 1}},
         {0x110, 2, {OwnerKind::rank, 2}},
         {0x112, 2, {OwnerKind::node, 0}}});
    const Owners own = of(0, 0), other = of(1, 1), third = of(2, 2);
    EXPECT_FALSE(own.find_foreign(0x100, 8));
    EXPECT_THAT(own.find_foreign(0x100, 9), Optional(0x108U));
    EXPECT_THAT(own.find_foreign(0xf8, 64), Optional(0x108U));
    EXPECT_FALSE(other.find_foreign(0x108, 8));
    EXPECT_THAT(other.find_foreign(0x108, 16), Optional(0x110U));
    EXPECT_FALSE(third.find_foreign(0x110, 2));
    EXPECT_THAT(third.find_foreign(0x110, 4), Optional(0x112U)) << "another half of a word";
    EXPECT_FALSE(third.find_foreign(0, 0x100));
    EXPECT_FALSE(third.find_foreign(0x114, 8192 - 0x114)) << "nobody's is everybody's";
    EXPECT_FALSE(third.find_foreign(8192, 0));
    EXPECT_EQ(own.owner_of(0x110), (ByteOwner{OwnerKind::rank, 2}));
    EXPECT_EQ(own.owner_of(0), ByteOwner{});
}

TEST_F(OwnersTest, are_those_that_a_byte_by_byte_look_finds) {
    std::mt19937 random(7);
    std::vector<OwnedRange> ranges;
    std::vector<unsigned> expected(8192, 0);  // node and one
    for (std::uint64_t at = 0; at < 8000;) {
        const std::uint64_t bytes = 1 + random() % 40;
        const auto node = static_cast<unsigned>(random() % 3);
        if (random() % 3 != 0) {
            ranges.push_back({at, bytes, {OwnerKind::node, static_cast<std::uint16_t>(node)}});
            std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(at), bytes, node + 1);
        }
        at += bytes;
    }
    put(ranges);
    for (unsigned node = 0; node < 3; ++node) {
        const Owners owners = of(node, node);
        for (unsigned i = 0; i < 2000; ++i) {
            const std::size_t at = random() % 8000, bytes = random() % 150;
            std::optional<std::size_t> foreign;
            for (std::size_t byte = at; byte < at + bytes && !foreign; ++byte) {
                if (expected[byte] != 0 && expected[byte] != node + 1) foreign = byte;
            }
            ASSERT_EQ(owners.find_foreign(at, bytes), foreign) << at << ' ' << bytes;
        }
    }
}

TEST_F(OwnersTest, have_canaries_between_the_variables) {
    put({{0x100, 4, {OwnerKind::node, 0}}, {0x108, 4, {}}}, true);
    const Owners own = of(0, 0);
    EXPECT_FALSE(own.find_foreign(0x100, 4));
    EXPECT_FALSE(own.find_foreign(0x108, 4)) << "a variable that is anybody's";
    EXPECT_THAT(own.find_foreign(0x100, 8), Optional(0x104U));
    EXPECT_EQ(own.owner_of(0x104).kind, OwnerKind::nobody);
    EXPECT_THAT(own.find_foreign(8188, 4), Optional(8188U));
}

TEST_F(OwnersTest, are_put_there_once) {
    EXPECT_EQ(Owners::mode_of(*ring), OwnerMode::off);
    put({{0x100, 4, {OwnerKind::node, 0}}});
    EXPECT_FALSE(Owners::put(*ring, OwnerMode::enforce, {}, false));
    EXPECT_EQ(Owners::mode_of(*Ring::observe(name.get())), OwnerMode::report);
}

TEST_F(OwnersTest, are_at_most_as_many_as_a_byte_tells) {
    std::vector<OwnedRange> ranges;
    for (std::uint16_t i = 0; i < 253; ++i) ranges.push_back({i * 4U, 4, {OwnerKind::node, i}});
    ranges.push_back({2000, 4, {OwnerKind::rank, 0}});
    EXPECT_THAT(
        refused(Errc::invalid_argument,
                [&] { static_cast<void>(Owners::put(*ring, OwnerMode::report, ranges, false)); }),
        HasSubstr("more than 253"));
    EXPECT_EQ(Owners::mode_of(*ring), OwnerMode::off);
}

TEST_F(OwnersTest, have_no_bytes_behind_the_memory) {
    put({{8190, 100, {OwnerKind::node, 0}}, {~std::uint64_t{0} - 8, 4, {OwnerKind::node, 1}}});
    EXPECT_THAT(of(1, 1).find_foreign(8184, 8), Optional(8190U));
}

TEST_F(OwnersTest, keep_the_last_writes_of_others) {
    put({{0x100, 4, {OwnerKind::node, 0}}});
    const Owners owners = of(1, 1);
    for (std::uint64_t i = 1; i <= 100; ++i) {
        ForeignWrite write;
        write.offset = i;
        write.program = {"a program"};
        owners.report(write);
    }
    EXPECT_EQ(owners.reports(), 100U);
    const auto last = owners.last();
    ASSERT_EQ(last.size(), Owners::kReports);
    EXPECT_EQ(last.front().offset, 37U);
    EXPECT_EQ(last.back().offset, 100U);
    EXPECT_STREQ(last.back().program.data(), "a program");
}

TEST_F(OwnersTest, keep_whole_reports_while_many_report) {
    put({{0x100, 4, {OwnerKind::node, 0}}});
    SharedValue<std::atomic<bool>> is_over;
    std::vector<std::unique_ptr<Child>> children;
    for (unsigned c = 0; c < 3; ++c) {
        children.push_back(std::make_unique<Child>([&] {
            const Owners owners = of(1, 1);
            for (std::uint64_t i = 1; !*is_over; ++i) {
                ForeignWrite write;
                write.offset = write.bytes = write.before = write.after = i;
                owners.report(write);
            }
        }));
    }
    const Owners owners = of(0, 0);
    for (unsigned i = 0; i < 2000; ++i) {
        for (const ForeignWrite& write : owners.last()) {
            ASSERT_EQ(write.offset, write.after);
            ASSERT_EQ(write.bytes, write.before);
        }
    }
    *is_over = true;
    for (const auto& child : children) EXPECT_EQ(child->wait(), 0);
}

TEST_F(OwnersTest, bound_what_others_have_damaged) {
    put({{0x100, 4, {OwnerKind::node, 0}}});
    auto& header = *reinterpret_cast<SegmentHeader*>(ring->segment().data());
    header.owners = 77;
    EXPECT_EQ(Owners::mode_of(*ring), OwnerMode::enforce);
    std::byte* const table = ring->segment().data() + SegmentLayout(ring->config()).owners;
    std::memset(table, 0xff, 4096);
    const Owners owners = of(0, 0);
    static_cast<void>(owners.find_foreign(0, 8192));
    EXPECT_NE(text_of(owners.owner_of(0x100)), "");
    for (const ForeignWrite& write : owners.last()) EXPECT_EQ(write.program.back(), '\0');
}

}  // namespace
}  // namespace rmem::test
