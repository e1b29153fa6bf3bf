// SPDX-License-Identifier: Apache-2.0
// ctest: check wide

/// One ring, and a program of each interface at a node of its own: RFM2g, SCRAMNet GT, SCRAMNet+,
/// rmem.h, and two of bbp.h.

#include "billboard/bbp.h"
#include "tests/support/rfm2g_cards.hpp"
#include "tests/support/scgt_cards.hpp"
#include "tests/support/scramnet_cards.hpp"

#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace rmem::test {
namespace {

enum { kRfm2g, kGt, kPlus, kMemory, kAsking, kAnswering, kNodes };

/// The memory as an interface reaches it, a word at a time.
struct Words {
    std::function<void(std::uint32_t offset, std::uint32_t value)> put;
    std::function<std::uint32_t(std::uint32_t offset)> get;
};

Words words_of(RFM2GHANDLE card) {
    return {[=](auto offset, auto value) { EXPECT_EQ(RFM2gPoke32(card, offset, value), 0); },
            [=](auto offset) {
                RFM2G_UINT32 value = 0;
                EXPECT_EQ(RFM2gPeek32(card, offset, &value), RFM2G_SUCCESS);
                return value;
            }};
}
Words words_of(scgtHandle* card) {
    return {[=](auto offset, auto value) {
                EXPECT_EQ(scgtWrite(card, offset, &value, 4, 0, nullptr, nullptr), 0U);
            },
            [=](auto offset) {
                uint32 value = 0;
                EXPECT_EQ(scgtRead(card, offset, &value, 4, 0, nullptr), 0U);
                return value;
            }};
}
Words words_of(const PlusCard&) {
    return {[](auto offset, auto value) { EXPECT_EQ(scr_dma_write(&value, offset, 4), 0); },
            [](auto offset) {
                std::uint32_t value = 0;
                EXPECT_EQ(scr_dma_read(&value, offset, 4), 0);
                return value;
            }};
}
Words words_of(rmem_node* node) {
    return {[=](auto offset, auto value) {
                EXPECT_TRUE(comes([&] {
                    const int code = rmem_write_word(node, offset, value);
                    if (code == RMEM_EAGAIN) rmem_poll(node);
                    return code == RMEM_OK;
                })) << rmem_last_error();
            },
            [=](auto offset) { return rmem_load(node, offset); }};
}

/// A program's part in the game: its area has words that it writes in their order, round after
/// round, and then words that say how far it is.
class Member {
public:
    enum Stage : std::uint32_t { kHere = 4 * 16, kHasSent = kHere + 4, kIsDone = kHere + 8 };
    static constexpr std::uint32_t kRounds = 100;

    Member(unsigned self, Words words) : self_(self), words_(std::move(words)) {}

    static std::uint32_t place(unsigned node, std::uint32_t at) { return node * kAreaBytes + at; }

    void reach(Stage stage) const { words_.put(place(self_, stage), 1); }
    void await(unsigned node, Stage stage) const {
        EXPECT_TRUE(comes([&] { return words_.get(place(node, stage)) == 1; }))
            << node << " for " << self_;
    }
    void meet(Stage stage) const {
        reach(stage);
        for (unsigned node = 0; node < kNodes; ++node) await(node, stage);
    }
    /// Writes all rounds, and looks at the areas of the others meanwhile, until their last.
    void play(const std::function<void()>& in_each_round = [] {}) const {
        meet(kHere);
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
            for (std::uint32_t at = 0; at < kHere; at += 4)
                words_.put(place(self_, at), kFirst + round);
            for (unsigned node = 0; node < kNodes; ++node) expect_order(node);
            in_each_round();
        }
        for (unsigned node = 0; node < kNodes; ++node) {
            EXPECT_TRUE(comes([&] {
                expect_order(node);
                return words_.get(place(node, kHere - 4)) == kFirst + kRounds;
            })) << node
                << " for " << self_;
        }
    }

private:
    static constexpr std::uint32_t kAreaBytes = 256;
    /// No byte of it is like another.
    static constexpr std::uint32_t kFirst = 0x5A4B3C00;

    /// What was written later is looked at first, so what was written before is as new, or newer.
    void expect_order(unsigned node) const {
        std::uint32_t newest = 0;
        for (std::uint32_t at = kHere; at != 0; at -= 4) {
            const std::uint32_t found = words_.get(place(node, at - 4));
            EXPECT_GE(found, newest) << at << " of " << node << " for " << self_;
            newest = found;
        }
    }

