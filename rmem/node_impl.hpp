// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a Node keeps, for its C++ calls and its C calls: whichever a program uses, a store on
/// `direct` is one call.
/// Contract and thread safety: rmem/node.hpp.

#include "rmem/base/at_fork.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/link/card.hpp"
#include "rmem/link/direct/card.hpp"
#include "rmem/link/inherited_card.hpp"
#include "rmem/node.hpp"
#include "rmem/ring/segment.hpp"
#include "rmem/stores/captured.hpp"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

struct rmem_node;

namespace rmem {

class Node::Impl final : private AtFork {
public:
    static Impl& of(Node& node) noexcept { return *node.impl_; }

    explicit Impl(std::unique_ptr<Card> card)
        : own_(std::move(card)),
          in_child_(*own_),
          card_(own_.get()),
          direct_(dynamic_cast<DirectCard*>(card_)),
          bank_(card_->bank()),
          size_(card_->config().user_bytes),
          words_(size_ / kWordBytes),
          published_(static_cast<std::uint32_t>(program_now_ns()) * 2654435761U +
                     card_->member().rank) {}

    const std::byte* bank() const noexcept { return bank_; }
    /// The user's memory for its program: mapped once more, alone, when it is asked for first.
    std::byte* memory() {
        if (memory_.data() == nullptr && card_->ring() != nullptr) {
            // Where a store is not the transfer nothing is stored here.
            memory_ = card_->ring()->segment().map_again(
                bank_, size_,
                is_direct() ? Mapping::Access::load_and_store : Mapping::Access::load);
        }
        return memory_.data() != nullptr ? memory_.data() : bank_;
    }
    std::size_t size() const noexcept { return size_; }
    Card& card() const noexcept { return *card_; }
    /// Null: of another link, in a ring that looks after owners, or in a forked child.
    DirectCard* direct() const noexcept { return direct_; }
    bool is_direct() const { return card_->config().link == LinkKind::direct; }
    /// What `call` gives with the card, by its type where a store is the transfer: there a virtual
    /// call costs as much as the access.
    template <class Call>
    [[gnu::always_inline]] auto with_card(Call call) const {
        if (direct_ != nullptr) return call(*direct_);
        return call(*card_);
    }
    /// The right to use the card, where a store of the program may come in between.
    CapturedStores::Hold hold() const { return CapturedStores::Hold(captured_.get()); }
    /// Null: none are captured.
    CapturedStores* captured() const noexcept { return captured_.get(); }
    void capture(StoresMode mode) {
        captured_ = std::make_unique<CapturedStores>(card_->for_stores(), mode);
    }

    std::uint32_t word(std::size_t offset) const noexcept {
        // (1) - this acquire-load synchronizes-with the release-stores rmem/link/direct/card.hpp
        // (1) and rmem/base/word_block.hpp (1); in a simulated world there is one thread
        return reinterpret_cast<const std::atomic<std::uint32_t>*>(bank_ + offset)
            ->load(std::memory_order_acquire);
    }

    void check_range(std::size_t offset, std::size_t bytes) const {
        if (offset > size_ || bytes > size_ - offset) [[unlikely]]
            refuse_range(offset, bytes);
    }
    void check_word(std::size_t offset) const {
        if (!is_word(offset)) [[unlikely]]
            refuse_word(offset);
    }
    /// One comparison: an offset that is no multiple of the word becomes a huge number.
    bool is_word(std::size_t offset) const noexcept {
        return std::rotr(offset, std::countr_zero(kWordBytes)) < words_;
    }
    /// A write where a store is the transfer. False: it is not, or there is no such word.
    [[nodiscard, gnu::always_inline]] bool store_word(std::size_t offset, std::uint32_t value) {
        if (direct_ == nullptr || !is_word(offset)) [[unlikely]]
            return false;
        direct_->write_word(offset, value);
        return true;
    }
    /// The same, of bytes within a word.
    [[nodiscard, gnu::always_inline]] bool store_bytes(std::size_t offset, const void* from,
                                                       std::size_t bytes) {
        if (direct_ == nullptr) return false;
        if (bytes == 1 && offset < size_) {
            direct_->write_byte(offset, *static_cast<const std::uint8_t*>(from));
            return true;
        }
        const std::size_t inside = offset % kWordBytes;
        if (bytes - 1 >= kWordBytes - inside || offset > size_ - bytes) return false;
        direct_->write_part(offset - inside, word_with(from, inside, bytes),
                            part_of_word(inside, bytes));
        return true;
    }
    void read(std::size_t offset, std::byte* to, std::size_t bytes) const noexcept;
    /// The number of the last publication. It begins anywhere: a writer that has died may have left
    /// numbers in others' banks that the own one does not show.
    std::atomic<std::uint32_t>& publications() noexcept { return published_; }
    void check_published(std::size_t offset, std::size_t bytes) const {
        check_word(offset);
        check_range(offset, bytes <= size_ ? published_bytes(bytes) : bytes);
    }
    template <class C>
    WriteResult write(C& card, std::size_t offset, const std::byte* from, std::size_t bytes);
    /// Of a word, or of bytes of it. Out of line: what a store on `direct` does needs no stack.
    [[gnu::noinline]] WriteResult write_part(std::size_t offset, std::uint32_t value,
                                             WordPart part);
    /// In the middle of a wait.
    template <class C>
    void give_way(C& card, CapturedStores::Hold& held, std::optional<std::size_t> awaited) {
        card.end_wait();
        held.give_way();
        card.begin_wait(awaited);
    }
    template <class C>
    std::uint32_t wait_change(C& card, std::size_t offset, std::uint32_t old, Deadline deadline);
    /// The result of a write without room.
    WriteResult refusal() const {
        return card_->is_member() ? WriteResult::again : WriteResult::dropped;
    }

private:
    [[noreturn]] void refuse_range(std::size_t offset, std::size_t bytes) const;
    [[noreturn]] void refuse_word(std::size_t offset) const;
    void in_child() noexcept override {
        card_ = &in_child_;
        direct_ = nullptr;
        static_cast<void>(captured_.release());  // another thread may have held its lock
    }

    std::unique_ptr<Card> own_;
    InheritedCard in_child_;
    Card* card_;          ///< the own one, or in a forked child that
    DirectCard* direct_;  ///< the own one, by its type; null: of another link, or in a child
    std::byte* bank_;
    std::size_t size_;
    std::size_t words_;  ///< whole ones
    Mapping memory_;     ///< the program's, if it has asked for it
    std::atomic<std::uint32_t> published_;
    std::unique_ptr<CapturedStores> captured_;  // last: it uses the card
};

/// That of a C program.
RMEM_API Node& node_of(::rmem_node& node) noexcept;

}  // namespace rmem
