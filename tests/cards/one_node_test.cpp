// SPDX-License-Identifier: Apache-2.0
// ctest: check wide

/// Programs of several kinds of cards, and several of one kind, on one node: each gets all that is
/// its own.

#include "tests/support/rfm2g_cards.hpp"
#include "tests/support/scgt_cards.hpp"
#include "tests/support/scramnet_cards.hpp"

#include <atomic>
#include <vector>

namespace rmem::test {
namespace {

constexpr unsigned kNode = 0, kOther = 1;
constexpr std::uint32_t kRounds = 50;
/// What the other node sends in each round: INTR1 of RFM2g, two numbers of SCRAMNet GT, and a
/// write to a word.
constexpr unsigned kIntr1 = 34, kBroadcast = 5, kBroadcastToo = 6;
constexpr std::uint32_t kWord = 0x100;

/// How many programs listen, and have got all.
struct Progress {
    std::atomic<unsigned> keeps, listen, are_done;
};

struct OneNode : ::testing::TestWithParam<LinkKind> {
    void listens() const { ++progress_->listen; }
    /// No program leaves before all others have got theirs.
    void is_done() const {
        ++progress_->are_done;
        EXPECT_TRUE(comes([&] { return progress_->are_done == kPrograms; }));
    }

    void take_events() const {
        const Card card(kNode);
        EXPECT_EQ(RFM2gEnableEvent(card, RFM2GEVENT_INTR1), RFM2G_SUCCESS);
        listens();
        for (std::uint32_t round = 0; round < kRounds; ++round) {
            RFM2GEVENTINFO info{0, RFM2GEVENT_INTR1, kPatienceMs, 0, nullptr};
            EXPECT_EQ(RFM2gWaitForEvent(card, &info), RFM2G_SUCCESS) << rmem_last_error();
            EXPECT_EQ(info.NodeId, kOther);
            EXPECT_EQ(info.ExtendedInfo, round);
        }
        is_done();
    }
    /// With a mask of its own.
    void take_broadcasts(const std::vector<unsigned>& numbers) const {
        GtCard card(kNode);
        uint32 mask = 0;
        for (const unsigned number : numbers) mask |= 1U << number;
        EXPECT_EQ(scgtSetState(card, SCGT_BROADCAST_INT_MASK, mask), unsigned{SCGT_SUCCESS});
        GtReader reader(card);
        listens();
        for (std::uint32_t round = 0; round < kRounds; ++round) {
            for (const unsigned number : numbers)
                reader.expect(SCGT_BROADCAST_INTR, kOther, number, round);
        }
        is_done();
    }
    void take_writes() const {
        const PlusCard card(kNode);
        scr_acr_write(kWord / 4, ACR_RIE);
        scr_csr_write(SCR_CSR0, CSR0_HIE | CSR0_MME);
        listens();
        for (std::uint32_t round = 0; round < kRounds; ++round) {
            std::uint32_t address = 0;
            EXPECT_TRUE(comes([&] { return scr_read_int_fifo(&address) == 1; }));
            EXPECT_EQ(address, kWord);
        }
        is_done();
    }
    /// The node's first rank, which runs it on link udp.
    void keep() const {
        const Peer first(kNode);
        ++progress_->keeps;
        EXPECT_TRUE(comes([&] { return progress_->keeps == 2; }));
    }

    static constexpr unsigned kPrograms = 5;
    const CardUnits units_{GetParam(), 2, {{"RMEM_RANKS", "16"}}};
    const SharedValue<Progress> progress_;
};
CARDS_ON_ALL_LINKS(OneNode);

TEST_P(OneNode, gives_each_of_its_programs_the_interrupts_of_its_card) {
    Child keeper([&] { keep(); });
    ASSERT_TRUE(comes([&] { return progress_->keeps == 1; }));
    std::vector<Child> programs;
    programs.emplace_back([&] { take_events(); });
    programs.emplace_back([&] { take_broadcasts({kBroadcast}); });
    programs.emplace_back([&] { take_writes(); });
    programs.emplace_back([&] { take_events(); });
    programs.emplace_back([&] { take_broadcasts({kBroadcast, kBroadcastToo}); });
    {
        const Peer other(kOther);
        EXPECT_EQ(rmem_mark(other, kWord, 4), RMEM_OK);
        ASSERT_TRUE(comes([&] { return progress_->listen == kPrograms; }));
        const auto until_sent = [&](const auto& send) {
            EXPECT_TRUE(comes([&] {
                const int code = send();
                if (code == RMEM_EAGAIN) rmem_poll(other);
                return code == RMEM_OK;
            })) << rmem_last_error();
        };
        for (std::uint32_t round = 0; round < kRounds; ++round) {
            until_sent([&] { return rmem_send_interrupt(other, kNode, kIntr1, round); });
            for (const unsigned number : {kBroadcast, kBroadcastToo})
                until_sent([&] { return rmem_send_interrupt(other, -1, number, round); });
            until_sent([&] { return rmem_write_word(other, kWord, round); });
        }
        for (std::size_t i = 0; i < programs.size(); ++i) EXPECT_EQ(programs[i].wait(), 0) << i;
    }
    ++progress_->keeps;
    EXPECT_EQ(keeper.wait(), 0);
}

}  // namespace
}  // namespace rmem::test