    unsigned self_;
    Words words_;
};

/// What comes to whom: the numbers of rmem_send_interrupt that the cards' interfaces have.
constexpr std::uint64_t kAllNumbers = (std::uint64_t{1} << RMEM_INTERRUPT_NUMBERS) - 1;
constexpr unsigned kBroadcast7 = 7, kUnicast = 32, kIntr2 = 35;
/// A word whose writes are marked.
constexpr std::uint32_t kMarkedWord = 0x3000;

struct OneRing : ::testing::TestWithParam<LinkKind> {
    /// A node of the program's environment, as programs without a unit have it.
    rmem_node* open_by_environment(unsigned node) const {
        for (const auto& [name, value] : units_.settings(node))
            ::setenv(name.c_str(), value.c_str(), 1);
        rmem_node* opened = nullptr;
        EXPECT_EQ(rmem_open(&opened), RMEM_OK) << rmem_last_error();
        return opened;
    }

    const CardUnits units_{GetParam(), kNodes};
};
CARDS_ON_ALL_LINKS(OneRing);

void play_rfm2g() {
    const Card card(kRfm2g);
    const Member member(kRfm2g, words_of(card));
    for (const auto event : {RFM2GEVENT_RESET, RFM2GEVENT_INTR1, RFM2GEVENT_INTR2})
        EXPECT_EQ(RFM2gEnableEvent(card, event), RFM2G_SUCCESS);
    member.play();
    EXPECT_EQ(RFM2gSendEvent(card, RFM2G_NODE_ALL, RFM2GEVENT_INTR2, 200), RFM2G_SUCCESS);
    member.reach(Member::kHasSent);
    RFM2GEVENTINFO info{0, RFM2GEVENT_INTR2, kPatienceMs, 0, nullptr};
    EXPECT_EQ(RFM2gWaitForEvent(card, &info), RFM2G_SUCCESS) << rmem_last_error();
    EXPECT_EQ(info.NodeId, kMemory);
    EXPECT_EQ(info.ExtendedInfo, 302U);
    // Nothing of the other cards has come.
    constexpr std::array<RFM2G_UINT32, 3> kCounts = {0, 0, 1};
    for (std::size_t event = 0; event < kCounts.size(); ++event) {
        RFM2G_UINT32 count = 0;
        EXPECT_EQ(RFM2gGetEventCount(card, static_cast<RFM2GEVENTTYPE>(event), &count), 0);
        EXPECT_EQ(count, kCounts[event]) << event;
    }
    member.meet(Member::kIsDone);
}

void play_gt() {
    GtCard card(kGt);
    const Member member(kGt, words_of(card));
    GtReader reader(card);
    member.play();
    for (scgtInterrupt interrupt : {scgtInterrupt{SCGT_BROADCAST_INTR, 0, 5, 201, 0},
                                    scgtInterrupt{SCGT_UNICAST_INTR, 0, kMemory, 202, 0}})
        EXPECT_EQ(scgtWrite(card, 0, nullptr, 0, 0, nullptr, &interrupt), unsigned{SCGT_SUCCESS});
    member.reach(Member::kHasSent);
    // The first that comes: nothing of the other cards has.
    reader.expect(SCGT_BROADCAST_INTR, kMemory, kBroadcast7, 301);
    member.meet(Member::kIsDone);
}

/// It takes every write of the others to the words that say that they have sent.
void play_plus() {
    const PlusCard card(kPlus);
    const Member member(kPlus, words_of(card));
    for (unsigned node = 0; node < kNodes; ++node)
        scr_acr_write(Member::place(node, Member::kHasSent) / 4, ACR_RIE);
    scr_acr_write(kMarkedWord / 4, ACR_TIE);
    scr_csr_write(SCR_CSR8, CSR8_IOVR);
    scr_csr_write(SCR_CSR0, CSR0_INSRT | CSR0_RXEN | CSR0_TXEN | CSR0_HIE | CSR0_MME | CSR0_NIE);
    member.play();
    std::uint32_t value = 203;
    EXPECT_EQ(scr_dma_write(&value, kMarkedWord, 4), 0);
    member.reach(Member::kHasSent);
    std::vector<std::uint32_t> found, expected;
    for (const unsigned node : {kRfm2g, kGt, kMemory, kAsking, kAnswering})
        expected.push_back(Member::place(node, Member::kHasSent));
    EXPECT_TRUE(comes([&] {
        std::uint32_t address = 0;
        if (scr_read_int_fifo(&address) != 0) found.push_back(address);
        return found.size() == expected.size();
    }));
    EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(expected));
    member.meet(Member::kIsDone);
}

