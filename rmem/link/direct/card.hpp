// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node's card on the `direct` link: a store is the transfer, the rest is what a card does
/// besides.
///
/// Every word is stored as one 4-byte release, so a reader that acquired a word of a later write
/// may read an earlier one plainly. There is always room; flush and write-me-last are true by
/// nature. Propagation is sampled (rmem/ring/propagation_samples.hpp).
/// Contract and thread safety: rmem/link/card.hpp.

#include "rmem/link/direct/memory.hpp"
#include "rmem/link/host_card.hpp"
#include "rmem/ring/propagation_samples.hpp"

namespace rmem {

class DirectCard final : public HostCard {
public:
    explicit DirectCard(const std::shared_ptr<Seat<DirectMemory>>& seat);

    bool is_alive(unsigned rank) const override { return ring_.is_alive(rank); }

    bool room(std::size_t) override { return true; }
    void write(std::size_t offset, const void* from, std::size_t bytes) override;
    void commit() override;
    bool flush(Deadline deadline) override;
    void poll() override {}
    void give_way() override { waiter_.give_way(); }
    void before_load(std::size_t) override {}
    void keep_applying() override {}

    void begin_wait(std::optional<std::size_t>) override { waiter_.begin(); }
    Step wait(Deadline deadline) override { return waiter_.step(deadline); }
    void end_wait() override { waiter_.end(); }
    void has_seen(std::size_t offset, std::uint32_t value, std::int64_t waited_since_ns) override;

    void set_write_me_last(bool) override {}
    void set_data_filter(bool on) override { filter_ = on; }
    CardInterrupts& interrupts() override { return interrupts_; }
    std::int64_t bound_ns() const override { return samples_.bound_ns(); }
    void on_bound_violation(std::function<void(const BoundViolation&)> callback) override {
        on_violation_ = std::move(callback);
    }

private:
    std::atomic<std::uint32_t>& word(std::size_t offset) const noexcept {
        return *reinterpret_cast<std::atomic<std::uint32_t>*>(bank_ + offset);
    }
    void store(std::size_t offset, const std::byte* from, std::size_t bytes);
    void store_changed(std::size_t offset, const std::byte* from, std::size_t bytes);

    Ring& ring_;
    const unsigned node_;
    const unsigned rank_;
    std::byte* const bank_;
    Counters& sent_;
    std::atomic<std::uint32_t>* const attention_;
    Waiter waiter_;
    InterruptBoard board_;
    PropagationSamples samples_;
    unsigned until_stamp_ = kStampEvery;
    bool filter_ = false;
    std::function<void(const BoundViolation&)> on_violation_;
    HostInterrupts interrupts_;  // last: it uses the board
};

}  // namespace rmem
