// SPDX-License-Identifier: Apache-2.0

// The calls of scrproto.h: registers, interrupts, and what SCRAMNet+ has over its predecessors.

#include "cards/scramnet_plus/process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>

namespace cards::scramnet_plus {

namespace {

/// The bits of CSR2 that are a protocol's.
int set_protocol(Card& card, unsigned mode) {
    constexpr std::uint16_t kOfBase[] = {0, CSR2_BRST | CSR2_MMSG, CSR2_MMSG};
    if (mode < GOLD || mode > PLATINUM_PLUS) {
        return no_argument("sp_protocol", static_cast<int>(mode),
                           "GOLD (1), BURST, PLATINUM, GOLD_PLUS, BURST_PLUS or PLATINUM_PLUS (6)");
    }
    const unsigned base = (mode - GOLD) % std::size(kOfBase);
    const std::uint16_t length = mode >= GOLD_PLUS ? CSR2_VLEN : 0;
    return card.change_register(SCR_CSR2, CSR2_BRST | CSR2_MMSG | CSR2_VLEN | CSR2_DFOLB,
                                kOfBase[base] | length | CSR2_DFOLB);
}

int set_counting(Card& card, int mode) {
    struct Bits {
        std::uint16_t csr8, csr9;
    };
    constexpr Bits kModes[] = {{0, 0},         {0, CSR9_TRGC},
                               {0, CSR9_ERRC}, {0, CSR9_ERRC | CSR9_TRGC},
                               {CSR8_FREE, 0}, {CSR8_FREE, CSR9_TRGC}};
    if (mode < CNTR_ERRORS || mode > CNTR_FREERUN_T2) {
        return no_argument("sp_set_cntr", mode,
                           "CNTR_ERRORS (1), CNTR_TRIGS, CNTR_TRANSIT, CNTR_NET_EVENTS, "
                           "CNTR_FREERUN or CNTR_FREERUN_T2 (6)");
    }
    const Bits bits = kModes[mode - CNTR_ERRORS];
    int result = card.change_register(SCR_CSR8, CSR8_FREE, bits.csr8);
    if (result == kDone) result = card.change_register(SCR_CSR9, CSR9_ERRC | CSR9_TRGC, bits.csr9);
    return result == kDone ? card.write_register(SCR_CSR13, 0) : result;
}

int set_interrupts(Card& card, int cmd, int arg) {
    constexpr const char* kKnown = "INTACR (4), INTALL (1) or RST_INT (16), for RX_INT | INTOWN";
    const bool is_off = arg == RST_INT;
    if (cmd == INT_ERR || cmd == ERR_INT) {
        if (!is_off && arg != SET_INT)
            return no_argument("scr_int_mm(INT_ERR)", arg, "SET_INT (32) or RST_INT (16)");
        return card.change_register(SCR_CSR0, CSR0_IOE, is_off ? 0 : CSR0_IOE);
    }
    const int which = arg & ~INTOWN;
    const bool is_own = which != arg;
    if (!is_off && which != INTACR && which != INTALL)
        return no_argument("scr_int_mm", arg, kKnown);
    const bool is_all = which == INTALL;
    if (cmd == TX_INT) {
        if (is_own) return no_argument("scr_int_mm(TX_INT)", arg, kKnown);
        const int bits = is_off ? 0 : is_all ? CSR0_NIE | CSR0_OTF : CSR0_NIE;
        return card.change_register(SCR_CSR0, CSR0_NIE | CSR0_OTF,
                                    static_cast<std::uint16_t>(bits));
    }
    if (cmd == RX_INT) {
        const int bits = is_off ? 0 : CSR0_HIE | (is_all ? CSR0_ORF : CSR0_MME);
        const int result = card.change_register(SCR_CSR0, CSR0_HIE | CSR0_ORF | CSR0_MME,
                                                static_cast<std::uint16_t>(bits));
        if (result != kDone) return result;
        return card.change_register(SCR_CSR2, CSR2_ISEN, is_own ? CSR2_ISEN : 0);
    }
    return no_argument("scr_int_mm", cmd, "TX_INT (3), RX_INT (4) or INT_ERR (5)");
}

int reset_fifos(Card& card) {
    constexpr std::uint16_t kResets = CSR0_RTRF | CSR0_RIF | CSR0_RSMF;
    const int result = card.change_register(SCR_CSR0, kResets, kResets);
    return result == kDone ? card.change_register(SCR_CSR0, kResets, 0) : result;
}

int read_fifo(Card& card, rd_fifo* fifo) {
    if (fifo == nullptr) return no_place("what is read");
    const std::optional<std::uint32_t> address = card.take_interrupt();
    const std::uint16_t status = card.read_register(SCR_CSR1);
    const auto bit = [status](std::uint16_t mask) -> char { return (status & mask) != 0 ? 1 : 0; };
    *fifo = {};
    fifo->scr_fifo_ptr.ntr_addr = address.value_or(0);
    fifo->mt_flag = address ? 0 : 1;
    fifo->smff = bit(CSR1_SMFF);
    fifo->smfne = bit(CSR1_SMFNE);
    fifo->smfhf = bit(CSR1_SMHF);
    fifo->rtff = bit(CSR1_RTFF);
    fifo->iff = bit(CSR1_IFF);
    fifo->smfs = bit(CSR1_SMFS);
    fifo->cd = bit(CSR1_CD);
    fifo->bb = bit(CSR1_BB);
    fifo->rxo = bit(CSR1_RXO);
    return kDone;
}

int access_register(Card& card, rw_scr* access) {
    if (access == nullptr) return no_place("the access");
    const auto number = static_cast<unsigned char>(access->csr_reg);
    if (access->rw_flag == REG_RD) {
        access->csr_arg = card.read_register(number);
        return kDone;
    }
    if (access->rw_flag == REG_WRT) return card.write_register(number, access->csr_arg);
    return no_argument("scr_rw_mm", access->rw_flag, "REG_RD (1) or REG_WRT (0)");
}

int set_page(int request, unsigned page) {
    if (request != VP_SET && request != VP_RESET && request != VP_READ)
        return no_argument("sp_set_vp", request, "VP_SET (1), VP_RESET (2) or VP_READ (3)");
    if (request == VP_SET && page != 0) {
        return refuse(
            fmt::format("the memory here is all of the ring's, so there is no page {}; "
                        "there is page 0",
                        page));
    }
    return 0;
}

/// A line for each bit that is set.
void print_status(FILE* to, unsigned status) {
    constexpr struct {
        unsigned bit;
        const char* meaning;
    } kMeanings[] = {
        {CSR1_TXFF, "transmit FIFO full"},
        {CSR1_TXFNE, "transmit FIFO not empty"},
        {CSR1_TXF78, "transmit FIFO 7/8 full"},
        {CSR1_RTFF, "transceiver FIFO full"},
        {CSR1_INTFF, "interrupt FIFO full"},
        {CSR1_PV, "protocol violation"},
        {CSR1_CD, "carrier detect failed"},
        {CSR1_BM, "bad message"},
        {CSR1_RXO, "receiver overflow"},
        {CSR1_TXRTY, "transmit retry"},
        {CSR1_TXRTO, "transmit retry by timeout"},
        {CSR9_RTRF, "redundant link switched"},
        {CSR1_GPCO, "general purpose counter overflow"},
        {CSR1_IARM, "interrupts armed"},
        {CSR1_FOBN, "fibre optic bypass not connected"},
    };
    for (const auto& [bit, meaning] : kMeanings)
        if ((status & bit) != 0) static_cast<void>(std::fprintf(to, "CSR1: %s\n", meaning));
}

}  // namespace

}  // namespace cards::scramnet_plus