/// All that the cards send, and then an interrupt for each of them.
void play_memory(rmem_node* node) {
    const Member member(kMemory, words_of(node));
    EXPECT_EQ(rmem_accept_interrupts(node, kAllNumbers), RMEM_OK);
    EXPECT_EQ(rmem_watch(node, kMarkedWord, 4, RMEM_MARKED), RMEM_OK);
    member.play();
    using Came = std::tuple<unsigned, std::uint64_t, std::uint32_t, std::uint32_t>;
    std::vector<Came> came;
    EXPECT_TRUE(comes([&] {
        rmem_interrupt next;
        if (rmem_next_interrupt(node, &next, 0) == RMEM_OK)
            came.emplace_back(next.origin, next.offset, next.kind, next.value);
        return came.size() == 4;
    }));
    EXPECT_THAT(came, ::testing::UnorderedElementsAre(
                          Came{kRfm2g, kIntr2, RMEM_SENT_TO_ALL, 200},
                          Came{kGt, 5, RMEM_SENT_TO_ALL, 201}, Came{kGt, kUnicast, RMEM_SENT, 202},
                          Came{kPlus, kMarkedWord, RMEM_WORD_WRITTEN, 203}));
    for (unsigned other = 0; other < kNodes; ++other) {
        if (other != kMemory) member.await(other, Member::kHasSent);
    }
    EXPECT_EQ(rmem_send_interrupt(node, RMEM_ALL_NODES, kBroadcast7, 301), RMEM_OK);
    EXPECT_EQ(rmem_send_interrupt(node, kRfm2g, kIntr2, 302), RMEM_OK);
    member.meet(Member::kHasSent);
    member.meet(Member::kIsDone);
    EXPECT_EQ(rmem_close(node), RMEM_OK);
}

/// One message to and fro in each round.
void play_messages(rmem_node* node, unsigned self) {
    int rank = -1, ranks = 0;
    ::setenv("RMEM_AWAIT", "none", 1);
    EXPECT_EQ(bbp_init(&rank, &ranks), BBP_OK) << bbp_last_error();
    EXPECT_EQ(rank, static_cast<int>(self));
    EXPECT_EQ(ranks, int{kNodes});
    const Member member(self, words_of(node));
    std::string text(300, 'a'), got(text.size(), '\0');
    member.play([&] {
        std::size_t bytes = 0;
        if (self == kAsking) {
            EXPECT_EQ(bbp_send(kAnswering, text.data(), text.size()), BBP_OK) << bbp_last_error();
        }
        const int other = self == kAsking ? kAnswering : kAsking;
        EXPECT_EQ(bbp_recv(other, got.data(), got.size(), &bytes), other) << bbp_last_error();
        EXPECT_EQ(bytes, text.size());
        EXPECT_EQ(got, text);
        if (self == kAnswering) {
            EXPECT_EQ(bbp_send(kAsking, got.data(), bytes), BBP_OK) << bbp_last_error();
        }
        ++text[0];
    });
    member.reach(Member::kHasSent);
    member.meet(Member::kIsDone);
    EXPECT_EQ(bbp_finalize(), BBP_OK);
    EXPECT_EQ(rmem_close(node), RMEM_OK);
}

TEST_P(OneRing, programs_of_all_interfaces_share_the_memory_and_get_their_interrupts) {
    std::vector<Child> members;
    members.emplace_back(play_rfm2g);
    members.emplace_back(play_gt);
    members.emplace_back(play_plus);
    members.emplace_back([&] { play_memory(open_by_environment(kMemory)); });
    for (const unsigned self : {kAsking, kAnswering})
        members.emplace_back([&, self] { play_messages(open_by_environment(self), self); });
    for (std::size_t node = 0; node < members.size(); ++node)
        EXPECT_EQ(members[node].wait(), 0) << node;
}

}  // namespace
}  // namespace rmem::test
