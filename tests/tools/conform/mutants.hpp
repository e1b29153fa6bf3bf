// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Cards that break one rule each, on top of one that keeps them all.
///
/// Where a break can be seen for a moment only, the card sleeps in that moment now and then, so
/// that somebody looks.

#include "tools/conform/card.hpp"

#include <unistd.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rmem::test {

using tools::conform::Card;
using tools::conform::CardInterrupt;
using tools::conform::Feature;

/// Keeps all rules.
class Faithful : public Card {
public:
    explicit Faithful(std::unique_ptr<Card> card) : card_(std::move(card)) {}

    std::string name() const override { return card_->name(); }
    unsigned node() const override { return card_->node(); }
    std::size_t size() const override { return card_->size(); }
    bool offers(Feature feature) const override { return card_->offers(feature); }
    void write_word(std::size_t offset, std::uint32_t value) override {
        call().write_word(offset, value);
    }
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        call().write(offset, from, bytes);
    }
    void write_byte(std::size_t offset, std::uint8_t value) override {
        call().write_byte(offset, value);
    }
    std::uint32_t load(std::size_t offset) override { return call().load(offset); }
    void read(std::size_t offset, void* to, std::size_t bytes) override {
        call().read(offset, to, bytes);
    }
    void set_write_me_last(bool on) override { call().set_write_me_last(on); }
    void leave() override { call().leave(); }
    void enter() override { call().enter(); }
    void send_interrupt(unsigned node, std::uint32_t value) override {
        call().send_interrupt(node, value);
    }
    std::optional<CardInterrupt> next_interrupt(std::int64_t timeout_ns) override {
        return call().next_interrupt(timeout_ns);
    }

protected:
    /// Before each of these.
    virtual void prepare() {}
    void be_seen() {
        if (is_a_moment()) look();
    }
    bool is_a_moment() {
        constexpr unsigned kOften = 4;
        return ++moments_ % kOften == 0;
    }
    static void look() { ::usleep(300); }

    std::unique_ptr<Card> card_;

private:
    Card& call() {
        prepare();
        return *card_;
    }

    unsigned moments_ = 0;
};

/// Holds something back: until the next call, or until something else has been sent first.
struct HoldsBack : Faithful {
    using Faithful::Faithful;

protected:
    void prepare() final { release(); }
    void hold(std::size_t offset, const void* from, std::size_t bytes) {
        release();
        offset_ = offset;
        const auto* begin = static_cast<const std::byte*>(from);
        held_.assign(begin, begin + bytes);
    }
    bool holds() const { return !held_.empty(); }
    /// What is held comes after what has been sent before.
    void be_overtaken() {
        if (holds()) be_seen();
        release();
    }
    void release() {
        if (!holds()) return;
        const auto held = std::exchange(held_, {});
        if (held.size() == 4) {
            std::uint32_t word = 0;
            std::memcpy(&word, held.data(), sizeof word);
            card_->write_word(offset_, word);
        } else {
            card_->write(offset_, held.data(), held.size());
        }
    }

    std::size_t offset_ = 0;  ///< of what is held

private:
    std::vector<std::byte> held_;
};

struct SwapsWords : HoldsBack {
    using HoldsBack::HoldsBack;
    void write_word(std::size_t offset, std::uint32_t value) override {
        if (offset_ == offset) release();  // one word's values are another rule's
        if (!holds()) {
            hold(offset, &value, sizeof value);
            return;
        }
        card_->write_word(offset, value);
        be_overtaken();
    }
};

struct SendsTheFlagFirst : HoldsBack {
    using HoldsBack::HoldsBack;
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        hold(offset, from, bytes);
    }
    void write_word(std::size_t offset, std::uint32_t value) override {
        card_->write_word(offset, value);
        be_overtaken();
    }
};

struct SendsTheInterruptFirst : HoldsBack {
    using HoldsBack::HoldsBack;
    void write_word(std::size_t offset, std::uint32_t value) override {
        hold(offset, &value, sizeof value);
    }
    void send_interrupt(unsigned node, std::uint32_t value) override {
        card_->send_interrupt(node, value);
        be_overtaken();
    }
};

/// Sends two words where one was written, as a card does that has wider ones.
struct ClobbersTheNext : Faithful {
    using Faithful::Faithful;
    void write_word(std::size_t offset, std::uint32_t value) override {
        if (offset % 8 != 0) {
            card_->write_word(offset, value);
            return;
        }
        const std::array<std::uint32_t, 2> both{value, card_->load(offset + 4)};
        be_seen();
        card_->write(offset, both.data(), sizeof both);
    }
};

