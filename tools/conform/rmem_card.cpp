// SPDX-License-Identifier: Apache-2.0
#include "tools/conform/rmem_card.hpp"

#include "rmem/error.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <stdexcept>
#include <utility>

namespace tools::conform {

namespace {

constexpr unsigned kNumber = 17;  // of the interrupts: no program of a rig's takes them for its own

int checked(int code) {
    if (code < 0) throw std::runtime_error(rmem_last_error());
    return code;
}

class RmemCard : public Card {
public:
    RmemCard(OpenNode open, Reading reading) : open_(std::move(open)), reading_(reading) {
        RmemCard::enter();
    }
    void enter() override {
        if (node_) return;
        int code = 0;
        node_.reset(open_(code));
        checked(code);
        checked(rmem_accept_interrupts(node_.get(), std::uint64_t{1} << kNumber));
        if (reading_ == Reading::by_call) return;
        bank_ = rmem_bank(node_.get());
        if (bank_ == nullptr) throw std::runtime_error(rmem_last_error());
    }
    void leave() override { node_.reset(); }

    std::string name() const override {
        return fmt::format("rmem {}, read by {}", RMEM_TOOL_VERSION,
                           bank_ == nullptr ? "calls" : "a pointer");
    }
    unsigned node() const override { return static_cast<unsigned>(rmem_id(node_.get())); }
    std::size_t size() const override { return rmem_size(node_.get()); }
    bool offers(Feature) const override { return true; }

    void write_word(std::size_t offset, std::uint32_t value) override {
        with_room([&] { return rmem_write_word(node_.get(), offset, value); });
    }
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        with_room([&] { return rmem_write(node_.get(), offset, from, bytes); });
    }
    void write_byte(std::size_t offset, std::uint8_t value) override {
        write(offset, &value, sizeof value);
    }
    std::uint32_t load(std::size_t offset) override {
        return bank_ != nullptr ? load_plainly(bank_, offset) : rmem_load(node_.get(), offset);
    }
    void read(std::size_t offset, void* to, std::size_t bytes) override {
        if (bank_ == nullptr) {
            checked(rmem_read(node_.get(), offset, to, bytes));
        } else {
            read_plainly(bank_, offset, to, bytes);
        }
    }

    void set_write_me_last(bool on) override {
        checked(rmem_set_write_me_last(node_.get(), on ? 1 : 0));
    }
    void send_interrupt(unsigned node, std::uint32_t value) override {
        const int to = node == kAllNodes ? RMEM_ALL_NODES : static_cast<int>(node);
        with_room([&] { return rmem_send_interrupt(node_.get(), to, kNumber, value); });
    }
    std::optional<CardInterrupt> next_interrupt(std::int64_t timeout_ns) override {
        rmem_interrupt taken;
        const int code = rmem_next_interrupt(node_.get(), &taken, timeout_ns);
        if (code == RMEM_ETIMEDOUT) return std::nullopt;
        checked(code);
        return CardInterrupt{taken.value, taken.missed};
    }

private:
    template <class Call>
    void with_room(Call call) {
        int code = 0;
        while ((code = call()) == RMEM_EAGAIN) {
            checked(rmem_poll(node_.get()));
            ::sched_yield();
        }
        checked(code);
    }

    struct Close {
        void operator()(rmem_node* node) const noexcept { rmem_close(node); }
    };
    const OpenNode open_;
    const Reading reading_;
    std::unique_ptr<rmem_node, Close> node_;
    const void* bank_ = nullptr;
};

}  // namespace

std::unique_ptr<Card> card_of(OpenNode open, Reading reading) {
    return std::make_unique<RmemCard>(std::move(open), reading);
}

}  // namespace tools::conform
