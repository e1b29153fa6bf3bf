// SPDX-License-Identifier: Apache-2.0
// `rmem poke` into a ring whose programs wait for what is poked.

#include "rmem/node.hpp"
#include "tests/support/test_ring.hpp"
#include "tests/support/tool.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>

namespace rmem::test {
namespace {

constexpr std::size_t kWord = 0x104;
constexpr std::int64_t kWaitNs = 30'000'000'000;

class Poke : public ::testing::TestWithParam<LinkKind> {
protected:
    /// What a program of node 1 does that runs beside rank 0, of node 0.
    struct Told {
        std::atomic<bool> begins;
        std::atomic<std::uint32_t> value;
    };
};

TEST_P(Poke, wakes_a_program_that_waits_for_the_word_and_no_other) {
    RingSpec spec;
    spec.link = GetParam();
    const TestRing ring(spec);
    const SharedValue<Told> told;
    const SharedValue<Told> others;
    const auto wait = [&](Told& said, unsigned rank, std::size_t offset) {
        return [&ring, &said, rank, offset] {
            Node node(ring.open(rank), {rank, rank});
            said.begins = true;
            std::uint32_t seen = 0;
            for (const std::uint32_t expected : {7U, 8U}) {
                const auto value = node.wait_change(offset, seen, Deadline::in(kWaitNs));
                EXPECT_EQ(value, expected);
                said.value = seen = value;
            }
        };
    };
    Child waiter(wait(*told, 1, kWord));
    Child other(wait(*others, 0, kWord + 4));
    ASSERT_TRUE(eventually([&] { return told->begins && others->begins; }));
    for (const std::uint32_t value : {7U, 8U}) {
        const std::string text = std::to_string(value);
        ::usleep(20'000);  // by now both sleep
        EXPECT_EQ(run_tool({"poke", ring.name(), "0x104", text, "--node", "0"}).code, 0);
        EXPECT_TRUE(eventually([&] { return told->value == value; }));
        EXPECT_EQ(others->value, value == 7 ? 0U : 7U) << "nobody has written that word";
        EXPECT_EQ(run_tool({"poke", ring.name(), "0x108", text, "--node", "1"}).code, 0);
        EXPECT_TRUE(eventually([&] { return others->value == value; }));
    }
    EXPECT_EQ(waiter.wait(), 0);
    EXPECT_EQ(other.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(EachLink, Poke, ::testing::Values(LinkKind::direct, LinkKind::ring),
                         [](const auto& of) { return std::string(name_of(of.param)); });

}  // namespace
}  // namespace rmem::test