struct SendsTheBlockFirst : HoldsBack {
    using HoldsBack::HoldsBack;
    void write_word(std::size_t offset, std::uint32_t value) override {
        hold(offset, &value, sizeof value);
    }
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        card_->write(offset, from, bytes);
        be_overtaken();
    }
};

/// Sends a byte's whole word, with what it wrote there itself in the rest of it.
struct WidensBytes : Faithful {
    using Faithful::Faithful;
    void write_byte(std::size_t offset, std::uint8_t value) override {
        auto& own = own_[offset / 4];
        own[offset % 4] = value;
        card_->write(offset / 4 * 4, own.data(), sizeof own);
    }

private:
    std::map<std::size_t, std::array<std::uint8_t, 4>> own_;
};

/// Sends a byte's whole word, with what it has last seen there in the rest of it.
struct CompletesBytes : Faithful {
    using Faithful::Faithful;
    void write_byte(std::size_t offset, std::uint8_t value) override {
        auto& word = seen_[offset / 4];
        word[offset % 4] = value;
        card_->write(offset / 4 * 4, word.data(), sizeof word);
    }
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        card_->write(offset, from, bytes);
        for (std::size_t at = 0; at < bytes; at += 4)
            std::memcpy(seen_[(offset + at) / 4].data(), static_cast<const std::byte*>(from) + at,
                        4);
    }
    std::uint32_t load(std::size_t offset) override {
        const std::uint32_t value = card_->load(offset);
        seen_[offset / 4] = std::bit_cast<std::array<std::uint8_t, 4>>(value);
        return value;
    }
    void read(std::size_t offset, void* to, std::size_t bytes) override {
        for (std::size_t at = 0; at < bytes; at += 4) {
            const std::uint32_t value = load(offset + at);
            std::memcpy(static_cast<std::byte*>(to) + at, &value, sizeof value);
        }
    }

private:
    std::map<std::size_t, std::array<std::uint8_t, 4>> seen_;
};

/// Has no room for a long burst, and does not say so.
struct DropsWords : Faithful {
    using Faithful::Faithful;
    void write_word(std::size_t offset, std::uint32_t value) override {
        constexpr unsigned kRoom = 1024;
        if (++waiting_ <= kRoom) card_->write_word(offset, value);
    }
    std::uint32_t load(std::size_t offset) override {
        waiting_ = 0;
        return card_->load(offset);
    }

private:
    unsigned waiting_ = 0;
};

struct TearsWords : Faithful {
    using Faithful::Faithful;
    void write_word(std::size_t offset, std::uint32_t value) override {
        constexpr std::uint32_t kHalf = 0xffff;
        card_->write_word(offset, (card_->load(offset) & ~kHalf) | (value & kHalf));
        be_seen();
        card_->write_word(offset, value);
    }
};

/// Sends an old value again, between two of the same word.
struct BringsBack : Faithful {
    using Faithful::Faithful;
    void write_word(std::size_t offset, std::uint32_t value) override {
        card_->write_word(offset, value);
        const auto last = std::exchange(last_, {offset, value});
        if (last.first != offset) return;
        const bool is_seen = is_a_moment();
        if (is_seen) look();
        card_->write_word(offset, last.second);
        if (is_seen) look();
        card_->write_word(offset, value);
    }
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        last_ = {};
        card_->write(offset, from, bytes);
    }
    std::uint32_t load(std::size_t offset) override {
        last_ = {};
        return card_->load(offset);
    }

private:
    std::pair<std::size_t, std::uint32_t> last_{};
};

/// Does not take an own write off the ring: it overwrites the one after it.
struct EchoesOwnWrites : Faithful {
    using Faithful::Faithful;
    void write_word(std::size_t offset, std::uint32_t value) override {
        card_->write_word(offset, value);
        const auto last = std::exchange(last_, {offset, value});
        echo_.reset();
        if (last.first == offset) echo_ = last.second;
    }
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        card_->write(offset, from, bytes);
        last_ = {};
    }
    std::uint32_t load(std::size_t offset) override {
        const auto echo = std::exchange(echo_, {});
        return echo && last_.first == offset ? *echo : card_->load(offset);
    }

