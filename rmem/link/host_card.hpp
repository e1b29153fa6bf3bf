// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The card of a process of this host: the common part of such cards, for all links.
/// Contract and thread safety: rmem/link/card.hpp.

#include "rmem/link/card.hpp"
#include "rmem/link/seat.hpp"
#include "rmem/ring/interrupt_helper.hpp"

#include <memory>
#include <utility>

namespace rmem {

/// A rank's membership of a ring in shared memory, as a card shows it.
class HostCard : public Card {
public:
    const RingConfig& config() const final { return member_.ring().config(); }
    Member member() const final { return {member_.rank(), member_.node()}; }
    const Ring* ring() const final { return &member_.ring(); }
    std::uint64_t counter(LinkCounter id) const final;
    const Histogram& propagation() const final;
    std::byte* bank() const final { return member_.ring().bank(member_.node()); }

protected:
    explicit HostCard(std::shared_ptr<Membership> member)
        : seat_(std::move(member)), member_(*seat_) {}

private:
    std::shared_ptr<Membership> seat_;  ///< the process's part of the rank

protected:
    Membership& member_;
};

/// The membership of a seat, which stays for as long.
template <class M>
std::shared_ptr<Membership> membership_of(const std::shared_ptr<Seat<M>>& seat) {
    return {seat, &seat->member};
}

/// Interrupts that a thread of this process hands out, if they are to be.
class HostInterrupts final : public CardInterrupts {
public:
    /// `source` may be null; it outlives this.
    HostInterrupts(Ring& ring, unsigned rank, InterruptBoard& board,
                   InterruptSource* source = nullptr)
        : ring_(ring), rank_(rank), board_(board), source_(source) {}

    void watch(std::size_t offset, std::size_t bytes, Trigger trigger) override {
        board_.watch(offset, bytes, trigger);
    }
    void unwatch(std::size_t offset, std::size_t bytes) override { board_.unwatch(offset, bytes); }
    void mark(std::size_t offset, std::size_t bytes) override { board_.mark(offset, bytes); }
    void unmark(std::size_t offset, std::size_t bytes) override { board_.unmark(offset, bytes); }
    void accept(std::uint64_t numbers) override { board_.accept(numbers); }
    std::optional<Interrupt> take() override { return helper_ ? helper_->take() : board_.take(); }
    int fd() override { return helper().fd(); }
    void on_interrupt(std::function<void(const Interrupt&)> callback) override {
        helper().on_interrupt(std::move(callback));
    }

private:
    InterruptHelper& helper();

    Ring& ring_;
    const unsigned rank_;
    InterruptBoard& board_;
    InterruptSource* const source_;
    std::unique_ptr<InterruptHelper> helper_;
};

}  // namespace rmem