using namespace cards::scramnet_plus;

extern "C" {

// ---- Registers

unsigned short scr_csr_read(char csr_number) {
    constexpr unsigned short kNothing = 0xffff;
    return on_card(kNothing, [=](Card& card) {
        return card.read_register(static_cast<unsigned char>(csr_number));
    });
}

void scr_csr_write(char csr_number, unsigned short value) {
    tell_card([=](Card& card) {
        return card.write_register(static_cast<unsigned char>(csr_number), value);
    });
}

void scr_rw_mm(struct rw_scr* access) {
    tell_card([=](Card& card) { return access_register(card, access); });
}

void scr_reset_mm(void) {
    tell_card([](Card& card) {
        card.reset();
        return kDone;
    });
}

void scr_lnk_mm(int cmd) {
    constexpr int kFilters = FLT_ALL, kEnables = TX_ENB | RX_ENB;
    tell_card([=](Card& card) {
        if (cmd == RST_LNK)
            return card.change_register(SCR_CSR0, CSR0_INSRT | CSR0_RXEN | CSR0_TXEN, 0);
        if ((cmd & ~(kFilters | kEnables)) != 0)
            return no_argument("scr_lnk_mm", cmd, "RST_LNK (16), or TX_ENB, RX_ENB and FLT_…");
        return card.change_register(SCR_CSR0, CSR0_INSRT | kFilters | kEnables,
                                    static_cast<std::uint16_t>(CSR0_INSRT | cmd));
    });
}

void scr_dfltr_mm(int arg) {
    tell_card([=](Card& card) {
        if (arg != FLT_ALL && arg != FLT_HGH && arg != FLT_OFF)
            return no_argument("scr_dfltr_mm", arg, "FLT_ALL, FLT_HGH or FLT_OFF");
        return card.change_register(SCR_CSR0, FLT_ALL, static_cast<std::uint16_t>(arg));
    });
}

void scr_wml_mm(int arg) {
    constexpr std::uint16_t kBits = CSR2_DHMW | CSR2_WOS;
    tell_card([=](Card& card) {
        if (arg != WRITE_ME_LAST && arg != WRITE_DIRECT && arg != RST_NWH) {
            return no_argument("scr_wml_mm", arg,
                               "WRITE_ME_LAST (6), WRITE_DIRECT (7) or RST_NWH (1)");
        }
        return card.change_register(SCR_CSR2, kBits, arg == WRITE_ME_LAST ? kBits : 0);
    });
}

void scr_acr_mm(int arg) {
    tell_card([=](Card& card) {
        return on_part(
            "scr_acr_mm", arg, [&] { return card.change_register(SCR_CSR0, CSR0_IME, 0); },
            [&] { return card.change_register(SCR_CSR0, CSR0_IME, CSR0_IME); });
    });
}

void scr_id_mm(unsigned char* id, unsigned char* count) {
    tell_card([=](Card& card) {
        if (id == nullptr || count == nullptr) return no_place("the id, or the number of nodes");
        card.on_identity([=](const Card::Identity& now) { *id = now.own; });
        *count = static_cast<unsigned char>(std::min<unsigned>(card.present_nodes(), MAX_ID));
        return kDone;
    });
}

int scr_fswin_mm(void) {
    return on_card([](Card& card) { return (card.status() & CSR1_FOBN) != 0 ? 1 : 0; });
}

void scr_error_mm(FILE* to, unsigned short csr1) {
    if (to == nullptr) {
        no_place("what CSR1 says");
        return;
    }
    print_status(to, csr1);
}

// ---- Interrupts

unsigned char scr_acr_read(unsigned long mem_loc) {
    constexpr unsigned char kNothing = 0;
    return on_card(kNothing, [=](Card& card) { return card.acr(mem_loc); });
}

void scr_acr_write(unsigned long mem_loc, unsigned char value) {
    tell_card([=](Card& card) { return card.set_acr(mem_loc, value); });
}

void scr_int_mm(int cmd, int arg) {
    tell_card([=](Card& card) { return set_interrupts(card, cmd, arg); });
}

int scr_read_int_fifo(uint32_t* address) {
    return on_card(0, [=](Card& card) {
        if (address == nullptr) {
            no_place("the address");
            return 0;
        }
        const std::optional<std::uint32_t> first = card.take_interrupt();
        if (first) *address = *first;
        return first ? 1 : 0;
    });
}

void scr_fifo_mm(int cmd, struct rd_fifo* fifo) {
    tell_card([=](Card& card) {
        if (cmd == RST_FIFO) return reset_fifos(card);
        if (cmd == RD_FIFO) return read_fifo(card, fifo);
        return no_argument("scr_fifo_mm", cmd, "RST_FIFO (11) or RD_FIFO (14)");
    });
}

// ---- SCRAMNet+

int sp_protocol(unsigned mode) {
    return on_card([=](Card& card) { return set_protocol(card, mode); });
}

int sp_set_cntr(int mode) {
    return on_card([=](Card& card) { return set_counting(card, mode); });
}

int sp_txrx_id(unsigned char id) {
    return on_card([=](Card& card) {
        card.on_identity([=](Card::Identity& now) { now.own = now.receive = id; });
        return kDone;
    });
}

int sp_rx_id(unsigned id) {
    return on_card([=](Card& card) {
        if (id > MAX_ID) return refuse(fmt::format("{} is no id; they are 0 to 255", id));
        card.on_identity([=](Card::Identity& now) { now.receive = static_cast<std::uint8_t>(id); });
        return kDone;
    });
}

int sp_msg_life(unsigned hops) {
    return on_card([=](Card& card) {
        constexpr unsigned kMax = MAX_AGE + 1;
        if (hops == 0 || hops > kMax)
            return refuse(fmt::format("a message makes 1 to {} hops, and not {}", kMax, hops));
        card.on_identity(
            [=](Card::Identity& now) { now.first_age = static_cast<std::uint8_t>(kMax - hops); });
        return kDone;
    });
}

int sp_net_to(unsigned short timeout) {
    return on_card([=](Card& card) { return card.write_register(SCR_CSR5, timeout); });
}

int sp_set_vp(int request, unsigned page) {
    return on_card([=](Card&) { return set_page(request, page); });
}

int sp_set_sm_addr(unsigned long address) {
    return on_card([=](Card& card) {
        if (address > 0xffffffffUL)
            return refuse(
                fmt::format("{:#x} has more than the 32 bits of CSR10 and CSR11", address));
        const int result =
            card.write_register(SCR_CSR11, static_cast<std::uint16_t>(address >> 16));
        if (result != kDone) return result;
        return card.write_register(SCR_CSR10, static_cast<std::uint16_t>(address | CSR10_SMAEN));
    });
}

int sp_bist_rd(int* bits) {
    return on_card([=](Card&) {
        if (bits == nullptr) return no_place("the bits of the self-test");
        return refuse("a node in software has no self-test; read CSR1, or run `rmem doctor`");
    });
}

}  // extern "C"
