// SPDX-License-Identifier: Apache-2.0
// Words are poked and peeked, blocks are RFM2gWrite and RFM2gRead, an interrupt is the first of the
// four. Read by a pointer, the memory is what RFM2gUserMemoryBytes gives.

#include "rmem/error.hpp"
#include "tools/conform/vendor_cards.hpp"

#include <fmt/format.h>

#include <rfm2g_api.h>
#include <cstring>
#include <utility>

namespace tools::conform {

namespace {

constexpr RFM2GEVENTTYPE kEvent = RFM2GEVENT_INTR1;
constexpr std::int64_t kNsInMs = 1'000'000;

void check(RFM2G_STATUS status, const char* call) {
    if (status == RFM2G_SUCCESS) return;
    throw rmem::Error(rmem::Errc::system, fmt::format("{}: {}", call, RFM2gErrorMsg(status)));
}

class Rfm2gCard : public Card {
public:
    Rfm2gCard(const std::string& device, Reading reading) : device_(device), reading_(reading) {
        Rfm2gCard::enter();
    }
    ~Rfm2gCard() override { Rfm2gCard::leave(); }
    void enter() override {
        if (std::exchange(is_open_, true)) return;
        check(RFM2gOpen(device_.data(), &card_), "RFM2gOpen");
        check(RFM2gNodeID(card_, &node_), "RFM2gNodeID");
        check(RFM2gSize(card_, &bytes_), "RFM2gSize");
        check(RFM2gEnableEvent(card_, kEvent), "RFM2gEnableEvent");
        if (reading_ == Reading::by_pointer)
            check(RFM2gUserMemoryBytes(card_, &memory_, 0, bytes_), "RFM2gUserMemoryBytes");
    }
    void leave() override {
        if (std::exchange(is_open_, false)) RFM2gClose(&card_);
    }
    Rfm2gCard(const Rfm2gCard&) = delete;
    Rfm2gCard& operator=(const Rfm2gCard&) = delete;

    std::string name() const override {
        return fmt::format("rfm2g {}, read by {}", device_,
                           memory_ == nullptr ? "calls" : "a pointer");
    }
    unsigned node() const override { return node_; }
    std::size_t size() const override { return bytes_; }
    /// Losses are not told, and there is no snapshot.
    bool offers(Feature feature) const override {
        return feature == Feature::interrupts || feature == Feature::single_bytes ||
               feature == Feature::comes_again;
    }

    void write_word(std::size_t offset, std::uint32_t value) override {
        check(RFM2gPoke32(card_, narrowed(offset), value), "RFM2gPoke32");
    }
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        check(RFM2gWrite(card_, narrowed(offset), const_cast<void*>(from), narrowed(bytes)),
              "RFM2gWrite");
    }
    void write_byte(std::size_t offset, std::uint8_t value) override {
        check(RFM2gPoke8(card_, narrowed(offset), value), "RFM2gPoke8");
    }
    std::uint32_t load(std::size_t offset) override {
        if (memory_ != nullptr) return load_plainly(memory_, offset);
        RFM2G_UINT32 value = 0;
        check(RFM2gPeek32(card_, narrowed(offset), &value), "RFM2gPeek32");
        return value;
    }
    void read(std::size_t offset, void* to, std::size_t bytes) override {
        if (memory_ == nullptr) {
            check(RFM2gRead(card_, narrowed(offset), to, narrowed(bytes)), "RFM2gRead");
        } else {
            read_plainly(memory_, offset, to, bytes);
        }
    }

    void set_write_me_last(bool) override {}
    void send_interrupt(unsigned node, std::uint32_t value) override {
        const auto to = static_cast<RFM2G_NODE>(node == kAllNodes ? RFM2G_NODE_ALL : node);
        check(RFM2gSendEvent(card_, to, kEvent, value), "RFM2gSendEvent");
    }
    std::optional<CardInterrupt> next_interrupt(std::int64_t timeout_ns) override {
        RFM2GEVENTINFO event{};
        event.Event = kEvent;
        event.Timeout = narrowed(static_cast<std::size_t>((timeout_ns + kNsInMs - 1) / kNsInMs));
        const RFM2G_STATUS status = RFM2gWaitForEvent(card_, &event);
        if (status == RFM2G_TIMED_OUT) return std::nullopt;
        check(status, "RFM2gWaitForEvent");
        return CardInterrupt{event.ExtendedInfo, 0};
    }

private:
    std::string device_;
    const Reading reading_;
    bool is_open_ = false;
    RFM2GHANDLE card_ = nullptr;
    RFM2G_NODE node_ = 0;
    RFM2G_UINT32 bytes_ = 0;
    volatile void* memory_ = nullptr;
};

}  // namespace

extern const VendorCard rfm2g_card;  // the 5565 family, by rfm2g_api.h
const VendorCard rfm2g_card{
    "--rfm2g", "An RFM2g card: its device, as RFM2gOpen takes it: /dev/rfm2g0",
    [](const std::string& device, Reading reading) -> std::unique_ptr<Card> {
        return std::make_unique<Rfm2gCard>(device, reading);
    }};

}  // namespace tools::conform
