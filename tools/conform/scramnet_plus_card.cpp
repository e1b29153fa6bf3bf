// SPDX-License-Identifier: Apache-2.0
// Words and blocks are DMAs; bytes, which a DMA cannot move, are stored by the pointer that
// get_base_mem gives. Read by a pointer, the memory is there, too.
//
// An interrupt is a write to a word that the receiver has enabled, and its value is what the word
// holds. So the members have mailboxes behind the places of the litmuses: one for each, and one for
// all, of which one member at a time uses those of others. A mailbox is longer than a flood, so
// that no value of it is overwritten before it is read.

#include "rmem/base/clock.hpp"
#include "rmem/base/quantity.hpp"
#include "rmem/error.hpp"
#include "tools/conform/vendor_cards.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <scrplus.h>
#include <utility>

namespace tools::conform {

namespace {

constexpr unsigned kLastScramnetUnit = 15;
constexpr std::size_t kWordBytes = 4;
constexpr std::size_t kMailboxWords = 2048;
constexpr std::size_t kMailboxBytes = kMailboxWords * kWordBytes;

void check_scramnet(int result, const char* call) {
    if (result == 0) return;
    throw rmem::Error(rmem::Errc::system, fmt::format("{}: {}", call, result));
}

class ScramnetPlusCard : public Card {
public:
    ScramnetPlusCard(unsigned unit, Reading reading) : unit_(unit) {
        check_scramnet(sp_scram_init(static_cast<int>(unit)), "sp_scram_init");
        scr_lnk_mm(TX_ENB | RX_ENB);
        if (reading == Reading::by_pointer) memory_ = get_base_mem();
    }
    ~ScramnetPlusCard() override {
        if (members_ != 0) set_acrs(0, 0);
        scr_mem_mm(UNMAP);
        scr_reg_mm(UNMAP);
    }
    ScramnetPlusCard(const ScramnetPlusCard&) = delete;
    ScramnetPlusCard& operator=(const ScramnetPlusCard&) = delete;

    std::string name() const override {
        return fmt::format("scramnet {}, read by {}", unit_,
                           memory_ == nullptr ? "calls" : "a pointer");
    }
    /// Its mailbox's number.
    unsigned node() const override { return member_; }
    std::size_t size() const override { return sp_mem_size(); }
    /// There is no snapshot and no end of it, and a byte goes with its word.
    bool offers(Feature feature) const override {
        return feature != Feature::late_join && feature != Feature::single_bytes &&
               feature != Feature::comes_again;
    }
    void leave() override {}
    void enter() override {}

    std::size_t interrupt_bytes(unsigned members) const override {
        return (members + 1) * kMailboxBytes;
    }
    void take_place(std::size_t at, unsigned member, unsigned members) override {
        mailboxes_ = at;
        member_ = member;
        members_ = members;
        set_acrs(ACR_TIE, ACR_RIE);
        scr_int_mm(TX_INT, INTACR);
        scr_int_mm(RX_INT, INTACR);
        scr_fifo_mm(RST_FIFO, nullptr);
        static_cast<void>(has_lost());
    }

    void write_word(std::size_t offset, std::uint32_t value) override {
        write(offset, &value, sizeof value);
    }
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        check_scramnet(scr_dma_write(const_cast<void*>(from), offset, bytes), "scr_dma_write");
    }
    void write_byte(std::size_t offset, std::uint8_t value) override {
        reinterpret_cast<SCR_BYTE_PTR>(get_base_mem())[offset] = value;
    }
    std::uint32_t load(std::size_t offset) override {
        if (memory_ != nullptr) return load_plainly(memory_, offset);
        std::uint32_t value = 0;
        read(offset, &value, sizeof value);
        return value;
    }
    void read(std::size_t offset, void* to, std::size_t bytes) override {
        if (memory_ != nullptr) return read_plainly(memory_, offset, to, bytes);
        check_scramnet(scr_dma_read(to, offset, bytes), "scr_dma_read");
    }

    void set_write_me_last(bool on) override { scr_wml_mm(on ? WRITE_ME_LAST : WRITE_DIRECT); }
    void send_interrupt(unsigned node, std::uint32_t value) override {
        write_word(place(node == kAllNodes ? members_ : node, value), value);
    }
    std::optional<CardInterrupt> next_interrupt(std::int64_t timeout_ns) override {
        const auto deadline = rmem::Deadline::in(timeout_ns);
        std::uint32_t address = 0;
        for (;;) {
            while (scr_read_int_fifo(&address) == 0) {
                if (deadline.passed(rmem::now_ns())) return std::nullopt;
                ::sched_yield();
            }
            const bool is_ours =
                address >= mailboxes_ && address < mailboxes_ + interrupt_bytes(members_);
            if (is_ours) return CardInterrupt{load(address), has_lost() ? kUncounted : 0};
        }
    }

private:
    std::size_t place(unsigned box, std::uint32_t value) const noexcept {
        return mailboxes_ + box * kMailboxBytes + value % kMailboxWords * kWordBytes;
    }
    /// Of all words of all mailboxes; a rig's stay as they are.
    void set_acrs(unsigned char sends, unsigned char receives) const {
        for (unsigned box = 0; box <= members_; ++box) {
            const bool is_read_here = box == member_ || box == members_;
            for (std::uint32_t word = 0; word < kMailboxWords; ++word) {
                scr_acr_write(place(box, word) / kWordBytes,
                              is_read_here ? sends | receives : sends);
            }
        }
    }
    /// Since the last look: an interrupt found the FIFO full.
    static bool has_lost() { return (scr_csr_read(SCR_CSR1) & CSR1_INTFF) != 0; }

    unsigned unit_;
    std::size_t mailboxes_ = 0;
    unsigned member_ = 0, members_ = 0;
    SCR_LONG_PTR memory_ = nullptr;
};

}  // namespace

extern const VendorCard scramnet_plus_card;  // SC150, by scrplus.h: a process has one
const VendorCard scramnet_plus_card{
    "--scramnet", "A SCRAMNet+ card: its unit, as sp_scram_init takes it: 0",
    [](const std::string& unit, Reading reading) -> std::unique_ptr<Card> {
        return std::make_unique<ScramnetPlusCard>(
            rmem::parse_unsigned("--scramnet", unit, kLastScramnetUnit), reading);
    }};

}  // namespace tools::conform
