// SPDX-License-Identifier: Apache-2.0
// Words and blocks are DMAs, bytes PIOs. An interrupt to a node is a unicast one, to all a
// broadcast one. Read by a pointer, the memory is what scgtMapMem gives.

#include "rmem/base/quantity.hpp"
#include "rmem/base/time.hpp"
#include "rmem/error.hpp"
#include "tools/conform/vendor_cards.hpp"

#include <fmt/format.h>

#include <scgtapi.h>
#include <utility>

namespace tools::conform {

namespace {

constexpr unsigned kLastUnit = 15;
constexpr uint32 kBroadcast = 5;  // of the broadcast interrupts
constexpr uint32 kNoValue = 0xFFFFFFFF;

void check_scgt(uint32 result, const char* call) {
    if (result == SCGT_SUCCESS) return;
    throw rmem::Error(rmem::Errc::system, fmt::format("{}: {}", call, scgtGetErrStr(result)));
}

class ScgtCard : public Card {
public:
    ScgtCard(unsigned unit, Reading reading) : unit_(unit), reading_(reading) { ScgtCard::enter(); }
    ~ScgtCard() override { ScgtCard::leave(); }
    void enter() override {
        if (std::exchange(is_open_, true)) return;
        check_scgt(scgtOpen(unit_, &card_), "scgtOpen");
        scgtDeviceInfo info{};
        check_scgt(scgtGetDeviceInfo(&card_, &info), "scgtGetDeviceInfo");
        bytes_ = info.popMemSize;
        node_ = scgtGetState(&card_, SCGT_NODE_ID);
        if (node_ == kNoValue) throw rmem::Error(rmem::Errc::system, "scgtGetState(NODE_ID)");
        set(SCGT_UNICAST_INT_MASK, 1);
        set(SCGT_BROADCAST_INT_MASK, 1U << kBroadcast);
        static_cast<void>(next_interrupt(0));  // a reader's first call says from when on it reads
        // A PIO goes by the pointer, too.
        if (scgtMapMem(&card_) == nullptr) throw rmem::Error(rmem::Errc::system, "scgtMapMem");
        if (reading_ == Reading::by_pointer) memory_ = card_.memMapPtr;
    }
    void leave() override {
        if (!std::exchange(is_open_, false)) return;
        scgtUnmapMem(&card_);
        scgtClose(&card_);
    }
    ScgtCard(const ScgtCard&) = delete;
    ScgtCard& operator=(const ScgtCard&) = delete;

    std::string name() const override {
        return fmt::format("scgt {}, read by {}", card_.unitNum,
                           memory_ == nullptr ? "calls" : "a pointer");
    }
    unsigned node() const override { return node_; }
    std::size_t size() const override { return bytes_; }
    /// There is no snapshot.
    bool offers(Feature feature) const override { return feature != Feature::late_join; }

    void write_word(std::size_t offset, std::uint32_t value) override {
        write(offset, &value, sizeof value);
    }
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        check_scgt(scgtWrite(&card_, narrowed(offset), const_cast<void*>(from), narrowed(bytes), 0,
                             nullptr, nullptr),
                   "scgtWrite");
    }
    void write_byte(std::size_t offset, std::uint8_t value) override {
        check_scgt(scgtWrite(&card_, narrowed(offset), &value, sizeof value, SCGR_RW_PIO_8_BIT,
                             nullptr, nullptr),
                   "scgtWrite");
    }
    std::uint32_t load(std::size_t offset) override {
        if (memory_ != nullptr) return load_plainly(memory_, offset);
        std::uint32_t value = 0;
        read(offset, &value, sizeof value);
        return value;
    }
    void read(std::size_t offset, void* to, std::size_t bytes) override {
        if (memory_ != nullptr) return read_plainly(memory_, offset, to, bytes);
        check_scgt(scgtRead(&card_, narrowed(offset), to, narrowed(bytes), 0, nullptr), "scgtRead");
    }

    void set_write_me_last(bool on) override { set(SCGT_WRITE_ME_LAST, on ? 1 : 0); }
    void send_interrupt(unsigned node, std::uint32_t value) override {
        scgtInterrupt sent{SCGT_UNICAST_INTR, 0, node, value, 0};
        if (node == kAllNodes) sent = {SCGT_BROADCAST_INTR, 0, kBroadcast, value, 0};
        check_scgt(scgtWrite(&card_, 0, nullptr, 0, 0, nullptr, &sent), "scgtWrite");
    }
    std::optional<CardInterrupt> next_interrupt(std::int64_t timeout_ns) override {
        scgtInterrupt taken{};
        for (;;) {
            uint32 count = 0;
            const auto timeout_ms =
                static_cast<uint32>((timeout_ns + rmem::kNsPerMs - 1) / rmem::kNsPerMs);
            const uint32 result = scgtGetInterrupt(&card_, &reader_, &taken, 1, timeout_ms, &count);
            if (result == SCGT_TIMEOUT) return std::nullopt;
            if (result != SCGT_MISSED_INTERRUPTS) check_scgt(result, "scgtGetInterrupt");
            if (result == SCGT_MISSED_INTERRUPTS) missed_ += kUncounted;
            if (count == 0) continue;
            if (taken.type != SCGT_ERROR_INTR)
                return CardInterrupt{taken.val, std::exchange(missed_, 0)};
            if (taken.val == SCGT_DRIVER_MISSED_INTERRUPTS) missed_ += kUncounted;
        }
    }

private:
    void set(uint32 state, uint32 value) {
        check_scgt(scgtSetState(&card_, state, value), "scgtSetState");
    }

    const unsigned unit_;
    const Reading reading_;
    bool is_open_ = false;
    scgtHandle card_{};
    scgtIntrHandle reader_ = kNoValue;
    uint32 node_ = 0;
    std::size_t bytes_ = 0;
    std::uint64_t missed_ = 0;  ///< since the last one that was taken
    volatile void* memory_ = nullptr;
};

}  // namespace

extern const VendorCard scgt_card;  // GT100 and GT200, by scgtapi.h
const VendorCard scgt_card{"--scgt", "A SCRAMNet GT card: its unit, as scgtOpen takes it: 0",
                           [](const std::string& unit, Reading reading) -> std::unique_ptr<Card> {
                               return std::make_unique<ScgtCard>(
                                   rmem::parse_unsigned("--scgt", unit, kLastUnit), reading);
                           }};

}  // namespace tools::conform
