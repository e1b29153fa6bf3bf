// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A ring of SCRAMNet+ cards: unit 0 is node 0, unit 1 node 1, …, all of this host. A process has
/// one card by the calls of the cards; other nodes are a Child's, or Peers.
///
///     struct Something : PlusCards { Something() : PlusCards(LinkKind::ring) {} };
///     const PlusCard card(0);
///     const Peer b(1);
///     EXPECT_EQ(rmem_write_word(b, 0x100, 42), RMEM_OK);
///     EXPECT_TRUE(comes([] { return get_base_mem()[0x40] == 42; }));

#include "cards/scramnet_plus/scrplus.h"
#include "rmem/rmem.h"
#include "tests/support/card_units.hpp"

#include <gmock/gmock.h>

#include <string>

namespace rmem::test {

/// The card of this process, until the end.
class PlusCard {
public:
    explicit PlusCard(int unit) { EXPECT_EQ(sp_scram_init(unit), 0) << rmem_last_error(); }
    ~PlusCard() {
        EXPECT_EQ(scr_mem_mm(UNMAP), 0) << rmem_last_error();
        EXPECT_EQ(scr_reg_mm(UNMAP), 0) << rmem_last_error();
    }
    PlusCard(const PlusCard&) = delete;
    PlusCard& operator=(const PlusCard&) = delete;
};

/// A further node in the same process.
class Peer {
public:
    explicit Peer(unsigned unit) {
        int code = 0;
        node_ = cards::open_unit(unit, code).release();
        EXPECT_NE(node_, nullptr) << rmem_last_error();
    }
    ~Peer() { rmem_close(node_); }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    operator rmem_node*() const { return node_; }

private:
    rmem_node* node_ = nullptr;
};

class PlusCards : public ::testing::Test {
protected:
    static constexpr std::size_t kBytes = CardUnits::kBytes;

    explicit PlusCards(LinkKind link, unsigned nodes = 2, const cards::Settings& further = {})
        : units_(link, nodes, further) {}

    static unsigned csr(int number) { return scr_csr_read(static_cast<char>(number)); }
    static void set_csr(int number, unsigned value) {
        scr_csr_write(static_cast<char>(number), static_cast<unsigned short>(value));
    }
    static int write_word(std::size_t offset, std::uint32_t value) {
        return scr_dma_write(&value, offset, sizeof value);
    }
    static bool has(rmem_node* node, std::size_t offset, std::uint32_t value) {
        return comes([=] { return rmem_load(node, offset) == value; });
    }
    /// The call before said so.
    static void expect_sentence(const char* part) {
        EXPECT_THAT(rmem_last_error(), ::testing::HasSubstr(part));
    }
    static void expect_refused(int found, const char* part) {
        EXPECT_EQ(found, -1);
        expect_sentence(part);
    }

    const CardUnits units_;
};

using PlusCardsOnLinks = OnLinks<PlusCards>;

}  // namespace rmem::test