private:
    std::pair<std::size_t, std::uint32_t> last_{};
    std::optional<std::uint32_t> echo_;  ///< of the word that was written last
};

struct MixesWriters : Faithful {
    using Faithful::Faithful;
    void write_word(std::size_t offset, std::uint32_t value) override {
        const std::uint32_t there = card_->load(offset);
        const bool is_mine = own_.contains(offset) && own_[offset] == there;
        const std::uint32_t mixed = is_mine || there == 0 ? value : value ^ there;
        card_->write_word(offset, mixed);
        own_[offset] = mixed;
    }

private:
    std::map<std::size_t, std::uint32_t> own_;
};

struct IgnoresWriteMeLast : Faithful {
    using Faithful::Faithful;
    void set_write_me_last(bool) override {}
};

/// Forgets what it sent while it was alone.
struct ForgetsTheFirst : Faithful {
    using Faithful::Faithful;
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        if (std::exchange(is_first_, false)) return;
        card_->write(offset, from, bytes);
    }

private:
    bool is_first_ = true;
};

/// With write-me-last, more than a FIFO of own writes is on its way.
struct KeepsMuchBack : Faithful {
    using Faithful::Faithful;
    void set_write_me_last(bool on) override {
        is_last_ = on;
        if (!on) written_.clear();
        card_->set_write_me_last(on);
    }
    void write_word(std::size_t offset, std::uint32_t value) override {
        if (is_last_) written_[offset].push_back(value);
        card_->write_word(offset, value);
    }
    std::uint32_t load(std::size_t offset) override {
        constexpr std::size_t kBack = 1500;
        const auto& own = written_[offset];
        const bool shows_old = own.size() > kBack && ++looks_ % 2 == 0;
        return shows_old ? own[own.size() - kBack] : card_->load(offset);
    }

private:
    bool is_last_ = false;
    unsigned looks_ = 0;
    std::map<std::size_t, std::vector<std::uint32_t>> written_;
};

/// A node that is entered again shows what it had long before, once.
struct RemembersTooWell : Faithful {
    using Faithful::Faithful;
    void enter() override {
        card_->enter();
        if (enters_++ == 0) old_looks_ = 2;  // one of each member's word
    }
    std::uint32_t load(std::size_t offset) override {
        return old_looks_ == 0 ? card_->load(offset) : (--old_looks_, 0);
    }

private:
    unsigned enters_ = 0, old_looks_ = 0;
};

/// What one that was killed has written stays in its own bank.
struct KeepsTheUnsent : Faithful {
    using Faithful::Faithful;
    void leave() override {
        card_->leave();
        ++times_;
    }
    void read(std::size_t offset, void* to, std::size_t bytes) override {
        card_->read(offset, to, bytes);
        if (node() == 0 && times_ != 0 && bytes >= 512) *static_cast<std::uint8_t*>(to) ^= 1;
    }

private:
    unsigned times_ = 0;
};

struct LosesInterrupts : Faithful {
    using Faithful::Faithful;
    std::optional<CardInterrupt> next_interrupt(std::int64_t timeout_ns) override {
        auto taken = card_->next_interrupt(timeout_ns);
        if (taken && ++count_ % 50 == 0) return card_->next_interrupt(timeout_ns);
        return taken;
    }

private:
    unsigned count_ = 0;
};

struct DeniesLosses : Faithful {
    using Faithful::Faithful;
    std::optional<CardInterrupt> next_interrupt(std::int64_t timeout_ns) override {
        auto taken = card_->next_interrupt(timeout_ns);
        if (taken) taken->missed = 0;
        return taken;
    }
};

struct SendsNothingToAll : Faithful {
    using Faithful::Faithful;
    void send_interrupt(unsigned node, std::uint32_t value) override {
        if (node != tools::conform::kAllNodes) card_->send_interrupt(node, value);
    }
};

struct RepeatsInterrupts : Faithful {
    using Faithful::Faithful;
    std::optional<CardInterrupt> next_interrupt(std::int64_t timeout_ns) override {
        if (again_) return std::exchange(again_, {});
        auto taken = card_->next_interrupt(timeout_ns);
        if (taken && ++count_ % 50 == 0) again_ = CardInterrupt{taken->value, 0};
        return taken;
    }

private:
    unsigned count_ = 0;
    std::optional<CardInterrupt> again_;
};

}  // namespace rmem::test
